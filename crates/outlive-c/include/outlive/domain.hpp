// A domain seen from outside: who is there, and cleaning up. Joins nothing, makes nothing.
#ifndef OUTLIVE_DOMAIN_HPP
#define OUTLIVE_DOMAIN_HPP

#include <exception>
#include <vector>

#include "node.hpp"

namespace outlive::inline OUTLIVE_ABI {

/// A node of a domain, possibly a dead one that nobody has cleaned up.
struct node_info {
    std::uint64_t id;
    std::string name;
    std::uint32_t pid; ///< in the node's own PID namespace; for people only
    bool alive;
    std::uint64_t started_ns; ///< ns of CLOCK_MONOTONIC
};

/// A topic of a domain.
struct topic_info {
    std::string name, type_name;
    std::string description;             ///< as of outlive::describe; empty if there is none
    std::uint64_t depth;                 ///< messages per publisher
    std::size_t publishers, subscribers; ///< publishers that live and have not left
    std::uint64_t messages, memory_bytes;
};

/// What clean() removed and what it left.
using clean_report = ::outlive_clean_report;

namespace detail {
/// Runs a part of a callback. What it throws must not cross the frames of another language: it is
/// kept, nothing runs after it, and `rethrow` throws it once the call has returned.
class carrier {
  public:
    template <class F> void run(F &&part) noexcept {
#if defined(__cpp_exceptions)
        if (thrown_ == nullptr) {
            try {
                part();
            } catch (...) {
                thrown_ = std::current_exception();
            }
        }
#else
        part();
#endif
    }
    void rethrow() {
        if (thrown_ != nullptr) {
            std::rethrow_exception(std::exchange(thrown_, nullptr));
        }
    }

  private:
    std::exception_ptr thrown_;
};

/// What `call` tells its callback of, as a vector of what `make` makes of each.
template <class To, class Info, class Call, class Make>
expected<std::vector<To>> collected(Call &&call, Make make) {
    struct {
        std::vector<To> all;
        carrier safely;
        Make make;
    } kept{{}, {}, make};
    const auto add = [](const Info *info, void *user) noexcept {
        auto *to = static_cast<decltype(kept) *>(user);
        to->safely.run([&] { to->all.push_back(to->make(*info)); });
    };
    const status code = call(static_cast<void (*)(const Info *, void *)>(add), &kept);
    kept.safely.rethrow();
    if (code != OUTLIVE_OK) {
        return unexpected(error::told(code));
    }
    return std::move(kept.all);
}
} // namespace detail

/// The domain that nodes with these options join.
///
/// Example:
///
///     outlive::domain here;
///     const std::vector<outlive::node_info> nodes = here.nodes().value();
///     const std::vector<outlive::topic_info> topics = here.topics().value();
///     const outlive::clean_report cleaned = here.clean().value();
///     std::cout << nodes.size() << " nodes, " << topics.size() << " topics; removed "
///               << cleaned.files << " files of the dead\n";
class domain {
  public:
    explicit domain(node_options options = {}) : options_(std::move(options)) {}

    /// Its nodes in order of joining.
    [[nodiscard]] expected<std::vector<node_info>> nodes() const {
        if (auto fine = detail::whole(options_); !fine) {
            return unexpected(std::move(fine).error());
        }
        const auto raw = options_.raw();
        return detail::collected<node_info, ::outlive_node_info>(
            [&](auto found, void *user) { return ::outlive_domain_nodes(&raw, found, user); },
            [](const ::outlive_node_info &info) -> node_info {
                return {info.id, info.name, info.pid, info.alive, info.started_ns};
            });
    }
    /// Its topics in order of names.
    [[nodiscard]] expected<std::vector<topic_info>> topics() const {
        if (auto fine = detail::whole(options_); !fine) {
            return unexpected(std::move(fine).error());
        }
        const auto raw = options_.raw();
        return detail::collected<topic_info, ::outlive_topic_info>(
            [&](auto found, void *user) { return ::outlive_domain_topics(&raw, found, user); },
            [](const ::outlive_topic_info &info) -> topic_info {
                return {info.name,  info.type_name,   info.description, info.depth,
                        info.publishers, info.subscribers, info.messages,    info.memory_bytes};
            });
    }
    /// Removes what dead nodes left and nobody uses; leaves the living alone.
    expected<clean_report> clean() const {
        if (auto fine = detail::whole(options_); !fine) {
            return unexpected(std::move(fine).error());
        }
        const auto raw = options_.raw();
        clean_report report{};
        if (auto code = ::outlive_domain_clean(&raw, &report); code != OUTLIVE_OK) {
            return unexpected(error::told(code));
        }
        return report;
    }

  private:
    node_options options_;
};

} // namespace outlive::inline OUTLIVE_ABI

#endif
