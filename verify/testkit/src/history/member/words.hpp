// The steps, answers and messages of a member in C++: see `step.rs`, `reply.rs` and `messages.rs`.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <outlive.hpp>

namespace {

using u64 = std::uint64_t;
using words = u64[];
using data = std::array<u64, 4>;
using handle = u64;

constexpr std::size_t words_min = 4;
constexpr u64 parts = 64, unsaid = ~u64{0};
constexpr u64 ids_max = 80; // see `step.rs`

struct step {
    std::string verb;
    u64 thread = 0;
    std::map<std::string, u64> args;
    u64 arg(const char *name) const {
        const auto found = args.find(name);
        return found == args.end() ? 0 : found->second;
    }
    u64 on() const { return arg("on"); }
    outlive::deadline until() const {
        return arg("ms") == 0 ? outlive::deadline::now
                              : outlive::deadline(std::chrono::milliseconds(arg("ms")));
    }
};

struct as_told {};

struct fails {
    std::string outcome, text;
};

const char *const kinds[] = {
    "ok",           "InvalidName", "InvalidArgument", "TypeMismatch", "VersionMismatch", "Corrupt",
    "NoSpace",      "NotOwned",    "Permission",      "NotFound",     "AlreadyExists",   "Timeout",
    "WouldBlock",   "OutOfMemory", "TooManyBorrows",  "TooManyMembers", "OwnerDied", "ConsumerExists",
    "ServerDied",   "ClientDied",  "Refused",         "Deadlock",     "Unrecoverable",   "OtherDomain",
    "ForkedChild",  "Unsupported", "Io",              "Internal",     "Event",
};

[[noreturn]] void fail(const outlive::error &e) { throw fails{kinds[e.code()], e.message()}; }

template <class T> T must(outlive::expected<T> got) {
    if (!got) {
        fail(got.error());
    }
    if constexpr (!std::is_void_v<T>) {
        return std::move(*got);
    }
}

// Whether nothing came, which is not a fault.
bool is_nothing(const outlive::error &e) {
    return e == OUTLIVE_WOULD_BLOCK || e == OUTLIVE_TIMEOUT || e == OUTLIVE_EVENT;
}

u64 check_sum(std::span<const u64> all) {
    u64 sum = all.size();
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i != 3) {
            sum = (sum ^ all[i]) * 0x9e3779b97f4a7c15;
            sum = sum << 29 | sum >> 35;
        }
    }
    return sum;
}

std::vector<u64> content(handle from, u64 n, u64 count) {
    std::vector<u64> all(std::max<std::size_t>(count, words_min));
    all[0] = from << 32, all[1] = n;
    u64 x = (all[0] << 17 | all[0] >> 47) ^ n;
    for (std::size_t i = words_min; i < all.size(); ++i) {
        all[i] = x = x * 0x5851f42d4c957f2d + 1;
    }
    all[3] = check_sum(all);
    return all;
}

struct seen {
    u64 from = 0, n = 0, seq = 0, lost = 0;
    bool whole = false, borrowed = false;
    outlive::port_id id{};

    explicit seen(std::span<const u64> all) {
        whole = all.size() >= words_min && all[3] == check_sum(all);
        if (whole) {
            from = all[0] >> 32, n = all[1];
        }
    }
    bool same(const seen &o) const { return whole == o.whole && from == o.from && n == o.n; }
};

seen look_at(const outlive::sample<words> &sample) {
    seen it(*sample);
    const auto meta = sample.meta();
    it.seq = meta.seq, it.lost = meta.lost_before, it.id = meta.publisher;
    it.borrowed = sample.is_borrowed();
    return it;
}

struct reply {
    u64 value = 0;
    outlive::port_id id{};
    std::vector<seen> came;
    std::vector<outlive::event> news;
    std::vector<u64> data;

    std::string line(u64 thread, const fails &end, u64 cpu, u64 wall) const {
        std::ostringstream out;
        out << thread << ' ' << end.outcome << " v=" << value << " id=" << id.node << '.' << id.port
            << " took=" << cpu << '.' << wall;
        for (const auto &m : came) {
            out << " m=" << m.from << '.' << m.n << '.' << m.seq << '.' << m.lost << '.' << m.whole
                << '.' << m.borrowed << '.' << m.id.node << '.' << m.id.port;
        }
        for (const auto &e : news) {
            out << " e=" << e.kind - OUTLIVE_JOINED << '.' << e.unfinished << '.' << e.lost << '.'
                << e.port.node << '.' << e.port.port;
        }
        for (const auto word : data) {
            out << " d=" << word;
        }
        if (!end.text.empty()) {
            std::string text = end.text;
            std::replace(text.begin(), text.end(), '\n', ' ');
            out << " # " << text;
        }
        out << '\n';
        return out.str();
    }
};

} // namespace
