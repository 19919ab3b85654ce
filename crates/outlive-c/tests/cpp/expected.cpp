// What C++23 says of std::expected, asked of outlive::expected: the same file is compiled where it
// is std::expected, and where it is that of outlive/expected20.hpp.
#include <outlive.hpp>

#include <memory>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using outlive::error;
using outlive::expected;
using outlive::unexpect;
using outlive::unexpect_t;
using outlive::unexpected;
using outlive::unexpected_of;

namespace {

struct no_default {
    explicit no_default(int n) : n(n) {}
    int n;
};
struct move_only {
    int n = 0;
    move_only() = default;
    explicit move_only(int n) : n(n) {}
    move_only(move_only &&) = default;
    move_only &operator=(move_only &&) = default;
};
struct pinned {
    pinned() = default;
    pinned(pinned &&) = delete;
};
/// Moving and copying may throw.
struct risky {
    int n = 0;
    bool armed = false;
    risky() = default;
    explicit risky(int n) : n(n) {
        if (n < 0) {
            throw std::runtime_error("negative");
        }
    }
    risky(const risky &o) : n(o.n), armed(o.armed) { blow(); }
    risky(risky &&o) noexcept(false) : n(o.n), armed(o.armed) { blow(); }
    risky &operator=(const risky &) = default;
    void blow() const {
        if (armed) {
            throw std::runtime_error("armed");
        }
    }
};
struct from_anything {
    from_anything() = default;
    template <class T> from_anything(T &&) {}
};
struct implicit_int {
    implicit_int(int n) : n(n) {}
    int n;
};
struct counted {
    static inline int alive = 0;
    int n;
    explicit counted(int n = 0) noexcept : n(n) { alive++; }
    counted(const counted &o) noexcept : n(o.n) { alive++; }
    counted &operator=(const counted &) = default;
    ~counted() { alive--; }
};

/// Copying may throw; how many there are.
struct witness {
    static inline int alive = 0;
    bool armed;
    explicit witness(bool armed) : armed(armed) { alive++; }
    witness(const witness &o) : armed(o.armed) {
        if (armed) {
            throw std::runtime_error("copied");
        }
        alive++;
    }
    ~witness() { alive--; }
};

using std::is_assignable_v;
using std::is_constructible_v;
using std::is_convertible_v;

// Which constructors there are, and which of them are explicit.
static_assert(std::is_default_constructible_v<expected<int>>);
static_assert(std::is_default_constructible_v<expected<void>>);
static_assert(!std::is_default_constructible_v<expected<no_default>>);
static_assert(is_convertible_v<int, expected<int>> && is_convertible_v<int, expected<double>>);
static_assert(is_constructible_v<expected<std::vector<int>>, int>);
static_assert(!is_convertible_v<int, expected<std::vector<int>>>); // vector(size_t) is explicit
static_assert(!is_convertible_v<int, expected<no_default>>);
static_assert(is_convertible_v<int, expected<implicit_int>>);
static_assert(!is_constructible_v<expected<int>, std::string>);
static_assert(!is_constructible_v<expected<int>, error> && !is_constructible_v<expected<void>, int>);
static_assert(is_convertible_v<unexpected, expected<int>>);
static_assert(is_convertible_v<unexpected, expected<void>>);
static_assert(is_constructible_v<expected<int>, unexpected_of<outlive::status>>);
static_assert(!is_convertible_v<unexpected_of<outlive::status>, expected<int>>); // explicit error()
static_assert(!is_constructible_v<expected<int>, unexpected_of<std::string>>);
static_assert(is_constructible_v<expected<int>, unexpect_t, outlive::status>);
static_assert(!is_constructible_v<expected<int>, unexpect_t, std::vector<int>>);
static_assert(is_constructible_v<expected<no_default>, std::in_place_t, int>);
static_assert(!is_constructible_v<expected<no_default>, std::in_place_t>);
static_assert(is_constructible_v<expected<void>, std::in_place_t>);
static_assert(is_constructible_v<expected<std::vector<int>>, std::in_place_t,
                                 std::initializer_list<int>>);

// From an expected of another type: as the values and the errors convert.
static_assert(is_convertible_v<expected<int>, expected<double>>);
static_assert(!is_constructible_v<expected<int>, expected<std::string>>);
static_assert(!is_convertible_v<expected<int>, expected<no_default>>);
static_assert(is_constructible_v<expected<no_default>, expected<int>>);
static_assert(!is_constructible_v<expected<void>, expected<int>>);
static_assert(!is_constructible_v<expected<int>, expected<void>>);
static_assert(is_convertible_v<expected<const char *>, expected<std::string>>);
static_assert(!is_constructible_v<expected<int>, expected<int, std::string>>);
static_assert(is_convertible_v<expected<std::uint64_t>, expected<bool>>);
static_assert(is_constructible_v<expected<from_anything>, expected<int>>);

// Copies and moves: those of the value.
static_assert(std::is_copy_constructible_v<expected<int>> && std::is_copy_assignable_v<expected<int>>);
static_assert(!std::is_copy_constructible_v<expected<move_only>>);
static_assert(!std::is_copy_assignable_v<expected<move_only>>);
static_assert(std::is_nothrow_move_constructible_v<expected<move_only>>);
static_assert(std::is_move_assignable_v<expected<move_only>>);
static_assert(!std::is_move_constructible_v<expected<pinned>>);
static_assert(std::is_default_constructible_v<expected<pinned>>);
static_assert(std::is_copy_assignable_v<expected<risky>>); // since moving an error never throws
static_assert(!std::is_nothrow_move_constructible_v<expected<risky>>);
static_assert(!std::is_copy_assignable_v<expected<risky, risky>>);
static_assert(std::is_nothrow_move_constructible_v<expected<outlive::node>>);
static_assert(!std::is_copy_constructible_v<expected<outlive::node>>);

// Copying, moving and destroying are trivial where they are of value and error.
struct left {
    left() = default;
    left(const left &) = default;
    left &operator=(const left &o) { return n = o.n + 1, *this; }
    int n = 0;
};
template <class X>
inline constexpr bool is_plain =
    std::is_trivially_copy_constructible_v<X> && std::is_trivially_move_constructible_v<X> &&
    std::is_trivially_destructible_v<X>;
static_assert(is_plain<expected<int, int>> && is_plain<expected<void, outlive::status>>);
static_assert(is_plain<expected<left, int>>);
static_assert(std::is_trivially_destructible_v<expected<move_only, int>>);
static_assert(std::is_trivially_move_constructible_v<expected<move_only, int>>);
static_assert(!is_plain<expected<std::string, int>> && !is_plain<expected<int, std::string>>);
static_assert(!std::is_trivially_destructible_v<expected<int>>);
#if !OUTLIVE_STD_EXPECTED // C++23 leaves it open whether assigning is
static_assert(std::is_trivially_copyable_v<expected<int, int>>);
static_assert(std::is_trivially_copy_assignable_v<expected<void, int>>);
static_assert(std::is_trivially_move_assignable_v<expected<move_only, int>>);
static_assert(!std::is_trivially_copy_assignable_v<expected<left, int>>);
static_assert(!std::is_trivially_move_assignable_v<expected<int, std::string>>);
// Through the name of C++23's, only newer compilers do.
static_assert(std::is_same_v<decltype(unexpected_of(7)), unexpected_of<int>>);
static_assert(std::is_same_v<decltype(unexpected_of("none")), unexpected_of<const char *>>);
#endif

// Assigning.
static_assert(is_assignable_v<expected<int> &, int> && is_assignable_v<expected<int> &, unexpected>);
static_assert(!is_assignable_v<expected<int> &, std::string>);
static_assert(!is_assignable_v<expected<void> &, int>);
static_assert(!is_assignable_v<expected<no_default> &, int>); // constructible, not assignable
static_assert(is_assignable_v<expected<double> &, expected<int>>);

template <class X, class... Args>
concept can_emplace = requires(X x, Args... args) { x.emplace(args...); };
static_assert(can_emplace<expected<int>, int> && can_emplace<expected<void>>);
static_assert(!can_emplace<expected<std::string>, const char *>); // may throw: nothing to go back to
template <class X>
concept can_swap = requires(X x) { x.swap(x); };
static_assert(can_swap<expected<int>> && can_swap<expected<risky>> && can_swap<expected<void>>);
static_assert(!can_swap<expected<pinned>> && !can_swap<expected<risky, risky>>);
static_assert(std::is_nothrow_swappable_v<expected<int>>);
static_assert(!std::is_nothrow_swappable_v<expected<risky>>);

// What the accessors give.
template <class X> using star = decltype(*std::declval<X>());
template <class X> using value = decltype(std::declval<X>().value());
template <class X> using err = decltype(std::declval<X>().error());
static_assert(std::is_same_v<star<expected<int> &>, int &>);
static_assert(std::is_same_v<star<const expected<int> &>, const int &>);
static_assert(std::is_same_v<star<expected<int>>, int &&>);
static_assert(std::is_same_v<star<const expected<int>>, const int &&>);
static_assert(std::is_same_v<value<expected<int> &>, int &>);
static_assert(std::is_same_v<value<expected<int>>, int &&>);
static_assert(std::is_same_v<value<expected<void> &>, void>);
static_assert(std::is_same_v<star<expected<void> &>, void>);
static_assert(std::is_same_v<err<expected<int> &>, error &>);
static_assert(std::is_same_v<err<const expected<int> &>, const error &>);
static_assert(std::is_same_v<err<expected<int>>, error &&>);
static_assert(!is_convertible_v<expected<int>, bool>);
static_assert(std::is_same_v<expected<int>::value_type, int>);
static_assert(std::is_same_v<expected<int>::error_type, error>);
static_assert(std::is_same_v<expected<int>::unexpected_type, unexpected>);
static_assert(std::is_same_v<expected<int>::rebind<char>, expected<char>>);

template <class X>
concept has_arrow = requires(X x) { x.operator->(); };
template <class X>
concept has_value_or = requires(X x) { x.value_or(1); };
static_assert(has_arrow<expected<int>> && !has_arrow<expected<void>>);
static_assert(has_value_or<expected<int>> && !has_value_or<expected<void>>);

expected<int> good(int n) { return n; }
expected<int> bad() { return unexpected(OUTLIVE_TIMEOUT); }

void conversions() {
    // An error stays one on its way into a bool (LWG 3836).
    const expected<std::uint64_t> timeout = unexpected(OUTLIVE_TIMEOUT);
    expected<bool> truth = timeout;
    CHECK(!truth && truth.error() == OUTLIVE_TIMEOUT);
    truth = true;
    truth = timeout;
    CHECK(!truth && truth.error() == OUTLIVE_TIMEOUT);
    truth = expected<int>(0);
    CHECK(truth && !*truth);
    expected<bool> other = expected<int>(7);
    CHECK(other && *other);
    expected<std::string> text = expected<const char *>("hello");
    CHECK(text && *text == "hello");
    expected<double> number = bad();
    CHECK(!number && number.error() == OUTLIVE_TIMEOUT);
    number = 1;
    CHECK(number && *number == 1.0);
    expected<int, std::string> words(unexpect, 3, 'x');
    CHECK(!words && words.error() == "xxx");
    expected<std::vector<int>> list(std::in_place, {1, 2, 3});
    CHECK(list->size() == 3);
    expected<std::vector<int>> sized(5); // explicit: five elements
    CHECK(sized->size() == 5);
    const expected<int> braces = {};
    CHECK(braces && *braces == 0);
    expected<implicit_int> made = 4;
    CHECK(made->n == 4);
}

void changes() {
    expected<std::string> e = "one";
    e = unexpected(OUTLIVE_EVENT);
    CHECK(!e && e.error() == OUTLIVE_EVENT);
    e.error() = error(OUTLIVE_IO, "the plug was pulled");
    CHECK(e.error().detail() == "the plug was pulled");
    const auto copy = e;
    e = "two";
    CHECK(e && *e == "two" && !copy && copy.error() == OUTLIVE_IO);
    e = copy;
    CHECK(!e && e.error() == OUTLIVE_IO);
    e = std::string("three");
    auto moved = std::move(e);
    CHECK(*moved == "three" && e); // moved from, still a value
    expected<int> n = bad();
    CHECK(n.emplace(8) == 8 && n);
    expected<void> nothing = unexpected(OUTLIVE_TIMEOUT);
    CHECK(!nothing);
    nothing.emplace();
    CHECK(nothing);

    expected<int> a = 1, b = bad();
    a.swap(b);
    CHECK(!a && *b == 1 && a.error() == OUTLIVE_TIMEOUT);
    swap(a, b);
    CHECK(*a == 1 && !b);
    b = 2;
    swap(a, b);
    CHECK(*a == 2 && *b == 1);

    {
        expected<counted> x(std::in_place, 1), y = unexpected(OUTLIVE_IO);
        CHECK(counted::alive == 1);
        y = x;
        CHECK(counted::alive == 2 && y->n == 1);
        x = unexpected(OUTLIVE_IO);
        CHECK(counted::alive == 1);
        x.swap(y);
        CHECK(counted::alive == 1 && x && !y);
        x.emplace(4);
        CHECK(counted::alive == 1 && x->n == 4);
    }
    CHECK(counted::alive == 0);
    expected<left, int> from, to; // trivially copied, not trivially assigned
    to = from;
    CHECK(from->n == 0 && to->n == 1);
}

// What throws leaves things as they were: neither both nor none.
void exceptions() {
    expected<risky> e = unexpected(error(OUTLIVE_IO, "kept"));
    risky bomb(5);
    bomb.armed = true;
    try {
        e = bomb;
        CHECK(!"thrown");
    } catch (const std::runtime_error &) {
        CHECK(!e && e.error().detail() == "kept");
    }
    expected<risky> armed(std::in_place, 3);
    armed->armed = true;
    try {
        armed.swap(e);
        CHECK(!"thrown");
    } catch (const std::runtime_error &) {
        CHECK(armed && armed->n == 3 && !e && e.error().detail() == "kept");
    }
    try {
        expected<risky> never(std::in_place, -1);
        CHECK(!"thrown");
    } catch (const std::runtime_error &) {
    }
    {
        const expected<witness> original(std::in_place, true);
        const expected<witness, int> of_other_type(std::in_place, true);
        try {
            const expected<witness> copy = original;
            CHECK(!"thrown");
        } catch (const std::runtime_error &) {
            CHECK(witness::alive == 2); // what was not made is not destroyed
        }
        try {
            const expected<witness, long> copy = of_other_type;
            CHECK(!"thrown");
        } catch (const std::runtime_error &) {
            CHECK(witness::alive == 2);
        }
    }
    CHECK(witness::alive == 0);

    expected<int> failed = unexpected(error(OUTLIVE_NO_SPACE, "the disk is full"));
    try {
        (void)failed.value();
        CHECK(!"thrown");
    } catch (const outlive::bad_expected_access<error> &e) {
        CHECK(e.error() == OUTLIVE_NO_SPACE);
        const std::string what = e.what(); // what a terminated program prints
        CHECK(what.find("no space") != std::string::npos);
        CHECK(what.find("the disk is full") != std::string::npos);
    }
    try {
        const expected<void> nothing = unexpected(OUTLIVE_TIMEOUT);
        nothing.value();
        CHECK(!"thrown");
    } catch (const std::exception &e) {
        CHECK(std::string(e.what()).find("timed out") != std::string::npos);
    }
    try {
        expected<int, std::string>(unexpect, "words").value();
        CHECK(!"thrown");
    } catch (const outlive::bad_expected_access<std::string> &e) {
        CHECK(e.error() == "words");
    }
    CHECK(failed.error().detail() == "the disk is full"); // of an lvalue: copied
}

void chains() {
    expected<int> seven = good(7), none = bad();
    const expected<int> constant = 7;
    const auto twice = [](int n) { return 2 * n; };
    const auto half = [](int n) -> expected<double> { return n / 2.0; };
    CHECK(*seven.transform(twice) == 14 && *constant.transform(twice) == 14);
    CHECK(*good(7).transform(twice) == 14 && *seven == 7);
    CHECK(*seven.and_then(half) == 3.5 && *constant.and_then(half) == 3.5);
    CHECK(none.transform(twice).error() == OUTLIVE_TIMEOUT && !none.and_then(half));
    CHECK(seven.value_or(1) == 7 && none.value_or(1) == 1 && constant.value_or(1) == 7);
    CHECK(bad().value_or(3) == 3 && good(4).value_or(3) == 4);
    CHECK(none.error_or(error(OUTLIVE_IO)) == OUTLIVE_TIMEOUT);
    CHECK(seven.error_or(error(OUTLIVE_IO)) == OUTLIVE_IO);

    const auto retry = [](const error &e) -> expected<int> {
        return e == OUTLIVE_TIMEOUT ? expected<int>(0) : unexpected(e);
    };
    CHECK(*none.or_else(retry) == 0 && *seven.or_else(retry) == 7 && *constant.or_else(retry) == 7);
    auto words = none.transform_error([](const error &e) { return std::string(e.what()); });
    static_assert(std::is_same_v<decltype(words), expected<int, std::string>>);
    CHECK(words.error() == "timed out");
    CHECK(*seven.transform_error([](const error &) { return 0; }) == 7);

    bool called = false;
    expected<void> fine;
    CHECK(fine.transform([&] { called = true; }) && called);
    CHECK(*fine.and_then([] { return expected<int>(1); }) == 1);
    CHECK(*fine.transform([] { return 5; }) == 5);
    CHECK(fine.or_else([](const error &) { return expected<void>(); }));
    static_assert(std::is_same_v<decltype(seven.transform([](int) {})), expected<void>>);

    expected<std::unique_ptr<int>> owner = std::make_unique<int>(9);
    auto taken = std::move(owner).transform([](std::unique_ptr<int> p) { return *p; });
    CHECK(*taken == 9);
    // What a function gives is made in place: no move is needed.
    CHECK(seven.transform([](int) { return pinned(); }));
    CHECK(*seven.and_then([](int &n) -> expected<int> { return n++; }) == 7 && *seven == 8);
}

void comparing() {
    CHECK(good(7) == good(7) && good(7) != good(8) && good(7) != bad() && bad() == bad());
    CHECK(good(7) == 7 && 7 == good(7) && good(7) != 8 && bad() != 7);
    CHECK(bad() == unexpected(OUTLIVE_TIMEOUT) && bad() != unexpected(OUTLIVE_IO));
    CHECK(good(7) != unexpected(OUTLIVE_TIMEOUT) && good(7) == expected<double>(7.0));
    CHECK(expected<void>() == expected<void>());
    CHECK(unexpected(OUTLIVE_IO) == unexpected(OUTLIVE_IO));
}
} // namespace

int main() {
    conversions();
    changes();
    exceptions();
    chains();
    comparing();
    std::puts(OUTLIVE_STD_EXPECTED ? "expected: that of the standard" : "expected: our own");
}
