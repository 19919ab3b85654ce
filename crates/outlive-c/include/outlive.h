/* The C interface of outlive: shared-memory messaging and locks that survive kill -9.
 *
 * Made from crates/outlive-c/src by `make header`; a test compares the two.
 *
 * Calls return an outlive_status, 0 for success, unless noted; outlive_last_error() has the details.
 * Free handles with their _close or _free, which accept NULL; other calls reject NULL. Handles of
 * ports, and the samples, messages, slots and loans that they lend, are for one thread at a time;
 * nodes, watches, locks, sets, interrupts and types are for any thread, and any thread may release a
 * sample. Deadlines are instants of CLOCK_MONOTONIC in ns: OUTLIVE_NO_WAIT (0) does not wait,
 * OUTLIVE_FOREVER does.
 *
 * Settings begin with their size, so newer versions may add to them. What calls fill in keeps its
 * size: its reserved words are 0 until a newer version puts something there.
 *
 * Nothing here survives fork: the child opens a node of its own.
 *
 * Do not cancel a thread that may be in a call (pthread_cancel): that aborts the process, or what
 * the call held stays held. To end a wait, give it a deadline, or wait with outlive_waitset_wait for
 * an outlive_interrupt as well, and raise that.
 *
 * The examples start with an open `node`, the `type` of a pose (made at outlive_type_fixed), the
 * number `camera_id` of another node, and must(), which ends the program if a call fails.
 *
 * Example:
 *
 *     static void must(outlive_status status) {
 *         if (status != OUTLIVE_OK) {
 *             fprintf(stderr, "%s: %s\n", outlive_strerror(status), outlive_last_error());
 *             exit(1);
 *         }
 *     }
 */

#ifndef OUTLIVE_H
#define OUTLIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Do not wait.
#define OUTLIVE_NO_WAIT 0

// Wait for ever; a peer's death still ends the wait.
#define OUTLIVE_FOREVER UINT64_MAX

// What a call returns: 0 is success. The numbers never change; new ones may be added.
typedef enum outlive_status {
    // Done.
    OUTLIVE_OK = 0,
    // A name breaks the rules for names.
    OUTLIVE_INVALID_NAME = 1,
    // An argument is NULL or outside its documented range.
    OUTLIVE_INVALID_ARGUMENT = 2,
    // The object exists with another type, size, alignment, encoding or description.
    OUTLIVE_TYPE_MISMATCH = 3,
    // The object was made by another layout version or another byte order.
    OUTLIVE_VERSION_MISMATCH = 4,
    // Shared bytes or a file are not what the layout says.
    OUTLIVE_CORRUPT = 5,
    // The RAM disk or a quota is full.
    OUTLIVE_NO_SPACE = 6,
    // A directory or file belongs to someone else; a lock is not held by the calling thread.
    OUTLIVE_NOT_OWNED = 7,
    // The kernel refused for lack of permission.
    OUTLIVE_PERMISSION = 8,
    // No such topic, node or file.
    OUTLIVE_NOT_FOUND = 9,
    // The object exists already.
    OUTLIVE_ALREADY_EXISTS = 10,
    // The deadline passed.
    OUTLIVE_TIMEOUT = 11,
    // There is nothing now, or the call would have to wait.
    OUTLIVE_WOULD_BLOCK = 12,
    // The bound on memory of the topic or of the process is reached.
    OUTLIVE_OUT_OF_MEMORY = 13,
    // The subscriber holds as many samples as it asked for.
    OUTLIVE_TOO_MANY_BORROWS = 14,
    // A documented bound on members is reached.
    OUTLIVE_TOO_MANY_MEMBERS = 15,
    // The peer is dead. Of a lock: it is taken, and its last owner died inside.
    OUTLIVE_OWNER_DIED = 16,
    // The queue has a live consumer already.
    OUTLIVE_CONSUMER_EXISTS = 17,
    // The service has no live server, or it died before it answered.
    OUTLIVE_SERVER_DIED = 18,
    // The client of a request is dead or gone.
    OUTLIVE_CLIENT_DIED = 19,
    // The server refused the request.
    OUTLIVE_REFUSED = 20,
    // The calling thread holds the lock already.
    OUTLIVE_DEADLOCK = 21,
    // A lock was inherited from a dead owner and released without repair.
    OUTLIVE_UNRECOVERABLE = 22,
    // The object belongs to another domain.
    OUTLIVE_OTHER_DOMAIN = 23,
    // The handle belongs to the parent of this forked process.
    OUTLIVE_FORKED_CHILD = 24,
    // This kernel or build cannot do it.
    OUTLIVE_UNSUPPORTED = 25,
    // Any other answer of the operating system.
    OUTLIVE_IO = 26,
    // A defect of outlive, stopped at this border.
    OUTLIVE_INTERNAL = 27,
    // No message, but an event to look at first.
    OUTLIVE_EVENT = 28,
} outlive_status;

// What happened to a publisher or a producer.
typedef enum outlive_event_kind {
    // It was found.
    OUTLIVE_JOINED = 1,
    // It left cleanly; everything it sent has been received.
    OUTLIVE_LEFT = 2,
    // Its process died; everything it had committed has been received.
    OUTLIVE_DIED = 3,
    // Its bytes are invalid; it is no longer read. `why` says more.
    OUTLIVE_PEER_CORRUPT = 4,
} outlive_event_kind;

// What a member of a wait is.
typedef enum outlive_member_kind {
    // An `outlive_subscriber`: ready while there is a message, and once for each new event.
    OUTLIVE_SUBSCRIBER = 1,
    // An `outlive_consumer`, likewise; also while a message is in hand.
    OUTLIVE_CONSUMER = 2,
    // An `outlive_server`: ready while there is a request.
    OUTLIVE_SERVER = 3,
    // An `outlive_client`: ready while there is a reply, or a request has failed.
    OUTLIVE_CLIENT = 4,
    // An `outlive_watch`: ready while the node is dead; take it out of the list then.
    OUTLIVE_WATCH = 5,
    // An `outlive_timer`: ready while it is due, until `outlive_timer_fired` is called.
    OUTLIVE_TIMER = 6,
    // The descriptor `fd`, ready when it can be read; `object` is NULL.
    OUTLIVE_READABLE_FD = 7,
    // The descriptor `fd`, ready when it can be written; `object` is NULL.
    OUTLIVE_WRITABLE_FD = 8,
    // That `outlive_shutdown_on_signals` was asked to end the process; `object` is NULL.
    OUTLIVE_SHUTDOWN = 9,
    // An `outlive_interrupt`: ready while it is raised.
    OUTLIVE_INTERRUPT = 10,
} outlive_member_kind;

// The asking end of a service. One thread at a time.
typedef struct outlive_client outlive_client;

// Waiting for a change of data under an `outlive_mutex`. Any number of threads may use one handle.
typedef struct outlive_condvar outlive_condvar;

// The one consumer of a queue. One thread at a time.
typedef struct outlive_consumer outlive_consumer;

// Ends waits of this process when another thread or a signal handler raises it. Any thread may use
// it.
typedef struct outlive_interrupt outlive_interrupt;

// A mutex whose owner may be killed at any instruction. Any number of threads may use one handle;
// the owner is a thread.
typedef struct outlive_mutex outlive_mutex;

// A process's membership in a domain. Any thread may use it. Ports keep it alive by themselves.
//
// After `fork` the child is not the node: every call on an inherited handle returns
// `OUTLIVE_FORKED_CHILD`. Open another node there.
typedef struct outlive_node outlive_node;

// Sends messages to the one consumer of a queue. One thread at a time.
typedef struct outlive_producer outlive_producer;

// Sends messages on a topic. One thread at a time.
typedef struct outlive_publisher outlive_publisher;

// An answer, or the news that there will be none. It is the caller's own copy.
typedef struct outlive_reply outlive_reply;

// A request, the caller's own copy. Answer it, refuse it, or free it; then its client waits until
// its deadline, or until the server dies.
typedef struct outlive_request outlive_request;

// A reader/writer lock whose holders may be killed at any instruction. Any number of threads may
// use one handle; at most 64 read at once.
typedef struct outlive_rwlock outlive_rwlock;

// A counting semaphore; a killed holder's permit comes back. Any number of threads may use one
// handle; a permit is a thread's.
typedef struct outlive_semaphore outlive_semaphore;

// The one server of a service. One thread at a time.
typedef struct outlive_server outlive_server;

// A set of numbers that any number of threads and processes change without a lock.
typedef struct outlive_set outlive_set;

// Receives the messages of all publishers of a topic, in order per publisher. One thread at a
// time. Samples outlive it.
typedef struct outlive_subscriber outlive_subscriber;

// Ready once, or periodically. One thread at a time.
typedef struct outlive_timer outlive_timer;

// A payload type: name, size, alignment, encoding, and the fields. May be freed once the ports
// opened with it are open.
typedef struct outlive_type outlive_type;

