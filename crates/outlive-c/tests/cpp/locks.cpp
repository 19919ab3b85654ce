// Locks of C++ whose last owner left them in disorder, and what the standard's guards make of them.
#include <outlive.hpp>

#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <unistd.h>

#include "check.hpp"

using namespace std::chrono_literals;

struct pose {
    double x, y;
};
OUTLIVE_MESSAGE(pose, "test/Pose", x, y)

/// What `f` throws.
template <class F> static std::error_code thrown(F &&f) {
    try {
        f();
    } catch (const std::system_error &e) {
        return e.code();
    }
    return {};
}

/// Whether another thread gets it at once.
template <class Lock> static bool is_free(Lock &lock) {
    bool got = false;
    std::thread([&] {
        const auto taken = lock.acquire(outlive::deadline::now);
        got = taken.has_value();
        CHECK(!got || lock.abandon());
    }).join();
    return got;
}

/// A repair may mark the lock itself; if it lets go of it, lock() fails, and holds nothing.
template <class Lock> static void repairs_that_mark(Lock lock) {
    auto torn = [&] { CHECK(lock.acquire() && lock.abandon()); };
    torn();
    lock.on_owner_died([&](pose &left) {
        left.y = left.x;
        CHECK(lock.mark_consistent());
    });
    {
        std::scoped_lock held(lock);
        CHECK(!lock.owner_died() && lock.mark_consistent() && !is_free(lock));
    }
    CHECK(lock.mark_consistent().error() == OUTLIVE_NOT_OWNED);
    CHECK(lock.acquire().value() == outlive::acquired::clean);
    CHECK(lock.abandon());
    lock.on_owner_died([&](pose &) { CHECK(lock.abandon()); });
    CHECK(thrown([&] { lock.lock(); }) == std::errc::operation_not_permitted && is_free(lock));
    lock.on_owner_died([&](pose &) { throw std::system_error(EIO, std::generic_category()); });
    CHECK(thrown([&] { lock.lock(); }) == std::errc::io_error && is_free(lock));
}

/// A thread that holds it already is told by an exception that lock() would wait for ever; those that
/// do not wait, or not for ever, say no.
static void held_already(outlive::robust_shared_mutex<pose> lock) {
    const auto says_no = [&] {
        CHECK(!lock.try_lock() && !lock.try_lock_for(1h));
        CHECK(!lock.try_lock_shared() && !lock.try_lock_shared_for(1h));
        CHECK(thrown([&] { lock.lock(); }) == std::errc::resource_deadlock_would_occur);
        CHECK(thrown([&] { lock.lock_shared(); }) == std::errc::resource_deadlock_would_occur);
    };
    lock.lock();
    says_no();
    lock.unlock();
    lock.lock_shared();
    says_no();
    lock.unlock_shared();
}

/// std::lock holds the one while it tries the other: if that was torn, the one is not, too.
template <class Lock> static void several(Lock whole, Lock torn) {
    CHECK(torn.acquire() && torn.abandon());
    for (int times = 0; times < 2; times++) {
        CHECK(thrown([&] { std::scoped_lock both(whole, torn); }) == std::errc::owner_dead);
        CHECK(thrown([&] { std::scoped_lock both(torn, whole); }) == std::errc::owner_dead);
        CHECK(whole.acquire().value() == outlive::acquired::clean && is_free(torn));
        whole.unlock();
    }
    // Who tries again and again is told at the second time.
    for (int times = 0; times < 2; times++) {
        CHECK(!torn.try_lock() && is_free(torn));
        CHECK(thrown([&] { (void)torn.try_lock(); }) == std::errc::owner_dead && is_free(torn));
    }
    CHECK(thrown([&] { (void)torn.try_lock_for(1s); }) == std::errc::owner_dead);
    torn.on_owner_died([](pose &left) { left = {}; });
    { std::scoped_lock both(whole, torn); }
    CHECK(torn.acquire().value() == outlive::acquired::clean);
    torn.unlock();
}

int main() {
    auto node = outlive::node::open("locks").value();
    repairs_that_mark(node.mutex<pose>("/m").value());
    repairs_that_mark(node.shared_mutex<pose>("/rw").value());
    several(node.mutex<pose>("/m/1").value(), node.mutex<pose>("/m/2").value());
    if (sysconf(_SC_PAGESIZE) == 4096) { // unsupported where pages are larger
        repairs_that_mark(node.pi_mutex<pose>("/pi").value());
        several(node.pi_mutex<pose>("/pi/1").value(), node.pi_mutex<pose>("/pi/2").value());
    }
    several(node.shared_mutex<pose>("/rw/1").value(), node.shared_mutex<pose>("/rw/2").value());
    held_already(node.shared_mutex<pose>("/rw/held").value());
    std::puts("locks: what was torn is repaired");
}
