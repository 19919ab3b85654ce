// A publisher and a subscriber of a described type, in one program for brevity.
#include <outlive.hpp>

#include <cstdio>

struct pose {
    double x, y, heading; // m, m, rad
};
OUTLIVE_MESSAGE(pose, "example/Pose", x, y, heading)

int main() {
    using namespace std::chrono_literals;
    auto node = outlive::node::open("hello").value();
    auto publisher = node.publisher<pose>("/robot/pose").value();
    auto subscriber = node.subscriber<pose>("/robot/pose").value();

    publisher.publish({1.0, 2.0, 0.5}).value();

    const auto got = subscriber.receive(1s).value();
    std::printf("hello: x %.1f m, y %.1f m, heading %.1f rad\n", got->x, got->y, got->heading);
}