// Waits until one of several things is ready. One thread at a time.
typedef struct outlive_waitset outlive_waitset;

// Reports a node's death as it happens. Any thread may use it.
typedef struct outlive_watch outlive_watch;

// Settings of a node. Zero and NULL are the defaults; begin with
// `= {.size = sizeof(outlive_node_options)}`.
typedef struct outlive_node_options {
    // `sizeof` of this struct, as the caller was compiled: it tells versions apart.
    size_t size;
    // Shown in listings; the program's name unless given. Need not be unique.
    const char *name;
    // The domain, instead of `$OUTLIVE_DOMAIN` or `default`. Domains do not see each other.
    const char *domain;
    // Directory that holds the domains, instead of `$OUTLIVE_DIR` or `/dev/shm/outlive-<uid>`.
    const char *root;
    // Group whose members may join; 0 for only this user.
    uint32_t group;
    // 0.
    uint32_t reserved_word;
} outlive_node_options;

// A node of a domain.
typedef struct outlive_node_info {
    // Its number in the domain.
    uint64_t id;
    // When it joined, ns of CLOCK_MONOTONIC.
    uint64_t started_ns;
    // Name given at opening; valid during the call.
    const char *name;
    // Process id in the node's own PID namespace; for people only.
    uint32_t pid;
    // Whether it lives.
    bool alive;
    // Reserved; 0 today.
    uint64_t reserved[4];
} outlive_node_info;

// A topic of a domain.
typedef struct outlive_topic_info {
    // Its name; valid during the call.
    const char *name;
    // Name of its type; valid during the call.
    const char *type_name;
    // What payloads look like, as `outlive_type_fixed` takes it; empty if nobody described them.
    // Valid during the call.
    const char *description;
    // Messages per publisher.
    uint64_t depth;
    // Publishers that live and have not left.
    size_t publishers;
    // Subscribers.
    size_t subscribers;
    // Messages published, over all publishers that can still be read.
    uint64_t messages;
    // Shared memory it takes, bytes.
    uint64_t memory_bytes;
    // Reserved; 0 today.
    uint64_t reserved[4];
} outlive_topic_info;

// What `outlive_domain_clean` removed and what it left.
typedef struct outlive_clean_report {
    // Files of dead nodes, and of topics, queues, services and real-time channels.
    size_t files;
    // Whole topics, queues and services; unread messages go with them.
    size_t objects;
    // Locks, sets and segments that nobody has open.
    size_t locks;
    // Nodes that live and were left alone.
    size_t live_nodes;
    // Whether the domain itself was removed, because nobody is left.
    bool domain_removed;
    // Reserved; 0 today.
    uint64_t reserved[3];
} outlive_clean_report;

// Settings of a topic's ports. Zero is the default everywhere; begin with
// `= {.size = sizeof(outlive_topic_options)}`.
typedef struct outlive_topic_options {
    // `sizeof` of this struct, as the caller was compiled: it tells versions apart.
    size_t size;
    // Messages each publisher's ring holds, 1 to 65536; 16 unless the first member asks otherwise.
    uint64_t depth;
    // Subscriber: how many messages from before it joined to receive, at most the depth.
    uint64_t history;
    // Subscriber: how many samples it may hold at once, 1 to 64; 8 by default.
    uint64_t borrows;
    // Publisher: most shared memory for its chunks, bytes; 1 GiB by default.
    uint64_t memory_bytes_max;
    // Publisher: how long one publish waits for the slowest live reliable subscriber, ns; 1 s for
    // NULL, not at all for a value of 0 or less (`OUTLIVE_WOULD_BLOCK`). Read while it is opened.
    const int64_t *reliable_timeout_ns;
    // Subscriber: publishers wait for it before they overwrite a message it has not read: 0 or 1.
    uint32_t reliable;
    // Publisher: drops each message once every subscriber has read it: 0 or 1.
    uint32_t is_volatile;
} outlive_topic_options;

// A writable slot in shared memory, lent by a publisher, which must stay open meanwhile. Write to
// `data`, then publish or drop it. It may be moved as bytes; a copy stands for the same loan:
// whichever is published or dropped first counts, and the others are gone.
typedef struct outlive_loan {
    // Where to write, aligned for the type; holds whatever was there before. NULL: no loan.
    void *data;
    // Bytes there.
    size_t size;
    // outlive's own.
    uint64_t internal[8];
} outlive_loan;

// Who sent a message.
typedef struct outlive_port_id {
    // Number of the node.
    uint64_t node;
    // Number of the port within the node; never reused.
    uint64_t port;
} outlive_port_id;

// Settings of a queue's ends. Zero is the default everywhere; begin with
// `= {.size = sizeof(outlive_queue_options)}`.
typedef struct outlive_queue_options {
    // `sizeof` of this struct, as the caller was compiled: it tells versions apart.
    size_t size;
    // Producer: most shared memory its lane may take, bytes; 64 MiB by default.
    uint64_t bound_bytes;
    // Producer: shared memory its lane takes at first and keeps, bytes; 16 KiB by default.
    uint64_t first_bytes;
    // Consumer: receives in the order of time stamps, held back at most this long, ns. Makes the
    // queue `stamped`; `OUTLIVE_TYPE_MISMATCH` if it exists without stamps.
    uint64_t ordered_holdback_ns;
    // Every message carries a time stamp: 0 or 1. The first member decides.
    uint32_t stamped;
    // 0.
    uint32_t reserved_word;
} outlive_queue_options;

// Room in a producer's lane: write `size` bytes to `data` and commit it. A copy stands for the
// same room: whichever is committed or given back first counts.
typedef struct outlive_slot {
    // Where to write, aligned for the type; holds whatever was there before. NULL: no room.
    void *data;
    // Bytes there.
    size_t size;
    // Which reservation it is.
    uint64_t generation;
    // Reserved; 0 today.
    uint64_t reserved[1];
} outlive_slot;

// A message in its lane. A copy stands for the same message, which is acknowledged or given back
// once.
typedef struct outlive_message {
    // The payload, read-only, until the message is acknowledged or given back.
    const void *data;
    // Bytes there.
    size_t size;
    // Who sent it.
    struct outlive_port_id producer;
    // When it was sent, ns of CLOCK_MONOTONIC; 0 in a queue without time stamps.
    uint64_t timestamp_ns;
    // Which message of this consumer it is.
    uint64_t generation;
    // Reserved; 0 today.
    uint64_t reserved[2];
} outlive_message;

// An event of a subscriber or a consumer.
typedef struct outlive_event {
    // What happened.
    enum outlive_event_kind kind;
    // For a death: it died while writing a message, which nobody ever sees.
    bool unfinished;
    // To whom.
    struct outlive_port_id port;
    // For a death: messages lost after the last one received.
    uint64_t lost;
    // What is wrong, until the next call on the same port; NULL where nothing is.
    const char *why;
    // Reserved; 0 today.
    uint64_t reserved[3];
} outlive_event;

// Settings of a service's ends. Zero is the default everywhere; begin with
// `= {.size = sizeof(outlive_service_options)}`.
typedef struct outlive_service_options {
    // `sizeof` of this struct, as the caller was compiled: it tells versions apart.
    size_t size;
    // Most shared memory for messages in flight from this end to another, bytes; 64 MiB by
    // default.
    uint64_t bound_bytes;
    // Client: unanswered requests are sent again to the next server when one dies: 0 or 1.
    uint32_t resume;
    // 0.
    uint32_t reserved_word;
} outlive_service_options;

// Room for a received message, on the stack or wherever the caller likes. It may be moved as
// bytes: once a copy is released, the original must not be used any more. Release it with
// `outlive_sample_release`, from any thread.
typedef struct outlive_sample {
    // 0: no message. 1: a copy of one. Else where it lies in shared memory.
    uint64_t held;
    // outlive's own.
    uint64_t internal[3];
} outlive_sample;

// Where a message comes from.
typedef struct outlive_meta {
    // Who sent it.
    struct outlive_port_id publisher;
    // Its number among the messages of that publisher, from 0.
    uint64_t seq;
    // When it was published, ns of CLOCK_MONOTONIC.
    uint64_t timestamp_ns;
    // Messages of that publisher lost right before this one.
    uint64_t lost_before;
    // Reserved; 0 today.
    uint64_t reserved[3];
} outlive_meta;

// A permit of a semaphore, which must not be freed before it. It may be moved as bytes: once a
// copy is given back, the original must not be used any more.
typedef struct outlive_permit {
    // 0: none.
    uint32_t held;
    // Which of the permits it is, from 0: for instance the number of a device.
    uint32_t index;
    // Whether the previous holder died with it: what it guards may be inconsistent.
    bool owner_died;
    // Reserved; 0 today.
    uint8_t reserved[7];
    // outlive's own.
    uint64_t internal[6];
} outlive_permit;

