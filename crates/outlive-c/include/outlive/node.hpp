// Nodes, deadlines, and watching nodes.
#ifndef OUTLIVE_NODE_HPP
#define OUTLIVE_NODE_HPP

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "message.hpp"

namespace outlive::inline OUTLIVE_ABI {

using namespace std::chrono_literals;

namespace detail {
inline constexpr double ns_limit = 9.2e18; // of a signed 64-bit count, with room for rounding

/// A duration in ns; what does not fit is the largest or smallest that does, NaN is 0.
template <class Rep, class Period>
constexpr std::int64_t ns_of(std::chrono::duration<Rep, Period> time) {
    // Its size in floating point, which cannot overflow, decides whether it can be converted.
    const double about = std::chrono::duration<double, std::nano>(time).count();
    if (about >= ns_limit) {
        return std::numeric_limits<std::int64_t>::max();
    }
    if (about <= -ns_limit) {
        return std::numeric_limits<std::int64_t>::min();
    }
    if (!(about == about)) {
        return 0;
    }
    using factor = std::ratio_divide<Period, std::nano>;
    if constexpr (std::is_integral_v<Rep> && factor::num != 1 && factor::den != 1) {
        // Ticks by ticks of the denominator: `duration_cast` multiplies first, which may overflow.
        const auto count = static_cast<std::int64_t>(time.count());
        return count / factor::den * factor::num + count % factor::den * factor::num / factor::den;
    } else {
        return static_cast<std::int64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
    }
}

/// How long it is from `now` to `at`, ns.
template <class Clock, class D1, class D2>
constexpr std::int64_t ns_between(std::chrono::time_point<Clock, D1> now,
                                  std::chrono::time_point<Clock, D2> at) {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    constexpr auto least = std::numeric_limits<std::int64_t>::min();
    const std::int64_t from = ns_of(now.time_since_epoch()), to = ns_of(at.time_since_epoch());
    const auto far = static_cast<double>(to) - static_cast<double>(from);
    return to == most || far >= ns_limit      ? most
           : to == least || far <= -ns_limit ? least
                                              : to - from;
}

/// The instant `ns` from now; 0 or less is not at all, more than the clock can count is never.
inline std::uint64_t instant_in(std::int64_t ns) {
    if (ns <= 0) {
        return OUTLIVE_NO_WAIT;
    }
    return ns == std::numeric_limits<std::int64_t>::max()
               ? OUTLIVE_FOREVER
               : ::outlive_now_ns() + static_cast<std::uint64_t>(ns);
}

/// `count` elements behind `header` bytes; nothing if the address space is smaller.
constexpr std::optional<std::size_t> bytes_of(std::size_t count, std::size_t each,
                                              std::size_t header = 0) {
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
    if (header > most || (each != 0 && count > (most - header) / each)) {
        return std::nullopt;
    }
    return header + count * each;
}
/// Refuses what a zero byte would silently cut short.
inline expected<void> whole(std::string_view name) {
    if (name.find('\0') != name.npos) {
        return unexpected(error(OUTLIVE_INVALID_NAME, "a name with a zero byte in it"));
    }
    return {};
}
/// A name as outlive.h takes it.
inline expected<std::string> c_string(std::string_view name) {
    if (auto fine = whole(name); !fine) {
        return unexpected(std::move(fine).error());
    }
    return std::string(name);
}
inline error too_many(std::size_t count, std::size_t each) {
    return error(OUTLIVE_INVALID_ARGUMENT, "asking for " + std::to_string(count) +
                                               " elements of " + std::to_string(each) +
                                               " bytes: no address space holds them");
}
} // namespace detail

/// A duration in settings, ns: any duration of std::chrono; too long for ns saturates.
///
/// Example:
///
///     outlive::topic_options options;
///     options.reliable_timeout = 20ms; // or std::chrono::duration<double>(0.02)
///     auto poses = node.publisher<pose>("/robot/pose", options).value();
class timespan {
  public:
    constexpr timespan() = default;
    template <class Rep, class Period>
    constexpr timespan(std::chrono::duration<Rep, Period> time) : ns_(detail::ns_of(time)) {}
    [[nodiscard]] constexpr std::int64_t count() const noexcept { return ns_; }
    /// Where it lies, for the C library.
    [[nodiscard]] constexpr const std::int64_t *raw() const noexcept { return &ns_; }
    /// Negative ones count as zero.
    [[nodiscard]] constexpr std::uint64_t positive() const noexcept {
        return ns_ < 0 ? 0 : static_cast<std::uint64_t>(ns_);
    }

