// Every class of the C++ interface, together with the standard library's locks.
#include <outlive.hpp>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.hpp"

using namespace std::chrono_literals;

struct vector3 {
    double x, y, z;
};
OUTLIVE_MESSAGE(vector3, "example/Vector3", x, y, z)

enum class mode : std::uint32_t { idle, driving };

namespace robot {
struct state {
    std::uint64_t stamp_ns;
    vector3 position;
    std::array<std::array<float, 2>, 3> wheels;
    vector3 corners[2];
    mode doing;
    char label[4];
};
} // namespace robot
OUTLIVE_MESSAGE(robot::state, "example/State", stamp_ns, position, wheels, corners, doing, label)

template <class T, int N> struct grid {
    T cells[N];
    std::chrono::nanoseconds age;
    std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds> taken;
    std::byte flags[8];
};
OUTLIVE_MESSAGE((grid<std::uint16_t, 4>), "example/Grid", cells, age, taken, flags)

enum plain { first, second };
enum sized : std::uint8_t { small };

struct with_pointer {
    int *at;
};

static_assert(outlive::shareable<vector3> && outlive::shareable<double[3]>);
static_assert(outlive::shareable<robot::state> && outlive::shareable<std::uint8_t>);
static_assert(outlive::shareable<mode> && outlive::shareable<sized> && !outlive::shareable<plain>);
static_assert(outlive::shareable<std::chrono::nanoseconds>);
static_assert(!outlive::shareable<std::chrono::milliseconds>);
static_assert(!outlive::shareable<const int> && !outlive::shareable<long double>);
static_assert(!outlive::shareable<std::array<int, 0>>);
static_assert(!outlive::shareable<bool> && !outlive::shareable<int *>);
static_assert(!outlive::shareable<with_pointer> && !outlive::shareable<std::string>);
static_assert(!std::is_copy_constructible_v<outlive::node>);
static_assert(!std::is_copy_constructible_v<outlive::sample<vector3>>);
static_assert(std::is_nothrow_move_constructible_v<outlive::publisher<vector3>>);

static void descriptions() {
    CHECK(outlive::describe<robot::state>() ==
          "outlive-type 1 align 8\nstruct:112\n 0 u64 stamp_ns\n 8 struct:24 position\n  0 f64 x\n"
          "  8 f64 y\n  16 f64 z\n 32 f32[3][2] wheels\n 56 struct:24[2] corners\n  0 f64 x\n"
          "  8 f64 y\n  16 f64 z\n 104 u32 doing\n 108 char[4] label\n");
    CHECK((outlive::describe<grid<std::uint16_t, 4>>() ==
           "outlive-type 1 align 8\nstruct:32\n 0 u16[4] cells\n 8 i64 age\n 16 i64 taken\n"
           " 24 u8[8] flags\n"));
    CHECK(outlive::describe<double[3]>() == "outlive-type 1 align 8\nf64[3]\n");
}

/// The answer of a call that ends as value() of an error does.
template <class F> static outlive::status thrown(F &&f) {
    try {
        f();
    } catch (const outlive::bad_expected_access<outlive::error> &e) {
        return e.error().code();
    }
    return OUTLIVE_OK;
}

