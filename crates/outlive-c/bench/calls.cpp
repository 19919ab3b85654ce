// ns per round of calls through the C++ interface: the loops of examples/calls.rs, for
// scripts/bench-cpp, which compares the two.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include <outlive.hpp>

struct small {
    std::array<double, 8> values;
};
OUTLIVE_MESSAGE(small, "bench/Small", values)
struct block {
    std::array<double, 512> values;
};
OUTLIVE_MESSAGE(block, "bench/Block", values)

namespace {

constexpr int blocks = 201, rounds = 1000;

// The median of blocks: those in which something else ran do not count.
template <class F> void measure(const char *name, int calls, F &&round) {
    std::array<double, blocks> times;
    for (auto &time : times) {
        const auto start = outlive_now_ns();
        for (int i = 0; i < rounds; i++) {
            round(i);
        }
        time = static_cast<double>(outlive_now_ns() - start) / rounds;
    }
    std::nth_element(times.begin(), times.begin() + blocks / 2, times.end());
    std::printf("%s %d %.3f\n", name, calls, times[blocks / 2]);
}

void must(bool fine) {
    if (!fine) {
        std::abort();
    }
}

} // namespace

int main() {
    auto node = outlive::node::open("bench-cpp").value();
    small message{};

    auto lone = node.publisher<small>("/bench/cpp/lone").value();
    measure("publish_64B", 1, [&](int i) {
        message.values[0] = i;
        lone.publish(message).value();
    });
    auto publisher = node.publisher<small>("/bench/cpp/small").value();
    auto subscriber = node.subscriber<small>("/bench/cpp/small").value();
    publisher.subscribers().value();
    measure("receive_nothing", 1, [&](int) { must(!subscriber.receive()); });
    measure("publish+receive_64B", 2, [&](int i) {
        message.values[0] = i;
        publisher.publish(message).value();
        must((*subscriber.receive())->values[0] == i);
    });
    auto large = node.publisher<block>("/bench/cpp/block").value();
    auto blocks = node.subscriber<block>("/bench/cpp/block").value();
    large.subscribers().value();
    measure("loan+publish+receive_4KiB", 3, [&](int i) {
        auto loan = large.loan().value();
        loan->values[0] = i;
        std::move(loan).publish().value();
        must((*blocks.receive())->values[0] == i);
    });
    auto consumer = node.consumer<std::uint64_t>("/bench/cpp/queue").value();
    auto producer = node.producer<std::uint64_t>("/bench/cpp/queue").value();
    measure("try_send+receive_8B", 2, [&](int i) {
        producer.try_send(static_cast<std::uint64_t>(i)).value();
        must(**consumer.receive() == static_cast<std::uint64_t>(i));
    });
    auto mutex = node.mutex<std::uint64_t>("/bench/cpp/mutex").value();
    measure("lock+unlock", 2, [&](int) {
        std::scoped_lock held(mutex);
        *mutex += 1;
    });
    auto shared = node.shared_mutex<std::uint64_t>("/bench/cpp/shared").value();
    measure("lock_shared+unlock_shared", 2, [&](int) {
        std::shared_lock held(shared);
        must(*std::as_const(shared) == 0);
    });
}
