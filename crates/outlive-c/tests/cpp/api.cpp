// Every class of the C++ interface, together with the standard library's locks.
#include <outlive.hpp>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

struct with_pointer {
    int *at;
};

static_assert(outlive::shareable<vector3> && outlive::shareable<double[3]>);
static_assert(outlive::shareable<robot::state> && outlive::shareable<std::uint8_t>);
static_assert(!outlive::shareable<bool> && !outlive::shareable<int *>);
static_assert(!outlive::shareable<with_pointer> && !outlive::shareable<std::string>);
static_assert(!std::is_copy_constructible_v<outlive::node>);
static_assert(!std::is_copy_constructible_v<outlive::sample<vector3>>);
static_assert(std::is_nothrow_move_constructible_v<outlive::publisher<vector3>>);

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            std::fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #what,         \
                         outlive_last_error());                                                    \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

static void descriptions() {
    CHECK(outlive::describe<robot::state>() ==
          "outlive-type 1 align 8\nstruct:112\n 0 u64 stamp_ns\n 8 struct:24 position\n  0 f64 x\n"
          "  8 f64 y\n  16 f64 z\n 32 f32[3][2] wheels\n 56 struct:24[2] corners\n  0 f64 x\n"
          "  8 f64 y\n  16 f64 z\n 104 u32 doing\n 108 char[4] label\n");
    CHECK(outlive::describe<double[3]>() == "outlive-type 1 align 8\nf64[3]\n");
}

static void results() {
    outlive::expected<int> good = 7, bad = outlive::unexpected(OUTLIVE_TIMEOUT);
    CHECK(good && *good == 7 && !bad && bad.error() == OUTLIVE_TIMEOUT);
    CHECK(std::move(bad).value_or(3) == 3);
    auto doubled = std::move(good).transform([](int n) { return 2 * n; });
    CHECK(doubled.value() == 14);
    auto next = std::move(doubled).and_then(
        [](int n) -> outlive::expected<std::string> { return std::to_string(n); });
    CHECK(*next == "14");
    outlive::expected<void> nothing;
    CHECK(std::move(nothing).and_then([] { return outlive::expected<int>(1); }).value() == 1);
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
    CHECK(std::memcmp((*lines.receive(5s).value()).data(), text, sizeof text) == 0);
    CHECK(publisher.subscribers().value() == 1 && lines.fd().value() >= 0);
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
    auto texts = node.consumer<char[]>("/texts").value();
    auto writer = node.producer<char[]>("/texts").value();
    auto room = writer.reserve(2).value();
    std::memcpy(room.span().data(), "hi", 2);
    CHECK(std::move(room).commit() && (**texts.receive(5s))[1] == 'i');
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
    auto refused = client.receive(5s).value().state();
    CHECK(refused.error().detail().find("no direction") != std::string::npos);
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
    {
        std::unique_lock held(lock);
        CHECK(lock.owner_died() && lock->x == 7);
        *lock = {0, 0, 0};
        CHECK(lock.mark_consistent() && !lock.owner_died());
    }
    std::shared_lock read(lock);
    CHECK(lock->x == 0);
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

int main() {
    deaths();
    descriptions();
    results();
    auto node = outlive::node::open("api").value();
    topics(node);
    queues(node);
    services(node);
    locks(node);
    messagepack(node);
    between_processes(node);
    from_outside(node);
    waiting(node);
    CHECK(!node.watch(node.id() + 1000));
    std::puts("api: every class");
}
