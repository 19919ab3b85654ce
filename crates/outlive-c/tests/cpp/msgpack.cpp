// MessagePack of types of one's own: topics, queues, services, and bytes that nobody meant.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include <outlive.hpp>
#include <outlive/msgpack.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

struct waypoint {
    double x = 0, y = 0;
    MSGPACK_DEFINE_MAP(x, y)
};
struct plan {
    std::string goal;
    std::uint32_t number = 0;
    std::vector<waypoint> way;
    std::map<std::string, bool> done;
    MSGPACK_DEFINE_MAP(goal, number, way, done)
};
OUTLIVE_MSGPACK(plan, "test/Plan")
struct other {
    int n = 0;
    MSGPACK_DEFINE_MAP(n)
};
OUTLIVE_MSGPACK(other, "test/Other")

/// A codec without a library: one byte.
struct tiny {
    std::uint8_t n = 0;
};
template <> struct outlive::packed_traits<tiny> {
    static constexpr const char *name = "test/Tiny";
    static void pack(const tiny &value, std::vector<std::byte> &to) {
        to.push_back(static_cast<std::byte>(value.n & 0x7f));
    }
    static bool unpack(std::span<const std::byte> from, tiny &value) {
        if (from.size() != 1 || static_cast<std::uint8_t>(from[0]) > 0x7f) {
            return false;
        }
        value.n = static_cast<std::uint8_t>(from[0]);
        return true;
    }
};

static_assert(outlive::packable<plan> && outlive::packable<tiny>);
static_assert(!outlive::packable<int> && !outlive::packable<double[]>);

static plan make(unsigned number) {
    return {"dock", number, {{1.0, 2.0}, {3.0, 4.0}}, {{"looked", true}}};
}
static bool same(const plan &p, unsigned number) {
    return p.goal == "dock" && p.number == number && p.way.size() == 2 && p.way[1].y == 4.0 &&
           p.done.at("looked");
}

template <class Port> static auto next(Port &port) {
    for (;;) {
        if (auto got = port.receive(60s)) {
            return got;
        } else {
            CHECK(got.error() == OUTLIVE_EVENT && port.next_event());
        }
    }
}

int main() {
    auto node = outlive::node::open("msgpack").value();

    auto publisher = node.publisher<plan>("/plan").value();
    auto subscriber = node.subscriber<plan>("/plan").value();
    CHECK(node.subscriber<other>("/plan").error() == OUTLIVE_TYPE_MISMATCH);
    for (unsigned n = 0; n < 3; n++) {
        CHECK(publisher.publish(make(n)));
        CHECK(same(next(subscriber)->value().value(), n));
    }

    auto consumer = node.consumer<plan>("/plans").value();
    auto producer = node.producer<plan>("/plans").value();
    CHECK(producer.send(make(7)) && producer.try_send(make(8)));
    CHECK(same(next(consumer)->value().value(), 7));
    CHECK(same(next(consumer)->value().value(), 8));

    // One that is sent while another is on its way leaves that alone.
    const auto meanwhile = [&] {
        CHECK(producer.send(make(10)));
        return outlive::deadline::never;
    };
    struct sent {
        outlive::detail::payload<plan>::argument value;
        outlive::deadline until;
    };
    const sent outer{make(9), meanwhile()};
    CHECK(producer.send(outer.value, outer.until));
    CHECK(same(next(consumer)->value().value(), 10));
    CHECK(same(next(consumer)->value().value(), 9));

    auto server = node.server<plan, tiny>("/answers").value();
    auto client = node.client<plan, tiny>("/answers").value();
    std::thread answering([&server] {
        auto request = server.receive(60s).value();
        const auto asked = request.value().value();
        CHECK(server.respond(std::move(request), tiny{static_cast<std::uint8_t>(asked.number)}));
    });
    CHECK(client.call(make(42), 60s).value().value().value().n == 42);
    answering.join();

    // Bytes that are no plan, or none at all, are said to be so, and nothing is believed of them.
    auto bytes = [&](std::vector<std::uint8_t> what) {
        CHECK(publisher.publish(std::as_bytes(std::span(what))));
        return next(subscriber)->value();
    };
    CHECK(bytes({0x80})->goal.empty()); // no field at all
    for (const auto &what : std::vector<std::vector<std::uint8_t>>{
             {}, {0xc1}, {0x07}, {0x81, 0xa4, 'g', 'o', 'a', 'l', 0x07}, {0x80, 0x80},
             {0x81, 0xa3, 'w', 'a', 'y', 0xdd, 0xff, 0xff, 0xff, 0xff},
             std::vector<std::uint8_t>(100'000, 0x91)}) {
        const auto got = bytes(what);
        CHECK(!got && got.error() == OUTLIVE_CORRUPT);
        CHECK(got.error().detail().find("test/Plan") != std::string::npos);
    }
    std::vector<std::byte> good;
    outlive::packed_traits<plan>::pack(make(1), good);
    std::mt19937 random(1);
    for (int i = 0; i < 20'000; i++) {
        auto spoilt = good;
        spoilt[random() % spoilt.size()] = static_cast<std::byte>(random());
        spoilt.resize(random() % (spoilt.size() + 1));
        plan value;
        (void)outlive::packed_traits<plan>::unpack(spoilt, value);
    }
    std::puts("msgpack: values of our own");
}