static void deadlines() {
    using outlive::deadline;
    using namespace std::chrono;
    using float_seconds = duration<double>;
    const auto never = deadline::never.ns(), now = deadline::now.ns();
    CHECK(deadline(hours::max()).ns() == never && deadline(seconds::max()).ns() == never);
    CHECK(deadline(nanoseconds::max()).ns() == never && deadline(float_seconds(1e30)).ns() == never);
    CHECK(deadline(float_seconds(std::numeric_limits<double>::infinity())).ns() == never);
    CHECK(deadline(float_seconds(std::numeric_limits<double>::quiet_NaN())).ns() == now);
    CHECK(deadline(hours::min()).ns() == now && deadline(float_seconds(-1e30)).ns() == now);
    CHECK(deadline(0s).ns() == now && deadline(-1ns).ns() == now);
    CHECK(deadline(duration<std::int64_t, std::pico>(999)).ns() == now);
    CHECK(deadline(duration<std::uint8_t, std::ratio<3600>>(255)).ns() > outlive_now_ns());
    using ticks = duration<std::int64_t, std::ratio<1, 14'318'180>>; // of a timer chip
    const auto four_hours = deadline(ticks(14'318'180LL * 14'400)).ns();
    CHECK(four_hours > outlive_now_ns() + 14'399'000'000'000 && four_hours != never);
    CHECK(deadline(steady_clock::time_point::max()).ns() == never);
    CHECK(deadline(steady_clock::time_point::min()).ns() == now);
    CHECK(deadline(time_point<system_clock, hours>::max()).ns() == never);
    CHECK(deadline(time_point<system_clock, hours>::min()).ns() == now);
    const auto soon = deadline(duration_cast<microseconds>(1s)).ns(), at = outlive_now_ns();
    CHECK(soon > at && soon <= at + 1000000000);
    const auto point = deadline(steady_clock::now() + 1s).ns();
    CHECK(point > at && point <= outlive_now_ns() + 1000000000);
    outlive::topic_options options;
    CHECK(options.raw().reliable_timeout_ns == nullptr);
    options.reliable_timeout = hours::max();
    CHECK(*options.raw().reliable_timeout_ns == std::numeric_limits<std::int64_t>::max());
    outlive::queue_options ordered;
    ordered.ordered_holdback = -1s;
    CHECK(ordered.raw().ordered_holdback_ns == 0);
    CHECK(outlive::timer::after(-1s).fired() == 1 && outlive::timer::after(hours::max()).fired() == 0);
    CHECK(outlive::timer::every(hours::max()).fired() == 0);
}

// Handles that hold nothing answer, and do not crash.
static void empty_handles(outlive::node &node) {
    outlive::node none;
    outlive::publisher<vector3> publisher;
    outlive::subscriber<vector3> subscriber;
    outlive::producer<vector3> producer;
    outlive::consumer<vector3> consumer;
    outlive::client<vector3, vector3> client;
    outlive::server<vector3, vector3> server;
    outlive::robust_mutex<vector3> mutex;
    outlive::robust_shared_mutex<> shared;
    outlive::robust_condition condition;
    outlive::robust_semaphore semaphore;
    outlive::lockless_set set;
    outlive::watch watch;
    CHECK(!none && !publisher && !subscriber && !producer && !consumer && !client && !server);
    CHECK(!mutex && !shared && !condition && !semaphore && !set && !watch && node);
    constexpr auto refused = OUTLIVE_INVALID_ARGUMENT;
    CHECK(none.id() == 0 && none.publisher<vector3>("/x").error() == refused);
    CHECK(publisher.publish({}).error() == refused && publisher.loan().error() == refused);
    CHECK(subscriber.receive().error() == refused && !subscriber.next_event());
    CHECK(producer.send({}).error() == refused && producer.reserve().error() == refused);
    CHECK(consumer.receive().error() == refused && !consumer.next_event());
    CHECK(client.call({}).error() == refused && server.receive().error() == refused);
    CHECK(mutex.acquire().error() == refused && shared.acquire_shared().error() == refused);
    CHECK(semaphore.acquire().error() == refused && set.insert(1).error() == refused);
    CHECK(!watch.is_alive());
    try {
        std::scoped_lock held(mutex);
        CHECK(!"a lock of nothing");
    } catch (const std::system_error &e) {
        CHECK(e.code() == std::errc::invalid_argument);
    }
    CHECK(thrown([] { (void)*outlive::sample<vector3>(); }) == refused);
    outlive::sample<outlive::headed<vector3, float>> sample;
    outlive::loan<outlive::headed<vector3, float>> scan;
    outlive::loan<float[]> floats;
    outlive::loan<vector3> loan;
    outlive::message<vector3> message;
    outlive::slot<vector3> slot;
    outlive::reply<vector3> reply;
    outlive::request<vector3> request;
    CHECK(!sample && !loan && !message && !slot && !reply && !request);
    CHECK(thrown([&] { (void)*sample; }) == refused && thrown([&] { scan.header(); }) == refused);
    CHECK(scan.tail().empty() && floats.span().empty() && floats.span().data() == nullptr);
    CHECK(thrown([&] { (void)*loan; }) == refused && thrown([&] { (void)*slot; }) == refused);
    CHECK(thrown([&] { (void)*message; }) == refused && thrown([&] { (void)*reply; }) == refused);
    CHECK(thrown([&] { (void)*request; }) == refused && reply.state().error() == refused);
    CHECK(std::move(loan).publish().error() == refused && std::move(slot).commit().error() == refused);
    CHECK(std::move(message).ack().error() == refused);
    publisher = node.publisher<vector3>("/filled").value();
    CHECK(publisher && publisher.publish({1, 2, 3}));
    auto moved = std::move(publisher);
    CHECK(moved && !publisher && publisher.publish({}).error() == refused);
    const std::string name = "/filled and more";
    CHECK(node.subscriber<vector3>(std::string_view(name).substr(0, 7)));
    CHECK(node.subscriber<vector3>(std::string_view("/fil\0led", 8)).error() == OUTLIVE_INVALID_NAME);
}

// Counts that wrap around when they are multiplied by a size.
static void huge_counts(outlive::node &node) {
    constexpr std::size_t wraps = (std::size_t(1) << 61) + 1; // times 8: 8
    auto publisher = node.publisher<std::uint64_t[]>("/huge").value();
    auto producer = node.producer<std::uint64_t[]>("/huge").value();
    auto consumer = node.consumer<std::uint64_t[]>("/huge").value();
    auto scanner = node.publisher<outlive::headed<vector3, double>>("/huge/scan").value();
    for (const std::size_t count : {wraps, std::size_t(1) << 60, ~std::size_t(0)}) {
        CHECK(publisher.loan(count).error() == OUTLIVE_INVALID_ARGUMENT);
        CHECK(producer.reserve(count, outlive::deadline::now).error() == OUTLIVE_INVALID_ARGUMENT);
        CHECK(scanner.loan(vector3{}, count).error() == OUTLIVE_INVALID_ARGUMENT);
    }
    const auto why = publisher.loan(wraps).error().detail();
    CHECK(why.find("2305843009213693953 elements") != std::string::npos);
    CHECK(publisher.loan(1));
}

static void topics(outlive::node &node) {
    outlive::topic_options options;
    options.depth = 8;
    auto publisher = node.publisher<vector3>("/v", options).value();
    auto subscriber = node.subscriber<vector3>("/v").value();
    CHECK(publisher.publish({1, 2, 3}).value() == 0);
    auto sample = subscriber.receive(5s);
    CHECK(sample && (*sample)->y == 2 && sample->meta().seq == 0);
    auto none = subscriber.receive();
    CHECK(!none && none.error() == OUTLIVE_WOULD_BLOCK && none.error().detail().empty());
    CHECK(none.error().message() == "would block");

    auto loan = publisher.loan().value();
    *loan = {4, 5, 6};
    auto moved = std::move(loan);
    CHECK(std::move(moved).publish().value() == 1);
    auto held = subscriber.latest().value();
    CHECK(held.is_borrowed() && held->z == 6);
    auto moved_sample = std::move(held);
    CHECK((*moved_sample).x == 4);

    auto wrong = node.subscriber<robot::state>("/v");
    CHECK(!wrong && wrong.error() == OUTLIVE_TYPE_MISMATCH);
    CHECK(wrong.error().detail().find("example/Vector3") != std::string::npos);
    CHECK(wrong.error().message() == wrong.error().detail());

    auto floats = node.publisher<float[]>("/ranges").value();
    auto ranges = node.subscriber<float[]>("/ranges").value();
    auto room = floats.loan(1000).value();
    for (auto &range : room.span()) {
        range = 2.5F;
    }
    CHECK(std::move(room).publish());
    auto got = ranges.receive(5s).value();
    CHECK((*got).size() == 1000 && (*got)[999] == 2.5F);

    using scan = outlive::headed<vector3, float>;
    auto scanner = node.publisher<scan>("/scan").value();
    auto scans = node.subscriber<scan>("/scan").value();
    auto filled = scanner.loan(vector3{1, 0, 0}, 3).value();
    filled.tail()[2] = 9;
    CHECK(std::move(filled).publish());
    auto seen = scans.receive(5s).value();
    CHECK((*seen).header.x == 1 && (*seen).tail.size() == 3 && (*seen).tail[2] == 9);

    auto log = node.publisher<std::byte[]>("/log").value();
    auto lines = node.subscriber<std::byte[]>("/log").value();
    const char text[] = "hello";
    CHECK(log.publish(std::as_bytes(std::span(text))));
    auto line = lines.receive(5s);
    CHECK(std::memcmp((**line).data(), text, sizeof text) == 0);
    CHECK(publisher.subscribers().value() == 1 && lines.fd().value() >= 0);
}

// What a publisher answers whose reliable subscriber reads nothing.
static outlive_status behind(outlive::node &node, const char *name,
                             std::optional<outlive::timespan> timeout) {
    outlive::topic_options options{.depth = 2, .reliable = true, .reliable_timeout = timeout};
    auto subscriber = node.subscriber<std::uint64_t>(name, options).value();
    auto publisher = node.publisher<std::uint64_t>(name, options).value();
    CHECK(publisher.publish(1) && publisher.publish(2));
    return publisher.publish(3).error().code();
}

static void reliable_timeouts(outlive::node &node) {
    CHECK(behind(node, "/behind/zero", 0s) == OUTLIVE_WOULD_BLOCK);
    CHECK(behind(node, "/behind/negative", -1s) == OUTLIVE_WOULD_BLOCK);
    CHECK(behind(node, "/behind/some", 1ms) == OUTLIVE_TIMEOUT);
    CHECK(behind(node, "/behind/default", {}) == OUTLIVE_TIMEOUT);
}

static outlive::message<std::uint64_t> next(outlive::consumer<std::uint64_t> &consumer) {
    for (;;) {
        if (auto message = consumer.receive(5s)) {
            return std::move(*message);
        } else {
            CHECK(message.error() == OUTLIVE_EVENT && consumer.next_event());
        }
    }
}

// Whether an error says this.
static bool says(const outlive::error &e, const char *what) {
    return e.detail().find(what) != std::string::npos;
}

// A fault by the same status as a result says what to do, and a result later on says nothing.
static void refusals(outlive::node &node) {
    outlive::queue_options options;
    options.bound_bytes = 16 << 10;
    auto producer = node.producer<std::uint64_t>("/full", options).value();
    CHECK(producer.wait_for_consumer(1ms).error().detail().empty());
    auto consumer = node.consumer<std::uint64_t>("/full").value();
    auto full = producer.try_send(1);
    while (full) {
        full = producer.try_send(1);
    }
    CHECK(full.error() == OUTLIVE_WOULD_BLOCK && says(full.error(), "raise bound_bytes"));
    const auto late = producer.send(1, 1ms).error();
    CHECK(late == OUTLIVE_TIMEOUT && says(late, "raise bound_bytes"));
    const std::array<std::uint64_t, 2> two{1, 2};
    CHECK(says(producer.send_batch(two, 1ms).error(), "raise bound_bytes"));
    try {
        (void)producer.reserve(outlive::deadline::now).value();
        CHECK(!"room");
    } catch (const outlive::bad_expected_access<outlive::error> &e) {
        CHECK(std::string(e.what()).find("raise bound_bytes") != std::string::npos);
    }

    outlive::topic_options reliable{.depth = 2, .reliable = true, .reliable_timeout = 0s};
    auto subscriber = node.subscriber<std::uint64_t>("/behind", reliable).value();
    auto publisher = node.publisher<std::uint64_t>("/behind", reliable).value();
    CHECK(publisher.publish(1) && publisher.publish(2));
    const auto behind = publisher.publish(3).error();
    CHECK(behind == OUTLIVE_WOULD_BLOCK && says(behind, "subscriber"));
    CHECK(says(publisher.loan().value().publish().error(), "subscriber"));

    auto server = node.server<std::uint64_t, char[]>("/slow").value();
    auto client = node.client<std::uint64_t, char[]>("/slow").value();
    CHECK(says(client.call(1, 1ms).error(), "/slow"));
    CHECK(client.receive(1ms).error().detail().empty());
    CHECK(server.receive(1ms).error().detail().empty());

    auto nobodys = node.mutex("/held").value();
    std::scoped_lock held(nobodys);
    std::thread([&] { CHECK(nobodys.acquire(1ms).error().detail().empty()); }).join();
    CHECK(node.subscriber<std::uint64_t>("/quiet").value().receive(1ms).error().detail().empty());
}

struct drops_the_ball : std::exception {};

// An exception is no acknowledgement, and neither is anything but the end of a message's scope.
static void in_hand(outlive::node &node) {
    auto producer = node.producer<std::uint64_t>("/hand").value();
    auto consumer = node.consumer<std::uint64_t>("/hand").value();
    for (std::uint64_t n = 1; n <= 4; n++) {
        CHECK(producer.send(n));
    }
    try {
        auto message = next(consumer);
        CHECK(*message == 1);
        throw drops_the_ball();
    } catch (const drops_the_ball &) {
    }
    {
        auto message = next(consumer); // again
        CHECK(*message == 1 && consumer.receive().error() == OUTLIVE_TOO_MANY_BORROWS);
        while (consumer.next_event()) {
        }
        outlive::wait_set set;
        CHECK(set.wait(5s, consumer).value()[0] && *message == 1);
        CHECK(std::move(message).nack());
        CHECK(std::move(message).ack().error() == OUTLIVE_INVALID_ARGUMENT);
    }
    CHECK(*next(consumer) == 1); // and gone with its scope
    try {
        auto message = next(consumer);
        CHECK(*message == 2 && std::move(message).ack()); // what comes later cannot undo this
        throw drops_the_ball();
    } catch (const drops_the_ball &) {
    }
    // What is received and done with while an exception is in flight is done with.
    struct cleans_up {
        outlive::consumer<std::uint64_t> &consumer;
        ~cleans_up() { CHECK(*next(consumer) == 3); }
    };
    try {
        cleans_up last{consumer};
        throw drops_the_ball();
    } catch (const drops_the_ball &) {
    }
    {
        auto message = next(consumer);
        CHECK(*message == 4);
        message = outlive::message<std::uint64_t>(); // as the end of its scope
    }
    CHECK(consumer.receive().error() == OUTLIVE_WOULD_BLOCK);

    auto slot = producer.reserve().value();
    *slot = 5;
    auto other = producer.reserve().value();
    *other = 6;
    slot = std::move(other); // gives 5's room back, which is gone already, and keeps 6
    CHECK(*slot == 6 && std::move(slot).commit() && *next(consumer) == 6);
    CHECK(consumer.receive().error() == OUTLIVE_WOULD_BLOCK);
}

static void queues(outlive::node &node) {
    auto producer = node.producer<std::uint64_t>("/q").value();
    auto nobody = producer.send(1);
    CHECK(!nobody && nobody.error() == OUTLIVE_OWNER_DIED && !producer.has_consumer());
    auto consumer = node.consumer<std::uint64_t>("/q").value();
    CHECK(node.consumer<std::uint64_t>("/q").error() == OUTLIVE_CONSUMER_EXISTS);
    CHECK(producer.wait_for_consumer(5s));
    for (std::uint64_t n = 0; n < 100; n++) {
        CHECK(producer.send(n));
    }
    for (std::uint64_t n = 0; n < 100;) {
        auto message = consumer.receive(5s);
        if (!message) {
            CHECK(message.error() == OUTLIVE_EVENT && consumer.next_event());
            continue;
        }
        CHECK(**message == n && message->producer().port == producer.id().port);
        n++;
    }
    const std::array<std::uint64_t, 3> batch{100, 101, 102};
    CHECK(producer.send_batch(batch));
    auto slot = producer.reserve().value();
    *slot = 103;
    CHECK(std::move(slot).commit());
    {
        auto dropped = producer.reserve().value();
        *dropped = 0;
    }
    auto ended = producer.reserve().value();
    CHECK(producer.send(104) && !std::move(ended).commit());
    for (std::uint64_t n = 100; n < 105; n++) {
        CHECK(**consumer.receive(5s) == n);
    }
    CHECK(consumer.receive().error() == OUTLIVE_WOULD_BLOCK);
    in_hand(node);
    auto texts = node.consumer<char[]>("/texts").value();
    auto writer = node.producer<char[]>("/texts").value();
    auto room = writer.reserve(2).value();
    std::memcpy(room.span().data(), "hi", 2);
    CHECK(std::move(room).commit());
    auto said = texts.receive(5s);
    CHECK((**said)[1] == 'i');
}

static void messagepack(outlive::node &node) {
    using plan = outlive::msgpack<"robot/Plan">;
    auto publisher = node.publisher<plan>("/plan").value();
    auto subscriber = node.subscriber<plan>("/plan").value();
    CHECK(node.subscriber<outlive::msgpack<"robot/Other">>("/plan").error() ==
          OUTLIVE_TYPE_MISMATCH);
    const std::vector<std::uint8_t> map{0x81, 0xa1, 'n', 0x07}; // {"n": 7}
    CHECK(publisher.publish(std::as_bytes(std::span(map))));
    auto sample = subscriber.receive(5s);
    while (!sample) {
        CHECK(sample.error() == OUTLIVE_EVENT && subscriber.next_event());
        sample = subscriber.receive(5s);
    }
    const auto bytes = **sample;
    CHECK(bytes.size() == map.size() && bytes[3] == std::byte{7});
}

static void between_processes(outlive::node &node) {
    auto mutex = node.mutex<std::uint64_t>("/c/data").value();
    auto changed = node.condition("/c/changed").value();
    std::thread teller([&] {
        std::scoped_lock held(mutex);
        *mutex = 7;
        changed.notify_all();
    });
    {
        std::scoped_lock held(mutex);
        CHECK(changed.wait(mutex, 5s, [&] { return *mutex == 7; }).value());
        CHECK(!changed.wait(mutex, 1ms).value());
    }
    teller.join();
    CHECK(changed.wait(mutex, 1ms).error() == OUTLIVE_NOT_OWNED);

    auto semaphore = node.semaphore("/gpus", 2).value();
    CHECK(node.semaphore("/gpus", 3).error() == OUTLIVE_TYPE_MISMATCH);
    {
        auto first = semaphore.acquire().value(), second = semaphore.acquire(1s).value();
        CHECK(first.index() != second.index() && !first.owner_died());
        CHECK(semaphore.available() == 0);
        CHECK(!semaphore.acquire(outlive::deadline::now));
    }
    CHECK(semaphore.available() == 2);

    auto set = node.lockless_set("/robots", 2).value();
    CHECK(set.insert(9).value() && set.insert(5).value() && !set.insert(9).value());
    CHECK(set.insert(1).error() == OUTLIVE_NO_SPACE);
    CHECK((set.ids() == std::vector<std::uint64_t>{5, 9}) && set.contains(5));
    CHECK(set.remove(5) && !set.remove(5) && set.ids().size() == 1);
}

static void from_outside(outlive::node &node) {
    auto publisher = node.publisher<vector3>("/outside").value();
    CHECK(publisher.publish({1, 2, 3}));
    outlive::domain domain;
    bool here = false;
    const auto nodes = domain.nodes().value();
    for (const auto &known : nodes) {
        here |= known.id == node.id() && known.name == "api" && known.alive;
    }
    CHECK(here);
    std::size_t found = 0;
    const auto topics = domain.topics().value();
    for (const auto &topic : topics) {
        if (topic.name == "/outside") {
            CHECK(topic.type_name == "example/Vector3" && topic.publishers == 1);
            CHECK(topic.messages == 1 && topic.description == outlive::describe<vector3>());
            found++;
        }
    }
    CHECK(found == 1 && domain.clean().value().live_nodes >= 1);
    CHECK(publisher.publish({1, 2, 3})); // what lives was left alone
}

static void services(outlive::node &node) {
    auto server = node.server<vector3, double>("/norm").value();
    auto client = node.client<vector3, double>("/norm").value();
    auto ticket = client.send({1, 2, 2}).value();
    auto request = server.receive(5s).value();
    CHECK(request->z == 2 && !server.is_cancelled(request));
    CHECK(server.respond(std::move(request), 3.0));
    auto reply = client.receive_for(ticket, 5s).value();
    CHECK(reply.state() && *reply == 3.0 && reply.is_last());
    ticket = client.send({0, 0, 0}).value();
    CHECK(server.refuse(server.receive(5s).value(), "no direction"));
    auto refused = client.receive(5s).value();
    CHECK(refused.state().error().detail().find("no direction") != std::string::npos);
    CHECK(thrown([&] { (void)*refused; }) == OUTLIVE_REFUSED);
    CHECK(thrown([&] { (void)*std::move(refused); }) == OUTLIVE_REFUSED);
    CHECK(thrown([&] { (void)(refused.operator->()); }) == OUTLIVE_REFUSED);
    { auto gone = std::move(server); }
    CHECK(client.call({1, 0, 0}).error() == OUTLIVE_SERVER_DIED);
}

static void locks(outlive::node &node) {
    auto mutex = node.mutex<vector3>("/m", {1, 2, 3}).value();
    {
        std::scoped_lock held(mutex);
        CHECK(!mutex.owner_died() && mutex->y == 2);
        mutex->y = 5;
    }
    CHECK(node.mutex<vector3>("/m").value().acquire().value() == outlive::acquired::clean);
    auto again = node.mutex<vector3>("/m").value();
    CHECK(!again.try_lock() && again->y == 5); // this thread holds it
    again.unlock();
    CHECK(again.try_lock_for(1s));
    again.unlock();

    auto bare = node.mutex("/bare").value();
    std::condition_variable_any changed;
    bool told = false;
    std::thread teller([&] {
        std::unique_lock held(bare);
        told = true;
        changed.notify_all();
    });
    {
        std::unique_lock held(bare);
        changed.wait(held, [&] { return told; });
    }
    teller.join();

    auto shared = node.shared_mutex<vector3>("/s").value();
    {
        std::unique_lock write(shared);
        shared->x = 1;
    }
    std::shared_lock read(shared);
    std::thread other([&] {
        std::shared_lock together(shared, 5s);
        CHECK(together.owns_lock() && !shared.try_lock());
    });
    other.join();
    read.unlock();

    const auto size = outlive::robust_shared_mutex<>::bytes();
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    {
        auto placed = outlive::robust_shared_mutex<>::place(node, memory, size).value();
        std::shared_lock held(placed);
    }
    munmap(memory, size);
}

template <class F> static std::error_code error_of(F &&f) {
    try {
        f();
    } catch (const std::system_error &e) {
        return e.code();
    }
    return {};
}

// What an exception leaves in the middle is in disorder, as what a death leaves.
static void torn(outlive::robust_mutex<vector3> mutex) {
    try {
        std::scoped_lock held(mutex);
        mutex->x = 2;
        throw drops_the_ball();
    } catch (const drops_the_ball &) {
    }
    CHECK(error_of([&] { std::scoped_lock held(mutex); }) == std::errc::owner_dead);
    mutex.on_owner_died([](vector3 &) { throw drops_the_ball(); });
    try {
        std::scoped_lock held(mutex);
        CHECK(!"repaired");
    } catch (const drops_the_ball &) {
    }
    mutex.on_owner_died([](vector3 &inside) { inside.y = inside.z = inside.x; });
    {
        std::scoped_lock held(mutex);
        CHECK(!mutex.owner_died() && mutex->z == 2);
    }
    { // a lock that is taken and let go while an exception is in flight
        struct tidies {
            outlive::robust_mutex<vector3> &mutex;
            ~tidies() {
                std::scoped_lock held(mutex);
                mutex->z = 3;
            }
        };
        try {
            tidies last{mutex};
            throw drops_the_ball();
        } catch (const drops_the_ball &) {
        }
        CHECK(mutex.acquire().value() == outlive::acquired::clean && mutex->z == 3);
        CHECK(mutex.abandon());
    }
    // Unlocked as it was found, it is nobody's any more.
    CHECK(mutex.acquire().value() == outlive::acquired::owner_died);
    mutex.unlock();
    CHECK(mutex.acquire().error() == OUTLIVE_UNRECOVERABLE);
    CHECK(error_of([&] { std::scoped_lock held(mutex); }) == std::errc::state_not_recoverable);
}

// What cannot be recovered is removed, also while it is open, and made again.
static void removed(outlive::node &node) {
    CHECK(node.remove_lock("/torn").value() && !node.remove_lock("/torn").value());
    auto again = node.mutex<vector3>("/torn", {1, 2, 3}).value();
    std::scoped_lock held(again);
    CHECK(again->y == 2);
    const auto in_use = node.remove_lock("/torn").error();
    CHECK(in_use == OUTLIVE_WOULD_BLOCK && says(in_use, "somebody has it open"));
    CHECK(outlive::node().remove_lock("/torn").error() == OUTLIVE_INVALID_ARGUMENT);
}

// A mutex with priority inheritance whose owner is killed; scoped_lock is not given what it left.
static void inherited(outlive::node &node) {
    const pid_t child = fork();
    if (child == 0) {
        auto own = outlive::node::open("victim").value();
        auto mutex = own.pi_mutex<vector3>("/inherited").value();
        std::scoped_lock held(mutex);
        mutex->x = 7;
        raise(SIGKILL);
    }
    waitpid(child, nullptr, 0);
    auto mutex = node.pi_mutex<vector3>("/inherited").value();
    CHECK(node.mutex<vector3>("/inherited").error() == OUTLIVE_TYPE_MISMATCH);
    CHECK(error_of([&] { std::scoped_lock held(mutex); }) == std::errc::owner_dead);
    mutex.on_owner_died([](vector3 &left) { left.y = left.x; });
    {
        std::scoped_lock held(mutex);
        CHECK(mutex->y == 7);
        auto changed = node.condition("/inherited/changed").value();
        CHECK(changed.wait(mutex, 1ms).error() == OUTLIVE_UNSUPPORTED);
    }
    CHECK(mutex.acquire().value() == outlive::acquired::clean);
    std::thread([&] { CHECK(!mutex.try_lock_for(1ms)); }).join();
    mutex.unlock();
    auto bare = node.pi_mutex("/inherited/bare").value();
    std::scoped_lock both(mutex, bare);
}

// A process is killed while it holds a lock for writing; readers and writers here are told.
static void deaths() {
    const pid_t child = fork();
    if (child == 0) {
        auto node = outlive::node::open("victim").value();
        auto lock = node.shared_mutex<vector3>("/fragile").value();
        std::unique_lock held(lock);
        lock->x = 7;
        raise(SIGKILL);
    }
    waitpid(child, nullptr, 0);
    auto node = outlive::node::open("heir").value();
    auto lock = node.shared_mutex<vector3>("/fragile").value();
    try {
        std::shared_lock refused(lock);
        CHECK(!"a reader among the ruins");
    } catch (const std::system_error &e) {
        CHECK(e.code() == std::errc::owner_dead);
    }
    CHECK(lock.acquire_shared().error() == OUTLIVE_OWNER_DIED);
    // A lock that cannot say what it got does not give it: scoped_lock is told by an exception.
    CHECK(error_of([&] { std::unique_lock held(lock); }) == std::errc::owner_dead);
    CHECK(!lock.try_lock() && error_of([&] { (void)lock.try_lock(); }) == std::errc::owner_dead);
    {
        CHECK(lock.acquire().value() == outlive::acquired::owner_died && lock.owner_died());
        std::unique_lock held(lock, std::adopt_lock);
        CHECK(lock->x == 7);
        *lock = {0, 0, 0};
        CHECK(lock.mark_consistent() && !lock.owner_died());
    }
    std::shared_lock read(lock);
    CHECK(lock->x == 0);
    read.unlock();

    auto open = node.mutex<vector3>("/torn").value();
    torn(node.mutex<vector3>("/torn", {1, 1, 1}).value());
    removed(node);
    CHECK(open.acquire().error() == OUTLIVE_UNRECOVERABLE);
    if (sysconf(_SC_PAGESIZE) == 4096) { // unsupported where pages are larger
        torn(node.pi_mutex<vector3>("/torn/pi", {1, 1, 1}).value());
        inherited(node);
    }

    auto bare = node.shared_mutex("/bare/torn").value();
    CHECK(bare.acquire() && bare.abandon());
    bool repaired = false;
    bare.on_owner_died([&] { repaired = true; });
    bare.lock();
    CHECK(repaired);
    bare.unlock();
    CHECK(error_of([&] { std::shared_lock held(bare); }) == std::error_code());

    // A wait that gets its lock back from one that died inside says so.
    auto waited = node.mutex<vector3>("/waited").value();
    auto changed = node.condition("/waited/changed").value();
    std::thread clumsy;
    {
        std::scoped_lock held(waited);
        clumsy = std::thread([&] {
            CHECK(waited.acquire());
            changed.notify_all();
            CHECK(waited.abandon());
        });
        auto woken = changed.wait(waited, 5s);
        CHECK(!woken && woken.error() == OUTLIVE_OWNER_DIED && waited.owner_died());
        CHECK(waited.mark_consistent());
    }
    clumsy.join();
    CHECK(error_of([&] { std::scoped_lock held(waited); }) == std::error_code());
}

// What a callback throws passes by the frames of the library, and comes out of the call.
static void callbacks(outlive::node &) {
    const auto domain = outlive::domain();
    struct boom : std::exception {};
    int calls = 0;
    try {
        (void)outlive::detail::collected<int, outlive_node_info>(
            [](auto found, void *user) {
                outlive_node_info info{};
                for (int i = 0; i < 3; i++) {
                    found(&info, user);
                }
                return outlive_domain_nodes(nullptr, found, user);
            },
            [&](const outlive_node_info &) -> int {
                calls++;
                throw boom();
            });
        CHECK(!"nothing thrown");
    } catch (const boom &) {
        CHECK(calls == 1);
    }
    CHECK(domain.nodes().value().size() > 0);
}

int main() {
    deaths();
    descriptions();
    deadlines();
    auto node = outlive::node::open("api").value();
    topics(node);
    reliable_timeouts(node);
    refusals(node);
    queues(node);
    services(node);
    locks(node);
    messagepack(node);
    between_processes(node);
    from_outside(node);
    empty_handles(node);
    huge_counts(node);
    callbacks(node);
    CHECK(!node.watch(node.id() + 1000));
    std::puts("api: every class");
}
