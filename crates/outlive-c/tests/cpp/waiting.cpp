// Waiting for several things, and what ends a wait: messages, deaths, signals, other threads.
#include <outlive.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "check.hpp"

using namespace std::chrono_literals;

struct vector3 {
    double x, y, z;
};
OUTLIVE_MESSAGE(vector3, "example/Vector3", x, y, z)

// A death shows as a hint at once, also to a wait set, and a fault that was to be one is a SIGKILL.
static void hints(outlive::node &node) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        outlive::kill_on_faults();
        auto own = outlive::node::open("victim").value();
        const auto id = own.id();
        CHECK(write(ends[1], &id, sizeof id) == sizeof id);
        pause();
    }
    std::uint64_t id = 0;
    CHECK(read(ends[0], &id, sizeof id) == sizeof id);
    close(ends[0]);
    close(ends[1]);
    auto watch = node.watch(id).value();
    auto early = node.watch(id).value();
    early.on_hint();
    outlive::wait_set set;
    CHECK(watch.seems_alive() && !watch.wait_hint(1ms));
    CHECK(set.wait(1ms, watch, early).value().none());
    kill(child, SIGABRT);
    CHECK(set.wait(5s, early).value()[0] && !early.seems_alive());
    CHECK(watch.wait_hint(5s) && watch.wait(5s) && set.wait(5s, watch).value()[0]);
    int how = 0;
    CHECK(waitpid(child, &how, 0) == child && WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

static outlive::interrupt *interrupted;

// A signal handler ends a wait, a std::stop_source does, and what asks the process to end.
static void ending(outlive::node &node) {
    auto subscriber = node.subscriber<vector3>("/ending").value();
    outlive::wait_set set;
    outlive::interrupt own;
    interrupted = &own;
    std::signal(SIGUSR1, [](int) { interrupted->raise(); });
    for (int round = 0; round < 2; round++) {
        const auto waiter = pthread_self();
        std::thread other([&] {
            std::this_thread::sleep_for(20ms);
            pthread_kill(waiter, SIGUSR1);
        });
        const auto ready = set.wait(outlive::deadline::never, subscriber, own).value();
        CHECK(!ready[0] && ready[1] && own.is_raised());
        other.join();
        own.clear();
    }
    std::signal(SIGUSR1, SIG_DFL);

#if defined(__cpp_lib_jthread)
    for (bool listed : {false, true}) {
        std::stop_source source;
        CHECK(set.wait(source.get_token(), 1ms, subscriber).value().none());
        std::thread other([&] {
            std::this_thread::sleep_for(20ms);
            source.request_stop();
        });
        if (listed) {
            outlive::member members[] = {subscriber, own};
            CHECK(!set.wait(source.get_token(), members, outlive::deadline::never).value());
        } else {
            CHECK(set.wait(source.get_token(), outlive::deadline::never, subscriber).value().none());
        }
        CHECK(source.stop_requested());
        other.join();
        // Asked already: it does not wait, and says what is ready nevertheless.
        own.raise();
        outlive::member members[] = {subscriber, own};
        CHECK(set.wait(source.get_token(), members, outlive::deadline::never).value());
        CHECK(!members[0].ready() && members[1].ready());
        const auto ready = set.wait(source.get_token(), outlive::deadline::never, own).value();
        CHECK(ready[0]);
        own.clear();
    }
#endif

    auto shutdown = outlive::shutdown::on_signals().value();
    CHECK(!shutdown.is_asked() && shutdown.signal() == 0 && !shutdown.wait(1ms));
    CHECK(set.wait(1ms, subscriber, shutdown).value().none());
    // Not SIGINT: what a shell runs in the background ignores that.
    CHECK(raise(SIGTERM) == 0 && shutdown.is_asked() && shutdown.signal() == SIGTERM);
    CHECK(set.wait(5s, subscriber, shutdown).value()[1] && shutdown.wait(5s));
    outlive::descriptor asked{shutdown.fd()};
    CHECK(set.wait(5s, asked).value()[0]);
    const pid_t child = fork();
    if (child == 0) { // asked for nothing, until it calls on_signals itself
        CHECK(!shutdown.is_asked() && !shutdown.wait(outlive::deadline::never));
        CHECK(set.wait(5s, shutdown).error() == OUTLIVE_INVALID_ARGUMENT);
        auto own = outlive::shutdown::on_signals().value();
        CHECK(!own.is_asked() && own.fd() != shutdown.fd() && raise(SIGTERM) == 0);
        CHECK(set.wait(5s, own).value()[0] && own.signal() == SIGTERM);
        _exit(0);
    }
    int how = 1;
    CHECK(waitpid(child, &how, 0) == child && how == 0);
}

static void waiting(outlive::node &node) {
    auto publisher = node.publisher<vector3>("/w").value();
    auto subscriber = node.subscriber<vector3>("/w").value();
    auto timer = outlive::timer::every(1ms);
    outlive::wait_set set;
    CHECK(publisher.publish({1, 2, 3}));
    auto ready = set.wait(5s, subscriber, timer).value();
    CHECK(ready[0]);
    int ends[2];
    CHECK(pipe(ends) == 0);
    outlive::descriptor input{ends[0]};
    CHECK(set.wait(outlive::deadline::now, input).value().none());
    CHECK(write(ends[1], "x", 1) == 1 && set.wait(5s, input).value()[0]);
    while (!timer.fired()) {
        CHECK(set.wait(5s, timer).value()[0]);
    }
}

// That time ran out has no detail, least of all that of what failed before.
static void too_late(outlive::node &node) {
    auto lock = node.shared_mutex("/late").value();
    std::scoped_lock held(lock);
    std::thread([&] {
        CHECK(!node.watch(node.id() + 1000).error().detail().empty());
        for (const auto &late : {lock.acquire(1ms).error(), lock.acquire_shared(1ms).error()}) {
            CHECK(late == OUTLIVE_TIMEOUT && late.detail().empty());
        }
    }).join();
}

int main() {
    auto node = outlive::node::open("waits").value();
    waiting(node);
    too_late(node);
    hints(node);
    ending(node);
    std::puts("waiting: woken by all");
}
