// std::expected for C++20, with the members and constraints that C++23 gives it. Included by
// expected.hpp where the standard library has none that is complete; see there.
#ifndef OUTLIVE_EXPECTED20_HPP
#define OUTLIVE_EXPECTED20_HPP

#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

namespace outlive::inline OUTLIVE_ABI {

struct unexpect_t {
    explicit unexpect_t() = default;
};
/// For constructing the error in place: expected<int>(unexpect, OUTLIVE_TIMEOUT).
inline constexpr unexpect_t unexpect{};

template <class E> class unexpected_of;
template <class T, class E = error> class expected;

namespace detail {
template <class T> inline constexpr bool is_unexpected = false;
template <class E> inline constexpr bool is_unexpected<unexpected_of<E>> = true;
template <class T> inline constexpr bool is_expected = false;
template <class T, class E> inline constexpr bool is_expected<expected<T, E>> = true;
template <class T> inline constexpr bool is_tag = std::is_same_v<T, std::in_place_t> || std::is_same_v<T, unexpect_t>;

template <class T, class W>
inline constexpr bool from_any_cvref =
    std::is_constructible_v<T, W &> || std::is_convertible_v<W &, T> ||
    std::is_constructible_v<T, W> || std::is_convertible_v<W, T> ||
    std::is_constructible_v<T, const W &> || std::is_convertible_v<const W &, T> ||
    std::is_constructible_v<T, const W> || std::is_convertible_v<const W, T>;
template <class T, class W>
inline constexpr bool constructible_from_any_cvref =
    std::is_constructible_v<T, W &> || std::is_constructible_v<T, W> ||
    std::is_constructible_v<T, const W &> || std::is_constructible_v<T, const W>;

template <class T> inline constexpr bool nothrow_move = std::is_nothrow_move_constructible_v<T>;
template <class T> inline constexpr bool is_bool = std::is_same_v<std::remove_cv_t<T>, bool>;

/// For constructing from what a function gives, without a move.
struct from_call {};
/// For constructing from what another expected keeps.
struct from_room {};

/// Room for a value or an error. What is there when a constructor throws is not destroyed.
template <class V, class E,
          bool = std::is_trivially_destructible_v<V> && std::is_trivially_destructible_v<E>>
struct room {
    template <class... Args>
    constexpr explicit room(std::in_place_t, Args &&...args)
        : value_(std::forward<Args>(args)...), has_(true) {}
    template <class... Args>
    constexpr explicit room(unexpect_t, Args &&...args)
        : error_(std::forward<Args>(args)...), has_(false) {}
    template <class F, class... Args>
    constexpr room(from_call, std::in_place_t, F &&f, Args &&...args)
        : value_(std::invoke(std::forward<F>(f), std::forward<Args>(args)...)), has_(true) {}
    template <class F, class... Args>
    constexpr room(from_call, unexpect_t, F &&f, Args &&...args)
        : error_(std::invoke(std::forward<F>(f), std::forward<Args>(args)...)), has_(false) {}
    template <class Other> constexpr room(from_room, Other &&other) : has_(other.has_) {
        if (has_) {
            std::construct_at(&value_, std::forward<Other>(other).value_);
        } else {
            std::construct_at(&error_, std::forward<Other>(other).error_);
        }
    }

