// Messages of geo_msgs, made by `outlive types import`.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <outlive.hpp>

namespace geo_msgs {
/// A point in the frame of the message that has it.
struct Point {
    /// m, forward
    double x{};
    /// m, left
    double y{};
    /// m, up
    double z{};
};
} // namespace geo_msgs
OUTLIVE_MESSAGE(geo_msgs::Point, "geo_msgs/msg/Point", x, y, z)

namespace geo_msgs {
/// At most 8 corners.
struct Polygon {
    std::array<::geo_msgs::Point, 8> corners{};
    /// How many of corners there are.
    std::uint32_t corners_count{};
    /// Zero.
    std::array<std::uint8_t, 4> reserved{};
    /// Those of corners that there are.
    [[nodiscard]] std::span<const ::geo_msgs::Point> corners_span() const {
        return {std::data(corners),
                std::min<std::size_t>(corners_count, std::size(corners))};
    }
};
} // namespace geo_msgs
OUTLIVE_MESSAGE(geo_msgs::Polygon, "geo_msgs/msg/Polygon", corners, corners_count, reserved)

namespace geo_msgs {
/// A rotation; no rotation by default.
struct Quaternion {
    double x{0.0};
    double y{0.0};
    double z{0.0};
    double w{1.0};
};
} // namespace geo_msgs
OUTLIVE_MESSAGE(geo_msgs::Quaternion, "geo_msgs/msg/Quaternion", x, y, z, w)

namespace geo_msgs {
struct Pose {
    ::geo_msgs::Point position{};
    ::geo_msgs::Quaternion orientation{};
};
} // namespace geo_msgs
OUTLIVE_MESSAGE(geo_msgs::Pose, "geo_msgs/msg/Pose", position, orientation)

namespace geo_msgs {
/// Row by row, about x, y, z.
struct Covariance {
    std::array<double, 9> data{};
};
} // namespace geo_msgs
OUTLIVE_MESSAGE(geo_msgs::Covariance, "geo_msgs/msg/Covariance", data)

namespace geo_msgs {
struct Flag {
    outlive::boolean on{};
};
} // namespace geo_msgs
OUTLIVE_MESSAGE(geo_msgs::Flag, "geo_msgs/msg/Flag", on)

namespace geo_msgs {
struct Nothing {
    std::uint8_t structure_needs_at_least_one_member{};
};
} // namespace geo_msgs
OUTLIVE_MESSAGE(geo_msgs::Nothing, "geo_msgs/msg/Nothing", structure_needs_at_least_one_member)

namespace geo_msgs {
struct PoseWithCovariance {
    ::geo_msgs::Pose pose{};
    ::geo_msgs::Covariance covariance{};
};
} // namespace geo_msgs
OUTLIVE_MESSAGE(geo_msgs::PoseWithCovariance, "geo_msgs/msg/PoseWithCovariance", pose, covariance)
