// Messages of builtin_interfaces, made by `outlive types import`.
#pragma once

#include <cstdint>

#include <outlive.hpp>
#include <outlive/cdr.hpp>

namespace builtin_interfaces {
struct Time {
    std::int32_t sec{};
    std::uint32_t nanosec{};
};
} // namespace builtin_interfaces
template <> struct outlive::cdr_message<builtin_interfaces::Time> {
    static constexpr const char *cdr_name = "builtin_interfaces/msg/Time";
    static constexpr const char *schema =
        "int32 sec\n"
        "uint32 nanosec\n";
    template <class Self, class Visit> static void fields(Self &self, Visit &visit) {
        visit("sec", self.sec);
        visit("nanosec", self.nanosec);
    }
};

namespace builtin_interfaces {
struct Duration {
    std::int32_t sec{};
    std::uint32_t nanosec{};
};
} // namespace builtin_interfaces
template <> struct outlive::cdr_message<builtin_interfaces::Duration> {
    static constexpr const char *cdr_name = "builtin_interfaces/msg/Duration";
    static constexpr const char *schema =
        "int32 sec\n"
        "uint32 nanosec\n";
    template <class Self, class Visit> static void fields(Self &self, Visit &visit) {
        visit("sec", self.sec);
        visit("nanosec", self.nanosec);
    }
};
