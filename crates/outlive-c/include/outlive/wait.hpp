// Waiting for several things at once.
#ifndef OUTLIVE_WAIT_HPP
#define OUTLIVE_WAIT_HPP

#include <algorithm>
#include <array>
#include <bitset>
#include <vector>
#include <version>
#if defined(__cpp_lib_jthread)
#include <stop_token>
#endif

#include "queue.hpp"
#include "service.hpp"

namespace outlive::inline OUTLIVE_ABI {

/// Ready once, or periodically.
///
/// Example:
///
///     auto tick = outlive::timer::every(10ms);
///     outlive::wait_set set;
///     set.wait(outlive::deadline::never, tick).value();
///     std::cout << "due " << tick.fired() << " times\n";
class timer {
  public:
    /// Ready once, this long from now.
    static timer after(timespan delay) { return timer(delay, 0); }
    /// Ready once per period, the first time one period from now.
    static timer every(timespan period) {
        return timer(period, std::max<std::uint64_t>(period.positive(), 1));
    }
    /// How often it became due since the last call; it stays ready until this is called.
    std::uint64_t fired() noexcept { return ::outlive_timer_fired(at_.get()); }
    [[nodiscard]] ::outlive_timer *get() const noexcept { return at_.get(); }

  private:
    timer(timespan first, std::uint64_t period_ns) {
        ::outlive_timer *at = nullptr;
        const auto first_ns = ::outlive_now_ns() + first.positive();
        if (::outlive_timer_new(first_ns, period_ns, &at) == OUTLIVE_OK) {
            at_ = decltype(at_)(at);
        }
    }
    detail::handle<::outlive_timer, ::outlive_timer_free> at_;
};

/// A file descriptor from outside outlive.
///
/// Example:
///
///     outlive::descriptor input{STDIN_FILENO};
///     outlive::wait_set set;
///     if (set.wait(10ms, input).value()[0]) {
///         std::cout << "there is input\n";
///     }
struct descriptor {
    int fd;
    bool writable = false; ///< wait until it can be written, not read
};

/// Ends waits when another thread or a signal handler raises it. Any number of threads may wait for
/// it; it stays raised until it is cleared.
///
/// Example:
///
///     outlive::interrupt stop;
///     std::thread worker([&] {
///         outlive::wait_set().wait(outlive::deadline::never, stop).value(); // and for others
///     });
///     stop.raise();
///     worker.join();
class interrupt {
  public:
    interrupt() {
        ::outlive_interrupt *at = nullptr;
        if (::outlive_interrupt_new(&at) == OUTLIVE_OK) {
            at_ = decltype(at_)(at);
        }
    }
    /// Async-signal-safe: a handler may call it on a live interrupt; errno is kept.
    void raise() const noexcept { ::outlive_interrupt_raise(at_.get()); }
    /// Async-signal-safe.
    [[nodiscard]] bool is_raised() const noexcept { return ::outlive_interrupt_is_raised(at_.get()); }
    /// Resets it for the next use; call it from the one thread that waits for it.
    void clear() const noexcept { ::outlive_interrupt_clear(at_.get()); }
    [[nodiscard]] ::outlive_interrupt *get() const noexcept { return at_.get(); }

  private:
    detail::handle<::outlive_interrupt, ::outlive_interrupt_free> at_;
};

/// SIGTERM and SIGINT as requests to end this process, from on_signals() to the process's end: return
/// from main then, and others see that its nodes left, not that they died. A second signal of a kind
/// does what it did before, unless it comes within 250 ms. A handler of the program's is called as
/// well. In a forked child the parent's object is never asked and its wait returns false at once:
/// call on_signals() there.
///
/// Example:
///
///     auto shutdown = outlive::shutdown::on_signals().value();
///     std::raise(SIGTERM); // as systemd does
///     while (!shutdown.wait(10ms)) {
///         std::cout << "working\n";
///     }
///     std::cout << "ending because of signal " << shutdown.signal() << '\n';
class shutdown {
  public:
    /// From now on they ask this process to end.
    static expected<shutdown> on_signals() {
        shutdown made;
        if (auto code = ::outlive_shutdown_on_signals(&made.fd_); code != OUTLIVE_OK) {
            return unexpected(error::last(code));
        }
        return made;
    }
    /// Whether this process was asked to end; it stays so.
    [[nodiscard]] bool is_asked() const noexcept { return ::outlive_shutdown_is_asked(); }
    /// The number of the signal that asked first; 0 while none did.
    [[nodiscard]] int signal() const noexcept { return ::outlive_shutdown_signal(); }
    /// Asks, as a signal does.
    void ask() const noexcept { ::outlive_shutdown_ask(); }
    /// Waits until this process is asked to end; false when the deadline passed first.
    [[nodiscard]] bool wait(deadline until) const noexcept {
        return ::outlive_shutdown_wait(until.ns()) == OUTLIVE_OK;
    }
    /// Readable once the process was asked to end, for a loop of your own. Do not read from it or
    /// close it.
    [[nodiscard]] int fd() const noexcept { return fd_; }

