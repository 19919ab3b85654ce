// Messages of FlatBuffers, for those who have the library (Debian, Ubuntu: libflatbuffers-dev and
// flatbuffers-compiler; CMake: find_package(flatbuffers)). outlive.hpp does not include this.
//
// Example:
//
//     #include "route_bfbs_generated.h" // both by flatc --cpp --bfbs-gen-embed route.fbs
//     #include "route_generated.h"
//
//     using route = outlive::flat<fleet::Route, fleet::RouteBinarySchema>;
//
//     auto sender = node.publisher<route>("/flat/route").value();
//     auto receiver = node.subscriber<route>("/flat/route").value();
//     outlive::build(sender, 4096, [](flatbuffers::FlatBufferBuilder &in) { // in shared memory
//         return fleet::CreateRoute(in, in.CreateString("dock"));
//     }).value();
//     if (auto sample = receiver.receive(1s)) {
//         const auto message = **sample; // lives as long as the sample
//         drive(message.root().value()->goal()->str()); // root(): checked, or OUTLIVE_CORRUPT
//     }
//
// They travel as they are and are read in place. The topic has their binary schema: another .fbs
// file is refused, and tools show the fields.
#ifndef OUTLIVE_FLATBUFFERS_HPP
#define OUTLIVE_FLATBUFFERS_HPP

#include <cstring>
#include <memory>

#include <flatbuffers/flatbuffers.h>
#include <flatbuffers/reflection_generated.h>

#include "topic.hpp"