  private:
    std::int64_t ns_ = 0;
};

/// Until when to wait: a duration from now, an instant of steady_clock, `deadline::never`, or
/// `deadline::now`. Durations too long to count mean never; 0, negative ones and NaN mean now.
///
/// Example:
///
///     auto grippers = node.semaphore("/arm/grippers", 2).value();
///     outlive::deadline until = 100ms; // from now, for both
///     auto left = grippers.acquire(until), right = grippers.acquire(until);
///     if (left && right) {
///         std::cout << "lifting\n";
///     }
class deadline {
  public:
    /// This long from now; 0 or less does not wait.
    template <class Rep, class Period>
    deadline(std::chrono::duration<Rep, Period> from_now)
        : at_ns_(detail::instant_in(detail::ns_of(from_now))) {}
    /// At an instant of any clock, as it is ahead of that clock's now.
    template <class Clock, class Duration>
    deadline(std::chrono::time_point<Clock, Duration> at)
        : at_ns_(detail::instant_in(detail::ns_between(Clock::now(), at))) {}
    /// An instant of CLOCK_MONOTONIC, ns.
    static constexpr deadline at_ns(std::uint64_t ns) { return deadline(ns); }
    static const deadline never, now;

    [[nodiscard]] constexpr std::uint64_t ns() const noexcept { return at_ns_; }

  private:
    explicit constexpr deadline(std::uint64_t ns) : at_ns_(ns) {}
    std::uint64_t at_ns_;
};
inline constexpr deadline deadline::never = deadline::at_ns(OUTLIVE_FOREVER);
inline constexpr deadline deadline::now = deadline::at_ns(OUTLIVE_NO_WAIT);

/// Who sent something: numbers that are never reused.
using port_id = ::outlive_port_id;

/// Reports a node's death as it happens.
///
/// Example:
///
///     auto camera = node.watch(camera_id).value();
///     if (!camera.is_alive() || camera.wait(10ms)) {
///         std::cerr << "the camera died or left\n";
///     }
class watch {
  public:
    watch() = default; ///< empty until one is assigned
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }
    /// One load while it is alive. A stopped process is alive.
    [[nodiscard]] bool is_alive() const noexcept { return ::outlive_watch_is_alive(at_.get()); }
    /// Waits until it dies or leaves; false when the deadline passed first.
    [[nodiscard]] bool wait(deadline until) const noexcept {
        return ::outlive_watch_wait(at_.get(), until.ns()) == OUTLIVE_OK;
    }
    /// A hint, for early reactions that do no harm if the node lives: a death shows at once, however
    /// large the process; is_alive() shows it only once its memory is freed.
    [[nodiscard]] bool seems_alive() const noexcept {
        return ::outlive_watch_seems_alive(at_.get());
    }
    /// As wait, until seems_alive() returns false.
    [[nodiscard]] bool wait_hint(deadline until) const noexcept {
        return ::outlive_watch_wait_hint(at_.get(), until.ns()) == OUTLIVE_OK;
    }
    /// Makes it ready in a wait_set as soon as seems_alive() returns false. Call it before other
    /// threads use the handle.
    void on_hint() noexcept { ::outlive_watch_on_hint(at_.get()); }
    [[nodiscard]] ::outlive_watch *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit watch(::outlive_watch *at) : at_(at) {}
    detail::handle<::outlive_watch, ::outlive_watch_free> at_;
};

/// From now on fatal faults, abort() among them, kill the process at once and without a core: see
/// outlive_kill_on_faults.
inline void kill_on_faults() noexcept { ::outlive_kill_on_faults(); }

