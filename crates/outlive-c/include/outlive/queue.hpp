// Queues: many producers, one consumer.
#ifndef OUTLIVE_QUEUE_HPP
#define OUTLIVE_QUEUE_HPP

#include "topic.hpp"
#include "unwinding.hpp"

namespace outlive::inline OUTLIVE_ABI {

/// Settings of a queue's ends; 0: the default.
///
/// Example:
///
///     auto log = node.consumer<pose>("/log", {.ordered_holdback = 5ms}).value();
///     auto sender = node.producer<pose>("/log", {.bound_bytes = 65536}).value();
///     sender.send({1.0, 2.0, 0.5}).value();
struct queue_options {
    std::uint64_t bound_bytes = 0; ///< producer: most shared memory its lane may take
    std::uint64_t first_bytes = 0; ///< producer: memory its lane takes at first and keeps
    bool stamped = false; ///< every message carries a time stamp; the first member decides
    /// consumer: receives in the order of time stamps, held back at most this long. Makes the queue
    /// stamped; OUTLIVE_TYPE_MISMATCH if it exists without stamps
    timespan ordered_holdback{};

    [[nodiscard]] ::outlive_queue_options raw() const {
        ::outlive_queue_options raw{};
        raw.size = sizeof raw;
        raw.bound_bytes = bound_bytes;
        raw.first_bytes = first_bytes;
        raw.stamped = stamped ? 1 : 0;
        raw.ordered_holdback_ns = ordered_holdback.positive();
        return raw;
    }
};

namespace detail {
using producer_handle = lender<::outlive_producer, &::outlive_producer_close>;
using consumer_handle = lender<::outlive_consumer, &::outlive_consumer_close>;
} // namespace detail

/// Room in a producer's lane; the producer stays open until it is gone, and any other call on it
/// ends the slot. Dropped uncommitted, nothing was sent. Empty once it is committed or moved from.
///
/// Example:
///
///     auto goals = node.producer<pose>("/arm/goals").value();
///     auto slot = goals.reserve().value();
///     *slot = {3.0, 4.0, 0.0}; // in the lane
///     std::move(slot).commit().value();
template <class T> class slot {
  public:
    slot() = default;
    slot(slot &&other) noexcept
        : raw_(std::exchange(other.raw_, {})), of_(std::move(other.of_)) {}
    slot &operator=(slot &&other) noexcept {
        if (this != &other) {
            give_back();
            raw_ = std::exchange(other.raw_, {});
            of_ = std::move(other.of_);
        }
        return *this;
    }
    ~slot() { give_back(); }
    explicit operator bool() const noexcept { return raw_.data != nullptr; }

    /// The value; holds whatever was there before.
    T &operator*() &
        requires detail::payload<T>::is_fixed
    {
        return *static_cast<T *>(room());
    }
    T *operator->() &
        requires detail::payload<T>::is_fixed
    {
        return static_cast<T *>(room());
    }
    /// All elements of T[]; none of an empty slot.
    auto span() & noexcept
        requires std::is_unbounded_array_v<T>
    {
        using element = std::remove_extent_t<T>;
        return std::span<element>(static_cast<element *>(raw_.data), raw_.size / sizeof(element));
    }
    // A slot without a name ends with its statement, uncommitted.
    T &operator*() && = delete;
    T *operator->() && = delete;
    void span() && = delete;

    /// Sends it. OUTLIVE_INVALID_ARGUMENT: another call on the producer ended it.
    expected<void> commit() && {
        const auto of = std::move(of_);
        auto raw = std::exchange(raw_, {});
        if (!of) {
            return unexpected(error(OUTLIVE_INVALID_ARGUMENT, "committing an empty slot"));
        }
        if (::outlive_producer_commit(of.get(), &raw) != 0) {
            return unexpected(error::told(::outlive_producer_status(of.get())));
        }
        return {};
    }

  private:
    template <class> friend class producer;
    slot(const ::outlive_slot &raw, detail::producer_handle of) : raw_(raw), of_(std::move(of)) {}
    void *room() {
        if (raw_.data == nullptr) [[unlikely]] {
            detail::nothing("a slot that is committed or was moved from");
        }
        return raw_.data;
    }
    void give_back() noexcept {
        if (of_) {
            ::outlive_producer_discard(of_.get(), &raw_);
        }
    }
    ::outlive_slot raw_{};
    detail::producer_handle of_;
};

/// Sends messages to the one consumer of a queue. One thread at a time.
///
/// Example:
///
///     auto goals = node.producer<pose>("/arm/goals").value();
///     goals.wait_for_consumer(10s).value();
///     if (auto sent = goals.send({3.0, 4.0, 0.0}, 1s); !sent) {
///         std::cerr << sent.error().message() << '\n'; // OUTLIVE_OWNER_DIED: no live consumer
///     }
template <class T> class producer {
    using payload = detail::payload<T>;

  public:
    producer() = default; ///< empty until one is assigned
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// Sends a copy, waiting for room until the deadline. OUTLIVE_OWNER_DIED: no live consumer, or
    /// it died while this call waited; nothing was sent.
    expected<void> send(typename payload::argument value, deadline until = deadline::never)
        requires requires { payload::size(value); }
    {
        if (const auto refused = detail::refused(value)) {
            return unexpected(*refused);
        }
        const auto sent = ::outlive_producer_send(at_.get(), payload::data(value),
                                                  payload::size(value), until.ns());
        if (sent == 0) {
            return {};
        }
        return unexpected(failure());
    }
    /// As send, without ever waiting.
    expected<void> try_send(typename payload::argument value)
        requires requires { payload::size(value); }
    {
        return send(value, deadline::now);
    }
    /// Sends all of them or none, several times as fast as one by one.
    expected<void> send_batch(std::span<const T> values, deadline until = deadline::never)
        requires payload::is_fixed
    {
        const auto sent = ::outlive_producer_send_batch(at_.get(), values.data(), values.size(),
                                                        until.ns());
        if (sent == 0) {
            return {};
        }
        return unexpected(failure());
    }
    /// Room to fill in place and commit without a copy; waits as send does.
    expected<slot<T>> reserve(deadline until = deadline::never)
        requires payload::is_fixed
    {
        return room(sizeof(T), until);
    }
    /// Room for `count` elements.
    expected<slot<T>> reserve(std::size_t count, deadline until = deadline::never)
        requires std::is_unbounded_array_v<T>
    {
        using element = std::remove_extent_t<T>;
        const auto size = detail::bytes_of(count, sizeof(element));
        if (!size) {
            return unexpected(detail::too_many(count, sizeof(element)));
        }
        return room(*size, until);
    }
    /// Whether a live consumer reads the queue. It may die right after the answer.
    /// Also true while that cannot be found out, for instance for lack of memory.
    [[nodiscard]] bool has_consumer() noexcept { return ::outlive_producer_has_consumer(at_.get()); }
    /// Waits until a live consumer reads the queue.
    expected<void> wait_for_consumer(deadline until) {
        return detail::waited(::outlive_producer_wait_for_consumer(at_.get(), until.ns()));
    }
    [[nodiscard]] port_id id() const noexcept { return ::outlive_producer_id(at_.get()); }
    [[nodiscard]] ::outlive_producer *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit producer(::outlive_producer *at) : at_(at) {}

    expected<slot<T>> room(std::size_t size, deadline until) {
        ::outlive_slot raw;
        if (::outlive_producer_reserve(at_.get(), size, until.ns(), &raw) != 0) {
            return unexpected(failure());
        }
        return slot<T>(raw, at_.share());
    }
    error failure() const { return error::told(::outlive_producer_status(at_.get())); }

    detail::producer_handle at_;
};

/// A message in its lane; the consumer stays open until it is gone, and there is one at a time.
///
/// It counts as received when this is destroyed, unless by an exception: then, as after nack() and
/// after the death of the process, it comes again.
///
/// Example:
///
///     auto goals = node.consumer<pose>("/robot/goals").value();
///     auto got = goals.receive(10s);
///     while (!got && goals.next_event()) { got = goals.receive(10s); }
///     outlive::message<pose> goal = std::move(got).value();
///     if (goal->x > 9.0) {
///         std::move(goal).nack().value(); // it comes again
///     } else {
///         drive(*goal);
///         std::move(goal).ack().value(); // or leave that to the destructor
///     }
template <class T> class message {
    using payload = detail::payload<T>;

  public:
    message() = default; ///< empty until one is assigned
    message(message &&other) noexcept
        : raw_(other.raw_), of_(std::move(other.of_)), exceptions_(other.exceptions_) {}
    message &operator=(message &&other) noexcept {
        if (this != &other) {
            finish();
            raw_ = other.raw_;
            of_ = std::move(other.of_);
            exceptions_ = other.exceptions_;
        }
        return *this;
    }
    ~message() { finish(); }
    explicit operator bool() const noexcept { return static_cast<bool>(of_); }

    /// Acknowledges it; a later exception cannot undo that.
    expected<void> ack() && {
        const auto of = std::move(of_);
        return detail::done(::outlive_consumer_ack(of.get(), &raw_));
    }
    /// Puts it back: it comes again with the next receive, of this consumer or of the next. If a wait
    /// set looks at the consumer in between, a message of another producer may come first.
    expected<void> nack() && {
        const auto of = std::move(of_);
        return detail::done(::outlive_consumer_nack(of.get(), &raw_));
    }

    typename payload::view operator*() const & { return shown(); }
    detail::copy_of<T> operator*() const &&
        requires detail::is_small<T>
    {
        return shown();
    }
    typename payload::view operator*() const && = delete;
    const T *operator->() const
        requires payload::is_fixed
    {
        return &shown();
    }
    /// What was packed; OUTLIVE_CORRUPT: the bytes are not that.
    [[nodiscard]] expected<T> value() const
        requires packable<T>
    {
        return detail::unpacked<T>(shown());
    }
    [[nodiscard]] port_id producer() const noexcept { return raw_.producer; }
    /// ns of CLOCK_MONOTONIC; 0 in a queue without time stamps.
    [[nodiscard]] std::uint64_t timestamp_ns() const noexcept { return raw_.timestamp_ns; }

  private:
    template <class> friend class consumer;
    typename payload::view shown() const {
        if (!of_) [[unlikely]] {
            detail::nothing("a message that is acknowledged, given back or was moved from");
        }
        return payload::of(raw_.data, raw_.size);
    }
    void finish() noexcept {
        if (of_) {
            if (detail::exceptions_in_flight() > exceptions_) [[unlikely]] {
                ::outlive_consumer_nack(of_.get(), &raw_);
            } else {
                ::outlive_consumer_ack(of_.get(), &raw_);
            }
        }
    }
    ::outlive_message raw_{};
    detail::consumer_handle of_;
    unsigned exceptions_ = 0;
};

/// The one consumer of a queue. One thread at a time.
///
/// Example:
///
///     auto goals = node.consumer<pose>("/robot/goals").value();
///     auto ended = goals.for_each([](const outlive::message<pose> &goal) {
///         drive(*goal); // if the process dies in it, the next consumer gets the goal
///         return goal->x < 1.0; // false: enough
///     });
///     ended.value(); // throws if a call failed
template <class T> class consumer {
  public:
    consumer() = default; ///< empty until one is assigned
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// The next message, waiting for it until the deadline; as subscriber::receive.
    /// OUTLIVE_TOO_MANY_BORROWS while the previous message is in hand; nothing is lost.
    expected<message<T>> receive(deadline until = deadline::now) {
        expected<message<T>> got(std::in_place);
        auto &to = *got;
        const auto code = ::outlive_consumer_receive(at_.get(), until.ns(), &to.raw_);
        if (code == OUTLIVE_OK) {
            to.of_ = at_.share();
            to.exceptions_ = detail::exceptions_in_flight();
        } else {
            got = unexpected(error::last(code));
        }
        return got;
    }
    /// Waits for messages and hands each to `see`, as a `message<T> &` that is acknowledged when
    /// `see` returns, unless it gave it back by `std::move(m).nack()` or threw. Ends as
    /// subscriber::for_each does.
    template <class See> expected<void> for_each(See &&see) {
        return detail::for_each_of<message<T>>(*this, see);
    }
    /// The oldest event not returned yet.
    std::optional<event> next_event() {
        return detail::event_of([&](::outlive_event *to) {
            return ::outlive_consumer_next_event(at_.get(), to);
        });
    }
    [[nodiscard]] ::outlive_consumer *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit consumer(::outlive_consumer *at) : at_(at) {}
    detail::consumer_handle at_;
};

template <class T>
expected<producer<T>> node::producer(std::string_view name, const queue_options &options) const {
    const auto type = detail::make_type<T>();
    if (!type) {
        return unexpected(type.error());
    }
    const auto raw = options.raw();
    return opened<outlive::producer<T>, ::outlive_producer>(name, [&](const char *text, ::outlive_producer **out) {
        return ::outlive_producer_open(at_.get(), text, type->get(), &raw, out);
    });
}
template <class T> expected<producer<T>> node::producer(std::string_view name) const {
    return producer<T>(name, queue_options{});
}
template <class T>
expected<consumer<T>> node::consumer(std::string_view name, const queue_options &options) const {
    const auto type = detail::make_type<T>();
    if (!type) {
        return unexpected(type.error());
    }
    const auto raw = options.raw();
    return opened<outlive::consumer<T>, ::outlive_consumer>(name, [&](const char *text, ::outlive_consumer **out) {
        return ::outlive_consumer_open(at_.get(), text, type->get(), &raw, out);
    });
}
template <class T> expected<consumer<T>> node::consumer(std::string_view name) const {
    return consumer<T>(name, queue_options{});
}

} // namespace outlive::inline OUTLIVE_ABI

#endif
