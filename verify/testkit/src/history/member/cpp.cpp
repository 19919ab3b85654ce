// A member of a history in C++; see `member/mod.rs`, whose words and answers are the same.
//
// Its argument: the root. Steps come on standard input, answers go to standard output.
#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <outlive.hpp>

#include "surroundings.hpp"
#include "things.hpp"
#include "words.hpp"

namespace {

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

// What the signal handler raises.
std::atomic<const outlive::interrupt *> to_raise = nullptr;

void raise(const outlive::interrupt &it, bool by_signal) {
    if (!by_signal) {
        return it.raise();
    }
    to_raise = &it;
    std::signal(SIGUSR1, [](int) { to_raise.load()->raise(); });
    std::raise(SIGUSR1);
}

// How often somebody was about to wait for a notification.
std::atomic<u64> sleeps = 0;

// Whether that thread of ours sleeps: it has let go what it was to let go.
bool is_in_futex(pid_t tid) {
    std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/syscall");
    long call = -1;
    return file >> call && call == SYS_futex;
}

struct actor {
    u64 thread;
    std::map<handle, own> mine;
    outlive::wait_set set{};
    int silent[2] = {-1, -1}; // a pipe in which nothing ever comes

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
        } else if (s.verb == "pi-mutex") {
            put(made, must(node_of(s).pi_mutex<data>(name("pi", s.arg("mutex")))));
        } else if (s.verb == "condvar") {
            put(made, must(node_of(s).condition(name("condvar", s.arg("condvar")))));
        } else if (s.verb == "semaphore") {
            put(made, must(node_of(s).semaphore(name("semaphore", s.arg("semaphore")), s.arg("permits"))));
        } else if (s.verb == "set") {
            put(made, must(node_of(s).lockless_set(name("set", s.arg("set")), s.arg("capacity"))));
        } else if (s.verb == "interrupt") {
            put(made, outlive::interrupt());
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

    // What a dead owner left is made whole, given up, or kept as it is.
    template <class Lock>
    void inherit(Lock &it, handle of, handle guard, bool died, const step &s, reply &r) {
        r.value = died;
        r.data.assign((*it).begin(), (*it).end());
        if (died && s.arg("heal") == 1) {
            (*it).fill((*it)[0]);
            must(it.mark_consistent());
        }
        if (died && s.arg("heal") == 0) {
            it.unlock();
        } else {
            mine.emplace(guard, held{of, false});
        }
    }

    template <class Lock> void lock(Lock &it, const step &s, reply &r) {
        const bool died = must(it.acquire(s.until())) == outlive::acquired::owner_died;
        inherit(it, s.on(), s.arg("new"), died, s, r);
    }

    // Says 1 for a death and 2 for a notification.
    void sleep(const step &s, reply &r) {
        const handle guard = s.arg("guard");
        const auto of = std::get<held>(mine.at(guard)).of;
        mine.erase(guard);
        auto &it = get<mutex>(of);
        ++sleeps;
        const auto notified = get<outlive::robust_condition>(s.on()).wait(it, s.until());
        if (!notified && notified.error() != OUTLIVE_OWNER_DIED) {
            fail(notified.error());
        }
        inherit(it, of, guard, !notified, s, r);
        r.value += notified && *notified ? 2 : 0;
    }

    bool without_data(const step &s, reply &r) {
        if (s.verb == "notify") {
            auto &it = get<outlive::robust_condition>(s.on());
            s.arg("all") == 1 ? it.notify_all() : it.notify_one();
        } else if (s.verb == "acquire") {
            auto &it = get<outlive::robust_semaphore>(s.on());
            auto permit = must(it.acquire(s.until()));
            r.value = permit.owner_died();
            r.data = {permit.index(), it.available()};
            mine.emplace(s.arg("new"), std::move(permit));
        } else if (s.verb == "insert") {
            r.value = must(get<outlive::lockless_set>(s.on()).insert(s.arg("id")));
        } else if (s.verb == "remove") {
            r.value = get<outlive::lockless_set>(s.on()).remove(s.arg("id"));
        } else if (s.verb == "ids") {
            const auto &it = get<outlive::lockless_set>(s.on());
            r.data = it.ids();
            for (u64 id = 0; id < ids_max; ++id) {
                if (it.contains(id)) {
                    r.data.push_back(id);
                }
            }
        } else if (s.verb == "raise") {
            raise(get<outlive::interrupt>(s.on()), s.arg("signal") == 1);
        } else if (s.verb == "raised") {
            r.value = get<outlive::interrupt>(s.on()).is_raised();
        } else if (s.verb == "clear") {
            get<outlive::interrupt>(s.on()).clear();
        } else {
            return false;
        }
        return true;
    }

    static outlive::member member_of(thing &it) {
        return std::visit(
            [](auto &port) -> outlive::member {
                if constexpr (requires { outlive::member(port); }) {
                    return port;
                } else {
                    throw as_told{};
                }
            },
            it);
    }

    // Waits for up to three things; the handles of what is ready.
    void wait(const step &s, reply &r) {
        std::vector<handle> handles;
        std::vector<outlive::member> members;
        for (const char *name : {"on", "and", "or"}) {
            if (const auto handle = s.arg(name)) {
                handles.push_back(handle);
                members.push_back(member_of(thing_of(handle)));
            }
        }
        if (s.arg("fd") == 1) {
            if (silent[0] < 0 && ::pipe(silent) != 0) {
                throw fails{"Failed", "no pipe"};
            }
            members.push_back(outlive::descriptor{silent[0]});
        }
        must(set.wait(std::span(members), s.until()));
        for (std::size_t i = 0; i < members.size(); ++i) {
            if (members[i].ready()) {
                r.data.push_back(i < handles.size() ? handles[i] : 0);
            }
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
        } else if (s.verb == "sleep") {
            sleep(s, r);
        } else if (s.verb == "wait") {
            wait(s, r);
        } else if (s.verb == "remove-lock") {
            const char *const kinds[] = {"mutex", "rwlock", "pi"};
            must(node_of(s).remove_lock(name(kinds[s.arg("rw")], s.arg("mutex"))));
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
        if (auto *port = std::get_if<outlive::robust_semaphore>(&it)) { return done(port->acquire(outlive::deadline::now)); }
        if (auto *port = std::get_if<outlive::lockless_set>(&it)) {
            return port->remove(1) ? outlive::expected<void>() : done(port->insert(1));
        }
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
        if (opens(s, r) || messages(s, r) || locks(s, r) || without_data(s, r) || services(s, r) || domain(s, r)) {
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
    std::atomic<pid_t> tid = 0; // of whom they are for

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
    of.tid = static_cast<pid_t>(::syscall(SYS_gettid));
    for (;;) {
        const auto s = of.pop();
        if (s.verb == "end" || s.verb == "crash") {
            return me.end(s.verb == "crash");
        }
        me.answer(s);
    }
}

void say_asleep(const steps &of, u64 thread, u64 before) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while ((sleeps == before || !is_in_futex(of.tid)) && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    say(reply().line(thread, {"Asleep", ""}, 0, 0));
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
            const auto me = s.thread;
            const bool sleeps_now = s.verb == "sleep";
            const auto before = sleeps.load();
            to.push(std::move(s));
            if (sleeps_now) {
                say_asleep(to, me, before);
            }
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
