/* Every call of the interface once, and what it says to wrong arguments. */
#include <errno.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const char *const U64 = "outlive-type 1 align 8\nu64\n";
static const char *const POINT = "outlive-type 1 align 8\nstruct:16\n 0 f64 x\n 8 f64 y\n";
static const char *const OTHER = "outlive-type 1 align 8\nstruct:16\n 0 f64 x\n 8 f64 z\n";

/* Numbers that programs are compiled with: they never change. */
static void frozen_numbers(void) {
    static const int numbers[] = {
        OUTLIVE_OK,           OUTLIVE_INVALID_NAME,     OUTLIVE_INVALID_ARGUMENT,
        OUTLIVE_TYPE_MISMATCH, OUTLIVE_VERSION_MISMATCH, OUTLIVE_CORRUPT,
        OUTLIVE_NO_SPACE,     OUTLIVE_NOT_OWNED,        OUTLIVE_PERMISSION,
        OUTLIVE_NOT_FOUND,    OUTLIVE_ALREADY_EXISTS,   OUTLIVE_TIMEOUT,
        OUTLIVE_WOULD_BLOCK,  OUTLIVE_OUT_OF_MEMORY,    OUTLIVE_TOO_MANY_BORROWS,
        OUTLIVE_TOO_MANY_MEMBERS, OUTLIVE_OWNER_DIED,   OUTLIVE_CONSUMER_EXISTS,
        OUTLIVE_SERVER_DIED,  OUTLIVE_CLIENT_DIED,      OUTLIVE_REFUSED,
        OUTLIVE_DEADLOCK,     OUTLIVE_UNRECOVERABLE,    OUTLIVE_OTHER_DOMAIN,
        OUTLIVE_FORKED_CHILD, OUTLIVE_UNSUPPORTED,      OUTLIVE_IO,
        OUTLIVE_INTERNAL,     OUTLIVE_EVENT,
    };
    for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++) {
        CHECK(numbers[i] == i);
        CHECK(outlive_strerror(i) != NULL);
    }
    CHECK(outlive_strerror(1000) == NULL);
    CHECK(outlive_errno(OUTLIVE_OWNER_DIED) == EOWNERDEAD);
}