// A member of a wait.
typedef struct outlive_member {
    // Its handle.
    void *object;
    // What it is: an `outlive_member_kind`.
    uint32_t kind;
    // The descriptor, where it is one.
    int fd;
    // Set by the wait: whether it is ready.
    bool ready;
    // 0.
    uint8_t reserved[7];
} outlive_member;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Calls `found` with every node of the domain that nodes of these options join, in order of
// joining, including dead ones that nobody has cleaned up. Joins nothing, creates nothing.
// `options` may be NULL. `found` must return: no exception and no `longjmp` may cross the frames
// of this library.
//
// Example:
//
//     static void show_node(const outlive_node_info *info, void *user) {
//         printf("%s is %s\n", info->name, info->alive ? "alive" : "dead");
//         ++*(int *)user;
//     }
//
//     int count = 0;
//     must(outlive_domain_nodes(NULL, show_node, &count));
enum outlive_status outlive_domain_nodes(const struct outlive_node_options *options,
                                         void (*found)(const struct outlive_node_info *info,
                                                       void *user),
                                         void *user);

// Calls `found` with every topic of the domain, in order of names; as `outlive_domain_nodes`.
//
// Example:
//
//     static void show_topic(const outlive_topic_info *info, void *user) {
//         fprintf(user, "%s has %zu publishers\n", info->name, info->publishers);
//     }
//
//     must(outlive_domain_topics(NULL, show_topic, stdout));
enum outlive_status outlive_domain_topics(const struct outlive_node_options *options,
                                          void (*found)(const struct outlive_topic_info *info,
                                                        void *user),
                                          void *user);

// Removes what dead nodes left and nobody uses; leaves the living alone. `options` and `report`
// may be NULL.
//
// Example:
//
//     outlive_clean_report report;
//     must(outlive_domain_clean(NULL, &report));
//     printf("removed %zu files of the dead\n", report.files);
enum outlive_status outlive_domain_clean(const struct outlive_node_options *options,
                                         struct outlive_clean_report *report);

// Opens the mutex `name` of the node's domain, or creates it. `of`: the type of the data it
// protects, NULL for none; it is the same lock as a Rust `RobustMutex` of that type. The creator
// stores `value`, which has the type's size; NULL means zeros.
//
// `OUTLIVE_TYPE_MISMATCH` when the name is of another type or kind of object. The type's name,
// size and alignment are compared; its fields, unlike those of a port's type, are not.
//
// Example:
//
//     outlive_mutex *mutex;
//     must(outlive_mutex_open(node, "/robot/goal", type, NULL, &mutex));
//     struct pose *goal = outlive_mutex_data(mutex);
//     outlive_status status = outlive_mutex_lock(mutex, OUTLIVE_FOREVER);
//     if (status == OUTLIVE_OWNER_DIED) {
//         *goal = (struct pose){0}; // repair what the last owner left half done
//         status = outlive_mutex_mark_consistent(mutex);
//     }
//     must(status);
//     goal->x += 1.0;
//     must(outlive_mutex_unlock(mutex));
//     outlive_mutex_free(mutex);
enum outlive_status outlive_mutex_open(const struct outlive_node *node,
                                       const char *name,
                                       const struct outlive_type *of,
                                       const void *value,
                                       struct outlive_mutex **out);

// Removes the lock, condition variable, semaphore, set or segment `name`; opening it creates it
// again. `removed`, unless NULL, gets whether there was one.
//
// `OUTLIVE_WOULD_BLOCK`: somebody has it open. An unrecoverable lock is removed even then: its
// users get `OUTLIVE_UNRECOVERABLE` until they open it again.
enum outlive_status outlive_lock_remove(const struct outlive_node *node,
                                        const char *name,
                                        bool *removed);

// As `outlive_mutex_open`, with priority inheritance, for threads with real-time priorities: while
// a thread waits, the holder runs with that thread's priority. It is the same lock as a Rust
// `PiMutex`; all calls on an `outlive_mutex` work on it, but it has no condition variable
// (`OUTLIVE_UNSUPPORTED`), cannot lie in memory of your own, and must be released through the
// handle that took it.
//
// `OUTLIVE_UNSUPPORTED`: its members are in another PID namespace.
//
// Example:
//
//     outlive_mutex *bus;
//     must(outlive_pi_mutex_open(node, "/motors/bus", NULL, NULL, &bus));
//     outlive_status status = outlive_mutex_lock(bus, outlive_now_ns() + 1000000); // 1 ms
//     if (status == OUTLIVE_OWNER_DIED) {
//         status = outlive_mutex_mark_consistent(bus); // it has no data to repair
//     }
//     if (status == OUTLIVE_OK) {
//         must(outlive_mutex_unlock(bus));
//     }
//     outlive_mutex_free(bus);
enum outlive_status outlive_pi_mutex_open(const struct outlive_node *node,
                                          const char *name,
                                          const struct outlive_type *of,
                                          const void *value,
                                          struct outlive_mutex **out);

// Bytes a mutex takes in memory of your own, with data of type `of`, or NULL for none.
size_t outlive_mutex_bytes(const struct outlive_type *of);

// Places the mutex in zeroed shared memory of your own, or finds it there. `memory` is aligned to
// 64 or to the type, has `size` bytes, at least `outlive_mutex_bytes`, is mapped MAP_SHARED, and
// stays mapped until the handle is freed.
//
// Example:
//
//     size_t size = outlive_mutex_bytes(type);
//     void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
//     outlive_mutex *mutex;
//     must(outlive_mutex_place(node, memory, size, type, &mutex));
//     must(outlive_mutex_lock(mutex, OUTLIVE_FOREVER)); // then as at outlive_mutex_open
//     must(outlive_mutex_unlock(mutex));
//     outlive_mutex_free(mutex);
//     munmap(memory, size);
enum outlive_status outlive_mutex_place(const struct outlive_node *node,
                                        void *memory,
                                        size_t size,
                                        const struct outlive_type *of,
                                        struct outlive_mutex **out);

// Takes the lock, waiting until `deadline_ns` for as long as its owner lives and holds it.
//
// `OUTLIVE_OWNER_DIED`: it is taken, and its last owner died inside. Repair the data and call
// `outlive_mutex_mark_consistent`, or leave that to the next one with `outlive_mutex_abandon`;
// unlocking it as it is makes it unrecoverable. Otherwise it is not taken: `OUTLIVE_WOULD_BLOCK`,
// `OUTLIVE_TIMEOUT`, `OUTLIVE_DEADLOCK` when this thread holds it already,
// `OUTLIVE_UNRECOVERABLE` (see `outlive_lock_remove`).
enum outlive_status outlive_mutex_lock(const struct outlive_mutex *mutex, uint64_t deadline_ns);

// Releases the lock. `OUTLIVE_NOT_OWNED` when the calling thread does not hold it.
enum outlive_status outlive_mutex_unlock(const struct outlive_mutex *mutex);

// Releases the lock with its data inconsistent, left so by the caller or inherited from a dead
// owner: the next one to lock gets `OUTLIVE_OWNER_DIED`. Else as `outlive_mutex_unlock`.
enum outlive_status outlive_mutex_abandon(const struct outlive_mutex *mutex);

// Declares the data inherited from a dead owner consistent again. Data that is consistent already
// stays so. `OUTLIVE_NOT_OWNED` when the calling thread does not hold the lock.
enum outlive_status outlive_mutex_mark_consistent(const struct outlive_mutex *mutex);

// The protected data, for the thread that holds the lock; none without a type. NULL for NULL.
void *outlive_mutex_data(const struct outlive_mutex *mutex);

// Frees the handle. The lock stays. NULL does nothing.
void outlive_mutex_free(struct outlive_mutex *mutex);

// Opens the reader/writer lock `name`, or creates it; as `outlive_mutex_open`.
//
// Example:
//
//     outlive_rwlock *lock;
//     must(outlive_rwlock_open(node, "/map/origin", type, NULL, &lock));
//     struct pose *origin = outlive_rwlock_data(lock);
//     outlive_status status = outlive_rwlock_write(lock, OUTLIVE_FOREVER);
//     if (status == OUTLIVE_OWNER_DIED) {
//         *origin = (struct pose){0}; // repair what the last writer left half done
//         status = outlive_rwlock_mark_consistent(lock);
//     }
//     must(status);
//     origin->x += 1.0;
//     must(outlive_rwlock_unlock_write(lock)); // readers: outlive_rwlock_read, _unlock_read
//     outlive_rwlock_free(lock);
enum outlive_status outlive_rwlock_open(const struct outlive_node *node,
                                        const char *name,
                                        const struct outlive_type *of,
                                        const void *value,
                                        struct outlive_rwlock **out);

// Bytes a reader/writer lock takes in memory of your own; as `outlive_mutex_bytes`.
size_t outlive_rwlock_bytes(const struct outlive_type *of);

// Places the lock in zeroed shared memory of your own; as `outlive_mutex_place`.
enum outlive_status outlive_rwlock_place(const struct outlive_node *node,
                                         void *memory,
                                         size_t size,
                                         const struct outlive_type *of,
                                         struct outlive_rwlock **out);

