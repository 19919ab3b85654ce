// Producers in processes of their own, one consumer; without it a send says that nobody listens.
#include <outlive.hpp>

#include <cstdio>

#include <sys/wait.h>
#include <unistd.h>

struct command {
    std::uint32_t producer, number;
};
OUTLIVE_MESSAGE(command, "example/Command", producer, number)

constexpr std::uint32_t producers = 3, messages = 100;

static int produce(std::uint32_t me) {
    auto node = outlive::node::open("producer").value();
    auto commands = node.producer<command>("/commands").value();
    commands.wait_for_consumer(outlive::deadline::never).value();
    for (std::uint32_t n = 0; n < messages; n++) {
        commands.send({me, n}).value();
    }
    return 0;
}

int main() {
    // Before this process opens its node: no handle survives fork.
    for (std::uint32_t i = 0; i < producers; i++) {
        if (fork() == 0) {
            return produce(i);
        }
    }
    auto node = outlive::node::open("consumer").value();
    auto early = node.producer<command>("/nobody").value();
    std::printf("without a consumer: %s\n", early.send({0, 0}).error().what());

    auto commands = node.consumer<command>("/commands").value();
    std::uint32_t received = 0, next[producers] = {};
    while (received < producers * messages) {
        auto message = commands.receive(outlive::deadline::never);
        if (!message) { // an event: a producer joined or left
            while (commands.next_event()) {
            }
            continue;
        }
        const command got = **message;
        if (got.number != next[got.producer]++) {
            std::printf("out of order\n");
            return 1;
        }
        received++;
    }
    while (wait(nullptr) > 0) {
    }
    std::printf("many producers: %u messages of %u producers, each in order\n", received, producers);
}