/* Settings of programs that were compiled with another version, or not thought through. */
static void settings(outlive_node *node) {
    outlive_publisher *publisher;
    outlive_consumer *consumer;
    outlive_client *client;
    outlive_node *none;
    const outlive_node_options nowhere = {.size = sizeof nowhere, .root = ""};
    CHECK(outlive_node_open(&nowhere, &none) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(strstr(outlive_last_error(), "the root ''") != NULL);
    struct {
        outlive_topic_options known;
        uint64_t newer;
    } topic = {{.size = sizeof topic, .depth = 4}, 0};
    OK(outlive_publisher_open(node, "/settings", NULL, &topic.known, &publisher));
    outlive_publisher_close(publisher);
    topic.newer = 1;
    CHECK(outlive_publisher_open(node, "/settings", NULL, &topic.known, &publisher)
          == OUTLIVE_INVALID_ARGUMENT);
    CHECK(strstr(outlive_last_error(), "newer version") != NULL);
    outlive_topic_options unset = {0};
    CHECK(outlive_publisher_open(node, "/settings", NULL, &unset, &publisher)
          == OUTLIVE_INVALID_ARGUMENT);
    CHECK(strstr(outlive_last_error(), "sizeof(outlive_topic_options)") != NULL);
    outlive_topic_options two = {.size = sizeof two, .reliable = 2};
    CHECK(outlive_publisher_open(node, "/settings", NULL, &two, &publisher)
          == OUTLIVE_INVALID_ARGUMENT);
    outlive_queue_options queue = {.size = sizeof queue, .reserved_word = 1};
    CHECK(outlive_consumer_open(node, "/settings", NULL, &queue, &consumer)
          == OUTLIVE_INVALID_ARGUMENT);
    outlive_service_options service = {.size = sizeof service, .reserved_word = 1};
    CHECK(outlive_client_open(node, "/settings", NULL, NULL, &service, &client)
          == OUTLIVE_INVALID_ARGUMENT);
    outlive_node *other;
    outlive_node_options joining = {.size = sizeof joining, .reserved_word = 1};
    CHECK(outlive_node_open(&joining, &other) == OUTLIVE_INVALID_ARGUMENT);
    outlive_waitset *set;
    outlive_member member = {.kind = OUTLIVE_READABLE_FD, .fd = 0, .reserved = {1}};
    OK(outlive_waitset_new(&set));
    CHECK(outlive_waitset_wait(set, &member, 1, 0) == OUTLIVE_INVALID_ARGUMENT);
    outlive_waitset_free(set);
}

/* What a publisher answers whose reliable subscriber reads nothing. */
static outlive_status behind(outlive_node *node, const char *name, const int64_t *timeout_ns) {
    outlive_publisher *publisher;
    outlive_subscriber *subscriber;
    outlive_topic_options options = {.size = sizeof options, .depth = 2, .reliable = 1};
    options.reliable_timeout_ns = timeout_ns;
    OK(outlive_subscriber_open(node, name, NULL, &options, &subscriber));
    OK(outlive_publisher_open(node, name, NULL, &options, &publisher));
    OK(outlive_publisher_publish(publisher, "1", 1, NULL));
    OK(outlive_publisher_publish(publisher, "2", 1, NULL));
    outlive_status status = outlive_publisher_publish(publisher, "3", 1, NULL);
    outlive_publisher_close(publisher);
    outlive_subscriber_close(subscriber);
    return status;
}

static void reliable_timeouts(outlive_node *node) {
    const int64_t zero = 0, negative = -1, some = 1000000;
    CHECK(behind(node, "/behind/zero", &zero) == OUTLIVE_WOULD_BLOCK);
    CHECK(behind(node, "/behind/negative", &negative) == OUTLIVE_WOULD_BLOCK);
    CHECK(behind(node, "/behind/some", &some) == OUTLIVE_TIMEOUT);
    CHECK(behind(node, "/behind/default", NULL) == OUTLIVE_TIMEOUT);
}

static void topics(outlive_node *node) {
    outlive_type *point, *other;
    outlive_publisher *publisher, *wrong;
    outlive_subscriber *subscriber, *any;
    OK(outlive_type_fixed("example/Point", POINT, &point));
    OK(outlive_type_fixed("example/Point", OTHER, &other));
    outlive_topic_options options = {.size = sizeof options, .depth = 4, .history = 4, .borrows = 2};
    OK(outlive_publisher_open(node, "/points", point, &options, &publisher));
    CHECK(outlive_publisher_open(node, "/points", other, NULL, &wrong) == OUTLIVE_TYPE_MISMATCH);
    CHECK(strstr(outlive_last_error(), "field y") != NULL);
    CHECK(outlive_publisher_open(node, "no/slash//", point, NULL, &wrong) == OUTLIVE_INVALID_NAME);
    CHECK(outlive_publisher_open(NULL, "/x", point, NULL, &wrong) == OUTLIVE_INVALID_ARGUMENT);

    double xy[2] = {1.5, 2.5};
    uint64_t seq = 9;
    OK(outlive_publisher_publish(publisher, xy, sizeof xy, &seq));
    CHECK(seq == 0 && outlive_publisher_published(publisher) == 1);
    CHECK(outlive_publisher_publish(publisher, xy, 8, NULL) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(outlive_publisher_publish(publisher, NULL, 16, NULL) == OUTLIVE_INVALID_ARGUMENT);

    OK(outlive_subscriber_open(node, "/points", point, &options, &subscriber));
    CHECK(strcmp(outlive_subscriber_type_name(subscriber), "example/Point") == 0);
    CHECK(strcmp(outlive_subscriber_description(subscriber), POINT) == 0);
    size_t subscribers = 0;
    OK(outlive_publisher_subscribers(publisher, &subscribers));
    CHECK(subscribers == 1 && outlive_publisher_memory_bytes(publisher) > 0);

    outlive_sample first, second, moved;
    size_t size = 0;
    outlive_meta meta;
    OK(outlive_subscriber_receive(subscriber, soon(), &first));
    CHECK(memcmp(outlive_sample_data(&first, &size), xy, 16) == 0 && size == 16);
    OK(outlive_sample_meta(&first, &meta));
    CHECK(meta.seq == 0 && meta.publisher.node == outlive_node_id(node));
    CHECK(outlive_publisher_id(publisher).port == meta.publisher.port);
    CHECK(!outlive_sample_is_borrowed(&first));
    CHECK(outlive_subscriber_receive(subscriber, OUTLIVE_NO_WAIT, &second) == OUTLIVE_WOULD_BLOCK);
    CHECK(outlive_sample_data(&second, NULL) == NULL);
    outlive_sample_release(&second);
    outlive_status waited = outlive_subscriber_receive(subscriber, outlive_now_ns() + 1, &second);
    CHECK(waited == OUTLIVE_TIMEOUT || waited == OUTLIVE_EVENT);

    const double batch[] = {3, 4, 5, 6};
    OK(outlive_publisher_publish_batch(publisher, batch, 2));
    OK(outlive_publisher_publish_batch(publisher, NULL, 0));
    CHECK(outlive_publisher_publish_batch(publisher, NULL, 1) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(outlive_publisher_publish_batch(publisher, batch, SIZE_MAX) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(outlive_publisher_publish_batch(NULL, batch, 2) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(outlive_publisher_published(publisher) == 3);
    for (int i = 0; i < 2; i++) {
        OK(outlive_subscriber_receive(subscriber, soon(), &second));
        CHECK(memcmp(outlive_sample_data(&second, NULL), batch + 2 * i, 16) == 0);
        outlive_sample_release(&second);
    }

    outlive_loan loan;
    OK(outlive_publisher_loan(publisher, 16, &loan));
    ((double *)loan.data)[0] = 7.0;
    OK(outlive_loan_publish(&loan, NULL));
    CHECK(outlive_loan_publish(&loan, NULL) == OUTLIVE_INVALID_ARGUMENT);
    OK(outlive_publisher_loan(publisher, 16, &loan));
    outlive_loan_drop(&loan);
    outlive_loan_drop(&loan);
    CHECK(outlive_publisher_loan(publisher, 15, &loan) == OUTLIVE_INVALID_ARGUMENT && !loan.data);
    OK(outlive_subscriber_latest(subscriber, &second));
    CHECK(((const double *)outlive_sample_data(&second, NULL))[0] == 7.0);
    CHECK(outlive_sample_is_borrowed(&second));
    memcpy(&moved, &second, sizeof moved);

    OK(outlive_subscriber_open_any(node, "/points", &options, &any));
    outlive_sample seen;
    OK(outlive_subscriber_receive_in_order(any, &seen));
    outlive_sample_release(&seen);
    int fd = -1;
    OK(outlive_subscriber_fd(any, &fd));
    CHECK(fd >= 0);
    outlive_subscriber_close(any);

    outlive_subscriber_close(subscriber);
    outlive_publisher_close(publisher);
    /* The sample outlives both. */
    CHECK(((const double *)outlive_sample_data(&moved, NULL))[0] == 7.0);
    outlive_sample_release(&moved);
    outlive_sample_release(&first);
    outlive_type_free(point);
    outlive_type_free(other);
}

static void take(outlive_consumer *consumer, outlive_message *message) {
    outlive_status status;
    do {
        status = outlive_consumer_receive(consumer, soon(), message);
    } while (status == OUTLIVE_EVENT);
    OK(status);
}

static uint64_t number_in(const outlive_message *message) {
    uint64_t n;
    memcpy(&n, message->data, sizeof n);
    return n;
}

/* A message in hand stays there, whatever is called, until it is acknowledged or given back. */
static void in_hand(outlive_node *node, outlive_type *number, outlive_producer *one,
                    outlive_consumer *consumer) {
    outlive_producer *two;
    outlive_message message, none;
    outlive_waitset *set;
    outlive_event event;
    OK(outlive_producer_open(node, "/numbers", number, NULL, &two));
    OK(outlive_waitset_new(&set));
    uint64_t n = 100;
    CHECK(outlive_producer_send(one, &n, 8, OUTLIVE_NO_WAIT) == 0);
    n = 101;
    CHECK(outlive_producer_send(one, &n, 8, OUTLIVE_NO_WAIT) == 0);
    n = 200;
    CHECK(outlive_producer_send(two, &n, 8, OUTLIVE_NO_WAIT) == 0);
    take(consumer, &message);
    const uint64_t first = number_in(&message);
    CHECK(outlive_consumer_receive(consumer, 0, &none) == OUTLIVE_TOO_MANY_BORROWS);
    outlive_member member = {.kind = OUTLIVE_CONSUMER, .object = consumer};
    for (int i = 0; i < 10; i++) { /* others' turns do not come */
        OK(outlive_waitset_wait(set, &member, 1, soon()));
        CHECK(member.ready && number_in(&message) == first);
    }
    (void)outlive_consumer_next_event(consumer, &event);
    OK(outlive_consumer_nack(consumer, &message));
    CHECK(outlive_consumer_nack(consumer, &message) == OUTLIVE_INVALID_ARGUMENT);
    unsigned seen = 0; /* each of the three once */
    for (int i = 0; i < 3; i++) {
        take(consumer, &message);
        n = number_in(&message);
        const unsigned bit = n == 100 ? 1 : n == 101 ? 2 : n == 200 ? 4 : 0;
        CHECK(bit && !(seen & bit));
        seen |= bit;
        OK(outlive_waitset_wait(set, &member, 1, soon()));
        OK(outlive_consumer_ack(consumer, &message));
    }
    CHECK(outlive_consumer_receive(consumer, 0, &message) != OUTLIVE_OK);
    outlive_waitset_free(set);
    outlive_producer_close(two);

    /* Closed with a message in hand: the next consumer receives it again. */
    outlive_type *text;
    outlive_consumer *reader;
    OK(outlive_type_bytes(&text));
    OK(outlive_producer_open(node, "/again", text, NULL, &two));
    OK(outlive_consumer_open(node, "/again", text, NULL, &reader));
    CHECK(outlive_producer_send(two, "a", 1, OUTLIVE_NO_WAIT) == 0);
    take(reader, &message);
    outlive_consumer_close(reader);
    OK(outlive_consumer_open(node, "/again", text, NULL, &reader));
    take(reader, &none);
    CHECK(none.size == 1 && *(const char *)none.data == 'a');
    /* A message of another consumer is none of this. */
    CHECK(outlive_consumer_ack(reader, &message) == OUTLIVE_INVALID_ARGUMENT);
    OK(outlive_consumer_ack(reader, &none));
    outlive_consumer_close(reader);
    outlive_producer_close(two);
    outlive_type_free(text);
}

static void queues(outlive_node *node) {
    outlive_type *number;
    outlive_producer *producer;
    outlive_consumer *consumer, *second;
    OK(outlive_type_fixed("u64", U64, &number));
    OK(outlive_producer_open(node, "/numbers", number, NULL, &producer));
    uint64_t n = 1;
    errno = 0;
    CHECK(outlive_producer_send(producer, &n, sizeof n, OUTLIVE_FOREVER) == -1);
    CHECK(errno == EOWNERDEAD && outlive_producer_status(producer) == OUTLIVE_OWNER_DIED);
    CHECK(!outlive_producer_has_consumer(producer));
    CHECK(outlive_producer_wait_for_consumer(producer, outlive_now_ns()) == OUTLIVE_TIMEOUT);

    outlive_queue_options options = {.size = sizeof options};
    OK(outlive_consumer_open(node, "/numbers", number, &options, &consumer));
    outlive_status again = outlive_consumer_open(node, "/numbers", number, NULL, &second);
    CHECK(again == OUTLIVE_CONSUMER_EXISTS);
    for (n = 0; n < 10; n++) {
        CHECK(outlive_producer_send(producer, &n, sizeof n, OUTLIVE_NO_WAIT) == 0);
    }
    CHECK(outlive_producer_send(producer, &n, 4, OUTLIVE_FOREVER) == -1 && errno == EINVAL);
    outlive_slot room, stale;
    CHECK(outlive_producer_reserve(producer, sizeof n, OUTLIVE_FOREVER, &room) == 0);
    *(uint64_t *)room.data = 10;
    stale = room;
    CHECK(outlive_producer_commit(producer, &room) == 0 && room.data == NULL);
    CHECK(outlive_producer_commit(producer, &room) == -1 && errno == EINVAL);
    /* A slot that was committed does not commit the reservation after it. */
    CHECK(outlive_producer_reserve(producer, sizeof n, OUTLIVE_FOREVER, &room) == 0);
    *(uint64_t *)room.data = 666;
    CHECK(outlive_producer_commit(producer, &stale) == -1 && errno == EINVAL);
    CHECK(outlive_producer_status(producer) == OUTLIVE_INVALID_ARGUMENT);
    stale.data = room.data;
    outlive_producer_discard(producer, &stale);
    outlive_producer_discard(producer, &room);
    CHECK(outlive_producer_commit(producer, &room) == -1 && errno == EINVAL);
    outlive_producer_discard(producer, NULL);
    /* Nor does a forked child commit what its parent has reserved. */
    CHECK(outlive_producer_reserve(producer, sizeof n, OUTLIVE_FOREVER, &room) == 0);
    const pid_t child = fork();
    if (child == 0) {
        CHECK(outlive_producer_commit(producer, &room) == -1 && errno == EPERM);
        CHECK(outlive_producer_status(producer) == OUTLIVE_FORKED_CHILD);
        _exit(0);
    }
    int ended = 0;
    CHECK(waitpid(child, &ended, 0) == child && ended == 0);
    outlive_producer_discard(producer, &room);
    CHECK(outlive_producer_reserve(producer, SIZE_MAX, OUTLIVE_NO_WAIT, &room) == -1);
    CHECK(errno == EINVAL && room.data == NULL);
    CHECK(outlive_producer_reserve(producer, 8, OUTLIVE_NO_WAIT, NULL) == -1 && errno == EINVAL);
    const uint64_t batch[] = {11, 12, 13};
    CHECK(outlive_producer_send_batch(producer, batch, 3, OUTLIVE_NO_WAIT) == 0);
    CHECK(outlive_producer_send_batch(producer, NULL, 0, OUTLIVE_NO_WAIT) == 0);
    CHECK(outlive_producer_send_batch(producer, NULL, 1, OUTLIVE_NO_WAIT) == -1);

    outlive_message message, old = {0};
    for (n = 0; n <= 13; n++) {
        take(consumer, &message);
        CHECK(message.size == 8 && memcmp(message.data, &n, 8) == 0);
        CHECK(message.producer.port == outlive_producer_id(producer).port);
        /* One of before acknowledges nothing. */
        CHECK(outlive_consumer_ack(consumer, &old) == OUTLIVE_INVALID_ARGUMENT);
        CHECK(outlive_consumer_nack(consumer, &old) == OUTLIVE_INVALID_ARGUMENT);
        OK(outlive_consumer_ack(consumer, &message));
        CHECK(outlive_consumer_ack(consumer, &message) == OUTLIVE_INVALID_ARGUMENT);
        old = message;
    }
    CHECK(outlive_consumer_ack(consumer, NULL) == OUTLIVE_INVALID_ARGUMENT);
    in_hand(node, number, producer, consumer);
    outlive_event event;
    OK(outlive_consumer_next_event(consumer, &event));
    CHECK(event.kind == OUTLIVE_JOINED && event.why == NULL);
    outlive_consumer_close(consumer);
    outlive_producer_close(producer);
    outlive_type_free(number);
}

/* A copy of a loan, slot or message stands for the original: whichever is used first counts, and the
 * other does nothing. */
static void copies(outlive_node *node) {
    outlive_publisher *publisher;
    outlive_subscriber *subscriber;
    outlive_sample seen;
    outlive_loan loan, copy, next;
    OK(outlive_publisher_open(node, "/copies", NULL, NULL, &publisher));
    OK(outlive_subscriber_open(node, "/copies", NULL, NULL, &subscriber));
    OK(outlive_publisher_loan(publisher, 8, &loan));
    memcpy(loan.data, "original", 8);
    copy = loan;
    OK(outlive_loan_publish(&loan, NULL));
    const outlive_loan late = copy;
    CHECK(outlive_loan_publish(&copy, NULL) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(strstr(outlive_last_error(), "a loan again") != NULL && copy.data == NULL);
    CHECK(outlive_publisher_published(publisher) == 1);
    /* Nor does it give back what subscribers read: the next loan would be the same memory. */
    OK(outlive_subscriber_latest(subscriber, &seen));
    CHECK(outlive_sample_is_borrowed(&seen));
    copy = late;
    outlive_loan_drop(&copy);
    OK(outlive_publisher_loan(publisher, 8, &next));
    memcpy(next.data, "successr", 8);
    CHECK(memcmp(outlive_sample_data(&seen, NULL), "original", 8) == 0);
    /* Nor does it publish or drop the loan after it; and several are out at once. */
    OK(outlive_publisher_loan(publisher, 8, &loan));
    copy = late;
    CHECK(outlive_loan_publish(&copy, NULL) == OUTLIVE_INVALID_ARGUMENT);
    copy = loan;
    outlive_loan_drop(&copy);
    CHECK(outlive_loan_publish(&loan, NULL) == OUTLIVE_INVALID_ARGUMENT);
    OK(outlive_loan_publish(&next, NULL));
    CHECK(outlive_publisher_published(publisher) == 2);
    outlive_sample_release(&seen);
    outlive_subscriber_close(subscriber);
    outlive_publisher_close(publisher);

    outlive_producer *producer;
    outlive_consumer *consumer;
    outlive_slot slot, slot_copy;
    outlive_message message, message_copy;
    OK(outlive_producer_open(node, "/copies", NULL, NULL, &producer));
    OK(outlive_consumer_open(node, "/copies", NULL, NULL, &consumer));
    for (int i = 0; i < 2; i++) {
        CHECK(outlive_producer_reserve(producer, 1, OUTLIVE_NO_WAIT, &slot) == 0);
        *(char *)slot.data = (char)('a' + i);
        slot_copy = slot;
        CHECK(outlive_producer_commit(producer, i == 0 ? &slot : &slot_copy) == 0);
        CHECK(outlive_producer_commit(producer, i == 0 ? &slot_copy : &slot) == -1);
        CHECK(errno == EINVAL);
    }
    for (int i = 0; i < 2; i++) {
        take(consumer, &message);
        CHECK(*(const char *)message.data == 'a' + i);
        message_copy = message;
        OK(outlive_consumer_ack(consumer, i == 0 ? &message : &message_copy));
        const outlive_message *other = i == 0 ? &message_copy : &message;
        CHECK(outlive_consumer_ack(consumer, other) == OUTLIVE_INVALID_ARGUMENT);
        CHECK(outlive_consumer_nack(consumer, other) == OUTLIVE_INVALID_ARGUMENT);
    }
    CHECK(outlive_consumer_receive(consumer, OUTLIVE_NO_WAIT, &message) != OUTLIVE_OK);
    outlive_consumer_close(consumer);
    outlive_producer_close(producer);
}

/* The next reply, which is a refusal that has these words. */
static void refused_with(outlive_client *client, const char *words) {
    outlive_reply *reply;
    OK(outlive_client_receive(client, soon(), &reply));
    CHECK(outlive_reply_is_last(reply) && outlive_reply_status(reply) == OUTLIVE_REFUSED);
    CHECK(strstr(outlive_last_error(), words) != NULL);
    outlive_reply_free(reply);
}

/* A wrong argument takes the request as well: its client must not wait for ever. */
static void wrong_answers(outlive_client *client, outlive_server *server) {
    const char *const reasons[] = {"caf\xe9 is closed", NULL};
    outlive_request *request;
    uint64_t ticket;
    for (int i = 0; i < 2; i++) {
        OK(outlive_client_send(client, "why", 3, OUTLIVE_FOREVER, &ticket));
        OK(outlive_server_receive(server, soon(), &request));
        OK(outlive_server_refuse(server, request, reasons[i]));
        refused_with(client, i == 0 ? "caf\xef\xbf\xbd is closed" : "said: ");
    }
    OK(outlive_client_send(client, "none", 4, OUTLIVE_FOREVER, &ticket));
    OK(outlive_server_receive(server, soon(), &request));
    CHECK(outlive_server_respond(server, request, NULL, 1) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(strstr(outlive_last_error(), "it is NULL") != NULL);
    refused_with(client, "it is NULL, or its size is over PTRDIFF_MAX");
}

static void services(outlive_node *node) {
    outlive_client *client;
    outlive_server *server;
    outlive_request *request;
    outlive_reply *reply;
    uint64_t ticket = 0;
    outlive_service_options options = {.size = sizeof options};
    OK(outlive_client_open(node, "/echo", NULL, NULL, &options, &client));
    CHECK(outlive_client_send(client, "a", 1, OUTLIVE_FOREVER, &ticket) == OUTLIVE_SERVER_DIED);
    OK(outlive_server_open(node, "/echo", NULL, NULL, NULL, &server));
    OK(outlive_client_wait_for_server(client, soon()));
    OK(outlive_client_send(client, "one", 3, OUTLIVE_FOREVER, &ticket));
    CHECK(outlive_client_receive_for(client, ticket, OUTLIVE_NO_WAIT, &reply) == OUTLIVE_WOULD_BLOCK);
    CHECK(outlive_client_receive_for(client, ticket, outlive_now_ns(), &reply) == OUTLIVE_TIMEOUT);
    OK(outlive_server_receive(server, soon(), &request));
    size_t size;
    CHECK(memcmp(outlive_request_data(request, &size), "one", 3) == 0 && size == 3);
    CHECK(outlive_request_deadline_ns(request) == OUTLIVE_FOREVER);
    CHECK(outlive_request_client(request).node == outlive_node_id(node));
    CHECK(!outlive_server_is_cancelled(server, request));
    OK(outlive_server_respond_part(server, request, "o", 1));
    OK(outlive_server_respond(server, request, "ne", 2));
    OK(outlive_client_receive(client, soon(), &reply));
    CHECK(!outlive_reply_is_last(reply) && outlive_reply_ticket(reply) == ticket);
    outlive_reply_free(reply);
    OK(outlive_client_receive_for(client, ticket, soon(), &reply));
    CHECK(outlive_reply_is_last(reply) && outlive_reply_status(reply) == OUTLIVE_OK);
    CHECK(memcmp(outlive_reply_data(reply, &size), "ne", 2) == 0 && size == 2);
    outlive_reply_free(reply);

    OK(outlive_client_send(client, "two", 3, OUTLIVE_FOREVER, &ticket));
    OK(outlive_server_receive(server, soon(), &request));
    OK(outlive_server_refuse(server, request, "not today"));
    refused_with(client, "not today");
    wrong_answers(client, server);
    OK(outlive_client_send(client, "late", 4, OUTLIVE_NO_WAIT, &ticket));
    OK(outlive_client_receive_for(client, ticket, soon(), &reply));
    CHECK(outlive_reply_is_last(reply) && outlive_reply_status(reply) == OUTLIVE_TIMEOUT);
    outlive_reply_free(reply);

    OK(outlive_client_send(client, "three", 5, OUTLIVE_FOREVER, &ticket));
    OK(outlive_client_cancel(client, ticket));
    while (outlive_server_receive(server, OUTLIVE_NO_WAIT, &request) == OUTLIVE_OK) {
        CHECK(outlive_server_is_cancelled(server, request));
        outlive_request_free(request);
    }
    CHECK(outlive_client_call(client, "x", 1, outlive_now_ns() + 1000000, &reply)
          == OUTLIVE_TIMEOUT);
    CHECK(reply == NULL);
    outlive_server_close(server);
    CHECK(outlive_client_call(client, "x", 1, soon(), &reply) == OUTLIVE_SERVER_DIED);
    outlive_client_close(client);
}

static outlive_interrupt *interrupted;

static void on_alarm(int signal) {
    (void)signal;
    outlive_interrupt_raise(interrupted);
}

/* A handler ends a wait, which has a message, a death or a descriptor to wait for as well. */
static void signals(outlive_node *node) {
    int ends[2];
    outlive_waitset *set;
    outlive_subscriber *subscriber;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    OK(outlive_interrupt_new(&interrupted));
    OK(outlive_waitset_new(&set));
    OK(outlive_subscriber_open(node, "/signals", NULL, NULL, &subscriber));
    CHECK(pipe(ends) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    outlive_member members[] = {
        {.kind = OUTLIVE_INTERRUPT, .object = interrupted},
        {.kind = OUTLIVE_SUBSCRIBER, .object = subscriber},
        {.kind = OUTLIVE_READABLE_FD, .fd = ends[0]},
    };
    for (size_t count = 1; count <= 3; count++) {
        struct itimerval soon_once = {.it_value = {.tv_usec = 20000}};
        outlive_interrupt_clear(interrupted);
        CHECK(!outlive_interrupt_is_raised(interrupted));
        CHECK(setitimer(ITIMER_REAL, &soon_once, NULL) == 0);
        OK(outlive_waitset_wait(set, members, count, OUTLIVE_FOREVER));
        CHECK(members[0].ready && outlive_interrupt_is_raised(interrupted));
    }
    CHECK(signal(SIGALRM, SIG_DFL) == on_alarm);
    members[0].object = NULL;
    CHECK(outlive_waitset_wait(set, members, 1, soon()) == OUTLIVE_INVALID_ARGUMENT);
    close(ends[0]);
    close(ends[1]);
    outlive_subscriber_close(subscriber);
    outlive_waitset_free(set);
    outlive_interrupt_free(interrupted);
    outlive_interrupt_raise(NULL);
}

static void waiting(outlive_node *node) {
    outlive_waitset *set;
    outlive_publisher *publisher;
    outlive_subscriber *subscriber;
    outlive_timer *timer;
    OK(outlive_waitset_new(&set));
    OK(outlive_publisher_open(node, "/w", NULL, NULL, &publisher));
    OK(outlive_subscriber_open(node, "/w", NULL, NULL, &subscriber));
    OK(outlive_timer_new(outlive_now_ns() + 1000000, 0, &timer));
    int ends[2];
    CHECK(pipe(ends) == 0);
    outlive_member members[] = {
        {.kind = OUTLIVE_SUBSCRIBER, .object = subscriber},
        {.kind = OUTLIVE_TIMER, .object = timer},
        {.kind = OUTLIVE_READABLE_FD, .fd = ends[0]},
    };
    do {
        OK(outlive_waitset_wait(set, members, 3, soon()));
        outlive_event event;
        while (outlive_subscriber_next_event(subscriber, &event) == OUTLIVE_OK) {
            CHECK(event.kind == OUTLIVE_JOINED);
        }
    } while (!members[1].ready);
    CHECK(outlive_timer_fired(timer) == 1 && outlive_timer_fired(timer) == 0);
    CHECK(outlive_waitset_wait(set, members, 3, OUTLIVE_NO_WAIT) == OUTLIVE_TIMEOUT);
    CHECK(write(ends[1], "x", 1) == 1);
    OK(outlive_waitset_wait(set, members, 3, soon()));
    CHECK(members[2].ready && !members[0].ready);
    OK(outlive_publisher_publish(publisher, "hello", 5, NULL));
    OK(outlive_waitset_wait(set, members, 1, soon()));
    CHECK(members[0].ready);
    outlive_member asked = {.kind = OUTLIVE_SHUTDOWN};
    CHECK(outlive_waitset_wait(set, &asked, 1, soon()) == OUTLIVE_INVALID_ARGUMENT);
    OK(outlive_shutdown_on_signals(&members[2].fd));
    CHECK(outlive_shutdown_wait(OUTLIVE_NO_WAIT) == OUTLIVE_TIMEOUT);
    CHECK(outlive_waitset_wait(set, &asked, 1, OUTLIVE_NO_WAIT) == OUTLIVE_TIMEOUT);
    CHECK(!outlive_shutdown_is_asked() && !outlive_shutdown_signal() && raise(SIGTERM) == 0);
    OK(outlive_waitset_wait(set, members, 3, soon()));
    CHECK(members[2].ready && outlive_shutdown_is_asked());
    OK(outlive_waitset_wait(set, &asked, 1, soon()));
    CHECK(asked.ready && outlive_shutdown_signal() == SIGTERM);
    OK(outlive_shutdown_wait(soon()));
    members[0].kind = 99;
    CHECK(outlive_waitset_wait(set, members, 1, soon()) == OUTLIVE_INVALID_ARGUMENT);
    outlive_timer_free(timer);
    outlive_subscriber_close(subscriber);
    outlive_publisher_close(publisher);
    outlive_waitset_free(set);
}

/* A fault of a child that asked for it is a SIGKILL. */
static void faults(void) {
    pid_t child = fork();
    if (child == 0) {
        outlive_kill_on_faults();
        abort();
    }
    int how = 0;
    CHECK(waitpid(child, &how, 0) == child && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

/* A child is killed; its death ends waits, and its committed message is received. */
static void deaths(void) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        outlive_node *node = open_node("victim");
        outlive_publisher *publisher;
        outlive_topic_options options = {.size = sizeof options, .depth = 4};
        OK(outlive_publisher_open(node, "/last", NULL, &options, &publisher));
        OK(outlive_publisher_publish(publisher, "last words", 10, NULL));
        uint64_t id = outlive_node_id(node);
        CHECK(write(ends[1], &id, sizeof id) == sizeof id);
        pause();
    }
    uint64_t id = 0;
    CHECK(read(ends[0], &id, sizeof id) == sizeof id);
    outlive_node *node = open_node("witness");
    outlive_watch *watch, *hint;
    outlive_subscriber *subscriber;
    outlive_topic_options options = {.size = sizeof options, .history = 4};
    OK(outlive_watch_open(node, id, &watch));
    OK(outlive_watch_open(node, id, &hint));
    OK(outlive_watch_on_hint(hint));
    CHECK(outlive_watch_is_alive(watch) && outlive_watch_seems_alive(hint));
    CHECK(outlive_watch_wait(watch, outlive_now_ns() + 1000) == OUTLIVE_TIMEOUT);
    CHECK(outlive_watch_wait_hint(watch, outlive_now_ns() + 1000) == OUTLIVE_TIMEOUT);
    OK(outlive_subscriber_open(node, "/last", NULL, &options, &subscriber));
    kill(child, SIGKILL);
    outlive_waitset *set;
    outlive_member early = {.kind = OUTLIVE_WATCH, .object = hint};
    OK(outlive_waitset_new(&set));
    OK(outlive_waitset_wait(set, &early, 1, soon()));
    CHECK(early.ready && !outlive_watch_seems_alive(watch));
    outlive_waitset_free(set);
    outlive_watch_free(hint);
    OK(outlive_watch_wait_hint(watch, soon()));
    OK(outlive_watch_wait(watch, soon()));
    CHECK(!outlive_watch_is_alive(watch));
    outlive_sample sample;
    outlive_status status;
    do {
        status = outlive_subscriber_receive(subscriber, soon(), &sample);
    } while (status == OUTLIVE_EVENT);
    OK(status);
    CHECK(memcmp(outlive_sample_data(&sample, NULL), "last words", 10) == 0);
    outlive_sample_release(&sample);
    bool died = false;
    outlive_event event;
    while (!died) {
        while (outlive_subscriber_next_event(subscriber, &event) == OUTLIVE_OK) {
            died |= event.kind == OUTLIVE_DIED && event.port.node == id;
        }
        CHECK(outlive_subscriber_receive(subscriber, died ? 0 : soon(), &sample) != OUTLIVE_OK);
    }
    CHECK(outlive_subscriber_lost(subscriber) == 0);
    outlive_subscriber_close(subscriber);
    outlive_watch_free(watch);
    waitpid(child, NULL, 0);

    /* A forked child is told that the node is not its own. */
    child = fork();
    if (child == 0) {
        outlive_publisher *publisher;
        outlive_status told = outlive_publisher_open(node, "/x", NULL, NULL, &publisher);
        _exit(told == OUTLIVE_FORKED_CHILD ? 0 : 1);
    }
    int how = 1;
    CHECK(waitpid(child, &how, 0) == child && how == 0);
    outlive_node_close(node);
}

/* A holder is killed: its permit comes back with the news, and waiters for a change go on. */
static void between_processes(outlive_node *node) {
    outlive_mutex *mutex;
    outlive_condvar *condvar;
    bool notified = true;
    OK(outlive_mutex_open(node, "/c/data", NULL, NULL, &mutex));
    OK(outlive_condvar_open(node, "/c/changed", &condvar));
    CHECK(outlive_condvar_wait(condvar, mutex, 0, NULL) == OUTLIVE_NOT_OWNED);
    OK(outlive_mutex_lock(mutex, OUTLIVE_FOREVER));
    OK(outlive_condvar_wait(condvar, mutex, outlive_now_ns() + 1000000, &notified));
    CHECK(!notified);
    OK(outlive_mutex_unlock(mutex));
    OK(outlive_condvar_notify(condvar, true));
    outlive_condvar_free(condvar);
    outlive_mutex_free(mutex);

    outlive_semaphore *semaphore;
    outlive_permit permit, second;
    OK(outlive_semaphore_open(node, "/gpu", 1, &semaphore));
    OK(outlive_semaphore_acquire(semaphore, OUTLIVE_FOREVER, &permit));
    CHECK(permit.index == 0 && outlive_semaphore_available(semaphore) == 0);
    CHECK(outlive_semaphore_acquire(semaphore, OUTLIVE_NO_WAIT, &second) != OUTLIVE_OK);
    outlive_permit_release(&second);
    outlive_permit_release(&permit);
    outlive_permit_release(&permit);
    CHECK(outlive_semaphore_available(semaphore) == 1);
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        outlive_node *own = open_node("holder");
        OK(outlive_semaphore_open(own, "/gpu", 1, &semaphore));
        OK(outlive_semaphore_acquire(semaphore, OUTLIVE_FOREVER, &permit));
        CHECK(write(ready[1], "x", 1) == 1);
        pause();
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    kill(child, SIGKILL);
    OK(outlive_semaphore_acquire(semaphore, soon(), &permit));
    CHECK(permit.owner_died);
    outlive_permit_release(&permit);
    waitpid(child, NULL, 0);
    outlive_semaphore_free(semaphore);

    outlive_set *set;
    uint64_t ids[2] = {0, 0};
    bool added = false;
    OK(outlive_set_open(node, "/set", 10, &set));
    OK(outlive_set_insert(set, 8, &added));
    CHECK(added && outlive_set_contains(set, 8) && !outlive_set_contains(set, 9));
    OK(outlive_set_insert(set, 3, NULL));
    OK(outlive_set_insert(set, 5, NULL));
    CHECK(outlive_set_insert(set, 0, NULL) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(outlive_set_ids(set, ids, 2) == 3 && ids[0] == 3 && ids[1] == 5);
    CHECK(outlive_set_remove(set, 8) && !outlive_set_remove(set, 8));
    outlive_set_free(set);
}

static void count_node(const outlive_node_info *info, void *user) {
    *(int *)user += info->alive && strcmp(info->name, "api") == 0;
}

static void count_topic(const outlive_topic_info *info, void *user) {
    *(int *)user += strcmp(info->name, "/outside") == 0 && strcmp(info->type_name, "u8") == 0 &&
                    info->publishers == 1 && info->depth == 16;
}

static void from_outside(outlive_node *node) {
    int nodes = 0, topics = 0;
    outlive_publisher *publisher;
    outlive_clean_report report;
    OK(outlive_publisher_open(node, "/outside", NULL, NULL, &publisher));
    OK(outlive_domain_nodes(NULL, count_node, &nodes));
    OK(outlive_domain_topics(NULL, count_topic, &topics));
    CHECK(nodes == 1 && topics == 1);
    CHECK(outlive_domain_nodes(NULL, NULL, NULL) == OUTLIVE_INVALID_ARGUMENT);
    OK(outlive_domain_clean(NULL, &report));
    CHECK(report.live_nodes >= 1 && !report.domain_removed);
    OK(outlive_publisher_publish(publisher, "x", 1, NULL));
    outlive_publisher_close(publisher);
}

int main(void) {
    frozen_numbers();
    deaths();
    faults();
    outlive_node *node = open_node("api");
    settings(node);
    topics(node);
    reliable_timeouts(node);
    queues(node);
    copies(node);
    services(node);
    between_processes(node);
    from_outside(node);
    signals(node);
    waiting(node);
    outlive_node_close(node);
    outlive_node_close(NULL);
    CHECK(outlive_layout_version() >= 1);
    puts("api: every call");
    return 0;
}
