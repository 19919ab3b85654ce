// Messages of route_msgs, made by `outlive types import`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <outlive.hpp>
#include <outlive/cdr.hpp>

#include "plan_msgs.hpp"
#include "std_msgs.hpp"

namespace route_msgs {
struct Leg {
    static constexpr std::uint8_t LEFT = 1;
    std::uint8_t side{};
    double metres{};
    std::vector<std::string> signs{};
};
} // namespace route_msgs
template <> struct outlive::cdr_message<route_msgs::Leg> {
    static constexpr const char *cdr_name = "route_msgs/msg/Leg";
    static constexpr const char *schema =
        "uint8 LEFT=1\n"
        "uint8 side\n"
        "float64 metres\n"
        "string[] signs\n";
    template <class Self, class Visit> static void fields(Self &self, Visit &visit) {
        visit("side", self.side);
        visit("metres", self.metres);
        visit("signs", self.signs);
    }
};

namespace route_msgs {
/// All that CDR can have.
struct Route {
    static constexpr const char *GREETING = "say \"hi\" # loud";
    static constexpr float PACE = 1.5f;
    ::std_msgs::Header header{};
    std::uint8_t first{7};
    ::plan_msgs::Plan plan{};
    ::plan_msgs::Nothing nothing{};
    /// At most 3 values.
    std::vector<::route_msgs::Leg> legs{};
    /// Of the yard.
    /// At most 8 bytes.
    std::string label{"yard"};
    std::array<std::string, 2> ends{"a", "b"};
    std::vector<std::string> words{};
    std::vector<bool> flags{};
    /// At most 4 values.
    std::vector<std::int16_t> shorts{-1, 2};
    std::vector<double> numbers{};
    std::array<std::uint8_t, 40> key{};
    std::vector<std::uint8_t> data{};
    std::array<float, 3> match{};
    bool type{true};
    std::vector<::plan_msgs::Nothing> nothings{};
    std::uint64_t last{18446744073709551615ull};
};
} // namespace route_msgs
template <> struct outlive::cdr_message<route_msgs::Route> {
    static constexpr const char *cdr_name = "route_msgs/msg/Route";
    static constexpr const char *schema =
        "string GREETING=\"say \\\"hi\\\" # loud\"\n"
        "float32 PACE=1.5\n"
        "std_msgs/Header header\n"
        "uint8 first 7\n"
        "plan_msgs/Plan plan\n"
        "plan_msgs/Nothing nothing\n"
        "Leg[<=3] legs\n"
        "string<=8 label \"yard\"\n"
        "string[2] ends [\"a\", \"b\"]\n"
        "string[] words\n"
        "bool[] flags\n"
        "int16[<=4] shorts [-1, 2]\n"
        "float64[] numbers\n"
        "uint8[40] key\n"
        "uint8[] data\n"
        "float32[3] match\n"
        "bool type true\n"
        "plan_msgs/Nothing[] nothings\n"
        "uint64 last 18446744073709551615\n"
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
        "uint32 nanosec\n"
        "================================================================================\n"
        "MSG: plan_msgs/Plan\n"
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
        "MSG: plan_msgs/Nothing\n"
        "================================================================================\n"
        "MSG: route_msgs/Leg\n"
        "uint8 LEFT=1\n"
        "uint8 side\n"
        "float64 metres\n"
        "string[] signs\n";
    template <class Self, class Visit> static void fields(Self &self, Visit &visit) {
        visit("header", self.header);
        visit("first", self.first);
        visit("plan", self.plan);
        visit("nothing", self.nothing);
        visit("legs", self.legs, 3);
        visit("label", self.label, outlive::cdr_any, 8);
        visit("ends", self.ends);
        visit("words", self.words);
        visit("flags", self.flags);
        visit("shorts", self.shorts, 4);
        visit("numbers", self.numbers);
        visit("key", self.key);
        visit("data", self.data);
        visit("match", self.match);
        visit("type", self.type);
        visit("nothings", self.nothings);
        visit("last", self.last);
    }
};

namespace route_msgs {
struct FindRequest {
    ::plan_msgs::Goal to{};
};
} // namespace route_msgs
template <> struct outlive::cdr_message<route_msgs::FindRequest> {
    static constexpr const char *cdr_name = "route_msgs/srv/Find_Request";
    static constexpr const char *schema =
        "plan_msgs/Goal to\n"
        "================================================================================\n"
        "MSG: plan_msgs/Goal\n"
        "string name\n"
        "float64[3] at [0.5, 0.0, 0.0]\n"
        "float64[36] covariance\n";
    template <class Self, class Visit> static void fields(Self &self, Visit &visit) {
        visit("to", self.to);
    }
};

namespace route_msgs {
struct FindResponse {
    ::route_msgs::Route route{};
};
} // namespace route_msgs
template <> struct outlive::cdr_message<route_msgs::FindResponse> {
    static constexpr const char *cdr_name = "route_msgs/srv/Find_Response";
    static constexpr const char *schema =
        "route_msgs/Route route\n"
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
        "uint32 nanosec\n"
        "================================================================================\n"
        "MSG: plan_msgs/Plan\n"
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
        "MSG: plan_msgs/Nothing\n"
        "================================================================================\n"
        "MSG: route_msgs/Leg\n"
        "uint8 LEFT=1\n"
        "uint8 side\n"
        "float64 metres\n"
        "string[] signs\n"
        "================================================================================\n"
        "MSG: route_msgs/Route\n"
        "string GREETING=\"say \\\"hi\\\" # loud\"\n"
        "float32 PACE=1.5\n"
        "std_msgs/Header header\n"
        "uint8 first 7\n"
        "plan_msgs/Plan plan\n"
        "plan_msgs/Nothing nothing\n"
        "Leg[<=3] legs\n"
        "string<=8 label \"yard\"\n"
        "string[2] ends [\"a\", \"b\"]\n"
        "string[] words\n"
        "bool[] flags\n"
        "int16[<=4] shorts [-1, 2]\n"
        "float64[] numbers\n"
        "uint8[40] key\n"
        "uint8[] data\n"
        "float32[3] match\n"
        "bool type true\n"
        "plan_msgs/Nothing[] nothings\n"
        "uint64 last 18446744073709551615\n";
    template <class Self, class Visit> static void fields(Self &self, Visit &visit) {
        visit("route", self.route);
    }
};
