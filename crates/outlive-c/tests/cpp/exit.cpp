// What static destructors send, which run after the main thread's thread_locals are destroyed.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include <outlive.hpp>

#include "check.hpp"

/// A codec without a library: text.
struct words {
    std::string text;
};
template <> struct outlive::packed_traits<words> {
    static constexpr const char *name = "test/Words";
    static void pack(const words &value, std::vector<std::byte> &to) {
        const auto bytes = std::as_bytes(std::span(value.text));
        to.insert(to.end(), bytes.begin(), bytes.end());
    }
    static bool unpack(std::span<const std::byte> from, words &value) {
        value.text.assign(reinterpret_cast<const char *>(from.data()), from.size());
        return true;
    }
};

/// As CHECK, where the program is ending already.
static void must(bool fine) {
    if (!fine) {
        std::fprintf(stderr, "at exit: %s\n", outlive_last_error());
        std::_Exit(1);
    }
}

struct robot {
    std::optional<outlive::node> node;
    std::optional<outlive::publisher<words>> publisher;
    std::optional<outlive::producer<words>> producer;
    std::optional<outlive::subscriber<words>> subscriber;
    std::optional<outlive::consumer<words>> consumer;

    ~robot() {
        must(publisher->publish(words{"stopped"}).has_value());
        must(subscriber->latest().value().value().value().text == "stopped");
        must(producer->try_send(words{"out of order"}).has_value());
        must(consumer->receive().value().value().value().text == "out of order");
        std::puts("exit: the last words were heard");
    }
};
static robot the_robot;

int main() {
    auto &node = the_robot.node.emplace(outlive::node::open("exit").value());
    the_robot.subscriber = node.subscriber<words>("/said").value();
    the_robot.publisher = node.publisher<words>("/said").value();
    the_robot.consumer = node.consumer<words>("/asked").value();
    the_robot.producer = node.producer<words>("/asked").value();
    // The room of this thread is as large as the last words.
    CHECK(the_robot.publisher->publish(words{"going home"}));
    CHECK(the_robot.producer->send(words{"go home now"}));
    CHECK(the_robot.consumer->receive(outlive::deadline::never));
    std::thread([&] { CHECK(the_robot.publisher->publish(words{"from another thread"})); }).join();
}
