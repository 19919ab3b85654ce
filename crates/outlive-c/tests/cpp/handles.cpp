// Handles: what they lend keeps them open, and no longer than it is used; loops over what they
// receive; settings and empty locks.
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <outlive.hpp>
#include <pthread.h>

#include "check.hpp"

using namespace std::chrono_literals;

struct job {
    std::uint64_t number;
};
OUTLIVE_MESSAGE(job, "test/Job", number)

/// Skips what happened to others.
template <class Port> static auto next(Port &&port) {
    for (;;) {
        auto got = port.receive(60s);
        if (got || got.error() != OUTLIVE_EVENT) {
            return got;
        }
        while (port.next_event()) {
        }
    }
}

static void loans(outlive::node &node) {
    auto heard = node.subscriber<job>("/loans").value();
    auto loan = node.publisher<job>("/loans")->loan().value();
    loan->number = 1;
    CHECK(std::move(loan).publish().value() == 0);
    CHECK(next(heard)->operator->()->number == 1);

    // Of elements, and by a chain; dropped, moved and assigned over.
    auto floats =
        node.publisher<float[]>("/loans/f").and_then([](auto &&port) { return port.loan(3); });
    CHECK(floats && floats->span().size() == 3);
    auto scan = node.publisher<outlive::headed<job, float>>("/loans/s")->loan(job{7}, 2).value();
    auto moved = std::move(scan);
    CHECK(moved.header().number == 7 && !scan && scan.tail().empty());
    moved = node.publisher<outlive::headed<job, float>>("/loans/s")->loan(job{8}, 1).value();
    CHECK(moved.header().number == 8 && std::move(moved).publish());
}

/// Who sends on it right now.
static std::size_t publishers(const char *topic) {
    const auto topics = outlive::domain().topics().value();
    for (const auto &known : topics) {
        if (known.name == topic) {
            return known.publishers;
        }
    }
    return 0;
}

static void closes_with_the_last(outlive::node &node) {
    std::optional publisher(node.publisher<job>("/last").value());
    auto first = publisher->loan().value(), second = publisher->loan().value();
    publisher.reset();
    CHECK(publishers("/last") == 1);
    CHECK(std::move(first).publish() && publishers("/last") == 1);
    { auto gone = std::move(second); }
    CHECK(publishers("/last") == 0);

    // One that is published keeps nothing, though its name is still there.
    publisher = node.publisher<job>("/last").value();
    auto third = publisher->loan().value();
    CHECK(std::move(third).publish());
    publisher.reset();
    CHECK(publishers("/last") == 0 && !third);
}

static void slots(outlive::node &node) {
    auto consumer = node.consumer<job>("/slots").value();
    auto slot = node.producer<job>("/slots")->reserve().value();
    slot->number = 1;
    auto elsewhere = std::move(slot);
    CHECK(std::move(elsewhere).commit() && !slot && !elsewhere);
    CHECK(next(consumer)->operator->()->number == 1);
    elsewhere = node.producer<job>("/slots")->reserve().value();
    elsewhere = {}; // nothing was sent
    CHECK(consumer.receive().error() != OUTLIVE_OK);
}

static void messages(outlive::node &node) {
    std::optional first(node.consumer<job>("/jobs").value());
    auto producer = node.producer<job>("/jobs").value();
    for (std::uint64_t number = 1; number <= 3; number++) {
        CHECK(producer.send({number}));
    }
    // In hand, it keeps the place of the one consumer; its end acknowledges it and gives it up.
    auto message = next(*first);
    first.reset();
    CHECK(message && (*message)->number == 1);
    CHECK(node.consumer<job>("/jobs").error() == OUTLIVE_CONSUMER_EXISTS);
    *message = {};
    auto chained = node.consumer<job>("/jobs").and_then([](auto &&port) { return next(port); });
    CHECK(chained && (*chained)->number == 2);
    CHECK(std::move(*chained).nack() && !*chained);
    chained = node.consumer<job>("/jobs").and_then([](auto &&port) { return next(port); });
    CHECK((*chained)->number == 2 && std::move(*chained).ack());
    CHECK(next(node.consumer<job>("/jobs").value()).value()->number == 3);
}

/// One that holds none says 0, whatever lay in memory before.
static void no_message() {
    alignas(outlive::message<job>) unsigned char memory[sizeof(outlive::message<job>)];
    std::memset(memory, 0xff, sizeof memory);
    auto *none = new (memory) outlive::message<job>;
    CHECK(!*none && none->timestamp_ns() == 0 && none->producer().node == 0);
    std::destroy_at(none);
}

static void permits(outlive::node &node) {
    auto permit = node.semaphore("/gpu", 2)->acquire().value();
    auto semaphore = node.semaphore("/gpu", 2).value();
    CHECK(semaphore.available() == 1);
    auto other = semaphore.acquire().value();
    other = std::move(permit); // gives its own back
    CHECK(semaphore.available() == 1 && other && !permit);
    semaphore = {};
    other = {};
    CHECK(node.semaphore("/gpu", 2)->available() == 2);
}

/// The status of what `f` throws; OUTLIVE_OK: nothing.
template <class F> static outlive::status thrown(F &&f) {
    try {
        f();
        return OUTLIVE_OK;
    } catch (const outlive::bad_expected_access<outlive::error> &e) {
        return e.error().code();
    }
}

