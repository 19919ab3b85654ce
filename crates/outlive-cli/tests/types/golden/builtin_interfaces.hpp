// Messages of builtin_interfaces, made by `outlive types import`.
#pragma once

#include <cstdint>

#include <outlive.hpp>

namespace builtin_interfaces {
struct Time {
    std::int32_t sec{};
    std::uint32_t nanosec{};
};
} // namespace builtin_interfaces
OUTLIVE_MESSAGE(builtin_interfaces::Time, "builtin_interfaces/msg/Time", sec, nanosec)

namespace builtin_interfaces {
struct Duration {
    std::int32_t sec{};
    std::uint32_t nanosec{};
};
} // namespace builtin_interfaces
OUTLIVE_MESSAGE(builtin_interfaces::Duration, "builtin_interfaces/msg/Duration", sec, nanosec)
