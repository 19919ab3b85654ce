// Messages of plan_msgs, made by `outlive types import`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <outlive.hpp>
#include <outlive/msgpack.hpp>

#include "builtin_interfaces.hpp"
#include "std_msgs.hpp"

namespace plan_msgs {
/// Where to.
struct Goal {
    std::string name{};
    std::array<double, 3> at{0.5, 0.0, 0.0};
    std::array<double, 36> covariance{};
    MSGPACK_DEFINE_MAP(name, at, covariance)
};
} // namespace plan_msgs
OUTLIVE_MSGPACK(plan_msgs::Goal, "plan_msgs/msg/Goal")

namespace plan_msgs {
struct Nothing {
    template <class Packer> void msgpack_pack(Packer &packer) const { packer.pack_map(0); }
    void msgpack_unpack(const ::msgpack::object &) {}
};
} // namespace plan_msgs
OUTLIVE_MSGPACK(plan_msgs::Nothing, "plan_msgs/msg/Nothing")

namespace plan_msgs {
struct Plan {
    static constexpr std::uint8_t FAST = 2;
    ::std_msgs::Header header{};
    std::vector<::plan_msgs::Goal> goals{};
    /// At most 4 values.
    /// At most 20 bytes.
    std::vector<std::string> tags{};
    bool urgent{};
    std::int64_t number{-1ll};
    std::vector<std::uint8_t> digest{};
    std::array<std::uint8_t, 4> key{};
    std::array<::builtin_interfaces::Duration, 2> times{};
    MSGPACK_DEFINE_MAP(header, goals, tags, urgent, number,
        digest, key, times)
};
} // namespace plan_msgs
OUTLIVE_MSGPACK(plan_msgs::Plan, "plan_msgs/msg/Plan")
