// Who watches a peer learns of its death at once, whatever killed it; its last words are read.
#include <outlive.hpp>

#include <cstdio>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

static void live(int to_parent) {
    auto node = outlive::node::open("camera").value();
    auto publisher = node.publisher<std::uint64_t>("/heartbeat").value();
    publisher.publish(node.id()).value();
    const std::uint64_t id = node.id();
    if (write(to_parent, &id, sizeof id) == sizeof id) {
        pause();
    }
}

int main() {
    using namespace std::chrono_literals;
    int ends[2];
    if (pipe(ends) != 0) {
        return 1;
    }
    const pid_t camera = fork(); // before this process opens its node
    if (camera == 0) {
        live(ends[1]);
        return 0;
    }
    std::uint64_t id = 0;
    if (read(ends[0], &id, sizeof id) != sizeof id) {
        return 1;
    }
    auto node = outlive::node::open("guard").value();
    outlive::topic_options options;
    options.history = 1;
    auto words = node.subscriber<std::uint64_t>("/heartbeat", options).value();
    auto watch = node.watch(id).value();
    std::printf("alive: %s\n", watch.is_alive() ? "yes" : "no");

    kill(camera, SIGKILL);
    outlive::wait_set set;
    while (!set.wait(10s, watch).value()[0]) {
    }
    const auto last = words.receive(1s);
    const bool read = last || words.receive(1s); // an event may come first
    std::printf("watching: the camera died; its last words were %s\n", read ? "read" : "lost");
    waitpid(camera, nullptr, 0);
}
