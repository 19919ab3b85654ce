// Messages of std_msgs, made by `outlive types import`.
#pragma once

#include <cstdint>
#include <string>

#include <outlive.hpp>
#include <outlive/cdr.hpp>

#include "builtin_interfaces.hpp"

namespace std_msgs {
struct Header {
    ::builtin_interfaces::Time stamp{};
    std::string frame_id{};
};
} // namespace std_msgs
template <> struct outlive::cdr_message<std_msgs::Header> {
    static constexpr const char *cdr_name = "std_msgs/msg/Header";
    static constexpr const char *schema =
        "builtin_interfaces/Time stamp\n"
        "string frame_id\n"
        "================================================================================\n"
        "MSG: builtin_interfaces/Time\n"
        "int32 sec\n"
        "uint32 nanosec\n";
    template <class Self, class Visit> static void fields(Self &self, Visit &visit) {
        visit("stamp", self.stamp);
        visit("frame_id", self.frame_id);
    }
};
