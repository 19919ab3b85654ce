// Results: a value, or the error that says why there is none.
#ifndef OUTLIVE_EXPECTED_HPP
#define OUTLIVE_EXPECTED_HPP

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "../outlive.h"

namespace outlive {

/// Why a call failed: OUTLIVE_TIMEOUT, OUTLIVE_OWNER_DIED, ...
using status = ::outlive_status;

/// An error: its status, and what failed, on which object, what to do next.
class error {
  public:
    explicit error(status code) : code_(code) {}
    error(status code, std::string detail)
        : code_(code), detail_(std::make_shared<const std::string>(std::move(detail))) {}

    /// The error of the call that just failed in this thread.
    static error last(status code) {
        switch (code) {
        case OUTLIVE_WOULD_BLOCK:
        case OUTLIVE_TIMEOUT:
        case OUTLIVE_EVENT:
            return error(code); // answers, not faults: nothing is told, nothing is allocated
        default:
            return error(code, ::outlive_last_error());
        }
    }

    [[nodiscard]] status code() const noexcept { return code_; }
    /// A short phrase for the status.
    [[nodiscard]] const char *what() const noexcept { return ::outlive_strerror(code_); }
    /// Details; empty where nothing went wrong: nothing there, deadline passed, an event.
    [[nodiscard]] const std::string &detail() const noexcept {
        static const std::string nothing;
        return detail_ ? *detail_ : nothing;
    }

    friend bool operator==(const error &e, status code) noexcept { return e.code_ == code; }

  private:
    status code_;
    std::shared_ptr<const std::string> detail_; // none: moving it costs nothing
};

/// For constructing an expected without a value.
class unexpected {
  public:
    explicit unexpected(outlive::error e) : error_(std::move(e)) {}
    explicit unexpected(status code) : error_(code) {}
    [[nodiscard]] outlive::error &error() noexcept { return error_; }

  private:
    outlive::error error_;
};

namespace detail {
[[noreturn]] inline void no_value(const error &e) {
    std::fprintf(stderr, "outlive: value() of an error: %s: %s\n", e.what(), e.detail().c_str());
    std::abort();
}
} // namespace detail

/// A value or an error. `value()` of an error ends the program and says why: ask first where an
/// error is to be handled.
template <class T> class [[nodiscard]] expected {
    using stored = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  public:
    using value_type = T;
    using error_type = outlive::error;

    expected()
        requires std::is_void_v<T>
        : state_(std::in_place_index<0>) {}
    template <class U = stored>
        requires(!std::is_void_v<T> && std::is_constructible_v<stored, U> &&
                 !std::is_same_v<std::remove_cvref_t<U>, expected> &&
                 !std::is_same_v<std::remove_cvref_t<U>, unexpected>)
    expected(U &&value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}
    template <class... Args>
    explicit expected(std::in_place_t, Args &&...args)
        : state_(std::in_place_index<0>, std::forward<Args>(args)...) {}
    expected(unexpected e) : state_(std::in_place_index<1>, std::move(e.error())) {}

    expected &operator=(unexpected e) {
        state_.template emplace<1>(std::move(e.error()));
        return *this;
    }

    [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    stored &value() & { return check(), *std::get_if<0>(&state_); }
    const stored &value() const & { return check(), *std::get_if<0>(&state_); }
    stored &&value() && { return check(), std::move(*std::get_if<0>(&state_)); }
    stored &operator*() & { return value(); }
    const stored &operator*() const & { return value(); }
    stored &&operator*() && { return std::move(*this).value(); }
    stored *operator->() { return &value(); }
    const stored *operator->() const { return &value(); }

    [[nodiscard]] const outlive::error &error() const & { return *std::get_if<1>(&state_); }
    [[nodiscard]] outlive::error &&error() && { return std::move(*std::get_if<1>(&state_)); }

    template <class U> stored value_or(U &&other) && {
        return has_value() ? std::move(*this).value() : static_cast<stored>(std::forward<U>(other));
    }

    /// `f` of the value, which gives an expected.
    template <class F> auto and_then(F &&f) && {
        using result = decltype(call(std::forward<F>(f)));
        return has_value() ? call(std::forward<F>(f)) : result(unexpected(std::move(*this).error()));
    }
    /// `f` of the value, in an expected.
    template <class F> auto transform(F &&f) && {
        using value = decltype(call(std::forward<F>(f)));
        if (!has_value()) {
            return expected<value>(unexpected(std::move(*this).error()));
        }
        if constexpr (std::is_void_v<value>) {
            call(std::forward<F>(f));
            return expected<void>();
        } else {
            return expected<value>(call(std::forward<F>(f)));
        }
    }
    template <class F> auto map(F &&f) && { return std::move(*this).transform(std::forward<F>(f)); }
    /// This, or `f` of the error, which gives an expected of the same kind.
    template <class F> expected or_else(F &&f) && {
        return has_value() ? std::move(*this) : std::invoke(std::forward<F>(f), error());
    }

  private:
    void check() const {
        if (!has_value()) {
            detail::no_value(error());
        }
    }
    template <class F> decltype(auto) call(F &&f) {
        if constexpr (std::is_void_v<T>) {
            return std::invoke(std::forward<F>(f));
        } else {
            return std::invoke(std::forward<F>(f), std::move(*std::get_if<0>(&state_)));
        }
    }

    std::variant<stored, outlive::error> state_;
};

namespace detail {
/// Nothing, or the error of the call that answered `code`.
inline expected<void> done(status code) {
    if (code == OUTLIVE_OK) {
        return {};
    }
    return unexpected(error::last(code));
}

/// A handle of outlive.h that is freed once.
template <class H, auto Free> class handle {
  public:
    handle() = default;
    explicit handle(H *at) noexcept : at_(at) {}
    handle(handle &&other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
    handle &operator=(handle &&other) noexcept {
        if (this != &other) {
            Free(std::exchange(at_, std::exchange(other.at_, nullptr)));
        }
        return *this;
    }
    ~handle() { Free(at_); }

    [[nodiscard]] H *get() const noexcept { return at_; }
    [[nodiscard]] H *release() noexcept { return std::exchange(at_, nullptr); }

  private:
    H *at_ = nullptr;
};
} // namespace detail
} // namespace outlive

#endif
