// Messages of Protocol Buffers: topics and queues, other schemas, and bytes that nobody meant.
#include <cstdio>
#include <cstdlib>

#include <outlive.hpp>
#include <outlive/protobuf.hpp>

#include <plan.pb.cc>
#include <plan.pb.h>

#include "check.hpp"

using namespace std::chrono_literals;

static_assert(outlive::packable<robot::Plan>);

static robot::Plan make(int points) {
    robot::Plan plan;
    plan.set_goal("dock");
    plan.set_step(robot::Plan::DRIVE);
    plan.mutable_at()->set_seconds(7);
    for (int i = 0; i < points; ++i) {
        plan.add_points(i);
    }
    return plan;
}

int main() {
    auto node = outlive::node::open("protobuf").value();
    auto publisher = node.publisher<robot::Plan>("/plan").value();
    auto subscriber = node.subscriber<robot::Plan>("/plan").value();
    for (int points : {0, 3, 10'000}) {
        publisher.publish(make(points)).value();
        auto got = subscriber.receive(5s).value().value().value();
        CHECK(got.goal() == "dock" && got.step() == robot::Plan::DRIVE && got.points_size() == points);
        CHECK(got.at().seconds() == 7);
    }

    auto consumer = node.consumer<robot::Plan>("/plans").value();
    auto producer = node.producer<robot::Plan>("/plans").value();
    producer.send(make(2)).value();
    CHECK(consumer.receive(5s).value().value().value().points_size() == 2);

    auto other = node.subscriber<robot::Goal>("/plan");
    CHECK(!other && other.error().code() == OUTLIVE_TYPE_MISMATCH);
    CHECK(other.error().message().find("robot.Goal") != std::string_view::npos);

    const std::byte broken[] = {std::byte{10}, std::byte{255}};
    publisher.publish(std::span<const std::byte>(broken)).value();
    auto sample = subscriber.receive(5s).value();
    auto value = sample.value();
    CHECK(!value && value.error().code() == OUTLIVE_CORRUPT);
    CHECK(value.error().message().find("receiving robot.Plan") != std::string_view::npos);
    std::printf("protobuf: messages as they are\n");
}
