// Whether a scope is left by an exception.
#ifndef OUTLIVE_UNWINDING_HPP
#define OUTLIVE_UNWINDING_HPP

#include <exception>

#if defined(__GXX_ABI_VERSION) && defined(__LP64__) && defined(__cpp_exceptions)
#include <cxxabi.h>
#if defined(_LIBCPP_VERSION)
namespace __cxxabiv1 { // where libc++'s header does not declare it
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals *__cxa_get_globals();
} // namespace __cxxabiv1
#endif
#endif

#include "expected.hpp"

namespace outlive::inline OUTLIVE_ABI::detail {

/// How many exceptions this thread has in flight. More of them at a destructor than at the
/// constructor: the scope is left by an exception.
inline unsigned exceptions_in_flight() noexcept {
#if !defined(__cpp_exceptions)
    return 0;
#elif defined(__GXX_ABI_VERSION) && defined(__LP64__)
    // std::uncaught_exceptions() costs as much as an uncontended lock. This reads what it reads: the
    // C++ ABI fixes the thread's globals as a pointer and this count.
    static constinit thread_local const unsigned *count = nullptr;
    if (count == nullptr) [[unlikely]] {
        const auto *globals = reinterpret_cast<const char *>(::abi::__cxa_get_globals());
        count = reinterpret_cast<const unsigned *>(globals + sizeof(void *));
    }
    return *count;
#else
    return static_cast<unsigned>(std::uncaught_exceptions());
#endif
}
} // namespace outlive::inline OUTLIVE_ABI::detail

#endif
