// The C++20 interface of outlive: messaging and locks in shared memory that survive kill -9.
//
// Header-only over outlive.h, whose documentation holds here as well. Handles are move-only and let
// go of what they hold. Calls answer an outlive::expected<T>: that of the standard library in C++23,
// one with the same members in C++20. What throws is value() of an error, the lock() of mutexes, as
// that of std::mutex does, and reading what a handle does not hold.
//
// Example:
//
//     struct pose {
//         double x, y, heading; // m, m, rad
//     };
//     OUTLIVE_MESSAGE(pose, "robot/Pose", x, y, heading)
//
//     auto node = outlive::node::open("localizer").value();
//     auto poses = node.publisher<pose>("/robot/pose").value();
//     poses.publish({1.0, 2.0, 0.5}).value();
//
// The examples of the headers have this `pose`, an open `node`, the number `camera_id` of another
// node, and `using namespace std::chrono_literals`.
//
// Types are described with OUTLIVE_MESSAGE(pose, "robot/Pose", x, y, heading); T[] is any number of
// them, outlive::headed<H, E> a header and elements, std::byte[] raw bytes.
#ifndef OUTLIVE_HPP
#define OUTLIVE_HPP

#include "outlive/domain.hpp"
#include "outlive/expected.hpp"
#include "outlive/lock.hpp"
#include "outlive/message.hpp"
#include "outlive/node.hpp"
#include "outlive/queue.hpp"
#include "outlive/service.hpp"
#include "outlive/sync.hpp"
#include "outlive/topic.hpp"
#include "outlive/unwinding.hpp"
#include "outlive/wait.hpp"

#endif
