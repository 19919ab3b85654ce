// One voice of the conversation test; see crates/outlive-py/tests/test_conversation.py.
#include <outlive.hpp>
#if __has_include(<msgpack.hpp>)
#include <outlive/msgpack.hpp>
#endif

#include <cstring>
#include <iostream>
#include <numeric>

struct reading {
    std::uint64_t stamp_ns;
    std::uint32_t sender, number;
    double values[3];
    std::array<std::array<std::int16_t, 2>, 2> grid;
};
OUTLIVE_MESSAGE(reading, "test/Reading", stamp_ns, sender, number, values, grid)

#ifdef OUTLIVE_MSGPACK
// What travels as MessagePack.
struct plan {
    std::string goal;
    unsigned number = 0;
    std::vector<double> speeds;
    MSGPACK_DEFINE_MAP(goal, number, speeds)
};
OUTLIVE_MSGPACK(plan, "test/Plan")
#endif

static reading make(unsigned number) {
    return {1, 2, number, {1.5, 2.5, 3.5}, {{{1, 2}, {3, 4}}}};
}

static double sum(const reading &r) {
    return r.values[0] + r.values[1] + r.values[2] + r.grid[0][0] + r.grid[0][1] + r.grid[1][0] +
           r.grid[1][1];
}

static void show(const reading &r) { std::cout << r.number << ' ' << sum(r) << std::endl; }

static void layout() {
    for (char c : outlive::describe<reading>()) {
        std::cout << (c == '\n' ? '|' : c);
    }
    std::cout << std::endl;
    const reading r = make(3);
    unsigned char bytes[sizeof r];
    std::memcpy(bytes, &r, sizeof r);
    for (auto byte : bytes) {
        std::printf("%02x", byte);
    }
    std::puts("");
}

int main(int argc, char **argv) {
    const std::string role = argc > 1 ? argv[1] : "";
    if (role == "layout") {
        layout();
        return 0;
    }
    const auto never = outlive::deadline::never;
    auto node = outlive::node::open("cpp").value();
    const auto ready = [] { std::cout << "ready" << std::endl; };
    unsigned number = 0;
    if (role == "publish") {
        outlive::topic_options options;
        options.depth = 64;
        auto publisher = node.publisher<reading>("/c/topic", options).value();
        ready();
        while (std::cin >> number) {
            publisher.publish(make(number)).value();
            std::cout << "ok" << std::endl;
        }
#ifdef OUTLIVE_MSGPACK
    } else if (role == "plan") {
        auto publisher = node.publisher<plan>("/c/plan").value();
        ready();
        while (std::cin >> number) {
            publisher.publish(plan{"dock", number, {0.5, 0.25}}).value();
            std::cout << "ok" << std::endl;
        }
    } else if (role == "follow") {
        auto subscriber = node.subscriber<plan>("/c/plan").value();
        ready();
        for (;;) {
            if (auto sample = subscriber.receive(never)) {
                const auto got = sample->value().value();
                const auto sum = std::accumulate(got.speeds.begin(), got.speeds.end(), 0.0);
                std::cout << got.goal << ' ' << got.number << ' ' << sum << std::endl;
            } else {
                subscriber.next_event();
            }
        }
#endif
    } else if (role == "subscribe") {
        auto subscriber = node.subscriber<reading>("/c/topic").value();
        ready();
        for (;;) {
            if (auto sample = subscriber.receive(never)) {
                show(**sample);
            }
        }
    } else if (role == "produce") {
        auto producer = node.producer<reading>("/c/queue").value();
        ready();
        while (std::cin >> number) {
            const auto sent = producer.send(make(number));
            std::cout << (sent ? "ok" : sent.error().what()) << std::endl;
        }
    } else if (role == "consume") {
        auto consumer = node.consumer<reading>("/c/queue").value();
        ready();
        for (;;) {
            if (auto message = consumer.receive(never)) {
                show(**message);
            }
        }
    } else if (role == "serve") {
        auto server = node.server<reading, double>("/c/service").value();
        ready();
        for (;;) {
            auto request = server.receive(never).value();
            const double answer = sum(*request) + request->number;
            (void)server.respond(std::move(request), answer);
        }
    } else if (role == "call") {
        auto client = node.client<reading, double>("/c/service").value();
        ready();
        while (std::cin >> number) {
            if (auto reply = client.call(make(number))) {
                std::cout << **reply << std::endl;
            } else {
                std::cout << reply.error().what() << std::endl;
            }
        }
    } else if (role == "lock") {
        auto mutex = node.mutex<reading>("/c/lock").value();
        ready();
        while (std::cin >> number) {
            const bool died = mutex.acquire().value() == outlive::acquired::owner_died;
            const auto before = mutex->number;
            if (died) {
                mutex.mark_consistent().value();
            }
            mutex->number = number; // and keeps the lock
            std::cout << (died ? "owner died " : "ok ") << before << std::endl;
        }
    }
}
