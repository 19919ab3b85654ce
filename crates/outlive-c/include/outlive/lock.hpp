// Robust locks for std::scoped_lock, std::unique_lock, std::shared_lock and
// std::condition_variable_any.
#ifndef OUTLIVE_LOCK_HPP
#define OUTLIVE_LOCK_HPP

#include <functional>
#include <system_error>

#include "node.hpp"
#include "unwinding.hpp"

namespace outlive::inline OUTLIVE_ABI {

namespace detail {
template <class T> expected<type_handle> data_type() {
    if constexpr (std::is_void_v<T>) {
        return type_handle();
    } else {
        static_assert(payload<T>::is_fixed,
                      "outlive: a lock protects one value of a fixed size: no list, no header with "
                      "elements, nothing that is packed as MessagePack or Protocol Buffers");
        return make_type<T>();
    }
}

inline void keep_data(void *) noexcept {}
/// Where a lock's data lies, which goes with the lock: none once it was moved from.
using lock_data = handle<void, &keep_data>;
template <class T> T *shown(const lock_data &data) {
    if (!data) [[unlikely]] {
        nothing("the data of a lock that is none or was moved from");
    }
    return static_cast<T *>(data.get());
}

/// What lock() does where it cannot answer an error: as that of std::mutex.
[[noreturn]] inline void cannot_lock(const error &why) {
#if defined(__cpp_exceptions)
    throw std::system_error(::outlive_errno(why.code()), std::generic_category(), why.detail());
#else
    no_value(access_text(why));
#endif
}
} // namespace detail

namespace detail {
template <class T> struct repairs {
    using function = std::function<void(T &)>;
};
template <> struct repairs<void> {
    using function = std::function<void()>;
};

/// What lock() does where the last owner died inside: repairs, or lets the data go as it is.
template <class T> class repairing {
  public:
    using function = typename repairs<T>::function;
    /// For the holder of `raw`, with its data in disorder. What it throws, it throws on.
    ///
    /// False: it is let go, for try_lock(), which says no first where nothing repairs, and throws the
    /// next time. std::lock holds other locks while it tries one; told no, it lets go of those, not
    /// by an exception, by which they would be torn, too, and then finds out by lock().
    template <class Raw>
    bool run(Raw *raw, [[maybe_unused]] void *data, status (*mark)(const Raw *),
             status (*abandon)(const Raw *), bool tries) {
        if (!repair) {
            const bool says_no = tries && !said_no;
            said_no = says_no;
            abandon(raw);
            if (says_no) {
                return false;
            }
            cannot_lock(error(OUTLIVE_OWNER_DIED,
                              "locking: its last owner died inside, and nothing is said to repair "
                              "the data: acquire() it and mark_consistent(), or on_owner_died()"));
        }
        struct leaving { // by an exception
            Raw *raw;
            status (*abandon)(const Raw *);
            ~leaving() {
                if (raw != nullptr) {
                    abandon(raw);
                }
            }
        } guard{raw, abandon};
        if constexpr (std::is_void_v<T>) {
            repair();
        } else {
            repair(*static_cast<T *>(data));
        }
        if (const auto code = mark(raw); code != OUTLIVE_OK) {
            cannot_lock(error::last(code));
        }
        guard.raw = nullptr;
        return true;
    }

    function repair;
    bool said_no = false; // written and read by the thread that holds the lock
};
} // namespace detail

/// How a lock was taken.
///
/// Example:
///
///     auto goal = node.mutex<pose>("/robot/goal").value();
///     if (goal.acquire(10s).value() == outlive::acquired::owner_died) {
///         *goal = {}; // repair
///         goal.mark_consistent().value();
///     }
///     goal->x += 1.0;
///     goal.unlock();
enum class acquired {
    clean,      ///< cleanly
    owner_died, ///< its last owner died inside: repair the data, then mark_consistent
};

namespace detail {
/// Not taken: what those that only try return as false.
inline bool is_no(status code) noexcept {
    return code == OUTLIVE_TIMEOUT || code == OUTLIVE_WOULD_BLOCK || code == OUTLIVE_DEADLOCK;
}

/// What the thread that holds a lock knows of it, and what repairs its data. `Mark` and `Abandon`
/// are the calls of that kind of lock.
template <class T, auto Mark, auto Abandon> class holding {
  public:
    using function = typename repairing<T>::function;
    void repair_by(function repair) { repairing_.repair = std::move(repair); }

    /// How taking it ended.
    expected<acquired> taken(status code) {
        if (code != OUTLIVE_OK && code != OUTLIVE_OWNER_DIED) {
            return unexpected(error::last(code));
        }
        owner_died_ = code == OUTLIVE_OWNER_DIED;
        exceptions_ = exceptions_in_flight();
        return owner_died_ ? acquired::owner_died : acquired::clean;
    }
    /// As taken, for calls that return nothing: repairs, or throws. False: see repairing::run.
    template <class Raw> bool must(Raw *raw, void *data, status code, bool tries) {
        if (code != OUTLIVE_OK) [[unlikely]] {
            if (code != OUTLIVE_OWNER_DIED) {
                cannot_lock(error::last(code));
            }
            if (!repairing_.run(raw, data, Mark, Abandon, tries)) {
                return false;
            }
        }
        owner_died_ = false;
        exceptions_ = exceptions_in_flight();
        return true;
    }

    /// Whether an exception leaves the scope that took it.
    [[nodiscard]] bool is_torn() const noexcept { return exceptions_in_flight() > exceptions_; }
    [[nodiscard]] bool owner_died() const noexcept { return owner_died_; }
    template <class Raw> expected<void> mark_consistent(Raw *raw) {
        const auto code = Mark(raw);
        owner_died_ = owner_died_ && code != OUTLIVE_OK;
        return done(code);
    }

  private:
    bool owner_died_ = false;
    unsigned exceptions_ = 0; // in flight when it was taken
    repairing<T> repairing_;
};
} // namespace detail

/// A mutex whose owner may be killed at any instruction; the next one gets the lock, the data, and
/// the news. Any number of threads may use one handle; the owner is a thread. *TimedLockable*.
///
/// Data that an owner left inconsistent, because its process or thread died inside or an exception
/// left its scope, must be repaired first. acquire() returns it with owner_died and expects
/// mark_consistent(); if it is unlocked without, nobody gets the lock until node::remove_lock() has
/// removed it. lock(), behind
/// std::scoped_lock and the like, cannot return that: it calls the function given to
/// on_owner_died() to repair the data. Without one it throws EOWNERDEAD and leaves lock and data
/// to the next one who can repair them; try_lock() returns false the first time and throws the next.
///
/// A scope that takes several, std::scoped_lock both(a, b), throws what taking one of them throws,
/// and then holds none. A lock that was taken before that scope, in one around it, is left by that
/// exception, so its data counts as inconsistent, too; so does that of those which std::lock has taken
/// already when a repair throws, or a lock is not recoverable. Give each a repair, or acquire() it.
///
/// pthread_exit and pthread_cancel run destructors without an exception that these could see: what
/// they leave is unlocked as in good order, unless `catch (...)` calls abandon() and rethrows.
///
/// lock() throws std::system_error if it cannot take the lock: EOWNERDEAD, ENOTRECOVERABLE, or
/// EDEADLK when this thread holds it already; try_lock() and its like return false for the last.
///
/// What node::pi_mutex opens is one of these, with priority inheritance; robust_condition refuses it
/// (OUTLIVE_UNSUPPORTED), and only the handle that took it can release it.
///
/// Example:
///
///     auto goal = node.mutex<pose>("/robot/goal").value();
///     goal.on_owner_died([](pose &left) { left = {}; }); // else lock() throws EOWNERDEAD
///     {
///         std::scoped_lock held(goal);
///         goal->x += 1.0;
///     }
template <class T = void> class robust_mutex {
  public:
    robust_mutex() = default; ///< empty until one is assigned
    robust_mutex(robust_mutex &&) noexcept = default;
    robust_mutex &operator=(robust_mutex &&) noexcept = default;
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// Lets lock() and try_lock() repair inconsistent data, with the lock held, by `repair(data)`, or
    /// `repair()` if there is no data. The lock is marked consistent when it returns; if it throws,
    /// so does lock(), and the next one repairs. Call it before other threads use the handle.
    void on_owner_died(typename detail::repairing<T>::function repair) {
        holding_.repair_by(std::move(repair));
    }

    /// Places it in zeroed shared memory of your own, or finds it there. `memory` is aligned
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
    /// Bytes it takes in memory of your own.
    static std::size_t bytes() {
        auto type = detail::data_type<T>();
        return type ? ::outlive_mutex_bytes(type->get()) : 0;
    }

    void lock() { must(::outlive_mutex_lock(at_.get(), OUTLIVE_FOREVER)); }
    bool try_lock() { return may(::outlive_mutex_lock(at_.get(), OUTLIVE_NO_WAIT), true); }
    template <class Rep, class Period> bool try_lock_for(std::chrono::duration<Rep, Period> time) {
        return may(::outlive_mutex_lock(at_.get(), deadline(time).ns()));
    }
    template <class Clock, class Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> at) {
        return may(::outlive_mutex_lock(at_.get(), deadline(at).ns()));
    }
    /// Releases it. If an exception leaves the scope that took it, the data counts as inconsistent.
    void unlock() noexcept {
        if (holding_.is_torn()) [[unlikely]] {
            ::outlive_mutex_abandon(at_.get());
        } else {
            ::outlive_mutex_unlock(at_.get());
        }
    }
    /// Releases it with its data inconsistent: the next one to lock gets owner_died.
    expected<void> abandon() { return detail::done(::outlive_mutex_abandon(at_.get())); }

