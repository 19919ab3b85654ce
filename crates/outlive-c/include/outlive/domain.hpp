// A domain seen from outside: who is there, and cleaning up. Joins nothing, makes nothing.
#ifndef OUTLIVE_DOMAIN_HPP
#define OUTLIVE_DOMAIN_HPP

#include <vector>

#include "node.hpp"

namespace outlive {

/// A node of a domain; also a dead one that nobody has cleaned up.
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

/// The domain that nodes of these options join.
class domain {
  public:
    explicit domain(node_options options = {}) : options_(std::move(options)) {}

    /// Its nodes in order of joining.
    [[nodiscard]] expected<std::vector<node_info>> nodes() const {
        std::vector<node_info> all;
        const auto add = [](const ::outlive_node_info *info, void *to) {
            static_cast<std::vector<node_info> *>(to)->push_back(
                {info->id, info->name, info->pid, info->alive, info->started_ns});
        };
        const auto raw = options_.raw();
        if (auto code = ::outlive_domain_nodes(&raw, add, &all); code != OUTLIVE_OK) {
            return unexpected(error::last(code));
        }
        return all;
    }
    /// Its topics in order of names.
    [[nodiscard]] expected<std::vector<topic_info>> topics() const {
        std::vector<topic_info> all;
        const auto add = [](const ::outlive_topic_info *info, void *to) {
            static_cast<std::vector<topic_info> *>(to)->push_back(
                {info->name, info->type_name, info->description, info->depth, info->publishers,
                 info->subscribers, info->messages, info->memory_bytes});
        };
        const auto raw = options_.raw();
        if (auto code = ::outlive_domain_topics(&raw, add, &all); code != OUTLIVE_OK) {
            return unexpected(error::last(code));
        }
        return all;
    }
    /// Removes what dead nodes left and nobody uses; what lives is left alone.
    expected<clean_report> clean() const {
        const auto raw = options_.raw();
        clean_report report;
        if (auto code = ::outlive_domain_clean(&raw, &report); code != OUTLIVE_OK) {
            return unexpected(error::last(code));
        }
        return report;
    }

  private:
    node_options options_;
};

} // namespace outlive

#endif