struct topic_options;
struct queue_options;
struct service_options;
template <class T> class publisher;
template <class T> class subscriber;
template <class T> class producer;
template <class T> class consumer;
template <class Q, class R> class client;
template <class Q, class R> class server;
template <class T> class robust_mutex;
template <class T> class robust_shared_mutex;
class robust_condition;
class robust_semaphore;
class lockless_set;

/// Settings of a node. Empty: the defaults.
///
/// Example:
///
///     auto simulated = outlive::node::open({.name = "planner", .domain = "simulation"}).value();
///     auto poses = simulated.publisher<pose>("/robot/pose").value(); // nobody outside sees it
///     poses.publish({1.0, 2.0, 0.5}).value();
struct node_options {
    std::string name{};      ///< shown in listings; the program's name unless given
    std::string domain{};    ///< domains do not see each other
    std::string root{};      ///< folder of the domains, instead of $OUTLIVE_DIR
    std::uint32_t group = 0; ///< group whose members may join

    /// As outlive.h takes them; valid as long as this.
    [[nodiscard]] ::outlive_node_options raw() const {
        const auto or_null = [](const std::string &s) { return s.empty() ? nullptr : s.c_str(); };
        ::outlive_node_options raw{};
        raw.size = sizeof raw;
        raw.name = or_null(name);
        raw.domain = or_null(domain);
        raw.root = or_null(root);
        raw.group = group;
        return raw;
    }
};

namespace detail {
/// Refuses settings that would be cut short: the domain would be another one.
inline expected<void> whole(const node_options &options) {
    for (const auto *text : {&options.name, &options.domain, &options.root}) {
        if (auto fine = whole(std::string_view(*text)); !fine) {
            return fine;
        }
    }
    return {};
}
} // namespace detail

/// A process's membership in a domain. Any thread may use it; ports keep it alive by themselves.
/// After fork the child opens a node of its own.
///
/// As with all handles, a default-constructed or moved-from one is empty: false as a bool, and its
/// calls return OUTLIVE_INVALID_ARGUMENT.
///
/// Example:
///
///     auto node = outlive::node::open("planner").value();
///     std::cout << node.name() << " is node " << node.id() << '\n';
///     auto goals = node.producer<pose>("/arm/goals").value();
class node {
  public:
    node() = default;
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    static expected<node> open(const node_options &options) {
        if (auto fine = detail::whole(options); !fine) {
            return unexpected(std::move(fine).error());
        }
        const auto raw = options.raw();
        ::outlive_node *at = nullptr;
        if (auto code = ::outlive_node_open(&raw, &at); code != OUTLIVE_OK) {
            return unexpected(error::told(code));
        }
        return node(at);
    }
    static expected<node> open(std::string_view name) {
        node_options options;
        options.name = name;
        return open(options);
    }

    /// Its number in the domain, never reused; 0 for an empty handle.
    [[nodiscard]] std::uint64_t id() const noexcept { return ::outlive_node_id(at_.get()); }
    /// Its name; valid as long as the handle. NULL for an empty one.
    [[nodiscard]] const char *name() const noexcept { return ::outlive_node_name(at_.get()); }

    /// Watches the node with this number.
    [[nodiscard]] expected<outlive::watch> watch(std::uint64_t id) const {
        ::outlive_watch *at = nullptr;
        if (auto code = ::outlive_watch_open(at_.get(), id, &at); code != OUTLIVE_OK) {
            return unexpected(error::told(code));
        }
        return outlive::watch(at);
    }

