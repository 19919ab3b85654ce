// Robust locks for std::scoped_lock, std::unique_lock, std::shared_lock and
// std::condition_variable_any.
#ifndef OUTLIVE_LOCK_HPP
#define OUTLIVE_LOCK_HPP

#include <system_error>

#include "node.hpp"

namespace outlive {

namespace detail {
template <class T> expected<type_handle> data_type() {
    if constexpr (std::is_void_v<T>) {
        return type_handle();
    } else {
        return make_type<T>();
    }
}

/// What lock() does where it cannot answer an error: as that of std::mutex.
[[noreturn]] inline void cannot_lock(status code) {
#if defined(__cpp_exceptions)
    throw std::system_error(::outlive_errno(code), std::generic_category(), ::outlive_last_error());
#else
    no_value(error::last(code));
#endif
}

template <class Clock, class Duration>
deadline until(std::chrono::time_point<Clock, Duration> at) {
    return deadline(at - Clock::now());
}
} // namespace detail

/// How a lock was taken.
enum class acquired {
    clean,      ///< in good order
    owner_died, ///< its last owner died inside: repair the data, then mark_consistent
};

/// A mutex whose owner may be killed at any instruction; the next one gets the lock, the data, and
/// the news. Any number of threads may use one handle; the owner is a thread. *TimedLockable*.
///
/// Behind std::scoped_lock and its like, ask owner_died(): if it is true, the data may be half
/// written. Unlocked without mark_consistent(), nobody gets the lock any more.
///
/// lock() throws std::system_error where there is no lock to be had: ENOTRECOVERABLE, or EDEADLK
/// when this thread holds it already. acquire() answers the same as a value.
template <class T = void> class robust_mutex {
  public:
    robust_mutex(robust_mutex &&) noexcept = default;
    robust_mutex &operator=(robust_mutex &&) noexcept = default;

    /// Places it into zeroed shared memory of the caller's, or finds it there. `memory` is aligned
    /// to 64, has at least bytes(), and stays mapped.
    static expected<robust_mutex> place(const node &in, void *memory, std::size_t size) {
        auto type = detail::data_type<T>();
        if (!type) {
            return unexpected(std::move(type).error());
        }
        ::outlive_mutex *at = nullptr;
        const auto code = ::outlive_mutex_place(in.get(), memory, size, type->get(), &at);
        return code == OUTLIVE_OK ? expected<robust_mutex>(robust_mutex(at))
                                  : expected<robust_mutex>(unexpected(error::last(code)));
    }
    /// Bytes it takes in memory of the caller's.
    static std::size_t bytes() {
        auto type = detail::data_type<T>();
        return type ? ::outlive_mutex_bytes(type->get()) : 0;
    }

    void lock() { must(::outlive_mutex_lock(at_.get(), OUTLIVE_FOREVER)); }
    bool try_lock() { return may(::outlive_mutex_lock(at_.get(), OUTLIVE_NO_WAIT)); }
    template <class Rep, class Period> bool try_lock_for(std::chrono::duration<Rep, Period> time) {
        return may(::outlive_mutex_lock(at_.get(), deadline(time).ns()));
    }
    template <class Clock, class Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> at) {
        return may(::outlive_mutex_lock(at_.get(), detail::until(at).ns()));
    }
    void unlock() noexcept { ::outlive_mutex_unlock(at_.get()); }

    /// As lock, with an answer instead of an exception.
    expected<acquired> acquire(deadline until = deadline::never) {
        return taken(::outlive_mutex_lock(at_.get(), until.ns()));
    }

    /// For the thread that holds it: whether its last owner died inside and nothing is repaired.
    [[nodiscard]] bool owner_died() const noexcept { return owner_died_; }
    /// For the thread that holds it: the data is in order again.
    expected<void> mark_consistent() {
        const auto code = ::outlive_mutex_mark_consistent(at_.get());
        owner_died_ = owner_died_ && code != OUTLIVE_OK;
        return detail::done(code);
    }

    /// The protected data, for the thread that holds the lock.
    template <class U = T>
        requires(!std::is_void_v<U>)
    U &operator*() const noexcept {
        return *static_cast<U *>(data_);
    }
    template <class U = T>
        requires(!std::is_void_v<U>)
    U *operator->() const noexcept {
        return static_cast<U *>(data_);
    }
    [[nodiscard]] ::outlive_mutex *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    friend class robust_condition;
    explicit robust_mutex(::outlive_mutex *at) : at_(at), data_(::outlive_mutex_data(at)) {}

