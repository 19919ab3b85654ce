// Generated messages in C++: their descriptions, sent and seen; see test_types.py.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <tuple>

#include "arm_msgs.hpp"

using namespace std::chrono_literals;

template <class T> void hex(const T &made) {
    const auto *bytes = reinterpret_cast<const unsigned char *>(&made);
    std::for_each(bytes, bytes + sizeof made, [](unsigned byte) { std::printf("%02x", byte); });
    std::printf("\n");
}

template <class T> void layout() {
    auto text = outlive::describe<T>();
    std::replace(text.begin(), text.end(), '\n', '|');
    std::printf("%s %s ", outlive::message_traits<T>::name, text.c_str());
    hex(T{});
}

template <class T> std::string topic() {
    return std::string("/all/") + outlive::message_traits<T>::name;
}

// A message of each type, as it is by default.
template <class... T> struct every {
    static void show() { (layout<T>(), ...); }

    static void give(outlive::node &node) {
        auto to = std::tuple(node.publisher<T>(topic<T>()).value()...);
        std::cout << "ready" << std::endl;
        for (int number; std::cin >> number;) {
            (std::get<outlive::publisher<T>>(to).publish(T{}).value(), ...);
            std::cout << "ok" << std::endl;
        }
    }

    static void take(outlive::node &node) {
        auto from = std::tuple(node.subscriber<T>(topic<T>()).value()...);
        std::puts("ready");
        for (;;) {
            (next(std::get<outlive::subscriber<T>>(from)), ...);
        }
    }

  private:
    template <class One> static void next(outlive::subscriber<One> &from) {
        for (;;) {
            if (auto sample = from.receive(outlive::deadline::never)) {
                std::printf("%s ", outlive::message_traits<One>::name);
                return hex(**sample);
            }
            from.next_event();
        }
    }
};

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
    using all = every<Arm, Battery, Defaults, geo_msgs::Flag, FollowGoal, Grid, Imu, Joint,
                      geo_msgs::Nothing, Numbers, ReachRequest, Scan, Text, Wheels>;
    if (role == "layout") {
        all::show();
        std::cout << Numbers::LEAST64 << ' ' << Numbers::MOST64 << ' ' << Numbers::GREETING << '\n';
        return 0;
    }
    auto node = outlive::node::open("cpp").value();
    if (role == "give") {
        all::give(node);
        return 0;
    }
    if (role == "take") {
        setvbuf(stdout, nullptr, _IOLBF, 0);
        all::take(node);
    }
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
