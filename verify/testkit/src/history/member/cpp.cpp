// A member of a history in C++; see `member/mod.rs`, whose words and answers are the same.
//
// Its argument: the root. Steps come on standard input, answers go to standard output.
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sched.h>
#include <set>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
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
                 rwlock, outlive::watch, outlive::client<words, words>, ticket,
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
using own = std::variant<lent, held>;

std::string root;
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

// Descriptors or bytes of address space that are in use.
u64 used(u64 what) {
    std::ifstream status("/proc/self/statm");
    u64 pages = 0;
    switch (what) {
    case 0: {
        const auto all = std::filesystem::directory_iterator("/proc/self/fd");
        return static_cast<u64>(std::distance(begin(all), end(all))) - 2;
    }
    case 1: status >> pages; return pages * 4096;
    default: return 0;
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
        const auto to = used(what) + s.arg("left") * (what == 0 ? 1 : 1024);
        limit.rlim_cur = std::min<rlim_t>(to, limit.rlim_max);
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

// Receives until there is nothing, the first time waiting; then looks at all events.
template <class Port, class See> void take_all(Port &port, const step &s, reply &r, See see) {
    struct at_last {
        Port &port;
        reply &r;
        ~at_last() {
            while (auto event = port.next_event()) {
                r.news.push_back(*event);
            }
        }
    } at_last{port, r};
    auto until = s.until();
    for (u64 i = 0; i < s.arg("max"); ++i, until = outlive::deadline::now) {
        auto got = port.receive(until);
        if (!got && !is_nothing(got.error())) {
            fail(got.error());
        }
        if (!got) {
            // An event ends a call that does not wait as well; a message may be behind it.
            if (got.error() == OUTLIVE_EVENT && s.arg("ms") == 0) {
                continue;
            }
            r.value = 1;
            break;
        }
        see(*got);
    }
}

// Receives one, and keeps it.
template <class Port, class Keep> void take_one(Port &port, Keep keep) {
    auto got = port.receive();
    while (!got && got.error() == OUTLIVE_EVENT) {
        got = port.receive();
    }
    if (got) {
        keep(std::move(*got));
    } else if (!is_nothing(got.error())) {
        fail(got.error());
    }
}

data &data_of(handle on) {
    auto &it = thing_of(on);
    return std::holds_alternative<mutex>(it) ? *std::get<mutex>(it) : *std::get<rwlock>(it);
}

void unlock(const held &it) {
    auto &lock = thing_of(it.of);
    if (auto *m = std::get_if<mutex>(&lock)) {
        m->unlock();
    } else if (it.reads) {
        std::get<rwlock>(lock).unlock_shared();
    } else {
        std::get<rwlock>(lock).unlock();
    }
}

struct actor {
    u64 thread;
    std::map<handle, own> mine;

    // Opens; whether it did.
    bool opens(const step &s, reply &r) {
        const handle made = s.arg("new");
        if (s.verb == "node") {
            auto it = must(outlive::node::open(
                outlive::node_options{.name = "n" + std::to_string(made), .domain = "h",
                                      .root = root_from_here()}));
            r.id.node = it.id();
            put(made, std::move(it));
        } else if (s.verb == "publisher") {
            outlive::topic_options options;
            options.depth = s.arg("depth");
            options.is_volatile = s.arg("volatile") == 1;
            options.reliable_timeout = std::chrono::milliseconds(s.arg("wait_ms"));
            auto it = must(node_of(s).publisher<words>(name("topic", s.arg("topic")), options));
            r.id = it.id();
            put(made, std::move(it));
        } else if (s.verb == "subscriber") {
            outlive::topic_options options;
            options.history = s.arg("history");
            options.reliable = s.arg("reliable") == 1;
            options.borrows = s.arg("borrows");
            put(made, must(node_of(s).subscriber<words>(name("topic", s.arg("topic")), options)));
        } else if (s.verb == "producer") {
            outlive::queue_options options;
            options.bound_bytes = s.arg("bound");
            auto it = must(node_of(s).producer<words>(name("queue", s.arg("queue")), options));
            r.id = it.id();
            put(made, std::move(it));
        } else if (s.verb == "consumer") {
            put(made, must(node_of(s).consumer<words>(name("queue", s.arg("queue")))));
        } else if (s.verb == "mutex") {
            put(made, must(node_of(s).mutex<data>(name("mutex", s.arg("mutex")))));
        } else if (s.verb == "rwlock") {
            put(made, must(node_of(s).shared_mutex<data>(name("rwlock", s.arg("mutex")))));
        } else if (s.verb == "client") {
            outlive::service_options options;
            options.resume = s.arg("resume") == 1;
            put(made, must(node_of(s).client<words, words>(name("service", s.arg("service")), options)));
        } else if (s.verb == "server") {
            put(made, must(node_of(s).server<words, words>(name("service", s.arg("service")))));
        } else if (s.verb == "watch") {
            put(made, must(node_of(s).watch(s.arg("target"))));
        } else {
            return false;
        }
        return true;
    }

    bool messages(const step &s, reply &r) {
        const handle on = s.on(), made = s.arg("new");
        if (s.verb == "publish" || s.verb == "insist") {
            auto &it = get<outlive::publisher<words>>(on);
            const auto count = s.verb == "insist" ? 1 : s.arg("count");
            for (u64 i = 0; i < count; ++i, count_up(on), ++r.value) {
                const auto body = content(on, number_of(on), s.arg("words"));
                must(it.publish(body));
            }
        } else if (s.verb == "loan") {
            const auto count = std::max<u64>(s.arg("words"), words_min);
            auto it = must(get<outlive::publisher<words>>(on).loan(count));
            mine.emplace(made, lent{std::move(it), on});
        } else if (s.verb == "commit") {
            auto it = std::move(std::get<lent>(mine.at(on)));
            mine.erase(on);
            const auto to = it.it.span();
            const auto body = content(it.of, number_of(it.of), to.size());
            std::copy(body.begin(), body.end(), to.begin());
            must(std::move(it.it).publish());
            count_up(it.of);
        } else if (s.verb == "receive") {
            auto &it = get<outlive::subscriber<words>>(on);
            // What could not be opened for a while is tried again after so many calls.
            const int calls = was_limited && s.arg("ms") < 1000 ? again_calls : 1;
            for (int i = 0; i < calls && r.came.size() < s.arg("max"); ++i) {
                r.value = 0;
                take_all(it, s, r, [&](const auto &sample) { r.came.push_back(look_at(sample)); });
            }
        } else if (s.verb == "take") {
            take_one(get<outlive::subscriber<words>>(on), [&](auto sample) {
                const auto was = look_at(sample);
                r.came.push_back(was);
                put(made, held_sample{std::move(sample), was});
            });
        } else if (s.verb == "check") {
            const auto &it = get<held_sample>(on);
            r.value = look_at(it.it).same(it.was);
        } else if (s.verb == "send") {
            auto &it = get<outlive::producer<words>>(on);
            for (u64 i = 0; i < s.arg("count"); ++i, count_up(on), ++r.value) {
                const auto body = content(on, number_of(on), s.arg("words"));
                must(it.try_send(body));
            }
        } else if (s.verb == "get") {
            auto &it = get<outlive::consumer<words>>(on);
            take_all(it, s, r, [&](const auto &message) {
                r.came.emplace_back(*message);
                r.came.back().id = message.producer();
            });
        } else if (s.verb == "hold") {
            take_one(get<outlive::consumer<words>>(on), [&](auto message) {
                r.came.emplace_back(*message);
                r.came.back().id = message.producer();
                put(made, std::move(message));
            });
        } else {
            return false;
        }
        return true;
    }

    template <class Lock> void lock(Lock &it, const step &s, reply &r) {
        const bool died = must(it.acquire(s.until())) == outlive::acquired::owner_died;
        r.value = died;
        r.data.assign((*it).begin(), (*it).end());
        if (died && s.arg("heal") == 1) {
            (*it).fill((*it)[0]);
            must(it.mark_consistent());
        }
        if (died && s.arg("heal") == 0) {
            it.unlock();
        } else {
            mine.emplace(s.arg("new"), held{s.on(), false});
        }
    }

    bool locks(const step &s, reply &r) {
        if (s.verb == "lock") {
            auto &it = thing_of(s.on());
            if (auto *m = std::get_if<mutex>(&it)) {
                lock(*m, s, r);
            } else {
                lock(std::get<rwlock>(it), s, r);
            }
        } else if (s.verb == "read") {
            auto &it = get<rwlock>(s.on());
            must(it.acquire_shared(s.until()));
            r.data.assign((*it).begin(), (*it).end());
            mine.emplace(s.arg("new"), held{s.on(), true});
        } else if (s.verb == "write") {
            auto &to = data_of(std::get<held>(mine.at(s.on())).of);
            std::fill_n(to.begin(), s.arg("half") == 1 ? 2 : 4, s.arg("value"));
        } else if (s.verb == "await") {
            r.value = get<outlive::watch>(s.on()).wait(s.until());
        } else {
            return false;
        }
        return true;
    }

    static seen answered(const outlive::reply<words> &answer) {
        seen it{std::span<const u64>{}};
        const auto state = answer.state();
        if (state) {
            it = seen(*answer);
            it.lost = answer.is_last();
        } else {
            it.whole = true;
            switch (state.error().code()) {
            case OUTLIVE_REFUSED: it.lost = 2; break;
            case OUTLIVE_TIMEOUT: it.lost = 3; break;
            case OUTLIVE_SERVER_DIED: it.lost = 4; break;
            case OUTLIVE_CORRUPT: it.lost = 5; break;
            default: it.lost = 6;
            }
        }
        it.seq = answer.ticket();
        return it;
    }

    bool services(const step &s, reply &r) {
        using client = outlive::client<words, words>;
        using server = outlive::server<words, words>;
        const handle on = s.on(), made = s.arg("new");
        if (s.verb == "ask") {
            const auto until = s.arg("late") == 1 ? outlive::deadline::at_ns(::outlive_now_ns() - 1)
                                                  : outlive::deadline::never;
            r.value = must(get<client>(on).send(content(on, made, s.arg("words")), until));
            put(made, ticket{r.value, on});
        } else if (s.verb == "call") {
            const auto answer = must(get<client>(on).call(content(on, 0, s.arg("words")), s.until()));
            r.came.emplace_back(*answer);
        } else if (s.verb == "replies") {
            auto until = s.until();
            for (;; until = outlive::deadline::now) {
                auto got = get<client>(on).receive(until);
                if (!got && is_nothing(got.error())) {
                    break;
                }
                r.came.push_back(answered(must(std::move(got))));
            }
        } else if (s.verb == "reply-for") {
            const auto it = get<ticket>(on);
            r.came.push_back(answered(must(get<client>(it.of).receive_for(it.number, s.until()))));
        } else if (s.verb == "cancel") {
            const auto it = get<ticket>(on);
            must(get<client>(it.of).cancel(it.number));
        } else if (s.verb == "serve") {
            auto got = get<server>(on).receive(s.until());
            if (got) {
                seen it(**got);
                it.seq = unsaid;
                r.came.push_back(it);
                put(made, in_hand{std::move(*got), on, it.n, 0});
            } else if (!is_nothing(got.error())) {
                fail(got.error());
            }
        } else if (s.verb == "part" || s.verb == "wanted") {
            auto &it = get<in_hand>(on);
            const u64 n = it.number * parts + it.parts++;
            if (s.verb == "part") {
                must(get<server>(it.of).respond_part(it.it, content(it.of, n, s.arg("words"))));
            } else {
                r.value = !get<server>(it.of).is_cancelled(it.it);
            }
        } else if (s.verb == "answer" || s.verb == "refuse") {
            auto whole = taken(on);
            auto &it = std::get<in_hand>(*whole);
            const u64 n = it.number * parts + it.parts;
            auto &to = get<server>(it.of);
            if (s.verb == "answer") {
                must(to.respond(std::move(it.it), content(it.of, n, s.arg("words"))));
            } else {
                must(to.refuse(std::move(it.it), "as told"));
            }
        } else {
            return false;
        }
        return true;
    }

    // Lets go of it as the end of a scope does.
    void drop(handle on) {
        const auto found = mine.find(on);
        if (found == mine.end()) {
            taken(on);
            return;
        }
        if (const auto *it = std::get_if<held>(&found->second)) {
            unlock(*it);
        }
        mine.erase(found);
    }

    // The same while an exception leaves the scope.
    void unwind(handle on) {
        struct leaving {
            actor &me;
            handle on;
            ~leaving() { me.drop(on); }
        };
        try {
            const leaving it{*this, on};
            throw as_told{};
        } catch (const as_told &) {
        }
    }

    void leak(handle on) {
        if (const auto found = mine.find(on); found != mine.end()) {
            new own(std::move(found->second));
            mine.erase(found);
            return;
        }
        auto it = taken(on);
        const std::lock_guard lock(guard);
        leaked.push_back(std::move(it));
    }

    bool domain(const step &s, reply &) {
        outlive::node_options options{.name = "", .domain = "h", .root = root_from_here()};
        if (s.verb == "clean") {
            must(outlive::domain(options).clean());
            return true;
        }
        if (s.verb == "chdir") {
            change_directory(s.arg("to"));
            return true;
        }
        if (s.verb == "priority") {
            set_priority(s);
            return true;
        }
        if (s.verb == "limit") {
            was_limited = true;
            set_limit(s, true);
            return true;
        }
        if (s.verb == "unlimit") {
            set_limit(s, false);
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            return true;
        }
        return false;
    }

    static outlive::expected<void> use(thing &it) {
        const auto body = content(0, 0, 8);
        const auto done = [](const auto &got) -> outlive::expected<void> {
            return got ? outlive::expected<void>() : outlive::unexpected(got.error());
        };
        if (auto *port = std::get_if<outlive::node>(&it)) { return done(port->watch(port->id())); }
        if (auto *port = std::get_if<outlive::publisher<words>>(&it)) { return done(port->publish(body)); }
        if (auto *port = std::get_if<outlive::subscriber<words>>(&it)) { return done(port->receive()); }
        if (auto *port = std::get_if<outlive::producer<words>>(&it)) { return port->try_send(body); }
        if (auto *port = std::get_if<outlive::consumer<words>>(&it)) { return done(port->receive()); }
        if (auto *port = std::get_if<outlive::client<words, words>>(&it)) { return done(port->send(body)); }
        if (auto *port = std::get_if<outlive::server<words, words>>(&it)) { return done(port->receive()); }
        if (auto *port = std::get_if<mutex>(&it)) { return done(port->acquire(outlive::deadline::now)); }
        if (auto *port = std::get_if<rwlock>(&it)) { return port->acquire_shared(outlive::deadline::now); }
        return outlive::unexpected(outlive::error(OUTLIVE_FORKED_CHILD));
    }

    std::string in_child(u64 how) {
        std::string wrong;
        if (how == 1) {
            ::execl("/bin/true", "true", nullptr);
        }
        if (how == 2 || how == 3) {
            for (auto &[on, it] : things) {
                const auto used = use(*it);
                // A consumer with a message in hand says that first.
                if (used || (used.error() != OUTLIVE_FORKED_CHILD && used.error() != OUTLIVE_TOO_MANY_BORROWS)) {
                    wrong += "in a forked child " + std::to_string(on) + " gives " +
                             (used ? "ok" : kinds[used.error().code()]) + "; ";
                }
            }
        }
        if (how == 3 || how == 4) {
            mine.clear();
            for (auto &[on, it] : things) {
                if (std::holds_alternative<outlive::message<words>>(*it)) {
                    it = std::make_unique<thing>(ticket{});
                }
            }
            for (auto &[on, it] : things) {
                if (!std::holds_alternative<held_sample>(*it)) {
                    it.reset();
                }
            }
            for (auto &[on, it] : things) {
                if (it && !look_at(std::get<held_sample>(*it).it).same(std::get<held_sample>(*it).was)) {
                    wrong += "a sample has changed in a forked child; ";
                }
            }
            things.clear();
        }
        return wrong;
    }

    void fork(const step &s, reply &r) {
        int ends[2];
        if (::pipe(ends) != 0) {
            throw fails{"Failed", "no pipe"};
        }
        std::unique_lock lock(guard);
        const auto pid = ::fork();
        if (pid == 0) {
            lock.unlock();
            ::close(ends[0]);
            const auto wrong = in_child(s.arg("how"));
            const bool said = ::write(ends[1], wrong.data(), wrong.size()) >= 0;
            ::close(ends[1]);
            if (s.arg("how") == 5) {
                ::close(0), ::close(1), ::close(2);
                ::sleep(2);
            }
            ::_exit(said ? 0 : 3);
        }
        lock.unlock();
        ::close(ends[1]);
        std::string wrong;
        char some[256];
        for (ssize_t n; (n = ::read(ends[0], some, sizeof some)) > 0;) {
            wrong.append(some, static_cast<std::size_t>(n));
        }
        ::close(ends[0]);
        int status = 0;
        if (s.arg("how") != 5) {
            ::waitpid(pid, &status, 0);
        }
        r.value = static_cast<unsigned>(status);
        if (!wrong.empty()) {
            throw fails{"Failed", wrong};
        }
    }

    void act(const step &s, reply &r) {
        if (opens(s, r) || messages(s, r) || locks(s, r) || services(s, r) || domain(s, r)) {
            return;
        }
        if (s.verb == "drop") {
            drop(s.on());
        } else if (s.verb == "unwind") {
            unwind(s.on());
        } else if (s.verb == "leak") {
            leak(s.on());
        } else if (s.verb == "fork") {
            fork(s, r);
        } else {
            throw fails{"Panic", "no step: " + s.verb};
        }
    }

    static u64 us_of(clockid_t clock) {
        timespec now{};
        ::clock_gettime(clock, &now);
        return static_cast<u64>(now.tv_sec) * 1000000 + static_cast<u64>(now.tv_nsec) / 1000;
    }

    void answer(const step &s) {
        reply r;
        fails end{"ok", ""};
        const auto cpu = us_of(CLOCK_THREAD_CPUTIME_ID), wall = us_of(CLOCK_MONOTONIC);
        try {
            act(s, r);
        } catch (const fails &e) {
            end = e;
        } catch (const std::exception &e) {
            end = {"Panic", e.what()};
        }
        say(r.line(thread, end, us_of(CLOCK_THREAD_CPUTIME_ID) - cpu, us_of(CLOCK_MONOTONIC) - wall));
    }

    void end(bool crashes) {
        while (!mine.empty()) {
            const auto on = mine.begin()->first;
            crashes ? unwind(on) : drop(on);
        }
    }
};

struct steps {
    std::mutex lock;
    std::condition_variable more;
    std::deque<step> all;

    void push(step s) {
        const std::lock_guard guard(lock);
        all.push_back(std::move(s));
        more.notify_one();
    }
    step pop() {
        std::unique_lock guard(lock);
        more.wait(guard, [this] { return !all.empty(); });
        auto first = std::move(all.front());
        all.pop_front();
        return first;
    }
};

void run(steps &of, u64 thread) {
    actor me{thread, {}};
    for (;;) {
        const auto s = of.pop();
        if (s.verb == "end" || s.verb == "crash") {
            return me.end(s.verb == "crash");
        }
        me.answer(s);
    }
}

step parse(const std::string &line) {
    std::istringstream in(line);
    std::string who, word;
    step s;
    in >> who >> s.verb;
    s.thread = std::stoull(who.substr(who.find('.') + 1));
    while (in >> word) {
        const auto at = word.find('=');
        s.args[word.substr(0, at)] = std::stoull(word.substr(at + 1));
    }
    return s;
}

void dispatch(steps &first) {
    std::map<u64, std::pair<std::unique_ptr<steps>, std::thread>> threads;
    const auto of = [&](u64 thread) -> steps & { return thread == 0 ? first : *threads.at(thread).first; };
    const auto ok = [](u64 thread) { say(reply().line(thread, {"ok", ""}, 0, 0)); };
    for (std::string line; std::getline(std::cin, line);) {
        auto s = parse(line);
        if (s.verb == "exit") {
            std::exit(0);
        } else if (s.verb == "quit") {
            s.verb = "end";
            while (!threads.empty()) {
                threads.begin()->second.first->push(s);
                threads.begin()->second.second.join();
                threads.erase(threads.begin());
            }
            ending.closes = true;
            return first.push(s);
        } else if (s.verb == "thread") {
            auto &[its, thread] = threads[s.arg("new")];
            its = std::make_unique<steps>();
            thread = std::thread(run, std::ref(*its), s.arg("new"));
            ok(s.thread);
        } else if (s.verb == "end" || s.verb == "crash") {
            const auto me = s.thread;
            of(me).push(std::move(s));
            threads.at(me).second.join();
            threads.erase(me);
            ok(me);
        } else {
            auto &to = of(s.thread);
            to.push(std::move(s));
        }
    }
    std::exit(0);
}

} // namespace

int main(int, char **argv) {
    root = argv[1];
    auto &first = *new steps; // another thread uses it to the end
    std::thread(dispatch, std::ref(first)).detach();
    run(first, 0);
}
