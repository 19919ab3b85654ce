/* Signals that ask to end, in a process and in what it forks. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static bool readable(int fd) {
    struct pollfd at = {.fd = fd, .events = POLLIN};
    return poll(&at, 1, 0) == 1;
}

static int in_a_child(void (*body)(void)) {
    int how = 0;
    pid_t child = fork();
    if (child == 0) {
        body();
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &how, 0) == child);
    return how;
}

/* As if nobody had asked for signals. */
static void nothing_is_installed(void) {
    outlive_waitset *set;
    outlive_member asked = {.kind = OUTLIVE_SHUTDOWN};
    OK(outlive_waitset_new(&set));
    outlive_shutdown_ask();
    CHECK(!outlive_shutdown_is_asked() && outlive_shutdown_signal() == 0);
    CHECK(outlive_waitset_wait(set, &asked, 1, soon()) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(outlive_shutdown_wait(soon()) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(strstr(outlive_last_error(), "outlive_shutdown_on_signals") != NULL);
    outlive_waitset_free(set);
}

static void a_signal_asks(void) {
    outlive_waitset *set;
    outlive_member asked = {.kind = OUTLIVE_SHUTDOWN};
    int fd = -1;
    OK(outlive_waitset_new(&set));
    OK(outlive_shutdown_on_signals(&fd));
    CHECK(!outlive_shutdown_is_asked() && outlive_shutdown_signal() == 0 && !readable(fd));
    CHECK(outlive_shutdown_wait(OUTLIVE_NO_WAIT) == OUTLIVE_TIMEOUT);
    CHECK(raise(SIGTERM) == 0);
    CHECK(outlive_shutdown_is_asked() && outlive_shutdown_signal() == SIGTERM && readable(fd));
    OK(outlive_shutdown_wait(soon()));
    OK(outlive_waitset_wait(set, &asked, 1, soon()));
    CHECK(asked.ready);
    outlive_waitset_free(set);
}

static void installs_its_own(void) {
    nothing_is_installed();
    a_signal_asks();
}

static void is_ended(void) { raise(SIGTERM); }

static void every_child(void) {
    int how = in_a_child(is_ended);
    CHECK(WIFSIGNALED(how) && WTERMSIG(how) == SIGTERM);
    CHECK(in_a_child(installs_its_own) == 0);
}

/* In a namespace of its own a child may have its parent's number: 1. */
static void is_the_first(void) {
    CHECK(getpid() == 1);
    nothing_is_installed();
}

static void first_of_a_first(void) {
    CHECK(getpid() == 1);
    OK(outlive_shutdown_on_signals(NULL));
    CHECK(unshare(CLONE_NEWPID) == 0);
    CHECK(in_a_child(is_the_first) == 0);
}

static void in_a_namespace(void) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0) { /* not everywhere is it allowed */
        CHECK(in_a_child(first_of_a_first) == 0);
    }
}

int main(void) {
    int fd = -1, again = -1;
    CHECK(in_a_child(in_a_namespace) == 0);
    nothing_is_installed();
    OK(outlive_shutdown_on_signals(&fd));
    OK(outlive_shutdown_on_signals(&again));
    CHECK(fd == again);
    every_child();
    CHECK(!outlive_shutdown_is_asked() && !readable(fd)); /* the children's are their own */
    a_signal_asks();
    every_child();
    puts("shutdown: asked, and each child for itself");
    return 0;
}
