// Waiting for several things at once.
#ifndef OUTLIVE_WAIT_HPP
#define OUTLIVE_WAIT_HPP

#include <array>
#include <bitset>
#include <vector>

#include "queue.hpp"
#include "service.hpp"

namespace outlive {

/// Ready at one instant, or every so often.
class timer {
  public:
    /// Ready once, so long from now.
    static timer after(std::chrono::nanoseconds delay) { return timer(delay, 0); }
    /// Ready every so often, the first time one period from now.
    static timer every(std::chrono::nanoseconds period) {
        return timer(period, static_cast<std::uint64_t>(period.count()));
    }
    /// How often it became due since the last call; until it is asked, it stays ready.
    std::uint64_t fired() noexcept { return ::outlive_timer_fired(at_.get()); }
    [[nodiscard]] ::outlive_timer *get() const noexcept { return at_.get(); }

  private:
    timer(std::chrono::nanoseconds first, std::uint64_t period_ns) {
        ::outlive_timer *at = nullptr;
        const auto first_ns = ::outlive_now_ns() + static_cast<std::uint64_t>(first.count());
        if (::outlive_timer_new(first_ns, period_ns, &at) == OUTLIVE_OK) {
            at_ = decltype(at_)(at);
        }
    }
    detail::handle<::outlive_timer, ::outlive_timer_free> at_;
};

/// A file descriptor that is not outlive's.
struct descriptor {
    int fd;
    bool writable = false; ///< wait until it can be written, not read
};

/// What a wait is for; made from a subscriber, consumer, server, client, watch, timer or descriptor,
/// which must stay where it is during the wait.
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

/// Waits until one of several things is ready. The list is given with each wait, as to poll.
class wait_set {
  public:
    wait_set() {
        ::outlive_waitset *at = nullptr;
        if (::outlive_waitset_new(&at) == OUTLIVE_OK) {
            at_ = decltype(at_)(at);
        }
    }

    /// Waits for any of `members`, each of which says then whether it is ready. False: the deadline
    /// passed first.
    expected<bool> wait(std::span<member> members, deadline until) {
        auto *raw = members.empty() ? nullptr : &members.front().raw_;
        const auto code = ::outlive_waitset_wait(at_.get(), raw, members.size(), until.ns());
        if (code != OUTLIVE_OK && code != OUTLIVE_TIMEOUT) {
            return unexpected(error::last(code));
        }
        return code == OUTLIVE_OK;
    }

    /// As above; bit i of the answer says whether argument i is ready, no bit that time was up.
    template <class... Members>
        requires(std::constructible_from<member, Members &> && ...)
    expected<std::bitset<sizeof...(Members)>> wait(deadline until, Members &...members) {
        std::array<member, sizeof...(Members)> list{member(members)...};
        std::bitset<sizeof...(Members)> ready;
        if (auto any = wait(std::span<member>(list), until); !any) {
            return unexpected(std::move(any).error());
        }
        for (std::size_t i = 0; i < list.size(); i++) {
            ready[i] = list[i].ready();
        }
        return ready;
    }

  private:
    detail::handle<::outlive_waitset, ::outlive_waitset_free> at_;
};

} // namespace outlive

#endif