// Takes the lock for reading, waiting until `deadline_ns` while a living writer holds it.
//
// `OUTLIVE_OWNER_DIED`: not taken; a writer died inside, and somebody must take it for writing and
// repair the data. A dead reader keeps nobody out. Else as `outlive_mutex_lock`.
enum outlive_status outlive_rwlock_read(const struct outlive_rwlock *lock, uint64_t deadline_ns);

// Ends reading. `OUTLIVE_NOT_OWNED` when the calling thread does not read.
enum outlive_status outlive_rwlock_unlock_read(const struct outlive_rwlock *lock);

// Takes the lock for writing, waiting until `deadline_ns` for living readers and writers. Returns
// the same as `outlive_mutex_lock`.
enum outlive_status outlive_rwlock_write(const struct outlive_rwlock *lock, uint64_t deadline_ns);

// Ends writing. `OUTLIVE_NOT_OWNED` when the calling thread does not write.
enum outlive_status outlive_rwlock_unlock_write(const struct outlive_rwlock *lock);

// Ends writing with the data inconsistent; as `outlive_mutex_abandon`.
enum outlive_status outlive_rwlock_abandon(const struct outlive_rwlock *lock);

// Declares the data inherited from a dead writer consistent again. Data that is consistent already
// stays so. `OUTLIVE_NOT_OWNED` when the calling thread does not write.
enum outlive_status outlive_rwlock_mark_consistent(const struct outlive_rwlock *lock);

// The protected data, for the thread that holds the lock; none without a type. NULL for NULL.
void *outlive_rwlock_data(const struct outlive_rwlock *lock);

// Frees the handle. The lock stays. NULL does nothing.
void outlive_rwlock_free(struct outlive_rwlock *lock);

// The type of a ready-made message by its name: `outlive/Pose`, `outlive/Twist`, `outlive/Imu`,
// `outlive/JointState`, `outlive/Image`, `outlive/PointCloud`. Their structs are in
// `outlive/msg.h`.
//
// `OUTLIVE_NOT_FOUND`: no ready-made message has that name.
enum outlive_status outlive_type_message(const char *name, struct outlive_type **out);

// Checks that the payload of an `outlive/Image` holds every row that its header promises. Any
// program may have written anything there: call this before you read pixels.
//
// `OUTLIVE_CORRUPT`: rows overlap or are missing. `OUTLIVE_UNSUPPORTED`: the pixel format is
// unknown. Even then the header is readable, unless the payload is shorter than it.
enum outlive_status outlive_image_check(const void *payload, size_t size);

// Checks that the payload of an `outlive/PointCloud` has all points that its header promises.
//
// `OUTLIVE_CORRUPT`: it has not.
enum outlive_status outlive_point_cloud_check(const void *payload, size_t size);

// Bytes of a pixel; 0 for compressed and unknown formats. `format` is one of `OUTLIVE_PIXEL_RGB8`
// and the like, from `outlive/msg.h`.
uint32_t outlive_pixel_bytes(uint32_t format);

// Joins a domain, creating it if it does not exist. `options` may be NULL.
//
// Returns `OUTLIVE_NOT_OWNED` when the directory is another user's or writable by all,
// `OUTLIVE_NO_SPACE` on a full RAM disk, `OUTLIVE_TIMEOUT` after 10 s when a stopped process holds
// the domain's lock.
//
// Example:
//
//     outlive_node_options options = {.size = sizeof options, .name = "planner"};
//     outlive_node *node;
//     must(outlive_node_open(&options, &node));
//     printf("%s is node %" PRIu64 "\n", outlive_node_name(node), outlive_node_id(node));
//     outlive_node_close(node);
enum outlive_status outlive_node_open(const struct outlive_node_options *options,
                                      struct outlive_node **out);

// Its number in the domain, 1 or more, never reused. 0 for NULL.
uint64_t outlive_node_id(const struct outlive_node *node);

// Its name; stays as long as the handle. NULL for NULL.
const char *outlive_node_name(const struct outlive_node *node);

// Frees the handle. The node leaves its domain when its ports are closed as well. NULL does
// nothing.
void outlive_node_close(struct outlive_node *node);

// Watches the node with number `id`. `OUTLIVE_NOT_FOUND`: it left, or died and was cleaned up.
// One that was watched before gives a watch that says it is gone.
//
// Example:
//
//     outlive_watch *camera;
//     must(outlive_watch_open(node, camera_id, &camera));
//     if (outlive_watch_wait(camera, outlive_now_ns() + 10000000) == OUTLIVE_OK) { // 10 ms
//         puts("the camera died or left");
//     }
//     outlive_watch_free(camera);
enum outlive_status outlive_watch_open(const struct outlive_node *node,
                                       uint64_t id,
                                       struct outlive_watch **out);

// Whether the node is alive: one load while it is. A stopped process is alive. False for NULL.
bool outlive_watch_is_alive(const struct outlive_watch *watch);

// Waits until the node dies or leaves: `OUTLIVE_OK`. `OUTLIVE_TIMEOUT` when `deadline_ns` of
// CLOCK_MONOTONIC passed first.
enum outlive_status outlive_watch_wait(const struct outlive_watch *watch, uint64_t deadline_ns);

// Whether the node's word says alive: a hint, for early reactions that do no harm if it lives. A
// death shows within tens of microseconds, however large the process; `outlive_watch_is_alive`
// shows it only once the kernel has freed its memory. False for NULL.
bool outlive_watch_seems_alive(const struct outlive_watch *watch);

// As `outlive_watch_wait`, until `outlive_watch_seems_alive` returns false.
enum outlive_status outlive_watch_wait_hint(const struct outlive_watch *watch,
                                            uint64_t deadline_ns);

// Makes the watch ready in a wait set as soon as `outlive_watch_seems_alive` returns false, not
// only once the death is certain. Call it before other threads use the handle.
enum outlive_status outlive_watch_on_hint(struct outlive_watch *watch);

// Ends watching. NULL does nothing.
void outlive_watch_free(struct outlive_watch *watch);

// From now on a fatal fault in any thread (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS,
// SIGTRAP, so also `abort`) kills the process at once, as SIGKILL does, without a core: until a
// core is written the process's locks stay held and nobody learns of its death, 17 s for 1 GB. A
// handler installed later gets its signal again. `OUTLIVE_KILL_ON_FAULTS=1` in the environment
// does the same when a node is opened.
void outlive_kill_on_faults(void);

// Joins topic `name`, like `/camera/front`, as a publisher, creating the topic if it does not
// exist. `of` NULL: raw bytes; `options` may be NULL.
//
// `OUTLIVE_TYPE_MISMATCH`: the detail names every field that differs.
//
// Example:
//
//     outlive_publisher *poses;
//     must(outlive_publisher_open(node, "/robot/pose", type, NULL, &poses));
//     struct pose here = {1.0, 2.0, 0.5};
//     must(outlive_publisher_publish(poses, &here, sizeof here, NULL));
//     outlive_publisher_close(poses);
enum outlive_status outlive_publisher_open(const struct outlive_node *node,
                                           const char *name,
                                           const struct outlive_type *of,
                                           const struct outlive_topic_options *options,
                                           struct outlive_publisher **out);

// Copies `size` bytes in and publishes them. `seq`, unless NULL, gets the message's number.
//
// Never waits, unless subscribers asked to be waited for: then `OUTLIVE_TIMEOUT`.
// `OUTLIVE_OUT_OF_MEMORY`: the ring and what subscribers hold reach the memory bound. Nothing was
// published when it fails. If the process is killed at any instruction, the message was sent whole
// or not at all.
enum outlive_status outlive_publisher_publish(const struct outlive_publisher *publisher,
                                              const void *data,
                                              size_t size,
                                              uint64_t *seq);

// Publishes `count` messages that lie one behind the other, of the topic's type, which has a fixed
// size. Small ones take half the time of as many calls of `outlive_publisher_publish`; those have
// the same time stamp, but one that had to wait and those behind it have another.
//
// Errors as there. Those before the one that failed are sent: `outlive_publisher_published` tells
// how many.
enum outlive_status outlive_publisher_publish_batch(const struct outlive_publisher *publisher,
                                                    const void *data,
                                                    size_t count);

// Lends a slot for `size` bytes, to fill and publish without a copy.
//
// Errors as `outlive_publisher_publish`; `loan->data` is NULL then.
//
// Example:
//
//     outlive_publisher *frames; // of raw bytes
//     outlive_loan loan;
//     must(outlive_publisher_open(node, "/camera/raw", NULL, NULL, &frames));
//     must(outlive_publisher_loan(frames, 640 * 480, &loan));
//     memset(loan.data, 128, loan.size); // in shared memory; it holds whatever was there before
//     must(outlive_loan_publish(&loan, NULL));
//     outlive_publisher_close(frames);
enum outlive_status outlive_publisher_loan(const struct outlive_publisher *publisher,
                                           size_t size,
                                           struct outlive_loan *loan);

