// Generated messages in C++: their descriptions, sent and seen; see test_types.py.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>

#include "arm_msgs.hpp"

using namespace std::chrono_literals;

template <class T> void layout() {
    auto text = outlive::describe<T>();
    std::replace(text.begin(), text.end(), '\n', '|');
    std::printf("%s %s ", outlive::message_traits<T>::name, text.c_str());
    const T made{};
    const auto *bytes = reinterpret_cast<const unsigned char *>(&made);
    std::for_each(bytes, bytes + sizeof made, [](unsigned byte) { std::printf("%02x", byte); });
    std::printf("\n");
}

arm_msgs::Arm arm(int number) {
    arm_msgs::Arm made{};
    made.header.stamp.sec = number;
    std::copy_n("base", 4, made.header.frame_id);
    made.joints[1].position = 0.5;
    made.joints[1].brakes[2] = true;
    made.reach.corners[0] = {1.0, -2.0, static_cast<double>(number)};
    made.reach.corners_count = 1;
    return made;
}

std::string text(const char *from, std::size_t most) { return {from, strnlen(from, most)}; }

int main(int count, char **arguments) {
    const std::string role = count > 1 ? arguments[1] : "layout";
    using namespace arm_msgs;
    if (role == "layout") {
        layout<Arm>();
        layout<Battery>();
        layout<Defaults>();
        layout<geo_msgs::Flag>();
        layout<FollowGoal>();
        layout<Grid>();
        layout<Imu>();
        layout<Joint>();
        layout<geo_msgs::Nothing>();
        layout<Numbers>();
        layout<ReachRequest>();
        layout<Scan>();
        layout<Text>();
        layout<Wheels>();
        std::cout << Numbers::LEAST64 << ' ' << Numbers::MOST64 << ' ' << Numbers::GREETING << '\n';
        return 0;
    }
    auto node = outlive::node::open("cpp").value();
    if (role == "send") {
        auto publisher = node.publisher<Arm>("/t/arm").value();
        std::cout << "ready" << std::endl;
        for (int number; std::cin >> number;) {
            publisher.publish(arm(number)).value();
            std::cout << "ok" << std::endl;
        }
        return 0;
    }
    auto arms = node.subscriber<Arm>("/t/arm").value();
    std::cout << "ready" << std::endl;
    arms.for_each([](const auto &sample) {
            const Joint &joint = sample->joints[1];
            std::cout << sample->header.stamp.sec << ' ' << text(sample->header.frame_id, 16) << ' '
                      << joint.position << ' ' << bool(joint.brakes[1]) << ' '
                      << bool(joint.brakes[2]) << ' ' << text(joint.name, 12) << ' '
                      << sample->tool.orientation.w << ' ' << sample->reach.corners_span().size()
                      << ' ' << sample->reach.corners[0].z << std::endl;
        })
        .value();
}
