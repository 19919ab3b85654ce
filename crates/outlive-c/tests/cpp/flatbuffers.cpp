// FlatBuffers: topics, queues and services, built and read in shared memory, other schemas, and bytes
// that nobody meant.
#include <cstdio>
#include <cstdlib>

#include <outlive.hpp>
#include <outlive/flatbuffers.hpp>

#include <other_bfbs_generated.h>
#include <other_generated.h>
#include <route_bfbs_generated.h>
#include <route_generated.h>

#include "check.hpp"

using namespace std::chrono_literals;
using route = outlive::flat<fleet::Route, fleet::RouteBinarySchema>;
using other = outlive::flat<fleet::Other, fleet::OtherBinarySchema>;
using builder = flatbuffers::FlatBufferBuilder;

static auto write(builder &to, unsigned legs) {
    std::vector<flatbuffers::Offset<fleet::Leg>> all;
    for (unsigned i = 0; i < legs; ++i) {
        const fleet::Spot spot(i, -1.0 * i);
        all.push_back(fleet::CreateLegDirect(to, &spot, fleet::Step_Drive, "on"));
    }
    const std::vector<double> speeds(legs, 0.5);
    return fleet::CreateRouteDirect(to, "dock", &all, &speeds, 7);
}

static void check(const fleet::Route *route, unsigned legs) {
    CHECK(route->goal()->str() == "dock" && route->id() == 7);
    CHECK(route->legs()->size() == legs && route->speeds()->size() == legs);
    for (unsigned i = 0; i < legs; ++i) {
        const auto *leg = route->legs()->Get(i);
        CHECK(leg->to()->x() == i && leg->to()->y() == -1.0 * i && leg->note()->str() == "on");
        CHECK(leg->step() == fleet::Step_Drive && route->speeds()->Get(i) == 0.5);
        CHECK(reinterpret_cast<std::uintptr_t>(leg->to()) % alignof(double) == 0);
    }
    CHECK(reinterpret_cast<std::uintptr_t>(route->speeds()->Data()) % alignof(double) == 0);
}