    /// As lock, with a result instead of an exception.
    expected<acquired> acquire(deadline until = deadline::never) {
        return holding_.taken(::outlive_mutex_lock(at_.get(), until.ns()));
    }

    /// For the thread that holds it: whether its last owner died inside and the data is not repaired.
    [[nodiscard]] bool owner_died() const noexcept { return holding_.owner_died(); }
    /// For the thread that holds it: declares the data consistent again.
    /// Data that is consistent already stays so.
    expected<void> mark_consistent() {
        return holding_.mark_consistent(at_.get());
    }

    /// The protected data, for the thread that holds the lock.
    template <class U = T>
        requires(!std::is_void_v<U>)
    U &operator*() const & {
        return *detail::shown<U>(data_);
    }
    // The data goes with the handle.
    template <class U = T>
        requires(!std::is_void_v<U>)
    U &operator*() const && = delete;
    template <class U = T>
        requires(!std::is_void_v<U>)
    U *operator->() const {
        return detail::shown<U>(data_);
    }
    [[nodiscard]] ::outlive_mutex *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    friend class robust_condition;
    explicit robust_mutex(::outlive_mutex *at) : at_(at), data_(::outlive_mutex_data(at)) {}

    bool must(status code, bool tries = false) {
        return holding_.must(at_.get(), data_.get(), code, tries);
    }
    bool may(status code, bool tries = false) { return !detail::is_no(code) && must(code, tries); }