namespace outlive::inline OUTLIVE_ABI {

/// A FlatBuffer with a table `Table` as its root, which is the root_type of the .fbs file, unless
/// flatc had --gen-name-strings. `Schema` is what flatc writes for --bfbs-gen-embed. Points to bytes
/// of others: of a builder, which has finished, or of a message.
///
/// Publishing one copies it; `build` does not.
///
/// Example:
///
///     using route = outlive::flat<fleet::Route, fleet::RouteBinarySchema>;
///
///     auto routes = node.publisher<route>("/flat/routes").value();
///     flatbuffers::FlatBufferBuilder builder;
///     builder.Finish(fleet::CreateRoute(builder, builder.CreateString("dock")));
///     routes.publish(builder).value();
template <class Table, class Schema> class flat {
  public:
    flat(const flatbuffers::FlatBufferBuilder &finished)
        : flat(finished.GetBufferPointer(), finished.GetSize()) {}
    flat(const flatbuffers::DetachedBuffer &finished) : flat(finished.data(), finished.size()) {}
    flat(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

    /// The table, in these bytes. All of them are checked, which takes time in proportion to the
    /// number of tables and strings: OUTLIVE_CORRUPT.
    [[nodiscard]] expected<const Table *> root() const {
        const auto *from = reinterpret_cast<const std::uint8_t *>(bytes_.data());
        if (bytes_.size() < sizes_end) {
            flatbuffers::Verifier verifier(from, bytes_.size());
            if (verifier.VerifyBuffer<Table>(nullptr)) {
                return flatbuffers::GetRoot<Table>(from);
            }
        }
        return unexpected(error(OUTLIVE_CORRUPT, std::string("receiving ") + name() +
                                                     ": the bytes do not match this type; "
                                                     "correct the program that sent them"));
    }
    /// Why this cannot be sent, if it cannot.
    [[nodiscard]] std::optional<error> refused() const {
        // A FlatBuffer begins with the place of its root.
        const auto size = bytes_.size();
        if (size >= 8 && size < sizes_end &&
            flatbuffers::ReadScalar<flatbuffers::uoffset_t>(bytes_.data()) <= size - 4) {
            return std::nullopt;
        }
        return error(OUTLIVE_INVALID_ARGUMENT, std::string("sending ") + name() + ": the " +
                                                   std::to_string(size) +
                                                   " bytes do not begin with a root; finish the "
                                                   "builder, below 2 GiB, without a size prefix");
    }
    /// The table's full name.
    static const char *name() {
        if constexpr (requires { Table::GetFullyQualifiedName(); }) {
            return Table::GetFullyQualifiedName();
        } else {
            const auto *root = reflection::GetSchema(Schema::data())->root_table();
            return root == nullptr ? "" : root->name()->c_str();
        }
    }

  private:
    static constexpr std::size_t sizes_end = FLATBUFFERS_MAX_BUFFER_SIZE; // the verifier takes less
    flat(const std::uint8_t *at, std::size_t size)
        : bytes_(std::as_bytes(std::span<const std::uint8_t>(at, size))) {}
    std::span<const std::byte> bytes_;
};

namespace detail {
template <class Table, class Schema> struct payload<flat<Table, Schema>> {
    using view = flat<Table, Schema>;
    using argument = view;
    static constexpr bool is_fixed = false;
    static constexpr bool is_lent_as_bytes = true;
    static view of(const void *data, std::size_t size) {
        return std::span(static_cast<const std::byte *>(data), size);
    }
    static outlive_status type(::outlive_type **out) {
        return ::outlive_type_encoded("flatbuffer", view::name(), Schema::data(), Schema::size(),
                                      out);
    }
    static const void *data(const view &value) { return value.bytes().data(); }
    static std::size_t size(const view &value) { return value.bytes().size(); }
};

/// Gives a builder these bytes, and memory of the process once it needs more.
class within final : public flatbuffers::Allocator {
  public:
    explicit within(std::span<std::byte> bytes) : bytes_(bytes) {}
    std::uint8_t *allocate(std::size_t size) override {
        auto *const at = reinterpret_cast<std::uint8_t *>(bytes_.data());
        return size == bytes_.size() ? at : new std::uint8_t[size];
    }
    void deallocate(std::uint8_t *at, std::size_t) override {
        if (at != reinterpret_cast<std::uint8_t *>(bytes_.data())) {
            delete[] at;
        }
    }

  private:
    std::span<std::byte> bytes_;
};
} // namespace detail

/// Builds a message in shared memory and publishes it; returns its number. `fill` gets a builder with
/// room for `bytes`, and returns the root. A FlatBuffer grows from its end, so a message that is
/// smaller travels with zeros before it, and one that is larger is copied: ask for a little more
/// than it needs. Nothing is published if `fill` throws.
///
/// Example:
///
///     using route = outlive::flat<fleet::Route, fleet::RouteBinarySchema>;
///
///     auto routes = node.publisher<route>("/flat/built").value();
///     outlive::build(routes, 1024, [](flatbuffers::FlatBufferBuilder &in) {
///         return fleet::CreateRoute(in, in.CreateString("dock"));
///     }).value();
template <class Table, class Schema, class Fill>
expected<std::uint64_t> build(publisher<flat<Table, Schema>> &to, std::size_t bytes, Fill &&fill,
                              const char *file_identifier = nullptr) {
    // Before the first byte that a builder writes, a root and an identifier as any FlatBuffer has.
    constexpr std::size_t head = 8, line = 64;
    if (bytes >= FLATBUFFERS_MAX_BUFFER_SIZE - 2 * line) {
        return unexpected(error(OUTLIVE_INVALID_ARGUMENT,
                                "building " + std::to_string(bytes) +
                                    " bytes: a FlatBuffer has less than 2 GiB"));
    }
    auto loan = to.loan((head + std::max<std::size_t>(bytes, 1) + line - 1) / line * line);
    if (!loan) {
        return unexpected(std::move(loan).error());
    }
    const auto all = loan->span();
    detail::within room(all.subspan(head));
    flatbuffers::FlatBufferBuilder builder(all.size() - head, &room);
    const flatbuffers::Offset<Table> root = std::forward<Fill>(fill)(builder);
    builder.Finish(root, file_identifier);
    const auto *const at = reinterpret_cast<const std::byte *>(builder.GetBufferPointer());
    const std::size_t size = builder.GetSize(), before = all.size() - std::min(size, all.size());
    if (at != all.data() + before) {
        return to.publish(builder);
    }
    const auto place = flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at);
    flatbuffers::WriteScalar<flatbuffers::uoffset_t>(
        all.data(), static_cast<flatbuffers::uoffset_t>(place + before));
    std::memcpy(all.data() + 4, at + 4, 4);
    std::memset(all.data() + head, 0, before - head);
    return std::move(*loan).publish();
}
} // namespace outlive::inline OUTLIVE_ABI

#endif
