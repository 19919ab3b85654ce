// Condition variables, semaphores and sets between processes.
#ifndef OUTLIVE_SYNC_HPP
#define OUTLIVE_SYNC_HPP

#include <atomic>
#include <vector>

#include "lock.hpp"

namespace outlive::inline OUTLIVE_ABI {

/// Waiting for a change of data under a robust_mutex, between processes as between threads. With
/// std::condition_variable_any only threads of one process can wake each other.
///
/// Killed waiters and notifiers leave nobody waiting. It cannot tell whether anyone is left to
/// notify it: give a deadline, or watch the node.
///
/// Example:
///
///     auto goal = node.mutex<pose>("/robot/goal").value();
///     auto changed = node.condition("/robot/goal-changed").value();
///     std::unique_lock held(goal);
///     if (changed.wait(goal, 10s, [&] { return goal->x != 0.0; }).value()) {
///         drive(*goal);
///     }
class robust_condition {
  public:
    robust_condition() = default; ///< empty until one is assigned
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// Releases the mutex, which this thread holds, waits for a notification, and takes it again,
    /// however long that takes; returns whether a notification came. Check the data again: wake-ups
    /// may be spurious.
    ///
    /// OUTLIVE_OWNER_DIED: it is held, and somebody died inside meanwhile: repair the data and
    /// mark_consistent(). OUTLIVE_UNSUPPORTED, of one with priority inheritance, and
    /// OUTLIVE_INVALID_ARGUMENT, of an empty handle: the mutex stays as it was, held or not. Any
    /// other error is one of robust_mutex::acquire, and it is not held.
    template <class T> expected<bool> wait(robust_mutex<T> &mutex, deadline until) {
        bool notified = false;
        const auto code =
            ::outlive_condvar_wait(at_.get(), mutex.get(), until.ns(), &notified);
        const auto taken = mutex.holding_.taken(code);
        if (!taken) {
            return unexpected(taken.error());
        }
        if (*taken == acquired::owner_died) {
            return unexpected(error(OUTLIVE_OWNER_DIED, "waiting for a change: the last owner died "
                                                        "inside; repair and mark_consistent()"));
        }
        return notified;
    }
    /// Waits until `ready()`, which is called with the mutex held; false when the deadline passed.
    template <class T, class Ready>
    expected<bool> wait(robust_mutex<T> &mutex, deadline until, Ready &&ready) {
        while (!ready()) {
            if (until.ns() != OUTLIVE_FOREVER && ::outlive_now_ns() >= until.ns()) {
                return false;
            }
            if (auto woken = wait(mutex, until); !woken) {
                return woken;
            }
        }
        return true;
    }
    void notify_one() noexcept { ::outlive_condvar_notify(at_.get(), false); }
    void notify_all() noexcept { ::outlive_condvar_notify(at_.get(), true); }

  private:
    friend class node;
    explicit robust_condition(::outlive_condvar *at) : at_(at) {}
    detail::handle<::outlive_condvar, ::outlive_condvar_free> at_;
};

namespace detail {
/// Any thread may use a semaphore.
using semaphore_handle =
    lender<::outlive_semaphore, &::outlive_semaphore_free, std::atomic<std::size_t>>;
} // namespace detail

/// A permit of a semaphore, given back by its destructor, in the thread that took it. The semaphore
/// stays open until it is gone.
///
/// Example:
///
///     auto grippers = node.semaphore("/arm/grippers", 2).value();
///     outlive::permit gripper = grippers.acquire(1s).value();
///     std::cout << "gripper " << gripper.index() << (gripper.owner_died() ? ": home it\n" : "\n");
class permit {
  public:
    permit() noexcept : raw_{} {} ///< none
    explicit operator bool() const noexcept { return raw_.held != 0; }
    permit(permit &&other) noexcept : of_(std::move(other.of_)), raw_(other.raw_) {
        other.raw_.held = 0;
    }
    permit &operator=(permit &&other) noexcept {
        if (this != &other) {
            ::outlive_permit_release(&raw_);
            of_ = std::move(other.of_);
            raw_ = other.raw_;
            other.raw_.held = 0;
        }
        return *this;
    }
    ~permit() { ::outlive_permit_release(&raw_); }

