// What may be shared, and its description field by field.
#ifndef OUTLIVE_MESSAGE_HPP
#define OUTLIVE_MESSAGE_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "expected.hpp"

namespace outlive::inline OUTLIVE_ABI {

/// Name and fields of a struct; OUTLIVE_MESSAGE writes it.
template <class T> struct message_traits;

/// A truth value in a message: the `bool` of other languages. Another program may have written any
/// byte, and all but 0 are true here; a bool of C++ must not hold them.
///
/// Example:
///
///     struct gripper {
///         outlive::boolean is_open;
///     };
///     OUTLIVE_MESSAGE(gripper, "robot/Gripper", is_open)
///
///     auto grippers = node.publisher<gripper>("/gripper").value();
///     grippers.publish({true}).value();
struct boolean {
    constexpr boolean() = default;
    constexpr boolean(bool value) : byte(value) {}
    constexpr operator bool() const { return byte != 0; }
    std::uint8_t byte = 0;
};

namespace detail {
template <class T> struct is_array : std::false_type {};
template <class E, std::size_t N> struct is_array<std::array<E, N>> : std::true_type {
    using element = E;
    static constexpr std::size_t length = N;
};
template <class E, std::size_t N> struct is_array<E[N]> : std::true_type {
    using element = E;
    static constexpr std::size_t length = N;
};

/// A class of another library that is such an array in memory, whose copies copy the numbers and
/// nothing else, though they are not trivial: see eigen.hpp.
template <class T> struct is_foreign : std::false_type {};

/// What an array is of, and arrays of arrays.
template <class T> struct leaf_of {
    using type = T;
};
template <class T>
    requires is_array<T>::value
struct leaf_of<T> : leaf_of<typename is_array<T>::element> {};
template <class T> using leaf = typename leaf_of<T>::type;

// Why a field is refused, one reason each, for the messages.
template <class T>
inline constexpr bool is_plain = std::is_same_v<T, std::remove_cv_t<T>> &&
                                 std::is_same_v<leaf<T>, std::remove_cv_t<leaf<T>>>;
/// The numbers that descriptions know: IEEE 754 of 4 and of 8 bytes.
template <class T>
inline constexpr bool is_known_float = std::numeric_limits<T>::is_iec559 &&
                                       ((sizeof(T) == 4 && std::numeric_limits<T>::digits == 24) ||
                                        (sizeof(T) == 8 && std::numeric_limits<T>::digits == 53));
template <class T>
inline constexpr bool floats_are_known = !std::is_floating_point_v<leaf<T>> || is_known_float<leaf<T>>;
/// A compiler chooses the size of an enum for which nobody does; only one that has a fixed type takes
/// any number in braces.
template <class T>
inline constexpr bool enum_is_fixed = !std::is_enum_v<leaf<T>> || requires { leaf<T>{0}; };
template <class T> consteval bool has_elements() {
    if constexpr (is_array<T>::value) {
        return is_array<T>::length > 0 && has_elements<typename is_array<T>::element>();
    } else {
        return true;
    }
}

/// A duration or an instant of std::chrono is described as its count. Descriptions have no units,
/// so only ns are: a count of anything else would be taken for ns in the next program.
template <class T> struct is_time : std::false_type {};
template <class Rep, class Period>
struct is_time<std::chrono::duration<Rep, Period>>
    : std::bool_constant<std::is_same_v<Period, std::nano> && std::is_integral_v<Rep>> {
    using count = Rep;
};
template <class Clock, class Duration>
struct is_time<std::chrono::time_point<Clock, Duration>> : is_time<Duration> {};
template <class T> inline constexpr bool is_chrono = requires { typename is_time<T>::count; };

template <class T>
concept number = std::is_same_v<T, std::remove_cv_t<T>> &&
                 ((std::is_integral_v<T> && !std::is_same_v<T, bool> &&
                   !std::is_same_v<T, wchar_t> && sizeof(T) <= 8) ||
                  (std::is_floating_point_v<T> && is_known_float<T>));
template <class T>
concept described = requires {
    { message_traits<T>::name } -> std::convertible_to<const char *>;
};

/// How much a foreign class is aligned may depend on the compiler's options.
template <class T>
inline constexpr bool is_aligned_as_numbers = alignof(T) == alignof(leaf<T>);

template <class T> consteval bool has_description() {
    if constexpr (!is_plain<T> || !has_elements<T>() || !is_aligned_as_numbers<T>) {
        return false;
    } else if constexpr (is_array<T>::value) {
        return has_description<typename is_array<T>::element>();
    } else if constexpr (std::is_enum_v<T>) {
        return enum_is_fixed<T> && number<std::underlying_type_t<T>>;
    } else if constexpr (std::is_same_v<T, boolean>) {
        return true;
    } else if constexpr (is_chrono<T>) {
        return is_time<T>::value && number<typename is_time<T>::count>;
    } else {
        return number<T> || described<T>;
    }
}

/// Whether there is something foreign in it, by which alone it is not trivially copyable.
template <class T> consteval bool has_foreign() {
    if constexpr (is_foreign<T>::value) {
        return true;
    } else if constexpr (is_array<T>::value) {
        return has_foreign<typename is_array<T>::element>();
    } else if constexpr (requires { message_traits<T>::has_foreign; }) {
        return message_traits<T>::has_foreign;
    } else {
        return false;
    }
}

/// Whether a name is without zero bytes, at the first of which other languages would end it.
template <class T> consteval bool is_whole(const T &name) {
    if constexpr (std::is_array_v<T>) {
        return std::find(name, name + std::extent_v<T> - 1, '\0') == name + std::extent_v<T> - 1;
    } else {
        return true; // a pointer: it ends there in C++, too
    }
}

/// Where a field lies.
struct place {
    std::size_t offset, size;
};
/// Whether each field lies behind the one before it.
template <std::size_t N> consteval bool in_order(const place (&fields)[N]) {
    for (std::size_t i = 1; i < N; i++) {
        if (fields[i].offset < fields[i - 1].offset + fields[i - 1].size) {
            return false;
        }
    }
    return true;
}
/// Whether nothing lies between them, or behind the last.
template <std::size_t N> consteval bool dense(const place (&fields)[N], std::size_t size) {
    for (std::size_t i = 1; i < N; i++) {
        if (fields[i].offset != fields[i - 1].offset + fields[i - 1].size) {
            return false;
        }
    }
    return fields[N - 1].offset + fields[N - 1].size == size;
}
} // namespace detail

/// What may lie in shared memory: a number, or a struct of numbers, arrays and such structs that is
/// described with OUTLIVE_MESSAGE. Trivially copyable, so that it has no pointers to own.
template <class T>
concept shareable = (std::is_trivially_copyable_v<T> || detail::has_foreign<T>()) &&
                    !std::is_pointer_v<T> && detail::has_description<T>();

/// A value in a message that may be absent: `outlive::msg::Optional` of Rust. It is aligned as the
/// value, which is aligned to at most 8 bytes.
///
/// Example:
///
///     struct obstacle {
///         double distance; // m
///         outlive::optional<double> speed; // m/s
///     };
///     OUTLIVE_MESSAGE(obstacle, "robot/Obstacle", distance, speed)
///
///     const obstacle dog{1.5, 0.5}; // {1.5, {}}: not known
///     std::cout << dog.speed.value_or(0.0) << " m/s\n";
template <shareable T> struct optional {
    static_assert(alignof(T) <= 8,
                  "outlive: an optional value is aligned to more than 8 bytes, where other languages "
                  "do not look for it: let its type have the alignment of its numbers");
    constexpr optional() = default;
    constexpr optional(const T &of) : present(true), value(of) {}
    constexpr explicit operator bool() const { return present; }
    [[nodiscard]] constexpr T value_or(const T &other) const { return present ? value : other; }
    boolean present;
    std::uint8_t reserved[7] = {};
    /// Zero if absent.
    T value{};
};

template <shareable T> struct message_traits<optional<T>> {
    static_assert(std::is_standard_layout_v<optional<T>> &&
                      (alignof(T) > 8 || offsetof(optional<T>, value) == 8),
                  "outlive: this optional value does not lie where other languages look for it");
    static constexpr const char *name = "outlive/Optional";
    static constexpr bool has_foreign = detail::has_foreign<T>();
    template <class Each> static void fields(Each &&each) {
        each("present", 0, static_cast<boolean *>(nullptr));
        each("value", 8, static_cast<T *>(nullptr));
    }
};

/// A header followed by any number of elements.
///
/// Example:
///
///     auto scans = node.publisher<outlive::headed<pose, float>>("/scan").value();
///     auto scan = scans.loan(pose{1.0, 2.0, 0.5}, 360).value();
///     std::ranges::fill(scan.tail(), 4.5f); // 360 distances, m
///     std::move(scan).publish().value();
template <shareable H, shareable E> struct headed {};

/// A name in the place of a type.
template <std::size_t N> struct type_label {
    char text[N];
    consteval type_label(const char (&name)[N]) { std::copy_n(name, N, text); }
};

/// One MessagePack value of a type by this name, the same in all languages: msgpack<"robot/Plan">.
/// It is sent and received as its bytes; for types of your own see packable.
///
/// Example:
///
///     const std::array nil{std::byte{0xc0}}; // what a library of MessagePack wrote
///     auto plans = node.publisher<outlive::msgpack<"robot/Plan">>("/plan/raw").value();
///     plans.publish(nil).value();
template <type_label Name> struct msgpack {};

/// How a type of your own travels as MessagePack. OUTLIVE_MSGPACK of outlive/msgpack.hpp writes it
/// over msgpack-cxx; over another library specialise it yourself.
///
/// Example:
///
///     struct note {
///         std::string text;
///     };
///     template <> struct outlive::packed_traits<note> {
///         static constexpr const char *name = "robot/Note"; // the same in all languages
///         static void pack(const note &value, std::vector<std::byte> &to);  // appends
///         static bool unpack(std::span<const std::byte> from, note &value); // false: not one
///     };
///
/// Bytes of others may be anything: unpack must neither throw nor trust a length. For another encoding
/// than MessagePack add `static outlive_status type(::outlive_type **out)`, which calls
/// outlive_type_encoded; outlive/protobuf.hpp is an example. If some values cannot be sent, let pack
/// return a std::string that says why, empty if it can; `static std::string fault(from)` says why
/// unpack returned false.
template <class T> struct packed_traits;

/// What may be sent as MessagePack: publisher<plan>, producer<plan>, client<plan, plan>. Structs are
/// maps of their fields' names, as in Rust and Python.
template <class T>
concept packable = std::default_initializable<T> &&
                   requires(const T &value, T &filled, std::vector<std::byte> &to,
                            std::span<const std::byte> from) {
                       { packed_traits<T>::name } -> std::convertible_to<const char *>;
                       packed_traits<T>::pack(value, to);
                       { packed_traits<T>::unpack(from, filled) } -> std::convertible_to<bool>;
                   };

namespace detail {
template <number T> constexpr const char *number_name() {
    if constexpr (std::is_same_v<T, char>) {
        return "char";
    } else if constexpr (std::is_floating_point_v<T>) {
        return sizeof(T) == 4 ? "f32" : "f64";
    } else if constexpr (std::is_signed_v<T>) {
        return sizeof(T) == 1 ? "i8" : sizeof(T) == 2 ? "i16" : sizeof(T) == 4 ? "i32" : "i64";
    } else {
        return sizeof(T) == 1 ? "u8" : sizeof(T) == 2 ? "u16" : sizeof(T) == 4 ? "u32" : "u64";
    }
}

/// Names by which the type itself goes: arrays by that of their elements.
template <class T> constexpr const char *type_name() {
    if constexpr (is_array<T>::value) {
        return type_name<typename is_array<T>::element>();
    } else if constexpr (std::is_enum_v<T>) {
        return number_name<std::underlying_type_t<T>>();
    } else if constexpr (std::is_same_v<T, boolean>) {
        return "bool";
    } else if constexpr (is_chrono<T>) {
        return number_name<typename is_time<T>::count>();
    } else if constexpr (number<T>) {
        return number_name<T>();
    } else {
        return message_traits<T>::name;
    }
}

/// Writes `f64`, `struct:24`, and appends dimensions to `dims`.
template <class T> void write_type(std::string &out, std::string &dims) {
    if constexpr (is_array<T>::value) {
        dims += '[' + std::to_string(is_array<T>::length) + ']';
        write_type<typename is_array<T>::element>(out, dims);
    } else if constexpr (described<T>) {
        out += "struct:" + std::to_string(sizeof(T));
    } else {
        out += type_name<T>();
    }
}

template <class T> void write_fields(std::string &out, int level) {
    if constexpr (is_array<T>::value) {
        write_fields<typename is_array<T>::element>(out, level);
    } else if constexpr (described<T>) {
        message_traits<T>::fields([&]<class F>(const char *name, std::size_t offset, F *) {
            std::string type, dims;
            write_type<F>(type, dims);
            out.append(static_cast<std::size_t>(level), ' ');
            out += std::to_string(offset) + ' ' + type + dims + ' ' + name + '\n';
            write_fields<F>(out, level + 1);
        });
    }
}
} // namespace detail

/// The description of `T` in the form that all languages share.
template <shareable T> std::string describe() {
    std::string out = "outlive-type 1 align " + std::to_string(alignof(T)) + '\n', dims;
    detail::write_type<T>(out, dims);
    out += dims + '\n';
    detail::write_fields<T>(out, 1);
    return out;
}

namespace detail {
using type_handle = handle<::outlive_type, ::outlive_type_free>;

/// How a payload looks to its user.
template <class T> struct payload {
    static_assert(shareable<T>,
                  "outlive: this type cannot be shared. Describe a trivially copyable struct with "
                  "OUTLIVE_MESSAGE(type, \"name\", fields...); use std::array instead of "
                  "std::vector or std::string, outlive::boolean instead of bool, float or double, "
                  "enums with a fixed underlying type, nanoseconds of std::chrono, of Eigen what is "
                  "of a fixed size and Eigen::DontAlign (outlive/eigen.hpp); nothing const, "
                  "no arrays of no elements, and no pointers");
    using view = const T &;
    using argument = view;
    static constexpr bool is_fixed = true;
    static view of(const void *data, std::size_t) { return *static_cast<const T *>(data); }
    static outlive_status type(::outlive_type **out) {
        return ::outlive_type_fixed(type_name<T>(), describe<T>().c_str(), out);
    }
    static const void *data(const T &value) { return &value; }
    static std::size_t size(const T &) { return sizeof(T); }
};

template <class E> struct payload<E[]> {
    static_assert(shareable<E>, "outlive: elements of this type cannot be shared");
    using view = std::span<const E>;
    using argument = view;
    static constexpr bool is_fixed = false;
    static view of(const void *data, std::size_t size) {
        return {static_cast<const E *>(data), size / sizeof(E)};
    }
    static outlive_status type(::outlive_type **out) {
        // Not char, which is unsigned on some machines: text is the same on all.
        if constexpr (std::is_same_v<E, std::byte> || std::is_same_v<E, unsigned char>) {
            return ::outlive_type_bytes(out);
        } else {
            return ::outlive_type_slice(type_name<E>(), describe<E>().c_str(), out);
        }
    }
    static const void *data(view value) { return value.data(); }
    static std::size_t size(view value) { return value.size_bytes(); }
};

/// Whether a library writes it in place, as bytes.
template <class T>
concept lent_as_bytes = requires { payload<T>::is_lent_as_bytes; };

/// Largest value that `*` of a sample, message or reply without a name copies.
inline constexpr std::size_t small_bytes = 4096;
template <class T>
inline constexpr bool is_small = [] {
    if constexpr (payload<T>::is_fixed) {
        return sizeof(T) <= small_bytes && std::is_object_v<T> && !std::is_array_v<T>;
    } else {
        return false;
    }
}();
/// T, where a function may give it.
template <class T>
using copy_of = std::conditional_t<std::is_array_v<T>, void, T>;

/// A value on its way, as bytes that stay for the call.
template <class T> class packed {
  public:
    packed(const T &value) : room_(room()) {
        auto &to = room_.at == nullptr ? own_ : *room_.at;
        to.clear();
        if constexpr (may_refuse) {
            why_ = packed_traits<T>::pack(value, to);
        } else {
            packed_traits<T>::pack(value, to);
        }
        bytes_ = to;
    }
    packed(std::span<const std::byte> bytes) : room_(nullptr), bytes_(bytes) {}
    /// Shows the same bytes, for as long as the other: for a call in a call.
    packed(const packed &other) noexcept(!may_refuse)
        : room_(nullptr), bytes_(other.bytes_), why_(other.why_) {}
    packed &operator=(const packed &) = delete;
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
    /// Why the value cannot be sent, if it cannot.
    [[nodiscard]] std::optional<error> refused() const {
        if constexpr (may_refuse) {
            if (!why_.empty()) {
                using namespace std::string_literals;
                const char *name = packed_traits<T>::name;
                return error(OUTLIVE_INVALID_ARGUMENT, "sending "s + name + ": " + why_);
            }
        }
        return std::nullopt;
    }

  private:
    /// Whether a value of this thread is on its way: another one, sent meanwhile, takes room of its
    /// own.
    static bool &in_use() noexcept {
        static constinit thread_local bool is = false;
        return is;
    }
    struct lease {
        explicit lease(std::vector<std::byte> *room) : at(in_use() ? nullptr : room) {
            in_use() = in_use() || at != nullptr;
        }
        lease(const lease &) = delete;
        lease &operator=(const lease &) = delete;
        ~lease() {
            if (at != nullptr) {
                in_use() = false;
            }
        }
        std::vector<std::byte> *at;
    };
    /// Grows to the largest value of a thread and stays. None once the thread has destroyed its
    /// objects: at exit the static ones come after them, whose destructors may still send.
    static std::vector<std::byte> *room() {
        static constinit thread_local std::vector<std::byte> *at = nullptr;
        static constinit thread_local bool is_over = false;
        struct keeper {
            std::vector<std::byte> bytes;
            ~keeper() {
                at = nullptr;
                is_over = true;
            }
        };
        if (at == nullptr && !is_over) [[unlikely]] {
            static thread_local keeper kept;
            at = &kept.bytes;
        }
        return at;
    }
    static constexpr bool may_refuse =
        std::same_as<decltype(packed_traits<T>::pack(std::declval<const T &>(),
                                                     std::declval<std::vector<std::byte> &>())),
                     std::string>;
    struct nothing {};

    lease room_;
    std::vector<std::byte> own_; // where the thread's is taken or gone
    std::span<const std::byte> bytes_;
    [[no_unique_address]] std::conditional_t<may_refuse, std::string, nothing> why_{};
};

/// Why a value that is about to be sent cannot be.
template <class A> std::optional<error> refused(const A &argument) {
    if constexpr (requires { argument.refused(); }) {
        return argument.refused();
    } else {
        return std::nullopt;
    }
}

template <packable T> struct payload<T> {
    using view = std::span<const std::byte>;
    using argument = packed<T>;
    static constexpr bool is_fixed = false;
    static view of(const void *data, std::size_t size) {
        return {static_cast<const std::byte *>(data), size};
    }
    static outlive_status type(::outlive_type **out) {
        // Of a third-party encoding.
        if constexpr (requires { packed_traits<T>::type(out); }) {
            return packed_traits<T>::type(out);
        } else {
            return ::outlive_type_msgpack(packed_traits<T>::name, out);
        }
    }
    static const void *data(const argument &value) { return value.bytes().data(); }
    static std::size_t size(const argument &value) { return value.bytes().size(); }
};

template <packable T> expected<T> unpacked(std::span<const std::byte> bytes) {
    expected<T> value(std::in_place);
    if (!packed_traits<T>::unpack(bytes, *value)) {
        using namespace std::string_literals;
        const char *name = packed_traits<T>::name;
        std::string why = "the bytes do not match this type";
        if constexpr (requires { packed_traits<T>::fault(bytes); }) {
            why += ": " + packed_traits<T>::fault(bytes);
        }
        value = unexpected(error(OUTLIVE_CORRUPT, "receiving "s + name + ": " + why +
                                                      "; compare the types of both ends"));
    }
    return value;
}

template <type_label Name> struct payload<msgpack<Name>> {
    using view = std::span<const std::byte>;
    using argument = view;
    static constexpr bool is_fixed = false;
    static view of(const void *data, std::size_t size) {
        return {static_cast<const std::byte *>(data), size};
    }
    static_assert(is_whole(Name.text),
                  "outlive: the name of a MessagePack type has a zero byte in it");
    static outlive_status type(::outlive_type **out) {
        return ::outlive_type_msgpack(Name.text, out);
    }
    static const void *data(view value) { return value.data(); }
    static std::size_t size(view value) { return value.size_bytes(); }
};

/// A header and elements, as a received message shows them.
template <class H, class E> struct headed_view {
    const H &header;
    std::span<const E> tail;
};

template <class H, class E> struct payload<headed<H, E>> {
    static_assert(alignof(E) <= alignof(H), "outlive: elements are aligned to more than the header");
    using view = headed_view<H, E>;
    using argument = view;
    static constexpr bool is_fixed = false;
    static view of(const void *data, std::size_t size) {
        const auto *bytes = static_cast<const std::byte *>(data);
        const auto *tail = reinterpret_cast<const E *>(bytes + sizeof(H));
        return {*static_cast<const H *>(data), {tail, (size - sizeof(H)) / sizeof(E)}};
    }
    static outlive_status type(::outlive_type **out) {
        return ::outlive_type_headed(type_name<H>(), describe<H>().c_str(), describe<E>().c_str(),
                                     out);
    }
};

template <class T> expected<type_handle> make_type() {
    ::outlive_type *type = nullptr;
    if (auto code = payload<T>::type(&type); code != OUTLIVE_OK) {
        return unexpected(error::last(code));
    }
    return type_handle(type);
}
} // namespace detail
} // namespace outlive::inline OUTLIVE_ABI

