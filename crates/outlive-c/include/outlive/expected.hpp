// Results: a value, or the error that says why there is none.
//
// outlive::expected<T> is std::expected<T, outlive::error> where the standard library has it whole:
// C++23, with the members that chain (P2505) and the constructors that let no error become a true
// bool (LWG 3836). Elsewhere it is the class of expected20.hpp, which has the same members and
// constraints. OUTLIVE_STD_EXPECTED, 0 or 1, decides otherwise; it must be the same in all of a
// program that passes handles around, and the linker says so where it is not: the names differ.
//
// Example:
//
//     auto poses = node.subscriber<pose>("/robot/pose", {.history = 1});
//     if (!poses) { // what failed, on which object, what to do next
//         std::cerr << poses.error().message() << '\n';
//     } else if (auto sample = poses->latest(); sample) {
//         drive(**sample);
//     }
//     auto goal = node.mutex<pose>("/robot/goal").value(); // value() of an error throws
#ifndef OUTLIVE_EXPECTED_HPP
#define OUTLIVE_EXPECTED_HPP

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <version>

#include "../outlive.h"

#ifndef OUTLIVE_STD_EXPECTED
#if defined(__cpp_lib_expected) && __cpp_lib_expected >= 202211L &&                                \
    (!defined(_GLIBCXX_RELEASE) || _GLIBCXX_RELEASE >= 15) &&                                      \
    (!defined(_LIBCPP_VERSION) || _LIBCPP_VERSION >= 180000)
#define OUTLIVE_STD_EXPECTED 1
#else
#define OUTLIVE_STD_EXPECTED 0
#endif
#endif

// What a result is, and whether there are exceptions, is part of every name: objects that are
// compiled differently keep inline functions of their own, and do not link where they would take one
// result for the other.
#if OUTLIVE_STD_EXPECTED
#include <expected>
#endif
#if OUTLIVE_STD_EXPECTED && defined(__cpp_exceptions)
#define OUTLIVE_ABI cpp23
#elif OUTLIVE_STD_EXPECTED
#define OUTLIVE_ABI cpp23_no_exceptions
#elif defined(__cpp_exceptions)
#define OUTLIVE_ABI cpp20
#else
#define OUTLIVE_ABI cpp20_no_exceptions
#endif

namespace outlive::inline OUTLIVE_ABI {
/// Why a call failed: OUTLIVE_TIMEOUT, OUTLIVE_OWNER_DIED, ...
using status = ::outlive_status;

/// An error: its status, and what failed, on which object, what to do next.
///
/// Example:
///
///     auto heights = node.subscriber<float>("/robot/pose"); // which has poses
///     if (!heights && heights.error() == OUTLIVE_TYPE_MISMATCH) {
///         std::cerr << heights.error().message() << '\n'; // names every field that differs
///     }
class error {
  public:
    explicit error(status code) : code_(code) {}
    error(status code, std::string detail)
        : code_(code), detail_(std::make_shared<const std::string>(std::move(detail))) {}

    /// The error of the call that just failed in this thread, a wait for something: receiving,
    /// locking, waiting in a set. That there is nothing, or time ran out, is a result and has no
    /// detail.
    static error last(status code) {
        switch (code) {
        case OUTLIVE_WOULD_BLOCK:
        case OUTLIVE_TIMEOUT:
        case OUTLIVE_EVENT:
            return error(code); // no allocation
        default:
            return told(code);
        }
    }
    /// The same of any other call, which has a detail whatever the status: opening, publishing,
    /// sending, calling, answering.
    static error told(status code) { return error(code, ::outlive_last_error()); }

    [[nodiscard]] status code() const noexcept { return code_; }
    /// A short phrase for the status.
    [[nodiscard]] const char *what() const noexcept { return ::outlive_strerror(code_); }
    /// Details; empty where nothing went wrong: nothing to receive, an event, or the deadline of a
    /// wait passed.
    [[nodiscard]] const std::string &detail() const noexcept {
        static const std::string nothing;
        return detail_ ? *detail_ : nothing;
    }

    /// All there is to say in one line: the details, or the phrase where there are none.
    [[nodiscard]] std::string message() const { return detail_ ? *detail_ : what(); }

    friend bool operator==(const error &e, status code) noexcept { return e.code_ == code; }
    /// Of the same status; details are for people.
    friend bool operator==(const error &a, const error &b) noexcept { return a.code_ == b.code_; }