    /// Which of the permits it is, from 0: for instance the number of a device.
    [[nodiscard]] std::size_t index() const noexcept { return raw_.index; }
    /// Whether the previous holder died with it: what it guards may be inconsistent.
    [[nodiscard]] bool owner_died() const noexcept { return raw_.owner_died; }

  private:
    friend class robust_semaphore;
    permit(const ::outlive_permit &raw, detail::semaphore_handle of)
        : of_(std::move(of)), raw_(raw) {}
    detail::semaphore_handle of_;
    ::outlive_permit raw_;
};

/// A counting semaphore; a killed holder's permit comes back.
///
/// Example:
///
///     auto grippers = node.semaphore("/arm/grippers", 2).value();
///     if (auto gripper = grippers.acquire(outlive::deadline::now)) {
///         std::cout << grippers.available() << " left\n";
///     } // given back here
class robust_semaphore {
  public:
    robust_semaphore() = default; ///< empty until one is assigned
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// Takes a permit: else OUTLIVE_WOULD_BLOCK, OUTLIVE_TIMEOUT, or OUTLIVE_DEADLOCK when this
    /// thread holds them all.
    expected<permit> acquire(deadline until = deadline::never) {
        ::outlive_permit raw;
        const auto code = ::outlive_semaphore_acquire(at_.get(), until.ns(), &raw);
        if (code != OUTLIVE_OK) {
            return unexpected(error::last(code));
        }
        return permit(raw, at_.share());
    }
    /// How many are free right now; others may take them at once.
    [[nodiscard]] std::size_t available() const noexcept {
        return ::outlive_semaphore_available(at_.get());
    }

  private:
    friend class node;
    explicit robust_semaphore(::outlive_semaphore *at) : at_(at) {}
    detail::semaphore_handle at_;
};

/// A set of numbers, not 0, that any number of threads and processes change without a lock.
///
/// Example:
///
///     auto seen = node.lockless_set("/map/seen", 1024).value();
///     if (seen.insert(42).value()) {
///         std::cout << "42 is new, " << seen.ids().size() << " in all\n";
///     }
class lockless_set {
  public:
    lockless_set() = default; ///< empty until one is assigned
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// Adds `id`; false if it was a member already. OUTLIVE_NO_SPACE: the set is full.
    expected<bool> insert(std::uint64_t id) {
        bool added = false;
        if (auto code = ::outlive_set_insert(at_.get(), id, &added); code != OUTLIVE_OK) {
            return unexpected(error::last(code));
        }
        return added;
    }
    /// Removes `id`; false if it was not a member.
    bool remove(std::uint64_t id) noexcept { return ::outlive_set_remove(at_.get(), id); }
    [[nodiscard]] bool contains(std::uint64_t id) const noexcept {
        return ::outlive_set_contains(at_.get(), id);
    }
    /// All members in ascending order; ids changed meanwhile may or may not be included.
    [[nodiscard]] std::vector<std::uint64_t> ids() const {
        std::vector<std::uint64_t> found(::outlive_set_ids(at_.get(), nullptr, 0));
        const auto count = ::outlive_set_ids(at_.get(), found.data(), found.size());
        found.resize(std::min(count, found.size()));
        return found;
    }

  private:
    friend class node;
    explicit lockless_set(::outlive_set *at) : at_(at) {}
    detail::handle<::outlive_set, ::outlive_set_free> at_;
};

inline expected<robust_condition> node::condition(std::string_view name) const {
    return opened<robust_condition, ::outlive_condvar>(name, [&](const char *text, auto **out) {
        return ::outlive_condvar_open(at_.get(), text, out);
    });
}
inline expected<robust_semaphore> node::semaphore(std::string_view name, std::size_t permits) const {
    return opened<robust_semaphore, ::outlive_semaphore>(name, [&](const char *text, auto **out) {
        return ::outlive_semaphore_open(at_.get(), text, permits, out);
    });
}
inline expected<outlive::lockless_set> node::lockless_set(std::string_view name,
                                                          std::size_t capacity) const {
    return opened<outlive::lockless_set, ::outlive_set>(name, [&](const char *text, auto **out) {
        return ::outlive_set_open(at_.get(), text, capacity, out);
    });
}

} // namespace outlive::inline OUTLIVE_ABI

#endif
