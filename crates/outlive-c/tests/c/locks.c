/* Locks: every call once, what it says to wrong arguments, and how a lost one is removed. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const char *const POINT = "outlive-type 1 align 8\nstruct:16\n 0 f64 x\n 8 f64 y\n";

typedef outlive_status opens(const outlive_node *, const char *, const outlive_type *, const void *,
                             outlive_mutex **);

static void a_mutex(outlive_node *node, outlive_type *point, const char *name, opens *open) {
    outlive_mutex *mutex, *bare;
    double start[2] = {1, 2};
    OK(open(node, name, point, start, &mutex));
    CHECK(open(node, name, NULL, NULL, &bare) == OUTLIVE_TYPE_MISMATCH);
    CHECK(strstr(outlive_last_error(), "example/Point, this program has none; size") != NULL);
    CHECK(outlive_mutex_unlock(mutex) == OUTLIVE_NOT_OWNED);
    OK(outlive_mutex_lock(mutex, OUTLIVE_FOREVER));
    CHECK(((double *)outlive_mutex_data(mutex))[1] == 2);
    CHECK(outlive_mutex_lock(mutex, OUTLIVE_NO_WAIT) == OUTLIVE_DEADLOCK);
    OK(outlive_mutex_mark_consistent(mutex)); /* as it is already */
    OK(outlive_mutex_unlock(mutex));
    CHECK(outlive_mutex_mark_consistent(mutex) == OUTLIVE_NOT_OWNED);
    CHECK(outlive_mutex_abandon(mutex) == OUTLIVE_NOT_OWNED);
    OK(outlive_mutex_lock(mutex, OUTLIVE_FOREVER));
    OK(outlive_mutex_abandon(mutex));
    for (int i = 0; i < 2; i++) { /* told to each, until one repairs it */
        CHECK(outlive_mutex_lock(mutex, OUTLIVE_FOREVER) == OUTLIVE_OWNER_DIED);
        OK(outlive_mutex_abandon(mutex));
    }
    CHECK(outlive_mutex_lock(mutex, OUTLIVE_NO_WAIT) == OUTLIVE_OWNER_DIED);
    OK(outlive_mutex_mark_consistent(mutex));
    OK(outlive_mutex_unlock(mutex));
    OK(outlive_mutex_lock(mutex, OUTLIVE_NO_WAIT));
    OK(outlive_mutex_unlock(mutex));
    outlive_mutex_free(mutex);
}

/* With priority inheritance: by what it differs. */
static void pi(outlive_node *node) {
    outlive_mutex *mutex, *again, *without;
    outlive_condvar *condvar;
    OK(outlive_pi_mutex_open(node, "/pi/own", NULL, NULL, &mutex));
    CHECK(outlive_mutex_open(node, "/pi/own", NULL, NULL, &without) == OUTLIVE_TYPE_MISMATCH);
    OK(outlive_pi_mutex_open(node, "/pi/own", NULL, NULL, &again));
    OK(outlive_condvar_open(node, "/pi/changed", &condvar));
    OK(outlive_mutex_lock(mutex, soon()));
    CHECK(outlive_condvar_wait(condvar, mutex, soon(), NULL) == OUTLIVE_UNSUPPORTED);
    CHECK(outlive_condvar_wait(NULL, mutex, soon(), NULL) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(outlive_mutex_unlock(again) == OUTLIVE_NOT_OWNED);
    OK(outlive_mutex_unlock(mutex)); /* neither released it */
    outlive_condvar_free(condvar);
    outlive_mutex_free(again);

    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        outlive_node *own = open_node("holder");
        OK(outlive_pi_mutex_open(own, "/pi/own", NULL, NULL, &mutex));
        OK(outlive_mutex_lock(mutex, OUTLIVE_FOREVER));
        CHECK(write(ready[1], "x", 1) == 1);
        pause();
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(outlive_mutex_lock(mutex, OUTLIVE_NO_WAIT) == OUTLIVE_WOULD_BLOCK);
    CHECK(outlive_mutex_lock(mutex, outlive_now_ns() + 1000) == OUTLIVE_TIMEOUT);
    kill(child, SIGKILL);
    CHECK(outlive_mutex_lock(mutex, soon()) == OUTLIVE_OWNER_DIED);
    OK(outlive_mutex_mark_consistent(mutex));
    OK(outlive_mutex_unlock(mutex));
    waitpid(child, NULL, 0);
    outlive_mutex_free(mutex);
}

static void locks(outlive_node *node) {
    outlive_type *point;
    outlive_mutex *placed;
    outlive_rwlock *lock, *placed_lock;
    OK(outlive_type_fixed("example/Point", POINT, &point));
    a_mutex(node, point, "/m", outlive_mutex_open);
    if (sysconf(_SC_PAGESIZE) == 4096) /* unsupported where pages are larger */
        a_mutex(node, point, "/pi", outlive_pi_mutex_open);

    OK(outlive_rwlock_open(node, "/rw", point, NULL, &lock));
    OK(outlive_rwlock_write(lock, soon()));
    OK(outlive_rwlock_abandon(lock));
    CHECK(outlive_rwlock_read(lock, soon()) == OUTLIVE_OWNER_DIED);
    CHECK(outlive_rwlock_write(lock, soon()) == OUTLIVE_OWNER_DIED);
    for (int i = 0; i < 2; i++) {
        OK(outlive_rwlock_mark_consistent(lock));
    }
    OK(outlive_rwlock_unlock_write(lock));
    OK(outlive_rwlock_read(lock, soon()));
    CHECK(outlive_rwlock_mark_consistent(lock) == OUTLIVE_NOT_OWNED);
    CHECK(((double *)outlive_rwlock_data(lock))[0] == 0);
    OK(outlive_rwlock_unlock_read(lock));
    OK(outlive_rwlock_write(lock, OUTLIVE_NO_WAIT));
    OK(outlive_rwlock_unlock_write(lock));
    CHECK(outlive_rwlock_unlock_write(lock) == OUTLIVE_NOT_OWNED);
    outlive_rwlock_free(lock);

    size_t mutex_size = outlive_mutex_bytes(point), lock_size = outlive_rwlock_bytes(NULL);
    char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && mutex_size <= 4096 && lock_size <= 8192 - 128);
    CHECK(outlive_mutex_place(node, memory, 8, point, &placed) == OUTLIVE_INVALID_ARGUMENT);
    OK(outlive_mutex_place(node, memory, mutex_size, point, &placed));
    OK(outlive_mutex_lock(placed, OUTLIVE_FOREVER));
    OK(outlive_mutex_unlock(placed));
    outlive_mutex_free(placed);
    OK(outlive_rwlock_place(node, memory + 128, lock_size, NULL, &placed_lock));
    OK(outlive_rwlock_write(placed_lock, OUTLIVE_FOREVER));
    OK(outlive_rwlock_unlock_write(placed_lock));
    outlive_rwlock_free(placed_lock);
    munmap(memory, 8192);
    outlive_type_free(point);
}