// Publishes a filled loan, which is gone afterwards, even when it fails. `seq` may be NULL.
//
// `OUTLIVE_INVALID_ARGUMENT`: it, or a copy of it, was published or dropped before.
enum outlive_status outlive_loan_publish(struct outlive_loan *loan, uint64_t *seq);

// Gives a loan back unpublished. Does nothing for NULL or a loan that is gone already, perhaps by
// a copy of it.
void outlive_loan_drop(struct outlive_loan *loan);

// Who this is, as subscribers see it.
struct outlive_port_id outlive_publisher_id(const struct outlive_publisher *publisher);

// Messages published so far, which is the number of the next one.
uint64_t outlive_publisher_published(const struct outlive_publisher *publisher);

// Bytes of shared memory it takes.
uint64_t outlive_publisher_memory_bytes(const struct outlive_publisher *publisher);

// Counts the live subscribers.
enum outlive_status outlive_publisher_subscribers(const struct outlive_publisher *publisher,
                                                  size_t *count);

// Leaves the topic. What was sent stays readable while the topic has members. NULL does nothing.
void outlive_publisher_close(struct outlive_publisher *publisher);

// Joins queue `name` as a producer, creating the queue if it does not exist. It may join before
// the consumer. `of` NULL: raw bytes; `options` may be NULL.
//
// Example:
//
//     outlive_queue_options options = {.size = sizeof options, .bound_bytes = 1 << 20};
//     outlive_producer *goals;
//     must(outlive_producer_open(node, "/arm/goals", type, &options, &goals));
//     must(outlive_producer_wait_for_consumer(goals, outlive_now_ns() + 10000000000)); // 10 s
//     struct pose goal = {3.0, 4.0, 0.0};
//     if (outlive_producer_send(goals, &goal, sizeof goal, OUTLIVE_NO_WAIT) != 0) {
//         perror("/arm/goals"); // EAGAIN: full; EOWNERDEAD: no live consumer
//     }
//     outlive_producer_close(goals);
enum outlive_status outlive_producer_open(const struct outlive_node *node,
                                          const char *name,
                                          const struct outlive_type *of,
                                          const struct outlive_queue_options *options,
                                          struct outlive_producer **out);

// Sends a copy of `size` bytes: 0, or -1 with `errno`. Nothing was sent when it fails.
//
// `EOWNERDEAD`: no live consumer, or it died while this call waited. `EAGAIN` with
// `OUTLIVE_NO_WAIT`, `ETIMEDOUT` with a deadline: the lane is at its bound. `EINVAL`: the type
// cannot have that size, or the bound does not allow it. `ENOSPC`: the RAM disk is full.
// `outlive_producer_status` returns the same as a status.
//
// `deadline_ns`: how long to wait for room, an instant of CLOCK_MONOTONIC.
int outlive_producer_send(struct outlive_producer *producer,
                          const void *data,
                          size_t size,
                          uint64_t deadline_ns);

// Sends `count` contiguous messages of the queue's type, which must have a fixed size: all of them
// or none, several times as fast as one by one. Else as `outlive_producer_send`.
int outlive_producer_send_batch(struct outlive_producer *producer,
                                const void *data,
                                size_t count,
                                uint64_t deadline_ns);

// The status behind this producer's last return value.
enum outlive_status outlive_producer_status(const struct outlive_producer *producer);

// Lends room for a message of `size` bytes in the lane, to be written and committed without a
// copy: 0, or -1 with `errno` as of `outlive_producer_send`; `slot->data` is NULL then. Any other
// call on the producer gives it back; committing it then is `EINVAL`.
//
// Example:
//
//     outlive_producer *goals;
//     outlive_slot slot;
//     must(outlive_producer_open(node, "/arm/goals", type, NULL, &goals));
//     if (outlive_producer_reserve(goals, sizeof(struct pose), OUTLIVE_FOREVER, &slot) == 0) {
//         *(struct pose *)slot.data = (struct pose){3.0, 4.0, 0.0};
//         outlive_producer_commit(goals, &slot);
//     }
//     outlive_producer_close(goals);
int outlive_producer_reserve(struct outlive_producer *producer,
                             size_t size,
                             uint64_t deadline_ns,
                             struct outlive_slot *slot);

// Sends what was written to the reserved room: 0, or -1 with `EINVAL` when it is not from the last
// reservation, or was already committed or given back. The slot is gone afterwards.
int outlive_producer_commit(struct outlive_producer *producer, struct outlive_slot *slot);

// Gives reserved room back: nothing is sent. Does nothing for NULL or a slot that is gone already.
void outlive_producer_discard(struct outlive_producer *producer, struct outlive_slot *slot);

// Whether a live consumer reads the queue. It may die right after the answer. Also true
// while that cannot be found out, for instance for lack of memory: a send says what is lacking.
bool outlive_producer_has_consumer(struct outlive_producer *producer);

// Waits until a live consumer reads the queue; `OUTLIVE_TIMEOUT` when the deadline passed first.
enum outlive_status outlive_producer_wait_for_consumer(struct outlive_producer *producer,
                                                       uint64_t deadline_ns);

// Who this is, as the consumer sees it.
struct outlive_port_id outlive_producer_id(const struct outlive_producer *producer);

// Leaves the queue. Unread messages stay for the consumer. NULL does nothing.
void outlive_producer_close(struct outlive_producer *producer);

// Joins queue `name` as its consumer, creating the queue if it does not exist. It resumes where a
// dead or departed consumer stopped: the message that one had in hand comes again.
// `OUTLIVE_CONSUMER_EXISTS` while another one lives. `of` and `options` as in
// `outlive_producer_open`.
//
// Example:
//
//     outlive_consumer *goals;
//     outlive_message message;
//     outlive_event event; // a producer joined, left or died
//     outlive_status status;
//     uint64_t deadline = outlive_now_ns() + 10000000000; // 10 s
//     must(outlive_consumer_open(node, "/robot/goals", type, NULL, &goals));
//     while ((status = outlive_consumer_receive(goals, deadline, &message)) == OUTLIVE_EVENT)
//         must(outlive_consumer_next_event(goals, &event));
//     must(status);
//     drive(message.data); // if the process dies in it, the next consumer gets the message
//     must(outlive_consumer_ack(goals, &message));
//     outlive_consumer_close(goals);
enum outlive_status outlive_consumer_open(const struct outlive_node *node,
                                          const char *name,
                                          const struct outlive_type *of,
                                          const struct outlive_queue_options *options,
                                          struct outlive_consumer **out);

// The next message, waiting for it until `deadline_ns`, not at all with `OUTLIVE_NO_WAIT`.
//
// It stays in hand until `outlive_consumer_ack` acknowledges it: only then does it count as
// received. If the process dies or closes the consumer before, the next consumer receives it
// again; after `outlive_consumer_nack`, this one does. One message is in hand at a time:
// `OUTLIVE_TOO_MANY_BORROWS` while one is; nothing is lost. It stays in hand while you ask for
// events or wait in a set.
//
// `OUTLIVE_WOULD_BLOCK`, `OUTLIVE_TIMEOUT`, `OUTLIVE_EVENT` as of `outlive_subscriber_receive`.
enum outlive_status outlive_consumer_receive(struct outlive_consumer *consumer,
                                             uint64_t deadline_ns,
                                             struct outlive_message *message);

// Acknowledges the message in hand; its bytes must not be read any more.
//
// `OUTLIVE_INVALID_ARGUMENT`: the message is not the one in hand, but an earlier one or another
// consumer's; nothing is acknowledged.
enum outlive_status outlive_consumer_ack(struct outlive_consumer *consumer,
                                         const struct outlive_message *message);

// Puts the message in hand back unreceived; its bytes must not be read any more. It comes again
// with the next receive, of this consumer or, if it is closed, of the next; after a look of a wait
// set at the consumer a message of another producer may come first. Returns the same as
// `outlive_consumer_ack`.
enum outlive_status outlive_consumer_nack(struct outlive_consumer *consumer,
                                          const struct outlive_message *message);

// The oldest event not returned yet; `OUTLIVE_WOULD_BLOCK` when there is none.
enum outlive_status outlive_consumer_next_event(struct outlive_consumer *consumer,
                                                struct outlive_event *event);

// Leaves the queue. Another process may then consume it; any message in hand is delivered to that
// one again. NULL does nothing.
void outlive_consumer_close(struct outlive_consumer *consumer);

// Joins service `name` as its server, creating the service if it does not exist.
// `OUTLIVE_CONSUMER_EXISTS` while another one lives. Types and `options` as in
// `outlive_client_open`.
//
// Example:
//
//     outlive_server *reach;
//     outlive_request *request;
//     struct pose goal;
//     must(outlive_server_open(node, "/arm/reach", type, type, NULL, &reach));
//     must(outlive_server_receive(reach, OUTLIVE_FOREVER, &request));
//     memcpy(&goal, outlive_request_data(request, NULL), sizeof goal);
//     outlive_port_id client = outlive_request_client(request);
//     if (outlive_server_respond(reach, request, &goal, sizeof goal) == OUTLIVE_CLIENT_DIED) {
//         printf("node %" PRIu64 " does not wait for it any more\n", client.node);
//     }
//     outlive_server_close(reach);
enum outlive_status outlive_server_open(const struct outlive_node *node,
                                        const char *name,
                                        const struct outlive_type *request,
                                        const struct outlive_type *response,
                                        const struct outlive_service_options *options,
                                        struct outlive_server **out);