// One macro per field, up to 256 of them.
#define OUTLIVE_PARENS ()
#define OUTLIVE_E0(...) OUTLIVE_E1(OUTLIVE_E1(OUTLIVE_E1(OUTLIVE_E1(__VA_ARGS__))))
#define OUTLIVE_E1(...) OUTLIVE_E2(OUTLIVE_E2(OUTLIVE_E2(OUTLIVE_E2(__VA_ARGS__))))
#define OUTLIVE_E2(...) OUTLIVE_E3(OUTLIVE_E3(OUTLIVE_E3(OUTLIVE_E3(__VA_ARGS__))))
#define OUTLIVE_E3(...) OUTLIVE_E4(OUTLIVE_E4(OUTLIVE_E4(OUTLIVE_E4(__VA_ARGS__))))
#define OUTLIVE_E4(...) __VA_ARGS__
#define OUTLIVE_EACH(macro, type, ...) \
    __VA_OPT__(OUTLIVE_E0(OUTLIVE_NEXT(macro, type, __VA_ARGS__)))
#define OUTLIVE_NEXT(macro, type, field, ...) \
    macro(type, field) __VA_OPT__(OUTLIVE_AGAIN OUTLIVE_PARENS(macro, type, __VA_ARGS__))
#define OUTLIVE_AGAIN() OUTLIVE_NEXT
#define OUTLIVE_FIELD(type, field) \
    each(#field, offsetof(type, field), static_cast<decltype(type::field) *>(nullptr));
#define OUTLIVE_PLACE(type, field) , {offsetof(type, field), sizeof(type::field)}
#define OUTLIVE_PLAIN(type, field) &&::outlive::detail::is_plain<decltype(type::field)>
#define OUTLIVE_FLOAT(type, field) &&::outlive::detail::floats_are_known<decltype(type::field)>
#define OUTLIVE_ENUM(type, field) &&::outlive::detail::enum_is_fixed<decltype(type::field)>
#define OUTLIVE_FILLED(type, field) &&::outlive::detail::has_elements<decltype(type::field)>()
#define OUTLIVE_FOREIGN(type, field) || ::outlive::detail::has_foreign<decltype(type::field)>()
#define OUTLIVE_ALIGNED(type, field) \
    &&::outlive::detail::is_aligned_as_numbers<decltype(type::field)>
#define OUTLIVE_SHAREABLE(type, field) &&::outlive::shareable<decltype(type::field)>

// (a<b, c>) without its parentheses, and anything else as it is.
#define OUTLIVE_BARE(type) OUTLIVE_BARE1(OUTLIVE_BARE0 type)
#define OUTLIVE_BARE0(...) OUTLIVE_BARE0 __VA_ARGS__
#define OUTLIVE_BARE1(...) OUTLIVE_BARE2(__VA_ARGS__)
#define OUTLIVE_BARE2(...) OUTLIVE_NOT_##__VA_ARGS__
#define OUTLIVE_NOT_OUTLIVE_BARE0

/// Describes a struct for all languages: OUTLIVE_MESSAGE(pose, "robot/Pose", x, y, heading).
///
/// Write it outside of all namespaces, after the struct, with all fields in order. A type with a
/// comma goes into parentheses: OUTLIVE_MESSAGE((grid<int, 3>), "robot/Grid", cells). A struct with
/// padding does not compile: name the padding, as a field of bytes.
///
/// Values are not checked when they are received, nor those under a lock: another program may have
/// written any bytes, so an enum may be a number that none of its names has.
///
/// Example:
///
///     enum class state : std::uint8_t { idle, busy };
///     struct arm {
///         std::array<float, 6> joints; // rad
///         state now;
///         std::uint8_t padding[3];
///     };
///     OUTLIVE_MESSAGE(arm, "robot/Arm", joints, now, padding)
///
///     auto arms = node.publisher<arm[]>("/arms").value(); // any number of them
#define OUTLIVE_MESSAGE(type, type_name_, ...)                                                     \
    template <> struct outlive::message_traits<OUTLIVE_BARE(type)> {                               \
        using self = OUTLIVE_BARE(type);                                                           \
        static constexpr const char *name = type_name_;                                            \
        static_assert(sizeof(type_name_) > 1, "outlive: the name of " #type " is empty");          \
        static_assert(::outlive::detail::is_whole(type_name_),                                     \
                      "outlive: the name of " #type " has a zero byte in it");                     \
        static constexpr bool has_foreign = false OUTLIVE_EACH(OUTLIVE_FOREIGN, self, __VA_ARGS__); \
        static_assert(std::is_standard_layout_v<self> &&                                           \
                          (std::is_trivially_copyable_v<self> ||                                   \
                           (has_foreign && std::is_trivially_destructible_v<self>)),               \
                      "outlive: " #type " has pointers of its own, virtual functions or such");    \
        static_assert(true OUTLIVE_EACH(OUTLIVE_PLAIN, self, __VA_ARGS__),                         \
                      "outlive: a field of " #type " is const or volatile: messages are filled "   \
                      "and copied; make it a plain field");                                        \
        static_assert(true OUTLIVE_EACH(OUTLIVE_ENUM, self, __VA_ARGS__),                          \
                      "outlive: a field of " #type " is an enum without a fixed underlying type, " \
                      "whose size each compiler chooses: write enum e : std::uint8_t");            \
        static_assert(true OUTLIVE_EACH(OUTLIVE_FLOAT, self, __VA_ARGS__),                         \
                      "outlive: a field of " #type " is a floating-point number that other "       \
                      "languages do not have: use float or double");                               \
        static_assert(true OUTLIVE_EACH(OUTLIVE_FILLED, self, __VA_ARGS__),                        \
                      "outlive: a field of " #type " is an array of no elements");                 \
        static_assert(true OUTLIVE_EACH(OUTLIVE_ALIGNED, self, __VA_ARGS__),                       \
                      "outlive: a field of " #type " is aligned to more than its numbers are, "    \
                      "which depends on the compiler's options: give it Eigen::DontAlign");        \
        static_assert(true OUTLIVE_EACH(OUTLIVE_SHAREABLE, self, __VA_ARGS__),                     \
                      "outlive: a field of " #type " is of a type that cannot be shared");         \
        static constexpr ::outlive::detail::place places[] = {                                     \
            {0, 0} OUTLIVE_EACH(OUTLIVE_PLACE, self, __VA_ARGS__)};                                \
        static_assert(::outlive::detail::in_order(places),                                         \
                      "outlive: the fields of " #type " are not listed in their order, or one is " \
                      "listed twice");                                                             \
        static_assert(!::outlive::detail::in_order(places) ||                                      \
                          ::outlive::detail::dense(places, sizeof(self)),                          \
                      "outlive: " #type " has padding, or a field that is not listed");            \
        template <class Each> static void fields(Each &&each) {                                    \
            OUTLIVE_EACH(OUTLIVE_FIELD, self, __VA_ARGS__)                                         \
        }                                                                                          \
    };

#endif