    expected<acquired> taken(status code) {
        if (code != OUTLIVE_OK && code != OUTLIVE_OWNER_DIED) {
            return unexpected(error::last(code));
        }
        owner_died_ = code == OUTLIVE_OWNER_DIED;
        return owner_died_ ? acquired::owner_died : acquired::clean;
    }
    void must(status code) {
        if (code != OUTLIVE_OK && code != OUTLIVE_OWNER_DIED) {
            detail::cannot_lock(code);
        }
        owner_died_ = code == OUTLIVE_OWNER_DIED;
    }
    bool may(status code) {
        if (code == OUTLIVE_TIMEOUT || code == OUTLIVE_WOULD_BLOCK || code == OUTLIVE_DEADLOCK) {
            return false;
        }
        must(code);
        return true;
    }

    detail::handle<::outlive_mutex, ::outlive_mutex_free> at_;
    void *data_;
    bool owner_died_ = false; // written and read by the thread that holds the lock
};

/// A reader/writer lock whose holders may be killed at any instruction. A dead reader keeps nobody
/// out; after a dead writer the next writer is told, as with robust_mutex, and readers are refused
/// (EOWNERDEAD) until it has repaired the data. *SharedTimedLockable*; at most 64 threads read.
template <class T = void> class robust_shared_mutex {
  public:
    robust_shared_mutex(robust_shared_mutex &&) noexcept = default;
    robust_shared_mutex &operator=(robust_shared_mutex &&) noexcept = default;

    /// As robust_mutex::place.
    static expected<robust_shared_mutex> place(const node &in, void *memory, std::size_t size) {
        auto type = detail::data_type<T>();
        if (!type) {
            return unexpected(std::move(type).error());
        }
        ::outlive_rwlock *at = nullptr;
        const auto code = ::outlive_rwlock_place(in.get(), memory, size, type->get(), &at);
        return code == OUTLIVE_OK ? expected<robust_shared_mutex>(robust_shared_mutex(at))
                                  : expected<robust_shared_mutex>(unexpected(error::last(code)));
    }
    static std::size_t bytes() {
        auto type = detail::data_type<T>();
        return type ? ::outlive_rwlock_bytes(type->get()) : 0;
    }

    void lock() { must(::outlive_rwlock_write(at_.get(), OUTLIVE_FOREVER)); }
    bool try_lock() { return may(::outlive_rwlock_write(at_.get(), OUTLIVE_NO_WAIT)); }
    template <class Rep, class Period> bool try_lock_for(std::chrono::duration<Rep, Period> time) {
        return may(::outlive_rwlock_write(at_.get(), deadline(time).ns()));
    }
    template <class Clock, class Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> at) {
        return may(::outlive_rwlock_write(at_.get(), detail::until(at).ns()));
    }
    void unlock() noexcept { ::outlive_rwlock_unlock_write(at_.get()); }

    void lock_shared() { may_share(::outlive_rwlock_read(at_.get(), OUTLIVE_FOREVER)); }
    bool try_lock_shared() { return may_share(::outlive_rwlock_read(at_.get(), OUTLIVE_NO_WAIT)); }
    template <class Rep, class Period>
    bool try_lock_shared_for(std::chrono::duration<Rep, Period> time) {
        return may_share(::outlive_rwlock_read(at_.get(), deadline(time).ns()));
    }
    template <class Clock, class Duration>
    bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> at) {
        return may_share(::outlive_rwlock_read(at_.get(), detail::until(at).ns()));
    }
    void unlock_shared() noexcept { ::outlive_rwlock_unlock_read(at_.get()); }

    /// As lock, with an answer instead of an exception.
    expected<acquired> acquire(deadline until = deadline::never) {
        const auto code = ::outlive_rwlock_write(at_.get(), until.ns());
        if (code != OUTLIVE_OK && code != OUTLIVE_OWNER_DIED) {
            return unexpected(error::last(code));
        }
        owner_died_ = code == OUTLIVE_OWNER_DIED;
        return owner_died_ ? acquired::owner_died : acquired::clean;
    }
    /// As lock_shared, with an answer. OUTLIVE_OWNER_DIED: not taken; a writer must repair first.
    expected<void> acquire_shared(deadline until = deadline::never) {
        return detail::done(::outlive_rwlock_read(at_.get(), until.ns()));
    }

    /// For the thread that writes: whether a writer died inside and nothing is repaired.
    [[nodiscard]] bool owner_died() const noexcept { return owner_died_; }
    /// For the thread that writes: the data is in order again.
    expected<void> mark_consistent() {
        const auto code = ::outlive_rwlock_mark_consistent(at_.get());
        owner_died_ = owner_died_ && code != OUTLIVE_OK;
        return detail::done(code);
    }

    /// The protected data, for threads that hold the lock.
    template <class U = T>
        requires(!std::is_void_v<U>)
    U &operator*() const noexcept {
        return *static_cast<U *>(data_);
    }
    template <class U = T>
        requires(!std::is_void_v<U>)
    U *operator->() const noexcept {
        return static_cast<U *>(data_);
    }
    [[nodiscard]] ::outlive_rwlock *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit robust_shared_mutex(::outlive_rwlock *at)
        : at_(at), data_(::outlive_rwlock_data(at)) {}

    void must(status code) {
        if (code != OUTLIVE_OK && code != OUTLIVE_OWNER_DIED) {
            detail::cannot_lock(code);
        }
        owner_died_ = code == OUTLIVE_OWNER_DIED;
    }
    static bool is_no(status code) {
        return code == OUTLIVE_TIMEOUT || code == OUTLIVE_WOULD_BLOCK || code == OUTLIVE_DEADLOCK;
    }
    bool may(status code) {
        if (is_no(code)) {
            return false;
        }
        must(code);
        return true;
    }
    static bool may_share(status code) {
        if (code != OUTLIVE_OK && code != OUTLIVE_TIMEOUT && code != OUTLIVE_WOULD_BLOCK) {
            detail::cannot_lock(code);
        }
        return code == OUTLIVE_OK;
    }

    detail::handle<::outlive_rwlock, ::outlive_rwlock_free> at_;
    void *data_;
    bool owner_died_ = false; // written and read by the thread that writes
};

