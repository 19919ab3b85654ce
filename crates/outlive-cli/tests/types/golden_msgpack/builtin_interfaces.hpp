// Messages of builtin_interfaces, made by `outlive types import`.
#pragma once

#include <cstdint>

#include <outlive.hpp>
#include <outlive/msgpack.hpp>

namespace builtin_interfaces {
struct Time {
    std::int32_t sec{};
    std::uint32_t nanosec{};
    MSGPACK_DEFINE_MAP(sec, nanosec)
};
} // namespace builtin_interfaces
OUTLIVE_MSGPACK(builtin_interfaces::Time, "builtin_interfaces/msg/Time")

namespace builtin_interfaces {
struct Duration {
    std::int32_t sec{};
    std::uint32_t nanosec{};
    MSGPACK_DEFINE_MAP(sec, nanosec)
};
} // namespace builtin_interfaces
OUTLIVE_MSGPACK(builtin_interfaces::Duration, "builtin_interfaces/msg/Duration")
