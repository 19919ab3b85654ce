// Messages of std_msgs, made by `outlive types import`.
#pragma once

#include <cstdint>
#include <string>

#include <outlive.hpp>
#include <outlive/msgpack.hpp>

#include "builtin_interfaces.hpp"

namespace std_msgs {
struct Header {
    ::builtin_interfaces::Time stamp{};
    std::string frame_id{};
    MSGPACK_DEFINE_MAP(stamp, frame_id)
};
} // namespace std_msgs
OUTLIVE_MSGPACK(std_msgs::Header, "std_msgs/msg/Header")