    detail::handle<::outlive_mutex, ::outlive_mutex_free> at_;
    detail::lock_data data_;
    // Written and read by the thread that holds the lock.
    detail::holding<T, ::outlive_mutex_mark_consistent, ::outlive_mutex_abandon> holding_;
};

/// A reader/writer lock whose holders may be killed at any instruction. A dead reader keeps nobody
/// out; after a dead writer the next writer gets owner_died, or repairs, as with robust_mutex, and
/// readers are refused (EOWNERDEAD) until the data is repaired. A thread that reads or writes
/// already gets EDEADLK from lock() and lock_shared(), and false from all that try.
/// *SharedTimedLockable*; at most 64 threads read.
///
/// Example:
///
///     auto origin = node.shared_mutex<pose>("/map/origin").value();
///     {
///         std::unique_lock writing(origin);
///         *origin = {1.0, 2.0, 0.0};
///     }
///     std::shared_lock reading(origin);
///     drive(*origin);
template <class T = void> class robust_shared_mutex {
  public:
    robust_shared_mutex() = default; ///< empty until one is assigned
    robust_shared_mutex(robust_shared_mutex &&) noexcept = default;
    robust_shared_mutex &operator=(robust_shared_mutex &&) noexcept = default;
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// As robust_mutex::on_owner_died; called by writers.
    void on_owner_died(typename detail::repairing<T>::function repair) {
        holding_.repair_by(std::move(repair));
    }

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
    bool try_lock() { return may(::outlive_rwlock_write(at_.get(), OUTLIVE_NO_WAIT), true); }
    template <class Rep, class Period> bool try_lock_for(std::chrono::duration<Rep, Period> time) {
        return may(::outlive_rwlock_write(at_.get(), deadline(time).ns()));
    }
    template <class Clock, class Duration>
    bool try_lock_until(std::chrono::time_point<Clock, Duration> at) {
        return may(::outlive_rwlock_write(at_.get(), deadline(at).ns()));
    }
    /// As robust_mutex::unlock.
    void unlock() noexcept {
        if (holding_.is_torn()) [[unlikely]] {
            ::outlive_rwlock_abandon(at_.get());
        } else {
            ::outlive_rwlock_unlock_write(at_.get());
        }
    }
    /// Ends writing with the data inconsistent.
    expected<void> abandon() { return detail::done(::outlive_rwlock_abandon(at_.get())); }

    void lock_shared() {
        if (const auto code = ::outlive_rwlock_read(at_.get(), OUTLIVE_FOREVER); code != OUTLIVE_OK) {
            detail::cannot_lock(error::last(code));
        }
    }
    bool try_lock_shared() { return may_share(::outlive_rwlock_read(at_.get(), OUTLIVE_NO_WAIT)); }
    template <class Rep, class Period>
    bool try_lock_shared_for(std::chrono::duration<Rep, Period> time) {
        return may_share(::outlive_rwlock_read(at_.get(), deadline(time).ns()));
    }
    template <class Clock, class Duration>
    bool try_lock_shared_until(std::chrono::time_point<Clock, Duration> at) {
        return may_share(::outlive_rwlock_read(at_.get(), deadline(at).ns()));
    }
    void unlock_shared() noexcept { ::outlive_rwlock_unlock_read(at_.get()); }

    /// As lock, with a result instead of an exception.
    expected<acquired> acquire(deadline until = deadline::never) {
        return holding_.taken(::outlive_rwlock_write(at_.get(), until.ns()));
    }
    /// As lock_shared, with a result. OUTLIVE_OWNER_DIED: not taken; a writer must repair first.
    expected<void> acquire_shared(deadline until = deadline::never) {
        return detail::waited(::outlive_rwlock_read(at_.get(), until.ns()));
    }

    /// For the thread that writes: whether a writer died inside and the data is not repaired.
    [[nodiscard]] bool owner_died() const noexcept { return holding_.owner_died(); }
    /// For the thread that writes: declares the data consistent again.
    /// Data that is consistent already stays so.
    expected<void> mark_consistent() {
        return holding_.mark_consistent(at_.get());
    }

    /// The protected data, for threads that hold the lock.
    template <class U = T>
        requires(!std::is_void_v<U>)
    U &operator*() const & {
        return *detail::shown<U>(data_);
    }
    // The data goes with the handle.
    template <class U = T>
        requires(!std::is_void_v<U>)
    U &operator*() const && = delete;
    template <class U = T>
        requires(!std::is_void_v<U>)
    U *operator->() const {
        return detail::shown<U>(data_);
    }
    [[nodiscard]] ::outlive_rwlock *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit robust_shared_mutex(::outlive_rwlock *at)
        : at_(at), data_(::outlive_rwlock_data(at)) {}

    bool must(status code, bool tries = false) {
        return holding_.must(at_.get(), data_.get(), code, tries);
    }
    bool may(status code, bool tries = false) { return !detail::is_no(code) && must(code, tries); }
    static bool may_share(status code) {
        if (code != OUTLIVE_OK && !detail::is_no(code)) {
            detail::cannot_lock(error::last(code));
        }
        return code == OUTLIVE_OK;
    }

    detail::handle<::outlive_rwlock, ::outlive_rwlock_free> at_;
    detail::lock_data data_;
    // Written and read by the thread that writes.
    detail::holding<T, ::outlive_rwlock_mark_consistent, ::outlive_rwlock_abandon> holding_;
};