// The next request, waiting until `deadline_ns`. It skips late ones, those of dead clients, and
// those whose cancellation was read; one that is cancelled may still come:
// `outlive_server_is_cancelled` tells. `OUTLIVE_WOULD_BLOCK`, `OUTLIVE_TIMEOUT`: there was none.
//
// A client's requests wait while the lane of its replies cannot be opened: a full RAM disk, no
// descriptors, no rights. That is not an error here; it is tried again after 2 to 250 ms.
enum outlive_status outlive_server_receive(struct outlive_server *server,
                                           uint64_t deadline_ns,
                                           struct outlive_request **out);

// The payload, until the request is answered or freed. `size` may be NULL. NULL for NULL.
const void *outlive_request_data(const struct outlive_request *request, size_t *size);

// Who asks.
struct outlive_port_id outlive_request_client(const struct outlive_request *request);

// When its client stops waiting, ns of CLOCK_MONOTONIC; `OUTLIVE_FOREVER` for never.
uint64_t outlive_request_deadline_ns(const struct outlive_request *request);

// Whether the client has given the request up or is dead.
bool outlive_server_is_cancelled(struct outlive_server *server,
                                 const struct outlive_request *request);

// Answers a request, which is freed, even when it fails. `OUTLIVE_CLIENT_DIED`: nobody waits for
// the answer; continue with the next request. `OUTLIVE_INVALID_ARGUMENT`: `data` is not a valid
// response, and the client gets `OUTLIVE_REFUSED` with that reason; or the request is another
// server's.
enum outlive_status outlive_server_respond(struct outlive_server *server,
                                           struct outlive_request *request,
                                           const void *data,
                                           size_t size);

// Sends one part of the answer; more parts follow, and `outlive_server_respond` sends the last.
enum outlive_status outlive_server_respond_part(struct outlive_server *server,
                                                const struct outlive_request *request,
                                                const void *data,
                                                size_t size);

// Refuses a request and says why; the client gets `OUTLIVE_REFUSED`. Frees the request. What is
// not UTF-8 in `why` is replaced by U+FFFD; NULL is an empty reason.
enum outlive_status outlive_server_refuse(struct outlive_server *server,
                                          struct outlive_request *request,
                                          const char *why);

// Frees a request without an answer. NULL does nothing.
void outlive_request_free(struct outlive_request *request);

// Stops serving; clients know at once. NULL does nothing.
void outlive_server_close(struct outlive_server *server);

// Joins service `name` as a client, creating the service if it does not exist. It may join before
// the server. Types NULL: raw bytes; `options` may be NULL.
//
// Example:
//
//     outlive_service_options options = {.size = sizeof options, .resume = 1};
//     outlive_client *planner;
//     outlive_reply *reply;
//     struct pose here = {1.0, 2.0, 0.5};
//     uint64_t deadline = outlive_now_ns() + 10000000000; // 10 s
//     must(outlive_client_open(node, "/planner/next", type, type, &options, &planner));
//     must(outlive_client_wait_for_server(planner, deadline));
//     must(outlive_client_call(planner, &here, sizeof here, deadline, &reply));
//     drive(outlive_reply_data(reply, NULL));
//     outlive_reply_free(reply);
//     outlive_client_close(planner);
enum outlive_status outlive_client_open(const struct outlive_node *node,
                                        const char *name,
                                        const struct outlive_type *request,
                                        const struct outlive_type *response,
                                        const struct outlive_service_options *options,
                                        struct outlive_client **out);

// Waits until a live server is there; `OUTLIVE_TIMEOUT` when the deadline passed first.
enum outlive_status outlive_client_wait_for_server(struct outlive_client *client,
                                                   uint64_t deadline_ns);

// Sends a request; its number goes to `ticket`, the answer comes with `outlive_client_receive`.
// Sending never waits: `deadline_ns` is until when an answer is of use. The server skips the
// request if it gets to it only then, and its reply is `OUTLIVE_TIMEOUT`; with `OUTLIVE_NO_WAIT`
// every request is late. An answer that is there when the client looks is received, even if it
// came late.
//
// `OUTLIVE_SERVER_DIED`: no live server, nothing was sent. `OUTLIVE_WOULD_BLOCK`: the server is so
// far behind that the bound is reached.
enum outlive_status outlive_client_send(struct outlive_client *client,
                                        const void *data,
                                        size_t size,
                                        uint64_t deadline_ns,
                                        uint64_t *ticket);

// The next reply to any request, waiting until `deadline_ns`. Free it with `outlive_reply_free`.
//
// If the server dies, every wait ends at once, and each unanswered request gets a reply whose
// status is `OUTLIVE_SERVER_DIED`. A stopped server is alive; use deadlines against that.
// `OUTLIVE_WOULD_BLOCK`, `OUTLIVE_TIMEOUT`: there was none.
enum outlive_status outlive_client_receive(struct outlive_client *client,
                                           uint64_t deadline_ns,
                                           struct outlive_reply **out);

// As `outlive_client_receive`, for the next reply to one request only; others are kept.
enum outlive_status outlive_client_receive_for(struct outlive_client *client,
                                               uint64_t ticket,
                                               uint64_t deadline_ns,
                                               struct outlive_reply **out);

// Sends a request and waits for the last answer until `deadline_ns`. The reply is NULL when it
// fails.
//
// `OUTLIVE_REFUSED`: the detail has the server's words. `OUTLIVE_SERVER_DIED` at once when the
// server dies; `OUTLIVE_TIMEOUT`, and the request is cancelled.
enum outlive_status outlive_client_call(struct outlive_client *client,
                                        const void *data,
                                        size_t size,
                                        uint64_t deadline_ns,
                                        struct outlive_reply **out);

// Gives a request up: no reply to it comes any more, and the server is notified.
enum outlive_status outlive_client_cancel(struct outlive_client *client, uint64_t ticket);

// Leaves the service. NULL does nothing.
void outlive_client_close(struct outlive_client *client);

// `OUTLIVE_OK` and the payload, or why there is none: `OUTLIVE_REFUSED`, whose detail has the
// server's words, `OUTLIVE_SERVER_DIED`, `OUTLIVE_TIMEOUT` when its deadline had passed and no
// answer was there when the client looked, or `OUTLIVE_CORRUPT` when what the server sent cannot
// be read.
enum outlive_status outlive_reply_status(const struct outlive_reply *reply);

// The payload, until the reply is freed; NULL if there is none. `size` may be NULL.
const void *outlive_reply_data(const struct outlive_reply *reply, size_t *size);

// The request that it answers.
uint64_t outlive_reply_ticket(const struct outlive_reply *reply);

// Whether it is the last for that request.
bool outlive_reply_is_last(const struct outlive_reply *reply);

// Frees a reply. NULL does nothing.
void outlive_reply_free(struct outlive_reply *reply);

// From now on SIGTERM and SIGINT ask this process to end, instead of ending it. Return from `main`
// then, and close the nodes: others see that it left, not that it died. A second signal of a kind
// does what it did before, unless it comes within 250 ms (`timeout` sends two). A handler of the
// program's is called as well, and an ignored signal stays ignored. A forked child is as if this
// was not called: call it there again.
//
// In a wait set it is `OUTLIVE_SHUTDOWN`. `fd`, unless NULL, gets a descriptor that is readable
// once the process was asked to end, for a loop of your own. Do not read from it or close it.
//
// Example:
//
//     must(outlive_shutdown_on_signals(NULL));
//     raise(SIGTERM); // as systemd does
//     must(outlive_shutdown_wait(OUTLIVE_FOREVER));
//     printf("ending because of signal %d\n", outlive_shutdown_signal());
enum outlive_status outlive_shutdown_on_signals(int *fd);

// Whether this process was asked to end; it stays so.
bool outlive_shutdown_is_asked(void);

// Asks this process to end, as a signal does, once `outlive_shutdown_on_signals` was called.
void outlive_shutdown_ask(void);

// The number of the signal that asked first; 0 while none did.
int outlive_shutdown_signal(void);

// Waits until this process is asked to end. `OUTLIVE_TIMEOUT`: the deadline passed first.
// `OUTLIVE_INVALID_ARGUMENT`: this process has not called `outlive_shutdown_on_signals`.
enum outlive_status outlive_shutdown_wait(uint64_t deadline_ns);

// A short phrase for a status, in English; valid for ever. NULL for a number that is not a status.
const char *outlive_strerror(int status);

