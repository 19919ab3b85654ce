// Messages of plan_msgs, made by `outlive types import`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <outlive.hpp>
#include <outlive/cdr.hpp>

#include "builtin_interfaces.hpp"
#include "std_msgs.hpp"

namespace plan_msgs {
/// Where to.
struct Goal {
    std::string name{};
    std::array<double, 3> at{0.5, 0.0, 0.0};
    std::array<double, 36> covariance{};
};
} // namespace plan_msgs
template <> struct outlive::cdr_message<plan_msgs::Goal> {
    static constexpr const char *cdr_name = "plan_msgs/msg/Goal";
    static constexpr const char *schema =
        "string name\n"
        "float64[3] at [0.5, 0.0, 0.0]\n"
        "float64[36] covariance\n";
    template <class Self, class Visit> static void fields(Self &self, Visit &visit) {
        visit("name", self.name);
        visit("at", self.at);
        visit("covariance", self.covariance);
    }
};

namespace plan_msgs {
struct Nothing {
    std::uint8_t structure_needs_at_least_one_member{};
};
} // namespace plan_msgs
template <> struct outlive::cdr_message<plan_msgs::Nothing> {
    static constexpr const char *cdr_name = "plan_msgs/msg/Nothing";
    static constexpr const char *schema =
        "uint8 structure_needs_at_least_one_member\n";
    template <class Self, class Visit> static void fields(Self &self, Visit &visit) {
        visit("structure_needs_at_least_one_member", self.structure_needs_at_least_one_member);
    }
};

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
};
} // namespace plan_msgs
template <> struct outlive::cdr_message<plan_msgs::Plan> {
    static constexpr const char *cdr_name = "plan_msgs/msg/Plan";
    static constexpr const char *schema =
        "uint8 FAST=2\n"
        "std_msgs/Header header\n"
        "Goal[] goals\n"
        "string<=20[<=4] tags\n"
        "bool urgent\n"
        "int64 number -1\n"
        "uint8[] digest\n"
        "uint8[4] key\n"
        "builtin_interfaces/Duration[2] times\n"
        "================================================================================\n"
        "MSG: builtin_interfaces/Time\n"
        "int32 sec\n"
        "uint32 nanosec\n"
        "================================================================================\n"
        "MSG: std_msgs/Header\n"
        "builtin_interfaces/Time stamp\n"
        "string frame_id\n"
        "================================================================================\n"
        "MSG: plan_msgs/Goal\n"
        "string name\n"
        "float64[3] at [0.5, 0.0, 0.0]\n"
        "float64[36] covariance\n"
        "================================================================================\n"
        "MSG: builtin_interfaces/Duration\n"
        "int32 sec\n"
        "uint32 nanosec\n";
    template <class Self, class Visit> static void fields(Self &self, Visit &visit) {
        visit("header", self.header);
        visit("goals", self.goals);
        visit("tags", self.tags, 4, 20);
        visit("urgent", self.urgent);
        visit("number", self.number);
        visit("digest", self.digest);
        visit("key", self.key);
        visit("times", self.times);
    }
};