    // Defined beside the types they open.
    template <class T>
    [[nodiscard]] expected<outlive::publisher<T>> publisher(std::string_view topic,
                                                            const topic_options &options) const;
    template <class T>
    [[nodiscard]] expected<outlive::publisher<T>> publisher(std::string_view topic) const;
    template <class T>
    [[nodiscard]] expected<outlive::subscriber<T>> subscriber(std::string_view topic,
                                                              const topic_options &options) const;
    template <class T>
    [[nodiscard]] expected<outlive::subscriber<T>> subscriber(std::string_view topic) const;
    template <class T>
    [[nodiscard]] expected<outlive::producer<T>> producer(std::string_view queue,
                                                          const queue_options &options) const;
    template <class T>
    [[nodiscard]] expected<outlive::producer<T>> producer(std::string_view queue) const;
    template <class T>
    [[nodiscard]] expected<outlive::consumer<T>> consumer(std::string_view queue,
                                                          const queue_options &options) const;
    template <class T>
    [[nodiscard]] expected<outlive::consumer<T>> consumer(std::string_view queue) const;
    template <class Q, class R>
    [[nodiscard]] expected<outlive::client<Q, R>> client(std::string_view service,
                                                         const service_options &options) const;
    template <class Q, class R>
    [[nodiscard]] expected<outlive::client<Q, R>> client(std::string_view service) const;
    template <class Q, class R>
    [[nodiscard]] expected<outlive::server<Q, R>> server(std::string_view service,
                                                         const service_options &options) const;
    template <class Q, class R>
    [[nodiscard]] expected<outlive::server<Q, R>> server(std::string_view service) const;
    template <class T = void>
    [[nodiscard]] expected<robust_mutex<T>> mutex(std::string_view name) const;
    template <class T>
    [[nodiscard]] expected<robust_mutex<T>> mutex(std::string_view name, const T &first) const;
    /// As mutex, with priority inheritance, for threads with real-time priorities: while a thread
    /// waits, the holder runs with that thread's priority. It has no condition.
    template <class T = void>
    [[nodiscard]] expected<robust_mutex<T>> pi_mutex(std::string_view name) const;
    template <class T>
    [[nodiscard]] expected<robust_mutex<T>> pi_mutex(std::string_view name, const T &first) const;
    template <class T = void>
    [[nodiscard]] expected<robust_shared_mutex<T>> shared_mutex(std::string_view name) const;
    template <class T>
    [[nodiscard]] expected<robust_shared_mutex<T>> shared_mutex(std::string_view name,
                                                                const T &first) const;

    [[nodiscard]] expected<robust_condition> condition(std::string_view name) const;
    /// 1 to 1024 permits, the same for all who open it.
    [[nodiscard]] expected<robust_semaphore> semaphore(std::string_view name,
                                                       std::size_t permits) const;
    /// Room for `capacity` numbers, the same for all who open it.
    [[nodiscard]] expected<outlive::lockless_set> lockless_set(std::string_view name,
                                                               std::size_t capacity) const;

    /// Removes the lock, condition, semaphore, set or segment of this name; false if there is none.
    /// Opening it creates it again. OUTLIVE_WOULD_BLOCK while somebody has it open, unless it is an
    /// unrecoverable lock.
    expected<bool> remove_lock(std::string_view name) const {
        const auto text = detail::c_string(name);
        if (!text) {
            return unexpected(text.error());
        }
        bool removed = false;
        const auto code = ::outlive_lock_remove(at_.get(), text->c_str(), &removed);
        if (code != OUTLIVE_OK) {
            return unexpected(error::told(code));
        }
        return removed;
    }

    [[nodiscard]] ::outlive_node *get() const noexcept { return at_.get(); }

  private:
    explicit node(::outlive_node *at) : at_(at) {}

    /// What `open` opens by this name, with data of type T: a lock.
    template <class Handle, class Raw, class T, class Open>
    expected<Handle> lock(std::string_view name, const void *first, Open open) const;

    /// What `open` opens by this name, as a `Handle`: `open(name, &raw)`.
    template <class Handle, class Raw, class Open>
    static expected<Handle> opened(std::string_view name, Open &&open) {
        const auto text = detail::c_string(name);
        if (!text) {
            return unexpected(text.error());
        }
        Raw *at = nullptr;
        if (const auto code = open(text->c_str(), &at); code != OUTLIVE_OK) {
            return unexpected(error::told(code));
        }
        return Handle(at);
    }

    detail::handle<::outlive_node, ::outlive_node_close> at_;
};

} // namespace outlive::inline OUTLIVE_ABI

#endif
