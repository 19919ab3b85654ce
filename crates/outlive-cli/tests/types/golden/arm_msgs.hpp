// Messages of arm_msgs, made by `outlive types import`.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <outlive.hpp>

#include "builtin_interfaces.hpp"
#include "geo_msgs.hpp"
#include "std_msgs.hpp"

namespace arm_msgs {
struct FollowGoal {
    ::geo_msgs::Polygon path{};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::FollowGoal, "arm_msgs/action/Follow_Goal", path)

namespace arm_msgs {
struct FollowResult {
    float distance{};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::FollowResult, "arm_msgs/action/Follow_Result", distance)

namespace arm_msgs {
struct FollowFeedback {
    std::uint32_t corner{};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::FollowFeedback, "arm_msgs/action/Follow_Feedback", corner)

namespace arm_msgs {
struct Stamp {
    ::builtin_interfaces::Time stamp{};
    char frame_id[16]{};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Stamp, "arm_msgs/msg/Stamp", stamp, frame_id)

namespace arm_msgs {
/// One joint.
///
/// What is not measured is zero.
struct Joint {
    /// Kinds of joints.
    static constexpr std::uint8_t ROTATING = 0;
    static constexpr std::uint8_t SLIDING = 1;
    ::arm_msgs::Stamp header{};
    /// ROTATING or SLIDING
    std::uint8_t type{};
    /// Zero.
    std::array<std::uint8_t, 3> reserved{};
    /// rad, or m
    float position{};
    std::array<outlive::boolean, 3> brakes{};
    char name[12]{'e', 'l', 'b', 'o', 'w'};
    /// Zero.
    std::array<std::uint8_t, 1> reserved2{};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Joint, "arm_msgs/msg/Joint", header, type, reserved, position,
        brakes, name, reserved2)

namespace arm_msgs {
struct Arm {
    ::arm_msgs::Stamp header{};
    std::array<::arm_msgs::Joint, 2> joints{};
    ::geo_msgs::Pose tool{};
    ::geo_msgs::Polygon reach{};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Arm, "arm_msgs/msg/Arm", header, joints, tool, reach)

namespace arm_msgs {
struct Battery {
    static constexpr std::uint8_t UNKNOWN = 0;
    static constexpr std::uint8_t CHARGING = 1;
    ::arm_msgs::Stamp header{};
    float voltage{-1.0f};
    std::uint16_t cell_count{};
    /// Zero.
    std::array<std::uint8_t, 2> reserved{};
    std::array<float, 12> cells{};
    /// How many of cells there are.
    std::uint32_t cells_count{};
    std::uint8_t state{};
    /// Zero.
    std::array<std::uint8_t, 3> reserved2{};
    /// Those of cells that there are.
    [[nodiscard]] std::span<const float> cells_span() const {
        return {std::data(cells),
                std::min<std::size_t>(cells_count, std::size(cells))};
    }
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Battery, "arm_msgs/msg/Battery", header, voltage, cell_count,
        reserved, cells, cells_count, state, reserved2)

namespace arm_msgs {
/// Of a pack; Rust has a Cell, too.
struct Cell {
    /// V
    float voltage{};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Cell, "arm_msgs/msg/Cell", voltage)

namespace arm_msgs {
struct Defaults {
    std::array<std::int16_t, 3> gains{1, -2, 3};
    /// Zero.
    std::array<std::uint8_t, 2> reserved{};
    std::array<float, 4> speeds{0.5f, 1.5f};
    /// How many of speeds there are.
    std::uint32_t speeds_count{2};
    char names[2][8]{{'l', 'e', 'f', 't'}, {'r', 'i', 'g', 'h', 't'}};
    /// Zero.
    std::array<std::uint8_t, 4> reserved2{};
    std::array<::geo_msgs::Quaternion, 2> rotations{};
    /// Those of speeds that there are.
    [[nodiscard]] std::span<const float> speeds_span() const {
        return {std::data(speeds),
                std::min<std::size_t>(speeds_count, std::size(speeds))};
    }
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Defaults, "arm_msgs/msg/Defaults", gains, reserved, speeds,
        speeds_count, names, reserved2, rotations)

namespace arm_msgs {
struct Grid {
    std::uint16_t width{};
    std::uint16_t height{};
    float resolution{0.05f};
    ::geo_msgs::Pose origin{};
    std::array<std::int8_t, 100> data{};
    /// How many of data there are.
    std::uint32_t data_count{};
    /// Those of data that there are.
    [[nodiscard]] std::span<const std::int8_t> data_span() const {
        return {std::data(data),
                std::min<std::size_t>(data_count, std::size(data))};
    }
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Grid, "arm_msgs/msg/Grid", width, height, resolution, origin,
        data, data_count)

namespace arm_msgs {
struct Imu {
    ::arm_msgs::Stamp header{};
    ::geo_msgs::Quaternion orientation{};
    /// rad/s
    ::geo_msgs::Point angular_velocity{};
    /// m/s^2
    ::geo_msgs::Point linear_acceleration{};
    std::array<float, 9> covariance{};
    /// Zero.
    std::array<std::uint8_t, 4> reserved{};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Imu, "arm_msgs/msg/Imu", header, orientation,
        angular_velocity, linear_acceleration, covariance, reserved)

namespace arm_msgs {
/// Every number, with its limits as constants.
struct Numbers {
    static constexpr bool YES = true;
    static constexpr std::uint8_t LEAST_BYTE = 0;
    static constexpr std::uint8_t LETTER = 65;
    static constexpr std::int8_t LEAST8 = -128;
    static constexpr std::int16_t LEAST16 = -32768;
    static constexpr std::int32_t LEAST32 = -2147483647 - 1;
    static constexpr std::int64_t LEAST64 = -9223372036854775807ll - 1;
    static constexpr std::uint8_t MOST8 = 255;
    static constexpr std::uint16_t MOST16 = 65535;
    static constexpr std::uint32_t MOST32 = 4294967295u;
    static constexpr std::uint64_t MOST64 = 18446744073709551615ull;
    static constexpr float HALF = 0.5f;
    static constexpr double PI = 3.141592653589793;
    static constexpr const char *GREETING = "say \"hi\" # loud";
    /// not a trigraph ?? /
    static constexpr const char *ODD = "?\?= \\ ä";
    outlive::boolean b{true};
    std::uint8_t o{1};
    std::uint8_t c{65};
    std::int8_t i8{-8};
    std::int16_t i16{-16};
    /// Zero.
    std::array<std::uint8_t, 2> reserved{};
    std::int32_t i32{-32};
    /// Zero.
    std::array<std::uint8_t, 4> reserved2{};
    std::int64_t i64{-64ll};
    std::uint8_t u8{8};
    /// Zero.
    std::array<std::uint8_t, 1> reserved3{};
    std::uint16_t u16{16};
    std::uint32_t u32{32u};
    std::uint64_t u64{64ull};
    float f32{0.25f};
    /// Zero.
    std::array<std::uint8_t, 4> reserved4{};
    double f64{-1.5};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Numbers, "arm_msgs/msg/Numbers", b, o, c, i8, i16, reserved, i32,
        reserved2, i64, u8, reserved3, u16, u32, u64, f32, reserved4, f64)

namespace arm_msgs {
/// Has types whose names Rust has for others.
struct Pack {
    std::array<::arm_msgs::Cell, 2> cells{};
    ::builtin_interfaces::Duration age{};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Pack, "arm_msgs/msg/Pack", cells, age)

namespace arm_msgs {
/// A planar scan of at most 360 rays.
struct Scan {
    ::arm_msgs::Stamp header{};
    /// rad
    float angle_min{};
    /// m
    std::array<float, 360> ranges{};
    /// How many of ranges there are.
    std::uint32_t ranges_count{};
    std::array<std::uint8_t, 360> intensities{};
    /// How many of intensities there are.
    std::uint32_t intensities_count{};
    /// Those of ranges that there are.
    [[nodiscard]] std::span<const float> ranges_span() const {
        return {std::data(ranges),
                std::min<std::size_t>(ranges_count, std::size(ranges))};
    }
    /// Those of intensities that there are.
    [[nodiscard]] std::span<const std::uint8_t> intensities_span() const {
        return {std::data(intensities),
                std::min<std::size_t>(intensities_count, std::size(intensities))};
    }
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Scan, "arm_msgs/msg/Scan", header, angle_min, ranges,
        ranges_count, intensities, intensities_count)

namespace arm_msgs {
/// The name of its list is also one of a count.
struct Tally {
    std::array<std::uint32_t, 8> count{};
    /// How many of count there are.
    std::uint32_t count_count{};
    /// Those of count that there are.
    [[nodiscard]] std::span<const std::uint32_t> count_span() const {
        return {std::data(count),
                std::min<std::size_t>(count_count, std::size(count))};
    }
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Tally, "arm_msgs/msg/Tally", count, count_count)

namespace arm_msgs {
struct Text {
    char lines[3][32]{};
    /// How many of lines there are.
    std::uint32_t lines_count{};
    std::array<std::uint8_t, 16> digest{};
    /// Those of lines that there are.
    [[nodiscard]] std::span<const char[32]> lines_span() const {
        return {std::data(lines),
                std::min<std::size_t>(lines_count, std::size(lines))};
    }
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Text, "arm_msgs/msg/Text", lines, lines_count, digest)

namespace arm_msgs {
struct Wheels {
    std::array<double, 4> speed{};
    std::int64_t ticks{};
    ::std_msgs::ColorRGBA light{};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::Wheels, "arm_msgs/msg/Wheels", speed, ticks, light)

namespace arm_msgs {
/// Moves the tool.
struct ReachRequest {
    ::geo_msgs::Pose goal{};
    double seconds{2.0};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::ReachRequest, "arm_msgs/srv/Reach_Request", goal, seconds)

namespace arm_msgs {
struct ReachResponse {
    outlive::boolean reached{};
    char message[64]{};
};
} // namespace arm_msgs
OUTLIVE_MESSAGE(arm_msgs::ReachResponse, "arm_msgs/srv/Reach_Response", reached, message)
