// The C++20 interface of outlive: messaging and locks in shared memory that survive kill -9.
//
// Header-only over outlive.h, whose documentation holds here as well. Handles are move-only and let
// go of what they hold. Nothing throws but the lock() of mutexes, as that of std::mutex does: calls
// answer an outlive::expected<T>, which has the interface of tl::expected.
//
//     auto node = outlive::node::open("camera").value();
//     auto publisher = node.publisher<pose>("/robot/pose").value();
//     publisher.publish({1.0, 2.0, 0.5}).value();
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
#include "outlive/wait.hpp"

#endif