template <class Handle, class Raw, class T, class Open>
expected<Handle> node::lock(std::string_view name, const void *first, Open open) const {
    const auto type = detail::data_type<T>();
    if (!type) {
        return unexpected(type.error());
    }
    return opened<Handle, Raw>(name, [&](const char *text, Raw **out) {
        return open(at_.get(), text, type->get(), first, out);
    });
}
template <class T> expected<robust_mutex<T>> node::mutex(std::string_view name) const {
    return lock<robust_mutex<T>, ::outlive_mutex, T>(name, nullptr, &::outlive_mutex_open);
}
template <class T>
expected<robust_mutex<T>> node::mutex(std::string_view name, const T &first) const {
    return lock<robust_mutex<T>, ::outlive_mutex, T>(name, &first, &::outlive_mutex_open);
}
template <class T> expected<robust_mutex<T>> node::pi_mutex(std::string_view name) const {
    return lock<robust_mutex<T>, ::outlive_mutex, T>(name, nullptr, &::outlive_pi_mutex_open);
}
template <class T>
expected<robust_mutex<T>> node::pi_mutex(std::string_view name, const T &first) const {
    return lock<robust_mutex<T>, ::outlive_mutex, T>(name, &first, &::outlive_pi_mutex_open);
}
template <class T> expected<robust_shared_mutex<T>> node::shared_mutex(std::string_view name) const {
    return lock<robust_shared_mutex<T>, ::outlive_rwlock, T>(name, nullptr, &::outlive_rwlock_open);
}
template <class T>
expected<robust_shared_mutex<T>> node::shared_mutex(std::string_view name, const T &first) const {
    return lock<robust_shared_mutex<T>, ::outlive_rwlock, T>(name, &first, &::outlive_rwlock_open);
}

} // namespace outlive::inline OUTLIVE_ABI

#endif