/// Copied, and built in a loan that is too large, just right, or too small.
static void topics(outlive::node &node) {
    auto publisher = node.publisher<route>("/route").value();
    auto subscriber = node.subscriber<route>("/route").value();
    for (unsigned legs = 0; legs < 200; ++legs) {
        builder copied;
        copied.Finish(write(copied, legs), fleet::RouteIdentifier());
        publisher.publish(copied).value();
        const auto sample = subscriber.receive(5s).value();
        CHECK((*sample).bytes().size() == copied.GetSize());
        check((*sample).root().value(), legs);

        const std::size_t size = copied.GetSize();
        for (const std::size_t room : {std::size_t{1}, size - 4, size, size + 1, size + 12, 40'000ul}) {
            outlive::build(publisher, room, [&](builder &to) { return write(to, legs); },
                           fleet::RouteIdentifier())
                .value();
            const auto built = subscriber.receive(5s).value();
            const auto bytes = (*built).bytes();
            CHECK(flatbuffers::BufferHasIdentifier(bytes.data(), fleet::RouteIdentifier()));
            const auto *seen = (*built).root().value();
            check(seen, legs);
            // Where it lies, and no more of it than asked for, in whole cache lines.
            const auto *at = reinterpret_cast<const std::byte *>(seen->goal());
            CHECK(at >= bytes.data() && at < bytes.data() + bytes.size());
            CHECK(bytes.size() <= (std::max(room, size) + 8 + 63) / 64 * 64);
            CHECK(room < 40'000 || built.is_borrowed());
        }
    }
    publisher.publish(flatbuffers::DetachedBuffer([] {
        builder from;
        from.Finish(write(from, 3));
        return from.Release();
    }())).value();
    const auto released = subscriber.receive(5s).value();
    check((*released).root().value(), 3);
}

/// That it is built in the memory that the reader sees: what changes there, changes for the reader.
static void places(outlive::node &node) {
    auto publisher = node.publisher<route>("/place").value();
    auto subscriber = node.subscriber<route>("/place").value();
    std::uint8_t *goal = nullptr;
    outlive::build(publisher, 8000, [&](builder &to) {
        const auto text = to.CreateString("dock");
        goal = to.GetCurrentBufferPointer() + sizeof(flatbuffers::uoffset_t);
        return fleet::CreateRoute(to, text);
    }).value();
    const auto sample = subscriber.receive(5s).value();
    const auto *seen = (*sample).root().value();
    CHECK(sample.is_borrowed() && seen->goal()->str() == "dock");
    *goal = 'l';
    CHECK(seen->goal()->str() == "lock");
    const auto before = (*sample).bytes().subspan(8, 7000);
    CHECK(std::ranges::all_of(before, [](std::byte b) { return b == std::byte{}; }));
}

static void refusals(outlive::node &node) {
    auto publisher = node.publisher<route>("/refused").value();
    auto subscriber = node.subscriber<route>("/refused").value();
    auto wrong = node.subscriber<other>("/refused");
    CHECK(!wrong && wrong.error().code() == OUTLIVE_TYPE_MISMATCH);
    CHECK(wrong.error().message().find("fleet.Other") != std::string_view::npos);

    // What is no FlatBuffer at all is not sent.
    const std::byte few[7] = {};
    auto sent = publisher.publish(std::span<const std::byte>(few));
    CHECK(!sent && sent.error().code() == OUTLIVE_INVALID_ARGUMENT);
    CHECK(sent.error().message().find("sending fleet.Route: the 7 bytes") != std::string_view::npos);
    auto large = outlive::build(publisher, SIZE_MAX - 3, [](builder &to) { return write(to, 1); });
    CHECK(!large && large.error().code() == OUTLIVE_INVALID_ARGUMENT);
    CHECK(subscriber.receive().error().code() == OUTLIVE_WOULD_BLOCK);

    // Any byte of it may be wrong: told, or another route, and never read outside.
    builder good;
    good.Finish(write(good, 5));
    std::vector<std::byte> bytes(good.GetSize());
    std::memcpy(bytes.data(), good.GetBufferPointer(), bytes.size());
    unsigned refused = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        for (const unsigned bits : {0x80u, 0xFFu}) {
            auto broken = bytes;
            broken[i] ^= std::byte(bits);
            if (!publisher.publish(std::span<const std::byte>(broken))) {
                continue;
            }
            const auto sample = subscriber.receive(5s).value();
            const auto root = (*sample).root();
            if (!root) {
                CHECK(root.error().code() == OUTLIVE_CORRUPT);
                CHECK(root.error().message().find("receiving fleet.Route") != std::string_view::npos);
                ++refused;
            } else if (const auto *legs = (*root)->legs()) {
                for (const auto *leg : *legs) {
                    CHECK(leg->note() == nullptr || leg->note()->size() < bytes.size());
                }
            }
        }
    }
    CHECK(refused > 100);
    // Cut off anywhere.
    for (std::size_t size = 8; size < bytes.size(); ++size) {
        if (publisher.publish(std::span<const std::byte>(bytes).first(size))) {
            const auto sample = subscriber.receive(5s).value();
            (void)(*sample).root();
        }
    }
}

/// A loan that is not published is free again: there are fewer than rounds.
static void unfinished(outlive::node &node) {
    auto publisher = node.publisher<route>("/unfinished").value();
    auto subscriber = node.subscriber<route>("/unfinished").value();
#if defined(__cpp_exceptions)
    for (int i = 0; i < 1000; ++i) {
        try {
            (void)outlive::build(publisher, 100'000, [](builder &to) {
                to.CreateString("half");
                throw 7;
                return write(to, 1);
            });
            CHECK(false);
        } catch (int) {
        }
    }
#endif
    CHECK(subscriber.receive().error().code() == OUTLIVE_WOULD_BLOCK);
    outlive::build(publisher, 100'000, [](builder &to) { return write(to, 9); }).value();
    const auto sample = subscriber.receive(5s).value();
    check((*sample).root().value(), 9);
}

int main() {
    auto node = outlive::node::open("flatbuffers").value();
    topics(node);
    places(node);
    refusals(node);
    unfinished(node);

    auto consumer = node.consumer<route>("/routes").value();
    auto producer = node.producer<route>("/routes").value();
    builder from;
    from.Finish(write(from, 2));
    producer.send(from).value();
    const auto message = consumer.receive(5s).value();
    check((*message).root().value(), 2);

    auto server = node.server<route, route>("/plan").value();
    auto client = node.client<route, route>("/plan").value();
    const auto ticket = client.send(from).value();
    auto request = server.receive(5s).value();
    check((*request).root().value(), 2);
    server.respond(std::move(request), from).value();
    const auto reply = client.receive_for(ticket, 5s).value();
    check((*reply).root().value(), 2);
    std::printf("flatbuffers: in shared memory\n");
}
