// Loops over Boost's queues, so that no call across languages is in the figures.
#include <boost/interprocess/ipc/message_queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>
#include <cstdint>
#include <new>

namespace {

namespace ipc = boost::interprocess;

template <int Words> struct Message {
    std::uint64_t words[Words];
};

// 4 MiB, as RING_BYTES in queues.rs.
template <int Words> using Capacity = boost::lockfree::capacity<(4 << 20) / sizeof(Message<Words>)>;
template <int Words> using Spsc = boost::lockfree::spsc_queue<Message<Words>, Capacity<Words>>;

template <int Words> void spsc_send(void *at, std::uint64_t count) {
    auto &queue = *static_cast<Spsc<Words> *>(at);
    Message<Words> message{};
    for (std::uint64_t i = 1; i <= count; ++i) {
        for (auto &word : message.words) word = i;
        while (!queue.push(message)) {
        }
    }
}

template <int Words> std::uint64_t spsc_receive(void *at, std::uint64_t count) {
    auto &queue = *static_cast<Spsc<Words> *>(at);
    Message<Words> message;
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        while (!queue.pop(message)) {
        }
        sum += message.words[Words - 1];
    }
    return sum;
}

} // namespace

extern "C" {

std::size_t boost_spsc_bytes() { return sizeof(Spsc<8>); }

void boost_spsc_make(void *at, int words) {
    if (words == 1) new (at) Spsc<1>;
    else new (at) Spsc<8>;
}

void boost_spsc_send(void *at, int words, std::uint64_t count) {
    words == 1 ? spsc_send<1>(at, count) : spsc_send<8>(at, count);
}

std::uint64_t boost_spsc_receive(void *at, int words, std::uint64_t count) {
    return words == 1 ? spsc_receive<1>(at, count) : spsc_receive<8>(at, count);
}

// The queue of that name, made anew or opened; null when that fails.
void *boost_mq_open(const char *name, int make, std::size_t bytes) {
    try {
        if (make) {
            ipc::message_queue::remove(name);
            return new ipc::message_queue(ipc::create_only, name, 1024, bytes);
        }
        return new ipc::message_queue(ipc::open_only, name);
    } catch (...) {
        return nullptr;
    }
}

int boost_mq_send(void *queue, std::size_t bytes, std::uint64_t count) {
    std::uint64_t words[8] = {};
    try {
        for (std::uint64_t i = 1; i <= count; ++i) {
            for (auto &word : words) word = i;
            static_cast<ipc::message_queue *>(queue)->send(words, bytes, 0);
        }
    } catch (...) {
        return -1;
    }
    return 0;
}

std::uint64_t boost_mq_receive(void *queue, std::size_t bytes, std::uint64_t count) {
    std::uint64_t words[8], sum = 0;
    try {
        for (std::uint64_t i = 0; i < count; ++i) {
            std::size_t got = 0;
            unsigned priority = 0;
            static_cast<ipc::message_queue *>(queue)->receive(words, bytes, got, priority);
            sum += words[bytes / 8 - 1];
        }
    } catch (...) {
        return 0;
    }
    return sum;
}

void boost_mq_close(void *queue, const char *name) {
    delete static_cast<ipc::message_queue *>(queue);
    if (name) ipc::message_queue::remove(name);
}
}