    union {
        V value_;
        E error_;
    };
    bool has_;
};
/// As above, with a destructor, which is not trivial.
template <class V, class E> struct room<V, E, false> {
    constexpr ~room() {
        if (has_) {
            std::destroy_at(&value_);
        } else {
            std::destroy_at(&error_);
        }
    }

    template <class... Args>
    constexpr explicit room(std::in_place_t, Args &&...args)
        : value_(std::forward<Args>(args)...), has_(true) {}
    template <class... Args>
    constexpr explicit room(unexpect_t, Args &&...args)
        : error_(std::forward<Args>(args)...), has_(false) {}
    template <class F, class... Args>
    constexpr room(from_call, std::in_place_t, F &&f, Args &&...args)
        : value_(std::invoke(std::forward<F>(f), std::forward<Args>(args)...)), has_(true) {}
    template <class F, class... Args>
    constexpr room(from_call, unexpect_t, F &&f, Args &&...args)
        : error_(std::invoke(std::forward<F>(f), std::forward<Args>(args)...)), has_(false) {}
    template <class Other> constexpr room(from_room, Other &&other) : has_(other.has_) {
        if (has_) {
            std::construct_at(&value_, std::forward<Other>(other).value_);
        } else {
            std::construct_at(&error_, std::forward<Other>(other).error_);
        }
    }

    union {
        V value_;
        E error_;
    };
    bool has_;
};

/// A value or an error, one of them always: what expected keeps. Copying, moving and destroying are
/// trivial where they are of both.
template <class V, class E> class either : public room<V, E> {
    using base = room<V, E>;
    static constexpr bool copies =
        std::is_copy_constructible_v<V> && std::is_copy_constructible_v<E>;
    static constexpr bool moves =
        std::is_move_constructible_v<V> && std::is_move_constructible_v<E>;
    static constexpr bool can_change = nothrow_move<V> || nothrow_move<E>;
    static constexpr bool copy_assigns = copies && can_change && std::is_copy_assignable_v<V> &&
                                         std::is_copy_assignable_v<E>;
    static constexpr bool move_assigns = moves && can_change && std::is_move_assignable_v<V> &&
                                         std::is_move_assignable_v<E>;
    static constexpr bool is_plain =
        std::is_trivially_destructible_v<V> && std::is_trivially_destructible_v<E>;
    static constexpr bool plain_copies = is_plain && std::is_trivially_copy_constructible_v<V> &&
                                         std::is_trivially_copy_constructible_v<E>;
    static constexpr bool plain_moves = is_plain && std::is_trivially_move_constructible_v<V> &&
                                        std::is_trivially_move_constructible_v<E>;
    static constexpr bool plain_copy_assigns = plain_copies && std::is_trivially_copy_assignable_v<V> &&
                                               std::is_trivially_copy_assignable_v<E>;
    static constexpr bool plain_move_assigns = plain_moves && std::is_trivially_move_assignable_v<V> &&
                                               std::is_trivially_move_assignable_v<E>;

  public:
    using base::base;
    using base::error_;
    using base::has_;
    using base::value_;

    either(const either &) = delete;
    constexpr either(const either &other)
        requires plain_copies
    = default;
    constexpr either(const either &other) noexcept(std::is_nothrow_copy_constructible_v<V> &&
                                                   std::is_nothrow_copy_constructible_v<E>)
        requires(copies && !plain_copies)
        : base(from_room(), other) {}
    constexpr either(either &&other)
        requires plain_moves
    = default;
    constexpr either(either &&other) noexcept(nothrow_move<V> && nothrow_move<E>)
        requires(moves && !plain_moves)
        : base(from_room(), std::move(other)) {}
    either &operator=(const either &) = delete;
    constexpr either &operator=(const either &other)
        requires(copy_assigns && plain_copy_assigns)
    = default;
    constexpr either &operator=(const either &other)
        requires(copy_assigns && !plain_copy_assigns)
    {
        return assign(other);
    }
    constexpr either &operator=(either &&other)
        requires(move_assigns && plain_move_assigns)
    = default;
    constexpr either &operator=(either &&other) noexcept(
        nothrow_move<V> && nothrow_move<E> && std::is_nothrow_move_assignable_v<V> &&
        std::is_nothrow_move_assignable_v<E>)
        requires(move_assigns && !plain_move_assigns)
    {
        return assign(std::move(other));
    }

    [[nodiscard]] constexpr bool has() const noexcept { return has_; }
    constexpr V &value() noexcept { return value_; }
    constexpr const V &value() const noexcept { return value_; }
    constexpr E &error() noexcept { return error_; }
    constexpr const E &error() const noexcept { return error_; }

    template <class U> constexpr void assign_value(U &&value) {
        if (has_) {
            value_ = std::forward<U>(value);
        } else {
            change(value_, error_, std::forward<U>(value));
        }
    }
    template <class G> constexpr void assign_error(G &&error) {
        if (!has_) {
            error_ = std::forward<G>(error);
        } else {
            change(error_, value_, std::forward<G>(error));
        }
    }
    /// Constructing must not throw.
    template <class... Args> constexpr V &emplace(Args &&...args) noexcept {
        destroy();
        has_ = true;
        return *std::construct_at(&value_, std::forward<Args>(args)...);
    }
    constexpr void swap(either &other) {
        if (has_ && other.has_) {
            using std::swap;
            swap(value_, other.value_);
        } else if (!has_ && !other.has_) {
            using std::swap;
            swap(error_, other.error_);
        } else if (!has_) {
            other.swap(*this);
        } else if constexpr (nothrow_move<E>) {
            E kept(std::move(other.error_));
            std::destroy_at(&other.error_);
            back_on_throw<E> guard{&other.error_, &kept};
            std::construct_at(&other.value_, std::move(value_));
            guard.to = nullptr;
            std::destroy_at(&value_);
            std::construct_at(&error_, std::move(kept));
            has_ = false, other.has_ = true;
        } else {
            V kept(std::move(value_));
            std::destroy_at(&value_);
            back_on_throw<V> guard{&value_, &kept};
            std::construct_at(&error_, std::move(other.error_));
            guard.to = nullptr;
            std::destroy_at(&other.error_);
            std::construct_at(&other.value_, std::move(kept));
            has_ = false, other.has_ = true;
        }
    }

  private:
    /// Puts back what was there when its successor's constructor throws.
    template <class X> struct back_on_throw {
        X *to, *kept;
        constexpr ~back_on_throw() {
            if (to != nullptr) {
                std::construct_at(to, std::move(*kept));
            }
        }
    };

    template <class Other> constexpr either &assign(Other &&other) {
        if (other.has_) {
            assign_value(std::forward<Other>(other).value_);
        } else {
            assign_error(std::forward<Other>(other).error_);
        }
        return *this;
    }
    /// From `before` to `now`: on an exception it stays as it was.
    template <class Now, class Before, class Arg>
    constexpr void change(Now &now, Before &before, Arg &&arg) {
        if constexpr (std::is_nothrow_constructible_v<Now, Arg>) {
            std::destroy_at(&before);
            std::construct_at(&now, std::forward<Arg>(arg));
        } else if constexpr (nothrow_move<Now>) {
            Now made(std::forward<Arg>(arg));
            std::destroy_at(&before);
            std::construct_at(&now, std::move(made));
        } else {
            Before kept(std::move(before));
            std::destroy_at(&before);
            back_on_throw<Before> guard{&before, &kept};
            std::construct_at(&now, std::forward<Arg>(arg));
            guard.to = nullptr;
        }
        has_ = !has_;
    }
    constexpr void destroy() noexcept {
        if (has_) {
            std::destroy_at(&value_);
        } else {
            std::destroy_at(&error_);
        }
    }
};
} // namespace detail

/// What value() of an error throws.
template <class E> class bad_expected_access : public std::exception {
  public:
    explicit bad_expected_access(E e)
        : error_(std::move(e)), text_(std::make_shared<const std::string>(detail::access_text(error_))) {}
    [[nodiscard]] const char *what() const noexcept override { return text_->c_str(); }
    E &error() & noexcept { return error_; }
    const E &error() const & noexcept { return error_; }
    E &&error() && noexcept { return std::move(error_); }

  private:
    E error_;
    std::shared_ptr<const std::string> text_;
};

/// For constructing an expected without a value.
template <class E> class unexpected_of {
    static_assert(std::is_object_v<E> && !std::is_array_v<E> && !std::is_const_v<E> &&
                  !std::is_volatile_v<E> && !detail::is_unexpected<E>);

  public:
    template <class G = E>
        requires(!std::is_same_v<std::remove_cvref_t<G>, unexpected_of> &&
                 !std::is_same_v<std::remove_cvref_t<G>, std::in_place_t> &&
                 std::is_constructible_v<E, G>)
    constexpr explicit unexpected_of(G &&e) : error_(std::forward<G>(e)) {}
    template <class... Args>
        requires std::is_constructible_v<E, Args...>
    constexpr explicit unexpected_of(std::in_place_t, Args &&...args)
        : error_(std::forward<Args>(args)...) {}

    constexpr E &error() & noexcept { return error_; }
    constexpr const E &error() const & noexcept { return error_; }
    constexpr E &&error() && noexcept { return std::move(error_); }
    constexpr const E &&error() const && noexcept { return std::move(error_); }
    constexpr void swap(unexpected_of &other) noexcept(std::is_nothrow_swappable_v<E>) {
        using std::swap;
        swap(error_, other.error_);
    }
    friend constexpr void swap(unexpected_of &a, unexpected_of &b) noexcept(noexcept(a.swap(b)))
        requires std::is_swappable_v<E>
    {
        a.swap(b);
    }
    template <class G>
    friend constexpr bool operator==(const unexpected_of &a, const unexpected_of<G> &b) {
        return a.error() == b.error();
    }

  private:
    E error_;
};
template <class E> unexpected_of(E) -> unexpected_of<E>;

/// A value or an error. To handle an error, ask first: value() of an error throws
/// bad_expected_access, `*` and `->` of one end the program.
template <class T, class E> class [[nodiscard]] expected {
    static constexpr bool is_void = std::is_void_v<T>;
    using stored = std::conditional_t<is_void, std::monostate, std::remove_cv_t<T>>;
    using state = detail::either<stored, E>;
    template <class U> using ref = std::add_lvalue_reference_t<U>;
    template <class U> using rref = std::add_rvalue_reference_t<U>;

    static_assert(!std::is_reference_v<T> && !std::is_function_v<T> && !std::is_array_v<T> &&
                  !detail::is_tag<std::remove_cv_t<T>> && !detail::is_unexpected<std::remove_cv_t<T>>);

    template <class U, class G, class UF, class GF>
    static constexpr bool converts =
        (is_void ? std::is_void_v<U> : std::is_constructible_v<stored, UF>) &&
        std::is_constructible_v<E, GF> &&
        (is_void || detail::is_bool<T> || !detail::from_any_cvref<stored, expected<U, G>>) &&
        !detail::constructible_from_any_cvref<unexpected_of<E>, expected<U, G>>;
    template <class UF, class GF>
    static constexpr bool implicitly = (is_void || std::is_convertible_v<UF, stored>) &&
                                       std::is_convertible_v<GF, E>;

    static constexpr bool swaps =
        std::is_swappable_v<stored> && std::is_swappable_v<E> &&
        std::is_move_constructible_v<stored> && std::is_move_constructible_v<E> &&
        (detail::nothrow_move<stored> || detail::nothrow_move<E>);

  public:
    using value_type = T;
    using error_type = E;
    using unexpected_type = unexpected_of<E>;
    template <class U> using rebind = expected<U, E>;

    constexpr expected()
        requires std::is_default_constructible_v<stored>
        : state_(std::in_place) {}
    // Copying, moving and assigning are the state's: defaulted or deleted as it has them.

    template <class U, class G>
        requires converts<U, G, ref<const U>, const G &>
    constexpr explicit(!implicitly<ref<const U>, const G &>) expected(const expected<U, G> &other)
        : state_(detail::from_room(), other.state_) {}
    template <class U, class G>
        requires converts<U, G, U, G>
    constexpr explicit(!implicitly<U, G>) expected(expected<U, G> &&other)
        : state_(detail::from_room(), std::move(other).state_) {}

    template <class U = stored>
        requires(!is_void && !detail::is_tag<std::remove_cvref_t<U>> &&
                 !std::is_same_v<std::remove_cvref_t<U>, expected> &&
                 !detail::is_unexpected<std::remove_cvref_t<U>> &&
                 std::is_constructible_v<stored, U> &&
                 !(detail::is_bool<T> && detail::is_expected<std::remove_cvref_t<U>>))
    constexpr explicit(!std::is_convertible_v<U, stored>) expected(U &&value)
        : state_(std::in_place, std::forward<U>(value)) {}

    template <class G>
        requires std::is_constructible_v<E, const G &>
    constexpr explicit(!std::is_convertible_v<const G &, E>) expected(const unexpected_of<G> &e)
        : state_(unexpect, e.error()) {}
    template <class G>
        requires std::is_constructible_v<E, G>
    constexpr explicit(!std::is_convertible_v<G, E>) expected(unexpected_of<G> &&e)
        : state_(unexpect, std::move(e).error()) {}

    template <class... Args>
        requires std::is_constructible_v<stored, Args...>
    constexpr explicit expected(std::in_place_t, Args &&...args)
        : state_(std::in_place, std::forward<Args>(args)...) {}
    template <class U, class... Args>
        requires std::is_constructible_v<stored, std::initializer_list<U> &, Args...>
    constexpr explicit expected(std::in_place_t, std::initializer_list<U> list, Args &&...args)
        : state_(std::in_place, list, std::forward<Args>(args)...) {}
    template <class... Args>
        requires std::is_constructible_v<E, Args...>
    constexpr explicit expected(unexpect_t, Args &&...args)
        : state_(unexpect, std::forward<Args>(args)...) {}
    template <class U, class... Args>
        requires std::is_constructible_v<E, std::initializer_list<U> &, Args...>
    constexpr explicit expected(unexpect_t, std::initializer_list<U> list, Args &&...args)
        : state_(unexpect, list, std::forward<Args>(args)...) {}

    template <class U = stored>
        requires(!is_void && !std::is_same_v<std::remove_cvref_t<U>, expected> &&
                 !detail::is_unexpected<std::remove_cvref_t<U>> &&
                 std::is_constructible_v<stored, U> && std::is_assignable_v<stored &, U> &&
                 (std::is_nothrow_constructible_v<stored, U> || detail::nothrow_move<stored> ||
                  detail::nothrow_move<E>))
    constexpr expected &operator=(U &&value) {
        state_.assign_value(std::forward<U>(value));
        return *this;
    }
    template <class G>
        requires(std::is_constructible_v<E, const G &> && std::is_assignable_v<E &, const G &> &&
                 (std::is_nothrow_constructible_v<E, const G &> || detail::nothrow_move<stored> ||
                  detail::nothrow_move<E>))
    constexpr expected &operator=(const unexpected_of<G> &e) {
        state_.assign_error(e.error());
        return *this;
    }
    template <class G>
        requires(std::is_constructible_v<E, G> && std::is_assignable_v<E &, G> &&
                 (std::is_nothrow_constructible_v<E, G> || detail::nothrow_move<stored> ||
                  detail::nothrow_move<E>))
    constexpr expected &operator=(unexpected_of<G> &&e) {
        state_.assign_error(std::move(e).error());
        return *this;
    }

    template <class... Args>
        requires std::is_nothrow_constructible_v<stored, Args...>
    constexpr ref<T> emplace(Args &&...args) noexcept {
        return static_cast<ref<T>>(state_.emplace(std::forward<Args>(args)...));
    }
    template <class U, class... Args>
        requires std::is_nothrow_constructible_v<stored, std::initializer_list<U> &, Args...>
    constexpr ref<T> emplace(std::initializer_list<U> list, Args &&...args) noexcept {
        return static_cast<ref<T>>(state_.emplace(list, std::forward<Args>(args)...));
    }

    constexpr void swap(expected &other) noexcept(
        detail::nothrow_move<stored> && std::is_nothrow_swappable_v<stored> &&
        detail::nothrow_move<E> && std::is_nothrow_swappable_v<E>)
        requires swaps
    {
        state_.swap(other.state_);
    }
    friend constexpr void swap(expected &a, expected &b) noexcept(noexcept(a.swap(b)))
        requires swaps
    {
        a.swap(b);
    }

    [[nodiscard]] constexpr bool has_value() const noexcept { return state_.has(); }
    constexpr explicit operator bool() const noexcept { return state_.has(); }

    constexpr ref<T> value() & { return here(*this), static_cast<ref<T>>(state_.value()); }
    constexpr ref<const T> value() const & {
        return here(*this), static_cast<ref<const T>>(state_.value());
    }
    constexpr rref<T> value() && {
        return here(std::move(*this)), static_cast<rref<T>>(state_.value());
    }
    constexpr rref<const T> value() const && {
        return here(std::move(*this)), static_cast<rref<const T>>(state_.value());
    }
    constexpr ref<T> operator*() & noexcept { return must(true), static_cast<ref<T>>(state_.value()); }
    constexpr ref<const T> operator*() const & noexcept {
        return must(true), static_cast<ref<const T>>(state_.value());
    }
    constexpr rref<T> operator*() && noexcept {
        return must(true), static_cast<rref<T>>(state_.value());
    }
    constexpr rref<const T> operator*() const && noexcept {
        return must(true), static_cast<rref<const T>>(state_.value());
    }
    constexpr stored *operator->() noexcept
        requires(!is_void)
    {
        return must(true), std::addressof(state_.value());
    }
    constexpr const stored *operator->() const noexcept
        requires(!is_void)
    {
        return must(true), std::addressof(state_.value());
    }

    [[nodiscard]] constexpr E &error() & noexcept { return must(false), state_.error(); }
    [[nodiscard]] constexpr const E &error() const & noexcept { return must(false), state_.error(); }
    [[nodiscard]] constexpr E &&error() && noexcept { return must(false), std::move(state_.error()); }
    [[nodiscard]] constexpr const E &&error() const && noexcept {
        return must(false), std::move(state_.error());
    }

    template <class U = stored>
        requires(!is_void)
    constexpr stored value_or(U &&other) const & {
        return has_value() ? state_.value() : static_cast<stored>(std::forward<U>(other));
    }
    template <class U = stored>
        requires(!is_void)
    constexpr stored value_or(U &&other) && {
        return has_value() ? std::move(state_.value()) : static_cast<stored>(std::forward<U>(other));
    }
    template <class G = E> constexpr E error_or(G &&other) const & {
        return has_value() ? static_cast<E>(std::forward<G>(other)) : state_.error();
    }
    template <class G = E> constexpr E error_or(G &&other) && {
        return has_value() ? static_cast<E>(std::forward<G>(other)) : std::move(state_.error());
    }

    /// `f` of the value, which gives an expected with the same type of error.
    template <class F>
        requires std::is_constructible_v<E, E &>
    constexpr auto and_then(F &&f) & {
        return chain(*this, std::forward<F>(f));
    }
    template <class F>
        requires std::is_constructible_v<E, const E &>
    constexpr auto and_then(F &&f) const & {
        return chain(*this, std::forward<F>(f));
    }
    template <class F>
        requires std::is_constructible_v<E, E>
    constexpr auto and_then(F &&f) && {
        return chain(std::move(*this), std::forward<F>(f));
    }
    template <class F>
        requires std::is_constructible_v<E, const E>
    constexpr auto and_then(F &&f) const && {
        return chain(std::move(*this), std::forward<F>(f));
    }
    /// This, or `f` of the error, which gives an expected with the same type of value.
    template <class F>
        requires(is_void || std::is_constructible_v<stored, stored &>)
    constexpr auto or_else(F &&f) & {
        return instead(*this, std::forward<F>(f));
    }
    template <class F>
        requires(is_void || std::is_constructible_v<stored, const stored &>)
    constexpr auto or_else(F &&f) const & {
        return instead(*this, std::forward<F>(f));
    }
    template <class F>
        requires(is_void || std::is_constructible_v<stored, stored>)
    constexpr auto or_else(F &&f) && {
        return instead(std::move(*this), std::forward<F>(f));
    }
    template <class F>
        requires(is_void || std::is_constructible_v<stored, const stored>)
    constexpr auto or_else(F &&f) const && {
        return instead(std::move(*this), std::forward<F>(f));
    }
    /// `f` of the value, in an expected.
    template <class F>
        requires std::is_constructible_v<E, E &>
    constexpr auto transform(F &&f) & {
        return changed(*this, std::forward<F>(f));
    }
    template <class F>
        requires std::is_constructible_v<E, const E &>
    constexpr auto transform(F &&f) const & {
        return changed(*this, std::forward<F>(f));
    }
    template <class F>
        requires std::is_constructible_v<E, E>
    constexpr auto transform(F &&f) && {
        return changed(std::move(*this), std::forward<F>(f));
    }
    template <class F>
        requires std::is_constructible_v<E, const E>
    constexpr auto transform(F &&f) const && {
        return changed(std::move(*this), std::forward<F>(f));
    }
    /// The value, or `f` of the error as the error.
    template <class F>
        requires(is_void || std::is_constructible_v<stored, stored &>)
    constexpr auto transform_error(F &&f) & {
        return translated(*this, std::forward<F>(f));
    }
    template <class F>
        requires(is_void || std::is_constructible_v<stored, const stored &>)
    constexpr auto transform_error(F &&f) const & {
        return translated(*this, std::forward<F>(f));
    }
    template <class F>
        requires(is_void || std::is_constructible_v<stored, stored>)
    constexpr auto transform_error(F &&f) && {
        return translated(std::move(*this), std::forward<F>(f));
    }
    template <class F>
        requires(is_void || std::is_constructible_v<stored, const stored>)
    constexpr auto transform_error(F &&f) const && {
        return translated(std::move(*this), std::forward<F>(f));
    }

    template <class U, class G>
        requires(is_void == std::is_void_v<U>)
    friend constexpr bool operator==(const expected &a, const expected<U, G> &b) {
        if (a.has_value() != b.has_value()) {
            return false;
        }
        if (!a.has_value()) {
            return a.error() == b.error();
        }
        if constexpr (is_void) {
            return true;
        } else {
            return *a == *b;
        }
    }
    template <class U>
        requires(!is_void && !detail::is_expected<U> && !detail::is_unexpected<U>)
    friend constexpr bool operator==(const expected &a, const U &value) {
        return a.has_value() && static_cast<bool>(*a == value);
    }
    template <class G>
    friend constexpr bool operator==(const expected &a, const unexpected_of<G> &e) {
        return !a.has_value() && static_cast<bool>(a.error() == e.error());
    }

  private:
    template <class, class> friend class expected;
    template <class... Args>
    constexpr explicit expected(detail::from_call call, Args &&...args)
        : state_(call, std::forward<Args>(args)...) {}

    /// Ends value() of an error.
    template <class Self> static constexpr void here(Self &&self) {
        if (!self.has_value()) [[unlikely]] {
#if defined(__cpp_exceptions)
            throw bad_expected_access<E>(std::forward<Self>(self).error());
#else
            detail::no_value(detail::access_text(self.error()));
#endif
        }
    }
    constexpr void must(bool have_value) const noexcept {
        if (has_value() != have_value) [[unlikely]] {
            detail::no_value(has_value() ? "error() of a value" : detail::access_text(state_.error()));
        }
    }
    template <class F, class Self> static constexpr decltype(auto) call(F &&f, Self &&self) {
        if constexpr (is_void) {
            return std::invoke(std::forward<F>(f));
        } else {
            return std::invoke(std::forward<F>(f), *std::forward<Self>(self));
        }
    }
    template <class Self, class F> static constexpr auto chain(Self &&self, F &&f) {
        using result =
            std::remove_cvref_t<decltype(call(std::forward<F>(f), std::forward<Self>(self)))>;
        static_assert(detail::is_expected<result> && std::is_same_v<typename result::error_type, E>,
                      "outlive: and_then takes a function that gives an expected with the same error");
        return self.has_value() ? result(call(std::forward<F>(f), std::forward<Self>(self)))
                                : result(unexpect, std::forward<Self>(self).error());
    }
    template <class Self, class F> static constexpr auto instead(Self &&self, F &&f) {
        using result = std::remove_cvref_t<
            decltype(std::invoke(std::forward<F>(f), std::forward<Self>(self).error()))>;
        static_assert(detail::is_expected<result> && std::is_same_v<typename result::value_type, T>,
                      "outlive: or_else takes a function that gives an expected with the same value");
        if (!self.has_value()) {
            return result(std::invoke(std::forward<F>(f), std::forward<Self>(self).error()));
        }
        if constexpr (is_void) {
            return result();
        } else {
            return result(std::in_place, *std::forward<Self>(self));
        }
    }
    template <class Self, class F> static constexpr auto changed(Self &&self, F &&f) {
        using value = std::remove_cv_t<decltype(call(std::forward<F>(f), std::forward<Self>(self)))>;
        using result = expected<value, E>;
        if (!self.has_value()) {
            return result(unexpect, std::forward<Self>(self).error());
        }
        if constexpr (std::is_void_v<value>) {
            call(std::forward<F>(f), std::forward<Self>(self));
            return result();
        } else if constexpr (is_void) {
            return result(detail::from_call(), std::in_place, std::forward<F>(f));
        } else {
            return result(detail::from_call(), std::in_place, std::forward<F>(f),
                          *std::forward<Self>(self));
        }
    }
    template <class Self, class F> static constexpr auto translated(Self &&self, F &&f) {
        using code = std::remove_cv_t<
            decltype(std::invoke(std::forward<F>(f), std::forward<Self>(self).error()))>;
        using result = expected<T, code>;
        if (!self.has_value()) {
            return result(detail::from_call(), unexpect, std::forward<F>(f),
                          std::forward<Self>(self).error());
        }
        if constexpr (is_void) {
            return result();
        } else {
            return result(std::in_place, *std::forward<Self>(self));
        }
    }

    state state_;
};
} // namespace outlive::inline OUTLIVE_ABI

#endif