static outlive_mutex *open_bare(outlive_node *node, const char *name) {
    outlive_mutex *mutex = NULL;
    OK(outlive_mutex_open(node, name, NULL, NULL, &mutex));
    return mutex;
}

/* Nobody gets a lock that was inherited and let go unrepaired, until it is removed. */
static void removing(outlive_node *node) {
    bool removed = true;
    OK(outlive_lock_remove(node, "/lost", &removed));
    CHECK(!removed);
    outlive_mutex *lost = open_bare(node, "/lost");
    CHECK(outlive_lock_remove(node, "/lost", &removed) == OUTLIVE_WOULD_BLOCK);
    CHECK(strstr(outlive_last_error(), "somebody has it open") != NULL);
    OK(outlive_mutex_lock(lost, OUTLIVE_FOREVER));
    OK(outlive_mutex_abandon(lost));
    CHECK(outlive_mutex_lock(lost, OUTLIVE_FOREVER) == OUTLIVE_OWNER_DIED);
    OK(outlive_mutex_unlock(lost));
    CHECK(outlive_mutex_lock(lost, OUTLIVE_FOREVER) == OUTLIVE_UNRECOVERABLE);
    CHECK(strstr(outlive_last_error(), "outlive lock remove") != NULL);
    OK(outlive_lock_remove(node, "/lost", &removed));
    CHECK(removed && outlive_mutex_lock(lost, OUTLIVE_FOREVER) == OUTLIVE_UNRECOVERABLE);
    outlive_mutex *anew = open_bare(node, "/lost");
    OK(outlive_mutex_lock(anew, OUTLIVE_FOREVER));
    OK(outlive_mutex_unlock(anew));
    outlive_mutex_free(anew);
    outlive_mutex_free(lost);
    OK(outlive_lock_remove(node, "lost", NULL));
    OK(outlive_lock_remove(node, "/lost", &removed));
    CHECK(!removed);
    CHECK(outlive_lock_remove(node, "/a//b", NULL) == OUTLIVE_INVALID_NAME);
    CHECK(outlive_lock_remove(node, NULL, NULL) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(outlive_lock_remove(NULL, "/lost", NULL) == OUTLIVE_INVALID_ARGUMENT);
}

int main(void) {
    outlive_node *node = open_node("locks");
    locks(node);
    if (sysconf(_SC_PAGESIZE) == 4096)
        pi(node);
    removing(node);
    outlive_node_close(node);
    puts("locks: every call");
    return 0;
}
