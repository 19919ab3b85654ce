// What a member in C++ changes around itself: its directory, limits and priority.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include "words.hpp"

namespace {

std::string root;

// To another directory; see `change_directory` in `member/mod.rs`.
std::atomic<bool> names_relative = false;

void change_directory(u64 to) {
    namespace fs = std::filesystem;
    const auto gone = fs::temp_directory_path() / ("gone-" + std::to_string(::getpid()));
    if (to == 2) {
        fs::create_directory(gone);
    }
    fs::current_path(to == 0 ? fs::path("/") : to == 1 ? fs::path(root).parent_path() : gone);
    if (to == 2) {
        fs::remove(gone);
    }
    names_relative = to != 2;
}

// The root, by a relative path where there is one.
std::string root_from_here() {
    namespace fs = std::filesystem;
    return names_relative ? fs::path(root).lexically_relative(fs::current_path()).string() : root;
}

// Limits that are lowered in mid-life; see `member/limits.rs`.
std::atomic<bool> was_limited = false;
constexpr int again_calls = 1100;

// The limit that leaves this many descriptors; see `descriptors` in `limits.rs`.
u64 descriptors(u64 left) {
    u64 fd = 0;
    for (;; ++fd) {
        if (::fcntl(static_cast<int>(fd), F_GETFD) < 0 && left-- == 0) {
            return fd;
        }
    }
}

u64 address_space() {
    std::ifstream status("/proc/self/statm");
    u64 pages = 0;
    status >> pages;
    return pages * 4096;
}

// The limit of a resource that leaves so much of it.
u64 leaves(u64 what, u64 left) {
    switch (what) {
    case 0: return descriptors(left);
    case 1: return address_space() + left * 1024;
    default: return left * 1024;
    }
}

void set_limit(const step &s, bool lower) {
    constexpr std::array resources{RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_FSIZE};
    const auto what = s.arg("what");
    const auto resource = resources.at(what);
    rlimit limit{};
    ::getrlimit(resource, &limit);
    limit.rlim_cur = limit.rlim_max;
    if (lower) {
        limit.rlim_cur = std::min<rlim_t>(leaves(what, s.arg("left")), limit.rlim_max);
    }
    if (::setrlimit(resource, &limit) != 0) {
        throw fails{"Failed", "no limit can be set"};
    }
}

// The calling thread's, and its processors; where that is not allowed it goes on as it was.
void set_priority(const step &s) {
    const sched_param fifo{static_cast<int>(s.arg("fifo"))};
    cpu_set_t cpus;
    std::fill_n(reinterpret_cast<unsigned char *>(&cpus), sizeof cpus, s.arg("one") == 1 ? 0 : 0xff);
    CPU_SET(0, &cpus);
    ::sched_setaffinity(0, sizeof cpus, &cpus);
    ::sched_setscheduler(0, fifo.sched_priority > 0 ? SCHED_FIFO : SCHED_OTHER, &fifo);
}

} // namespace