  private:
    shutdown() = default;
    int fd_ = -1;
};

/// What a wait is for; made from a subscriber, consumer, server, client, watch, timer, descriptor,
/// interrupt or shutdown, which must stay where it is during the wait.
///
/// Example:
///
///     auto left = node.subscriber<pose>("/left/pose").value();
///     auto right = node.subscriber<pose>("/robot/pose").value();
///     std::vector<outlive::member> members{left, right}; // known only when the program runs
///     if (outlive::wait_set().wait(members, 10s).value() && members[1].ready()) {
///         if (auto sample = right.latest()) { drive(**sample); }
///     }
class member {
  public:
    template <class T> member(subscriber<T> &of) : member(of.get(), OUTLIVE_SUBSCRIBER) {}
    template <class T> member(consumer<T> &of) : member(of.get(), OUTLIVE_CONSUMER) {}
    template <class Q, class R> member(server<Q, R> &of) : member(of.get(), OUTLIVE_SERVER) {}
    template <class Q, class R> member(client<Q, R> &of) : member(of.get(), OUTLIVE_CLIENT) {}
    member(watch &of) : member(of.get(), OUTLIVE_WATCH) {}
    member(timer &of) : member(of.get(), OUTLIVE_TIMER) {}
    member(const descriptor &of)
        : member(nullptr, of.writable ? OUTLIVE_WRITABLE_FD : OUTLIVE_READABLE_FD) {
        raw_.fd = of.fd;
    }
    member(const interrupt &of) : member(of.get(), OUTLIVE_INTERRUPT) {}
    member(const shutdown &) : member(nullptr, OUTLIVE_SHUTDOWN) {}
    [[nodiscard]] bool ready() const noexcept { return raw_.ready; }

  private:
    friend class wait_set;
    member(void *object, ::outlive_member_kind kind) {
        raw_.object = object;
        raw_.kind = static_cast<std::uint32_t>(kind);
    }
    ::outlive_member raw_{};
};
static_assert(sizeof(member) == sizeof(::outlive_member));

/// Waits until one of several things is ready. Each wait takes the list, as poll does; what it names
/// must live until it returns.
///
/// Example:
///
///     auto poses = node.subscriber<pose>("/robot/pose").value();
///     auto tick = outlive::timer::every(10ms);
///     outlive::wait_set set;
///     for (int ticks = 0; ticks < 3;) {
///         auto ready = set.wait(10s, poses, tick).value();
///         if (ready[0]) {
///             while (poses.receive()) {}
///             while (poses.next_event()) {}
///         }
///         if (ready[1]) { ticks += static_cast<int>(tick.fired()); }
///     }
class wait_set {
  public:
    wait_set() {
        ::outlive_waitset *at = nullptr;
        if (::outlive_waitset_new(&at) == OUTLIVE_OK) {
            at_ = decltype(at_)(at);
        }
    }

    /// Waits for any of `members`, and marks each that is ready. False: the deadline passed first.
    expected<bool> wait(std::span<member> members, deadline until) {
        auto *raw = members.empty() ? nullptr : &members.front().raw_;
        const auto code = ::outlive_waitset_wait(at_.get(), raw, members.size(), until.ns());
        if (code != OUTLIVE_OK && code != OUTLIVE_TIMEOUT) {
            return unexpected(error::last(code));
        }
        return code == OUTLIVE_OK;
    }

    /// As above; bit i of the result says whether argument i is ready; none, that time ran out.
    template <class... Members>
        requires(std::constructible_from<member, Members &> && ...)
    expected<std::bitset<sizeof...(Members)>> wait(deadline until, Members &...members) {
        std::array<member, sizeof...(Members)> list{member(members)...};
        return bits(list, wait(std::span<member>(list), until));
    }

#if defined(__cpp_lib_jthread)
    /// As above, and until `stop` is requested: the wait ends then and reports what is ready, if
    /// anything. For the function of a std::jthread.
    expected<bool> wait(std::stop_token stop, std::span<member> members, deadline until) {
        std::vector<member> list(members.begin(), members.end());
        list.emplace_back(stopped_);
        stopped_.clear();
        const std::stop_callback ending(stop, [this] { stopped_.raise(); });
        auto any = wait(std::span<member>(list), until);
        std::copy_n(list.begin(), members.size(), members.begin());
        if (any && *any) {
            any = std::any_of(members.begin(), members.end(), [](auto &m) { return m.ready(); });
        }
        return any;
    }
    template <class... Members>
        requires(std::constructible_from<member, Members &> && ...)
    expected<std::bitset<sizeof...(Members)>> wait(std::stop_token stop, deadline until,
                                                   Members &...members) {
        std::array<member, sizeof...(Members)> list{member(members)...};
        return bits(list, wait(std::move(stop), std::span<member>(list), until));
    }
#endif

  private:
    template <std::size_t N>
    static expected<std::bitset<N>> bits(const std::array<member, N> &list, expected<bool> any) {
        if (!any) {
            return unexpected(std::move(any).error());
        }
        std::bitset<N> ready;
        for (std::size_t i = 0; i < N; i++) {
            ready[i] = list[i].ready();
        }
        return ready;
    }

#if defined(__cpp_lib_jthread)
    interrupt stopped_; // while this set waits with a stop_token
#endif
    detail::handle<::outlive_waitset, ::outlive_waitset_free> at_;
};

} // namespace outlive::inline OUTLIVE_ABI

#endif
