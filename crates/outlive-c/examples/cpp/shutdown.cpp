// A worker that SIGTERM or Ctrl-C asks to end: it leaves, and others are not told of a death.
#include <outlive.hpp>

#include <csignal>
#include <cstdio>

#include <sys/wait.h>
#include <unistd.h>

static int work() {
    auto shutdown = outlive::shutdown::on_signals().value();
    auto node = outlive::node::open("worker").value();
    auto ticks = node.publisher<std::uint64_t>("/worker/ticks").value();
    auto timer = outlive::timer::every(std::chrono::milliseconds(1));
    outlive::wait_set set;
    while (!shutdown.is_asked()) {
        const auto ready = set.wait(outlive::deadline::never, timer, shutdown).value();
        if (ready[0]) {
            ticks.publish(timer.fired()).value();
        }
    }
    return 0; // what was opened is closed here
}

int main() {
    using namespace std::chrono_literals;
    const pid_t worker = fork(); // before this process opens its node: no handle survives fork
    if (worker == 0) {
        return work();
    }
    auto node = outlive::node::open("supervisor").value();
    auto ticks = node.subscriber<std::uint64_t>("/worker/ticks").value();
    for (int received = 0; received < 3;) {
        if (ticks.receive(10s)) {
            received++;
        }
        while (ticks.next_event()) { // it joined
        }
    }
    kill(worker, SIGTERM);
    bool left = false, died = false;
    while (!left && !died) {
        (void)ticks.receive(10s);
        while (const auto event = ticks.next_event()) {
            left |= event->kind == OUTLIVE_LEFT;
            died |= event->kind == OUTLIVE_DIED;
        }
    }
    int how = 1;
    waitpid(worker, &how, 0);
    std::printf("shutdown: the worker %s, exit %d\n", left ? "left" : "died", WEXITSTATUS(how));
}