// The detail of the calling thread's last error: what failed, on which object, what to do next.
// Stays until the thread's next call of outlive that fails. Empty before the first.
//
// Results that are not errors do not change it: nothing there now, deadline passed, an event.
const char *outlive_last_error(void);

// The number of `errno` that is closest to a status: `EOWNERDEAD`, `EAGAIN`, `ETIMEDOUT` ...
int outlive_errno(int status);

// Now, ns of CLOCK_MONOTONIC: the clock of all deadlines and time stamps.
uint64_t outlive_now_ns(void);

// The version of the bytes in shared memory; members of one object must have the same.
uint32_t outlive_layout_version(void);

// Joins topic `name` as a subscriber, creating the topic if it does not exist. `of` NULL: raw
// bytes; `options` may be NULL. Errors as `outlive_publisher_open`.
//
// Example:
//
//     outlive_subscriber *poses;
//     outlive_sample sample;
//     outlive_event event; // a publisher joined, left or died
//     outlive_status status;
//     uint64_t deadline = outlive_now_ns() + 10000000000; // 10 s
//     must(outlive_subscriber_open(node, "/robot/pose", type, NULL, &poses));
//     while ((status = outlive_subscriber_receive(poses, deadline, &sample)) == OUTLIVE_EVENT)
//         must(outlive_subscriber_next_event(poses, &event));
//     must(status);
//     drive(outlive_sample_data(&sample, NULL));
//     outlive_sample_release(&sample);
//     outlive_subscriber_close(poses);
enum outlive_status outlive_subscriber_open(const struct outlive_node *node,
                                            const char *name,
                                            const struct outlive_type *of,
                                            const struct outlive_topic_options *options,
                                            struct outlive_subscriber **out);

// Joins an existing topic of any type and receives its payloads as bytes; for tools.
// `OUTLIVE_NOT_FOUND` when there is no such topic yet.
//
// Example:
//
//     outlive_topic_options options = {.size = sizeof options, .history = 1};
//     outlive_subscriber *any;
//     outlive_sample sample;
//     outlive_meta meta;
//     must(outlive_subscriber_open_any(node, "/robot/pose", &options, &any));
//     printf("%s\n%s", outlive_subscriber_type_name(any), outlive_subscriber_description(any));
//     if (outlive_subscriber_latest(any, &sample) == OUTLIVE_OK) {
//         must(outlive_sample_meta(&sample, &meta));
//         printf("message %" PRIu64 " of node %" PRIu64 "\n", meta.seq, meta.publisher.node);
//         outlive_sample_release(&sample);
//     }
//     outlive_subscriber_close(any);
enum outlive_status outlive_subscriber_open_any(const struct outlive_node *node,
                                                const char *name,
                                                const struct outlive_topic_options *options,
                                                struct outlive_subscriber **out);

// The next message. Waits for it until `deadline_ns` of CLOCK_MONOTONIC, not at all with
// `OUTLIVE_NO_WAIT`.
//
// `OUTLIVE_WOULD_BLOCK`: there is none now. `OUTLIVE_TIMEOUT`: the deadline passed.
// `OUTLIVE_EVENT`: something happened to a publisher, see `outlive_subscriber_next_event`; the
// other two do not say that nothing has.
// `OUTLIVE_TOO_MANY_BORROWS`: release samples first; nothing is lost.
//
// A dead publisher's committed messages come first, then the event. A stopped one is alive.
enum outlive_status outlive_subscriber_receive(struct outlive_subscriber *subscriber,
                                               uint64_t deadline_ns,
                                               struct outlive_sample *sample);

// The newest message; older ones are skipped. Never waits; else as `outlive_subscriber_receive`.
enum outlive_status outlive_subscriber_latest(struct outlive_subscriber *subscriber,
                                              struct outlive_sample *sample);

// The earliest published of the available messages, over all publishers. Never waits; else as
// `outlive_subscriber_receive`.
enum outlive_status outlive_subscriber_receive_in_order(struct outlive_subscriber *subscriber,
                                                        struct outlive_sample *sample);

// The payload, read-only, valid until the sample is released or moved. `size` may be NULL. NULL
// where there is no message.
const void *outlive_sample_data(const struct outlive_sample *sample, size_t *size);

// Publisher, number, time and losses.
enum outlive_status outlive_sample_meta(const struct outlive_sample *sample,
                                        struct outlive_meta *meta);

// Whether the payload lies in shared memory, without a copy.
bool outlive_sample_is_borrowed(const struct outlive_sample *sample);

// Releases the message. Does nothing for NULL or a sample that holds none.
void outlive_sample_release(struct outlive_sample *sample);

// The oldest event not returned yet; `OUTLIVE_WOULD_BLOCK` when there is none.
enum outlive_status outlive_subscriber_next_event(struct outlive_subscriber *subscriber,
                                                  struct outlive_event *event);

// Messages lost so far, over all publishers: overwritten before this subscriber read them.
uint64_t outlive_subscriber_lost(const struct outlive_subscriber *subscriber);

// Name of the topic's type; stays as long as the subscriber. NULL for NULL.
const char *outlive_subscriber_type_name(const struct outlive_subscriber *subscriber);

// What payloads look like, as `outlive_type_fixed` takes it; empty if nobody described them. Stays
// as long as the subscriber. NULL for NULL.
const char *outlive_subscriber_description(const struct outlive_subscriber *subscriber);

// A descriptor for epoll and the like: readable unless the last receiving call found nothing. The
// first call makes it, and it closes with the subscriber; do not read from it. While nothing comes
// it becomes readable about every 100 ms, to look again: the next call then finds nothing.
enum outlive_status outlive_subscriber_fd(struct outlive_subscriber *subscriber, int *fd);

// Leaves the topic. Samples that are held stay readable. NULL does nothing.
void outlive_subscriber_close(struct outlive_subscriber *subscriber);

// Opens the condition variable `name` of the node's domain, or creates it.
//
// Example:
//
//     outlive_mutex *mutex;
//     outlive_condvar *changed; // for outlive_condvar_notify, where the goal is set
//     must(outlive_mutex_open(node, "/robot/goal", type, NULL, &mutex));
//     must(outlive_condvar_open(node, "/robot/goal-changed", &changed));
//     const struct pose *goal = outlive_mutex_data(mutex);
//     uint64_t deadline = outlive_now_ns() + 10000000000; // 10 s
//     must(outlive_mutex_lock(mutex, deadline));
//     while (goal->x == 0.0 && outlive_now_ns() < deadline)
//         must(outlive_condvar_wait(changed, mutex, deadline, NULL));
//     must(outlive_mutex_unlock(mutex));
//     outlive_condvar_free(changed);
//     outlive_mutex_free(mutex);
enum outlive_status outlive_condvar_open(const struct outlive_node *node,
                                         const char *name,
                                         struct outlive_condvar **out);

// Releases the mutex, which the calling thread holds, waits for a notification until
// `deadline_ns`, and takes the mutex again, however long that takes. Check the data again
// afterwards: wake-ups may be spurious. `notified`, unless NULL, gets whether a notification came;
// that the deadline passed is not an error.
//
// Returns the same as `outlive_mutex_lock`; with `OUTLIVE_OK` and `OUTLIVE_OWNER_DIED` the mutex
// is held. `OUTLIVE_NOT_OWNED`: the calling thread did not hold it. `OUTLIVE_UNSUPPORTED`, for a
// mutex with priority inheritance, and `OUTLIVE_INVALID_ARGUMENT`, where one is NULL: nothing was
// released, so the mutex stays as it was. With any other error it is not held.
//
// It cannot tell whether anyone is left to notify it: give a deadline, or watch the node.
enum outlive_status outlive_condvar_wait(const struct outlive_condvar *condvar,
                                         const struct outlive_mutex *mutex,
                                         uint64_t deadline_ns,
                                         bool *notified);

// Wakes one waiter, or all of them, if there are any. With or without the mutex held.
enum outlive_status outlive_condvar_notify(const struct outlive_condvar *condvar, bool all);

// Frees the handle. NULL does nothing.
void outlive_condvar_free(struct outlive_condvar *condvar);

// Opens the semaphore `name`, or creates it with `permits` permits, 1 to 1024.
// `OUTLIVE_TYPE_MISMATCH` when it exists with another number.
//
// Example:
//
//     outlive_semaphore *grippers;
//     outlive_permit permit;
//     must(outlive_semaphore_open(node, "/arm/grippers", 2, &grippers));
//     must(outlive_semaphore_acquire(grippers, OUTLIVE_FOREVER, &permit));
//     printf("gripper %" PRIu32 " of 2\n", permit.index);
//     outlive_permit_release(&permit);
//     outlive_semaphore_free(grippers);
enum outlive_status outlive_semaphore_open(const struct outlive_node *node,
                                           const char *name,
                                           size_t permits,
                                           struct outlive_semaphore **out);