template <class Lock> static void has_no_data(const Lock &lock) {
    CHECK(thrown([&] { (void)*lock; }) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(thrown([&] { (void)lock->number; }) == OUTLIVE_INVALID_ARGUMENT);
}

/// Reading the data of a lock that is none, or was moved from, throws.
static void empty_locks(outlive::node &node) {
    outlive::robust_mutex<job> mutex;
    outlive::robust_shared_mutex<job> shared;
    has_no_data(mutex);
    has_no_data(shared);
    mutex = node.mutex<job>("/filled", {1}).value();
    shared = node.shared_mutex<job>("/filled/shared", {2}).value();
    CHECK(mutex->number == 1 && (*shared).number == 2);
    const auto own = std::move(mutex);
    const auto its = std::move(shared);
    CHECK((*own).number == 1 && its->number == 2);
    has_no_data(mutex);
    has_no_data(shared);
}

/// A setting is not cut short at a zero byte: the domain would be another one.
static void cut_short() {
    for (auto text : {&outlive::node_options::name, &outlive::node_options::domain,
                      &outlive::node_options::root}) {
        outlive::node_options options;
        options.*text = std::string("/dev\0/shm", 9);
        const outlive::domain domain(options);
        CHECK(outlive::node::open(options).error() == OUTLIVE_INVALID_NAME);
        CHECK(domain.nodes().error() == OUTLIVE_INVALID_NAME);
        CHECK(domain.topics().error() == OUTLIVE_INVALID_NAME);
        CHECK(domain.clean().error() == OUTLIVE_INVALID_NAME);
    }
    CHECK(outlive::node::open(std::string_view("a\0b", 3)).error() == OUTLIVE_INVALID_NAME);
}

/// A loop that goes on over deaths and newcomers, and ends when it is told to or cannot go on.
static void every_message(outlive::node &node) {
    auto numbers = node.subscriber<std::uint64_t>("/every").value();
    std::uint64_t sum = 0;
    std::thread sender([&] {
        for (std::uint64_t n = 1; n <= 3; n++) {
            auto publisher = node.publisher<std::uint64_t>("/every").value(); // joins, leaves
            publisher.publish(n).value();
            std::this_thread::sleep_for(5ms);
        }
    });
    CHECK(numbers.for_each([&](const auto &sample) { return (sum += *sample) < 6; }));
    sender.join();
    CHECK(sum == 6);
    outlive::subscriber<std::uint64_t> empty;
    const auto ended = empty.for_each([](const auto &) {});
    CHECK(!ended && ended.error() == OUTLIVE_INVALID_ARGUMENT);
}

/// The same of a queue. What `see` gives back or leaves by an exception comes again.
static void every_task(outlive::node &node) {
    auto tasks = node.consumer<std::uint64_t>("/tasks").value();
    std::thread sender([&] {
        for (std::uint64_t n = 1; n <= 3; n++) {
            auto producer = node.producer<std::uint64_t>("/tasks").value(); // joins, leaves
            producer.send(n).value();
            std::this_thread::sleep_for(5ms);
        }
    });
    std::vector<std::uint64_t> seen;
    const auto see = [&](outlive::message<std::uint64_t> &task) {
        seen.push_back(*task);
        if (seen.size() == 1) {
            std::move(task).nack().value();
        } else if (seen.size() == 3) {
            throw std::runtime_error("busy");
        }
        return seen.size() < 5;
    };
    bool threw = false;
    try {
        static_cast<void>(tasks.for_each(see));
    } catch (const std::runtime_error &) {
        threw = true;
    }
    CHECK(threw && tasks.for_each(see));
    sender.join();
    CHECK((seen == std::vector<std::uint64_t>{1, 1, 2, 2, 3}));
    outlive::consumer<std::uint64_t> empty;
    const auto ended = empty.for_each([](const auto &) {});
    CHECK(!ended && ended.error() == OUTLIVE_INVALID_ARGUMENT);
}

/// pthread_exit leaves a scope by no exception that a destructor sees, but catch (...) does.
static void ended_threads(outlive::node &node) {
#ifdef _LIBCPP_VERSION
    // libc++'s own unwinder jumps astray in glibc's pthread_exit, without outlive as well.
    static_cast<void>(node);
#else
    auto mutex = node.mutex<std::int64_t>("/ended").value();
    auto end_in_scope = [&] {
        std::scoped_lock held(mutex);
        try {
            ++*mutex;
            pthread_exit(nullptr);
        } catch (...) {
            mutex.abandon().value();
            throw;
        }
    };
    std::thread(end_in_scope).join();
    CHECK(mutex.acquire().value() == outlive::acquired::owner_died && *mutex == 1);
    mutex.mark_consistent().value();
    mutex.unlock();
#endif
}

int main() {
    auto node = outlive::node::open("handles").value();
    loans(node);
    closes_with_the_last(node);
    slots(node);
    messages(node);
    no_message();
    permits(node);
    cut_short();
    empty_locks(node);
    every_message(node);
    every_task(node);
    ended_threads(node);
    std::puts("handles: open until the last is gone");
}
