// Messages of std_msgs, made by `outlive types import`.
#pragma once


#include <outlive.hpp>

namespace std_msgs {
struct ColorRGBA {
    float r{};
    float g{};
    float b{};
    float a{};
};
} // namespace std_msgs
OUTLIVE_MESSAGE(std_msgs::ColorRGBA, "std_msgs/msg/ColorRGBA", r, g, b, a)