// Takes a permit, waiting until `deadline_ns` for as long as living threads hold all of them.
//
// `OUTLIVE_WOULD_BLOCK`, `OUTLIVE_TIMEOUT`; `OUTLIVE_DEADLOCK` when the calling thread holds them
// all.
enum outlive_status outlive_semaphore_acquire(const struct outlive_semaphore *semaphore,
                                              uint64_t deadline_ns,
                                              struct outlive_permit *permit);

// Gives a permit back; call it from the thread that took it. Does nothing for NULL or one already
// given back.
void outlive_permit_release(struct outlive_permit *permit);

// How many permits are free right now; others may take them at once. Those of dead holders count
// as held.
size_t outlive_semaphore_available(const struct outlive_semaphore *semaphore);

// Frees the handle. NULL does nothing.
void outlive_semaphore_free(struct outlive_semaphore *semaphore);

// Opens the set `name`, or creates it with room for `capacity` numbers, 1 to 16777216.
// `OUTLIVE_TYPE_MISMATCH` when it exists with another capacity.
//
// Example:
//
//     outlive_set *seen;
//     bool added;
//     must(outlive_set_open(node, "/map/seen", 1024, &seen));
//     must(outlive_set_insert(seen, 42, &added));
//     printf("42 is %s\n", added ? "new" : "known");
//     outlive_set_free(seen);
enum outlive_status outlive_set_open(const struct outlive_node *node,
                                     const char *name,
                                     size_t capacity,
                                     struct outlive_set **out);

// Adds `id`, which is not 0. `added`, unless NULL: false if it was a member already. Two threads
// that insert the same id at the same time may both get true. `OUTLIVE_NO_SPACE`: the set is full.
enum outlive_status outlive_set_insert(const struct outlive_set *set, uint64_t id, bool *added);

// Removes `id`; false if it was not a member.
bool outlive_set_remove(const struct outlive_set *set, uint64_t id);

// Whether `id` is a member right now.
bool outlive_set_contains(const struct outlive_set *set, uint64_t id);

// Writes at most `room` members, in ascending order, to `ids`, and returns how many there are,
// which may be more. Ids inserted or removed meanwhile may or may not be included.
size_t outlive_set_ids(const struct outlive_set *set, uint64_t *ids, size_t room);

// Frees the handle. The set stays. NULL does nothing.
void outlive_set_free(struct outlive_set *set);

// Raw bytes: `[u8]` of Rust, `bytes` of Python.
enum outlive_status outlive_type_bytes(struct outlive_type **out);

// One value of a fixed-size type, whose fields `description_text` lists in the form of
// docs/internals/SHM_LAYOUT.md: `"outlive-type 1 align 8\nstruct:16\n 0 f64 x\n 8 f64 y\n"`.
//
// `name` is the same in all languages, such as `robot/Pose`; that of a number or of an array of
// numbers is the number's, such as `f64`. `OUTLIVE_INVALID_ARGUMENT` where name, size and
// alignment contradict each other: `f32` for what is not that, an `f64` aligned to 4.
//
// Values are not checked when they are received, nor those under a lock: another program may have
// written any bytes, so a `bool` may be neither 0 nor 1.
//
// Example:
//
//     struct pose {
//         double x, y, heading; // m, m, rad
//     };
//     static const char *const POSE = "outlive-type 1 align 8\nstruct:24\n"
//                                     " 0 f64 x\n 8 f64 y\n 16 f64 heading\n";
//
//     outlive_type *type;
//     must(outlive_type_fixed("robot/Pose", POSE, &type));
//     outlive_type_free(type);
enum outlive_status outlive_type_fixed(const char *name,
                                       const char *description_text,
                                       struct outlive_type **out);

// Any number of values of the described type.
enum outlive_status outlive_type_slice(const char *name,
                                       const char *description_text,
                                       struct outlive_type **out);

// A header followed by any number of elements. The name is that of the header.
enum outlive_status outlive_type_headed(const char *name,
                                        const char *header_text,
                                        const char *element_text,
                                        struct outlive_type **out);

// One MessagePack value, which outlive carries without reading it.
enum outlive_status outlive_type_msgpack(const char *name, struct outlive_type **out);

// One value in an encoding that others define: `cdr`, `protobuf`, `flatbuffer`, `json` or `arrow`.
// outlive carries it unread, and compares the schemas of all members: the definition of ROS, the
// `FileDescriptorSet`, the binary schema, JSON Schema, Arrow's schema message. At most 64 KiB,
// without what the message does not need; NULL or 0 bytes say nothing about it.
enum outlive_status outlive_type_encoded(const char *encoding,
                                         const char *name,
                                         const void *schema,
                                         size_t schema_bytes,
                                         struct outlive_type **out);

// Size of the value, of an element or of the header, bytes. 0 for NULL.
size_t outlive_type_size(const struct outlive_type *of);

// Its alignment, bytes. 0 for NULL.
size_t outlive_type_align(const struct outlive_type *of);

// Its name; stays as long as the type. NULL for NULL.
const char *outlive_type_name(const struct outlive_type *of);

// Frees the type. NULL does nothing.
void outlive_type_free(struct outlive_type *of);

// Makes a set. It takes no resources until a wait needs them.
//
// Example:
//
//     outlive_subscriber *poses;
//     outlive_waitset *set;
//     must(outlive_subscriber_open(node, "/robot/pose", type, NULL, &poses));
//     must(outlive_waitset_new(&set));
//     outlive_member members[] = {{.object = poses, .kind = OUTLIVE_SUBSCRIBER},
//                                 {.fd = STDIN_FILENO, .kind = OUTLIVE_READABLE_FD}};
//     must(outlive_waitset_wait(set, members, 2, OUTLIVE_FOREVER));
//     printf("pose: %d, input: %d\n", members[0].ready, members[1].ready);
//     outlive_waitset_free(set);
//     outlive_subscriber_close(poses);
enum outlive_status outlive_waitset_new(struct outlive_waitset **out);

// Frees a set. NULL does nothing.
void outlive_waitset_free(struct outlive_waitset *set);

// Waits until at least one of `count` members is ready, and marks each that is. No handle may be
// in the list twice. Each wait takes the list again, as `poll` does. What the list names must live
// until the wait returns.
//
// `OUTLIVE_TIMEOUT`: the deadline passed, none is ready. `OUTLIVE_NO_WAIT` only looks.
//
// A peer killed at any instruction wakes the set: by its message if that was committed, and by its
// death.
enum outlive_status outlive_waitset_wait(struct outlive_waitset *set,
                                         struct outlive_member *members,
                                         size_t count,
                                         uint64_t deadline_ns);

// Makes an interrupt that is not raised.
//
// Example:
//
//     outlive_interrupt *stop;
//     outlive_waitset *set;
//     must(outlive_interrupt_new(&stop));
//     must(outlive_waitset_new(&set));
//     outlive_interrupt_raise(stop); // in another thread, or in a signal handler
//     outlive_member member = {.object = stop, .kind = OUTLIVE_INTERRUPT};
//     must(outlive_waitset_wait(set, &member, 1, OUTLIVE_FOREVER));
//     outlive_interrupt_clear(stop); // for the next time
//     outlive_waitset_free(set);
//     outlive_interrupt_free(stop);
enum outlive_status outlive_interrupt_new(struct outlive_interrupt **out);

// Ends all waits for it, now and until it is cleared. Async-signal-safe: a signal handler may call
// it on a live handle; `errno` is kept. NULL does nothing.
void outlive_interrupt_raise(const struct outlive_interrupt *interrupt);

// Whether it is raised. Async-signal-safe. False for NULL.
bool outlive_interrupt_is_raised(const struct outlive_interrupt *interrupt);

// Resets it for the next use; call it from the one thread that waits for it. NULL does nothing.
void outlive_interrupt_clear(const struct outlive_interrupt *interrupt);

// Frees it: nobody waits for it, and no handler may raise it any more. NULL does nothing.
void outlive_interrupt_free(struct outlive_interrupt *interrupt);

// Ready from `first_ns` of CLOCK_MONOTONIC on and every `period_ns` after it; 0: once.
//
// Example:
//
//     outlive_timer *tick;
//     outlive_waitset *set;
//     must(outlive_timer_new(outlive_now_ns() + 10000000, 0, &tick)); // once, in 10 ms
//     must(outlive_waitset_new(&set));
//     outlive_member member = {.object = tick, .kind = OUTLIVE_TIMER};
//     must(outlive_waitset_wait(set, &member, 1, OUTLIVE_FOREVER));
//     printf("due %" PRIu64 " times\n", outlive_timer_fired(tick));
//     outlive_waitset_free(set);
//     outlive_timer_free(tick);
enum outlive_status outlive_timer_new(uint64_t first_ns,
                                      uint64_t period_ns,
                                      struct outlive_timer **out);

// How often it became due since the last call; it stays ready until this is called.
uint64_t outlive_timer_fired(struct outlive_timer *timer);

// Frees a timer. NULL does nothing.
void outlive_timer_free(struct outlive_timer *timer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* OUTLIVE_H */