template <class T> expected<robust_mutex<T>> node::mutex(const char *name) const {
    auto type = detail::data_type<T>();
    if (!type) {
        return unexpected(std::move(type).error());
    }
    ::outlive_mutex *at = nullptr;
    const auto code = ::outlive_mutex_open(at_.get(), name, type->get(), nullptr, &at);
    if (code != OUTLIVE_OK) {
        return unexpected(error::last(code));
    }
    return robust_mutex<T>(at);
}
template <class T> expected<robust_mutex<T>> node::mutex(const char *name, const T &first) const {
    auto type = detail::data_type<T>();
    if (!type) {
        return unexpected(std::move(type).error());
    }
    ::outlive_mutex *at = nullptr;
    const auto code = ::outlive_mutex_open(at_.get(), name, type->get(), &first, &at);
    if (code != OUTLIVE_OK) {
        return unexpected(error::last(code));
    }
    return robust_mutex<T>(at);
}
template <class T> expected<robust_shared_mutex<T>> node::shared_mutex(const char *name) const {
    auto type = detail::data_type<T>();
    if (!type) {
        return unexpected(std::move(type).error());
    }
    ::outlive_rwlock *at = nullptr;
    const auto code = ::outlive_rwlock_open(at_.get(), name, type->get(), nullptr, &at);
    if (code != OUTLIVE_OK) {
        return unexpected(error::last(code));
    }
    return robust_shared_mutex<T>(at);
}
template <class T>
expected<robust_shared_mutex<T>> node::shared_mutex(const char *name, const T &first) const {
    auto type = detail::data_type<T>();
    if (!type) {
        return unexpected(std::move(type).error());
    }
    ::outlive_rwlock *at = nullptr;
    const auto code = ::outlive_rwlock_open(at_.get(), name, type->get(), &first, &at);
    if (code != OUTLIVE_OK) {
        return unexpected(error::last(code));
    }
    return robust_shared_mutex<T>(at);
}

} // namespace outlive

#endif
