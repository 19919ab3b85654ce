// What a member in C++ has: by its handle, or as a thread's own.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include <outlive.hpp>

#include "words.hpp"

namespace {

struct held_sample {
    outlive::sample<words> it;
    seen was;
};
struct ticket {
    u64 number;
    handle of;
};
struct in_hand {
    outlive::request<words> it;
    handle of;
    u64 number, parts;
};
using mutex = outlive::robust_mutex<data>;
using rwlock = outlive::robust_shared_mutex<data>;
using thing =
    std::variant<outlive::node, outlive::publisher<words>, outlive::subscriber<words>, held_sample,
                 outlive::producer<words>, outlive::consumer<words>, outlive::message<words>, mutex,
                 rwlock, outlive::robust_condition, outlive::robust_semaphore, outlive::lockless_set,
                 outlive::interrupt, outlive::watch, outlive::client<words, words>, ticket,
                 outlive::server<words, words>, in_hand>;

// What only the thread that took it may use.
struct lent {
    outlive::loan<words> it;
    handle of;
};
struct held {
    handle of;
    bool reads;
};
using own = std::variant<lent, held, outlive::permit>;

std::mutex guard; // of these three, and of standard output
// Never freed: who exits leaves everything open.
auto &things = *new std::map<handle, std::unique_ptr<thing>>;
auto &sent = *new std::map<handle, u64>;
auto &leaked = *new std::vector<std::unique_ptr<thing>>;

thing &thing_of(handle on) {
    const std::lock_guard lock(guard);
    return *things.at(on);
}
template <class T> T &get(handle on) { return std::get<T>(thing_of(on)); }
template <class T> void put(handle on, T it) {
    const std::lock_guard lock(guard);
    things[on] = std::make_unique<thing>(std::move(it));
}
std::unique_ptr<thing> taken(handle on) {
    const std::lock_guard lock(guard);
    auto it = std::move(things.at(on));
    things.erase(on);
    return it;
}
u64 number_of(handle on) {
    const std::lock_guard lock(guard);
    return sent[on];
}
void count_up(handle on) {
    const std::lock_guard lock(guard);
    ++sent[on];
}
// Of a program that ends by returning from `main`; by then its thread's locals are gone. What
// borrows goes first, as in safe code.
struct at_end {
    bool closes = false;
    ~at_end() {
        if (closes) {
            std::erase_if(things, [](const auto &it) {
                return std::holds_alternative<outlive::message<words>>(*it.second);
            });
            things.clear();
        }
    }
} ending;
void say(const std::string &line) {
    const std::lock_guard lock(guard);
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
}

const outlive::node &node_of(const step &s) { return get<outlive::node>(s.arg("node")); }
std::string name(const char *kind, u64 number) { return std::string("/h/") + kind + std::to_string(number); }

} // namespace
