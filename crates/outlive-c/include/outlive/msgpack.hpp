// Structs as MessagePack over msgpack-cxx, for those who have it (Debian, Ubuntu: libmsgpack-cxx-dev;
// CMake: find_package(msgpack-cxx)). outlive.hpp does not include this.
//
// Example:
//
//     struct plan {
//         std::string goal;
//         std::vector<double> speeds; // m/s
//         MSGPACK_DEFINE_MAP(goal, speeds)
//     };
//     OUTLIVE_MSGPACK(plan, "robot/Plan")
//
//     auto sender = node.publisher<plan>("/plan").value();
//     auto receiver = node.subscriber<plan>("/plan").value();
//     sender.publish(plan{"dock", {0.5}}).value();
//     if (auto sample = receiver.receive(1s)) { drive(sample->value().value().goal); }
//
// Fields that a message does not have keep their first values; those that the struct does not have
// are passed over.
#ifndef OUTLIVE_MSGPACK_HPP
#define OUTLIVE_MSGPACK_HPP

#include <exception>

#include <msgpack.hpp>

#include "message.hpp"

namespace outlive::inline OUTLIVE_ABI::detail {

/// Nesting of values that is followed.
inline constexpr std::size_t msgpack_depth_max = 64;

struct msgpack_writer {
    std::vector<std::byte> &to;
    void write(const char *data, std::size_t size) {
        const auto *bytes = reinterpret_cast<const std::byte *>(data);
        to.insert(to.end(), bytes, bytes + size);
    }
};

/// packed_traits of a type that msgpack-cxx knows, but for its name.
template <class T> struct msgpack_traits {
    static void pack(const T &value, std::vector<std::byte> &to) {
        msgpack_writer writer{to};
        ::msgpack::pack(writer, value);
    }
    static bool unpack(std::span<const std::byte> from, T &value) {
        try {
            // Every element takes a byte: no length may be more than there are.
            const std::size_t n = from.size();
            const ::msgpack::unpack_limit limit(n, n, n, n, n, msgpack_depth_max);
            std::size_t read = 0;
            const auto got = ::msgpack::unpack(reinterpret_cast<const char *>(from.data()), n, read,
                                               nullptr, nullptr, limit);
            got.get().convert(value);
            return read == n;
        } catch (const std::exception &) {
            return false;
        }
    }
};
} // namespace outlive::inline OUTLIVE_ABI::detail

/// Lets a type that msgpack-cxx packs travel by this name, the same in all languages. Write it
/// outside of all namespaces, after the struct.
#define OUTLIVE_MSGPACK(type, type_name_)                                                          \
    template <> struct outlive::packed_traits<type> : ::outlive::detail::msgpack_traits<type> {    \
        static constexpr const char *name = type_name_;                                            \
        static_assert(::outlive::detail::is_whole(type_name_),                                     \
                      "outlive: the name of " #type " has a zero byte in it");                     \
    };

#endif
