// Nodes, deadlines, and watching nodes.
#ifndef OUTLIVE_NODE_HPP
#define OUTLIVE_NODE_HPP

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "message.hpp"

namespace outlive {

using namespace std::chrono_literals;

/// Until when to wait: a duration from now, `deadline::never`, or `deadline::now`.
class deadline {
  public:
    /// So long from now; nothing or less is not at all.
    template <class Rep, class Period>
    deadline(std::chrono::duration<Rep, Period> from_now) {
        const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(from_now).count();
        at_ns_ = ns <= 0 ? OUTLIVE_NO_WAIT : ::outlive_now_ns() + static_cast<std::uint64_t>(ns);
    }
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

/// Tells of a node's death in the instant of it.
class watch {
  public:
    /// One load while it lives. A stopped process is alive.
    [[nodiscard]] bool is_alive() const noexcept { return ::outlive_watch_is_alive(at_.get()); }
    /// Waits until it dies or leaves; false when the deadline passed first.
    [[nodiscard]] bool wait(deadline until) const noexcept {
        return ::outlive_watch_wait(at_.get(), until.ns()) == OUTLIVE_OK;
    }
    [[nodiscard]] ::outlive_watch *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit watch(::outlive_watch *at) : at_(at) {}
    detail::handle<::outlive_watch, ::outlive_watch_free> at_;
};

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
struct node_options {
    std::string name;   ///< shown in listings; the program's name unless given
    std::string domain; ///< domains do not see each other
    std::string root;   ///< folder of the domains, instead of $OUTLIVE_DIR
    std::uint32_t group = 0; ///< group whose members may join
    bool strict = false;     ///< a helper thread holds the liveness token

    /// As outlive.h takes them; valid as long as this.
    [[nodiscard]] ::outlive_node_options raw() const {
        const auto or_null = [](const std::string &s) { return s.empty() ? nullptr : s.c_str(); };
        ::outlive_node_options raw{};
        raw.name = or_null(name);
        raw.domain = or_null(domain);
        raw.root = or_null(root);
        raw.group = group;
        raw.strict = strict ? 1 : 0;
        return raw;
    }
};

/// A process's membership in a domain. Any thread may use it; ports keep it alive by themselves.
/// After fork the child opens a node of its own.
class node {
  public:
    static expected<node> open(const node_options &options) {
        const auto raw = options.raw();
        ::outlive_node *at = nullptr;
        if (auto code = ::outlive_node_open(&raw, &at); code != OUTLIVE_OK) {
            return unexpected(error::last(code));
        }
        return node(at);
    }
    static expected<node> open(std::string_view name) {
        node_options options;
        options.name = name;
        return open(options);
    }

    /// Its number in the domain, never reused.
    [[nodiscard]] std::uint64_t id() const noexcept { return ::outlive_node_id(at_.get()); }
    [[nodiscard]] const char *name() const noexcept { return ::outlive_node_name(at_.get()); }

    /// Watches the node with this number.
    [[nodiscard]] expected<outlive::watch> watch(std::uint64_t id) const {
        ::outlive_watch *at = nullptr;
        if (auto code = ::outlive_watch_open(at_.get(), id, &at); code != OUTLIVE_OK) {
            return unexpected(error::last(code));
        }
        return outlive::watch(at);
    }

    // Defined beside the types they open.
    template <class T>
    [[nodiscard]] expected<outlive::publisher<T>> publisher(const char *topic,
                                                            const topic_options &options) const;
    template <class T>
    [[nodiscard]] expected<outlive::publisher<T>> publisher(const char *topic) const;
    template <class T>
    [[nodiscard]] expected<outlive::subscriber<T>> subscriber(const char *topic,
                                                              const topic_options &options) const;
    template <class T>
    [[nodiscard]] expected<outlive::subscriber<T>> subscriber(const char *topic) const;
    template <class T>
    [[nodiscard]] expected<outlive::producer<T>> producer(const char *queue,
                                                          const queue_options &options) const;
    template <class T> [[nodiscard]] expected<outlive::producer<T>> producer(const char *queue) const;
    template <class T>
    [[nodiscard]] expected<outlive::consumer<T>> consumer(const char *queue,
                                                          const queue_options &options) const;
    template <class T> [[nodiscard]] expected<outlive::consumer<T>> consumer(const char *queue) const;
    template <class Q, class R>
    [[nodiscard]] expected<outlive::client<Q, R>> client(const char *service,
                                                         const service_options &options) const;
    template <class Q, class R>
    [[nodiscard]] expected<outlive::client<Q, R>> client(const char *service) const;
    template <class Q, class R>
    [[nodiscard]] expected<outlive::server<Q, R>> server(const char *service,
                                                         const service_options &options) const;
    template <class Q, class R>
    [[nodiscard]] expected<outlive::server<Q, R>> server(const char *service) const;
    template <class T = void>
    [[nodiscard]] expected<robust_mutex<T>> mutex(const char *name) const;
    template <class T> [[nodiscard]] expected<robust_mutex<T>> mutex(const char *name,
                                                                     const T &first) const;
    template <class T = void>
    [[nodiscard]] expected<robust_shared_mutex<T>> shared_mutex(const char *name) const;
    template <class T>
    [[nodiscard]] expected<robust_shared_mutex<T>> shared_mutex(const char *name,
                                                                const T &first) const;

    [[nodiscard]] expected<robust_condition> condition(const char *name) const;
    /// 1 to 1024 permits, the same for all who open it.
    [[nodiscard]] expected<robust_semaphore> semaphore(const char *name, std::size_t permits) const;
    /// Room for so many numbers, the same for all who open it.
    [[nodiscard]] expected<outlive::lockless_set> lockless_set(const char *name,
                                                               std::size_t capacity) const;

    [[nodiscard]] ::outlive_node *get() const noexcept { return at_.get(); }

  private:
    explicit node(::outlive_node *at) : at_(at) {}
    detail::handle<::outlive_node, ::outlive_node_close> at_;
};

} // namespace outlive

#endif
