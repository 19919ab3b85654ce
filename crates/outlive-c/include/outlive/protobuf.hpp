// Messages of Protocol Buffers, for those who have the library (Debian, Ubuntu: libprotobuf-dev and
// protobuf-compiler; CMake: find_package(Protobuf)). outlive.hpp does not include this.
//
// Example:
//
//     #include "plan.pb.h" // by protoc
//
//     robot::Plan plan;
//     plan.set_goal("dock");
//     auto sender = node.publisher<robot::Plan>("/plan").value();
//     auto receiver = node.subscriber<robot::Plan>("/plan").value();
//     sender.publish(plan).value();
//     if (auto sample = receiver.receive(1s)) {
//         drive(sample->value().value().goal()); // value(): a robot::Plan, or OUTLIVE_CORRUPT
//     }
//
// They travel as they are, and the topic has their descriptors: another .proto file is refused, and
// tools show the fields. Lite messages have no descriptors and do not compile.
#ifndef OUTLIVE_PROTOBUF_HPP
#define OUTLIVE_PROTOBUF_HPP

#include <climits>
#include <set>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>

#include "message.hpp"

namespace outlive::inline OUTLIVE_ABI::detail {

/// `file` with all that it imports, each behind what it needs.
inline void add_file(const google::protobuf::FileDescriptor *file,
                     std::set<const google::protobuf::FileDescriptor *> &done,
                     google::protobuf::FileDescriptorSet &set) {
    if (done.insert(file).second) {
        for (int i = 0; i < file->dependency_count(); ++i) {
            add_file(file->dependency(i), done, set);
        }
        file->CopyTo(set.add_file());
    }
}
} // namespace outlive::inline OUTLIVE_ABI::detail

/// How messages of Protocol Buffers travel.
template <class T>
    requires std::derived_from<T, google::protobuf::Message>
struct outlive::packed_traits<T> {
    /// Its full name, known when the program runs.
    struct full_name {
        operator const char *() const {
            static const std::string name(T::descriptor()->full_name());
            return name.c_str();
        }
    };
    static constexpr full_name name{};

    static outlive_status type(::outlive_type **out) {
        google::protobuf::FileDescriptorSet set;
        std::set<const google::protobuf::FileDescriptor *> done;
        outlive::detail::add_file(T::descriptor()->file(), done, set);
        const std::string schema = set.SerializeAsString();
        return ::outlive_type_encoded("protobuf", name, schema.data(), schema.size(), out);
    }
    static void pack(const T &value, std::vector<std::byte> &to) {
        const std::size_t begin = to.size(), size = value.ByteSizeLong();
        to.resize(begin + size);
        value.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t *>(to.data() + begin));
    }
    static bool unpack(std::span<const std::byte> from, T &value) {
        return from.size() <= INT_MAX &&
               value.ParsePartialFromArray(from.data(), static_cast<int>(from.size()));
    }
};

#endif