  private:
    status code_;
    std::shared_ptr<const std::string> detail_; // none: moving it costs nothing
};

namespace detail {
/// What stands in for a value that is not there.
inline std::string access_text(const error &e) {
    std::string text = std::string("outlive: value() of an error: ") + e.what();
    return e.detail().empty() ? text : text + ": " + e.detail();
}
template <class E> std::string access_text(const E &) { return "outlive: value() of an error"; }

[[noreturn]] inline void no_value(const std::string &text) {
    std::fprintf(stderr, "%s\n", text.c_str());
    std::abort();
}
} // namespace detail
} // namespace outlive::inline OUTLIVE_ABI

#if OUTLIVE_STD_EXPECTED
/// What value() of an error throws; what() says which.
template <>
class std::bad_expected_access<outlive::error> : public std::bad_expected_access<void> {
  public:
    explicit bad_expected_access(outlive::error e)
        : error_(std::move(e)),
          text_(std::make_shared<const std::string>(outlive::detail::access_text(error_))) {}
    [[nodiscard]] const char *what() const noexcept override { return text_->c_str(); }
    outlive::error &error() & noexcept { return error_; }
    const outlive::error &error() const & noexcept { return error_; }
    outlive::error &&error() && noexcept { return std::move(error_); }
    const outlive::error &&error() const && noexcept { return std::move(error_); }

  private:
    outlive::error error_;
    std::shared_ptr<const std::string> text_;
};

namespace outlive::inline OUTLIVE_ABI {
template <class T, class E = error> using expected = std::expected<T, E>;
template <class E> using unexpected_of = std::unexpected<E>;
template <class E> using bad_expected_access = std::bad_expected_access<E>;
using std::unexpect;
using std::unexpect_t;
} // namespace outlive::inline OUTLIVE_ABI
#else
#include "expected20.hpp"
#endif

namespace outlive::inline OUTLIVE_ABI {
/// For answering an error: `return unexpected(OUTLIVE_TIMEOUT);`.
using unexpected = unexpected_of<error>;

namespace detail {
/// Nothing, or the error of the call that answered `code`.
inline expected<void> done(status code) {
    if (code == OUTLIVE_OK) {
        return {};
    }
    return unexpected(error::told(code));
}
/// As done, of a wait.
inline expected<void> waited(status code) {
    if (code == OUTLIVE_OK) {
        return {};
    }
    return unexpected(error::last(code));
}

/// Ends reading what is not there: as value() of an error.
[[noreturn]] inline void nothing(error why) {
#if defined(__cpp_exceptions)
    throw bad_expected_access<error>(std::move(why));
#else
    no_value(access_text(why));
#endif
}
[[noreturn]] inline void nothing(const char *what) {
    nothing(error(OUTLIVE_INVALID_ARGUMENT, std::string("reading ") + what));
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

    explicit operator bool() const noexcept { return at_ != nullptr; }
    [[nodiscard]] H *get() const noexcept { return at_; }
    [[nodiscard]] H *release() noexcept { return std::exchange(at_, nullptr); }

  private:
    H *at_ = nullptr;
};

/// A handle of outlive.h that lends: it and all that it has lent share it, and the last frees it.
/// `Count`: how many there are; atomic where several threads may use one handle.
template <class H, auto Free, class Count = std::size_t> class lender {
  public:
    lender() = default;
    explicit lender(H *at) {
        handle<H, Free> safe(at); // should there be no memory
        sharers_ = new Count(1);
        at_ = safe.release();
    }
    lender(lender &&other) noexcept
        : at_(std::exchange(other.at_, nullptr)), sharers_(std::exchange(other.sharers_, nullptr)) {}
    lender &operator=(lender &&other) noexcept {
        if (this != &other) {
            const lender before(std::move(*this));
            at_ = std::exchange(other.at_, nullptr);
            sharers_ = std::exchange(other.sharers_, nullptr);
        }
        return *this;
    }
    ~lender() {
        if (sharers_ != nullptr && --*sharers_ == 0) {
            delete sharers_;
            Free(at_);
        }
    }

    explicit operator bool() const noexcept { return at_ != nullptr; }
    [[nodiscard]] H *get() const noexcept { return at_; }
    /// Another one of the same.
    [[nodiscard]] lender share() const noexcept {
        lender another;
        if (sharers_ != nullptr) {
            ++*sharers_;
            another.at_ = at_;
            another.sharers_ = sharers_;
        }
        return another;
    }

  private:
    H *at_ = nullptr;
    Count *sharers_ = nullptr;
};
} // namespace detail
} // namespace outlive::inline OUTLIVE_ABI

#endif
