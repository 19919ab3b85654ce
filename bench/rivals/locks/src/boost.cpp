// Boost's sharable mutex, callable from Rust.
#include <boost/interprocess/sync/interprocess_sharable_mutex.hpp>
#include <cstddef>
#include <new>

using mutex = boost::interprocess::interprocess_sharable_mutex;

extern "C" {

std::size_t boost_lock_bytes() { return sizeof(mutex); }

// False where Boost throws.
bool boost_lock_make(void* at) try {
    new (at) mutex;
    return true;
} catch (...) {
    return false;
}

bool boost_lock(mutex* m) try {
    m->lock();
    return true;
} catch (...) {
    return false;
}

void boost_unlock(mutex* m) { m->unlock(); }

bool boost_lock_sharable(mutex* m) try {
    m->lock_sharable();
    return true;
} catch (...) {
    return false;
}

void boost_unlock_sharable(mutex* m) { m->unlock_sharable(); }

}
