// Queues: many producers, one consumer.
#ifndef OUTLIVE_QUEUE_HPP
#define OUTLIVE_QUEUE_HPP

#include "topic.hpp"

namespace outlive {

/// Settings of a queue's ends; 0: the default.
struct queue_options {
    std::uint64_t bound_bytes = 0; ///< producer: most shared memory its lane may take
    std::uint64_t first_bytes = 0; ///< producer: memory its lane takes at first and keeps
    bool stamped = false;          ///< every message carries a time stamp
    /// consumer: receives in the order of time stamps, holding back for at most so long
    std::chrono::nanoseconds ordered_holdback{0};

    [[nodiscard]] ::outlive_queue_options raw() const {
        ::outlive_queue_options raw{};
        raw.bound_bytes = bound_bytes;
        raw.first_bytes = first_bytes;
        raw.stamped = stamped ? 1 : 0;
        raw.ordered_holdback_ns = static_cast<std::uint64_t>(ordered_holdback.count());
        return raw;
    }
};

/// Room in a producer's lane, which must outlive it; any other call on the producer ends it. Dropped
/// uncommitted, nothing was sent.
template <class T> class slot {
  public:
    slot(slot &&other) noexcept
        : data_(other.data_), size_(other.size_), of_(std::exchange(other.of_, nullptr)) {}
    slot &operator=(slot &&) = delete;

    /// The value; holds whatever was there before.
    T &operator*() noexcept
        requires detail::payload<T>::is_fixed
    {
        return *static_cast<T *>(data_);
    }
    T *operator->() noexcept
        requires detail::payload<T>::is_fixed
    {
        return static_cast<T *>(data_);
    }
    /// All elements of T[].
    auto span() noexcept
        requires std::is_unbounded_array_v<T>
    {
        using element = std::remove_extent_t<T>;
        return std::span<element>(static_cast<element *>(data_), size_ / sizeof(element));
    }
    /// Sends it. OUTLIVE_INVALID_ARGUMENT: another call on the producer ended it.
    expected<void> commit() && {
        auto *of = std::exchange(of_, nullptr);
        if (of == nullptr) {
            return unexpected(OUTLIVE_INVALID_ARGUMENT);
        }
        if (::outlive_producer_commit(of) != 0) {
            return unexpected(error::last(::outlive_producer_status(of)));
        }
        return {};
    }

  private:
    template <class> friend class producer;
    slot(void *data, std::size_t size, ::outlive_producer *of)
        : data_(data), size_(size), of_(of) {}
    void *data_;
    std::size_t size_;
    ::outlive_producer *of_;
};

/// Sends messages to the one consumer of a queue. One thread at a time.
template <class T> class producer {
    using payload = detail::payload<T>;

  public:
    /// Sends a copy, waiting for room until the deadline. OUTLIVE_OWNER_DIED: no live consumer, or
    /// it died while this call waited; nothing was sent.
    expected<void> send(typename payload::argument value, deadline until = deadline::never)
        requires requires { payload::size(value); }
    {
        const auto sent = ::outlive_producer_send(at_.get(), payload::data(value),
                                                  payload::size(value), until.ns());
        if (sent == 0) {
            return {};
        }
        return unexpected(error::last(::outlive_producer_status(at_.get())));
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
        return unexpected(error::last(::outlive_producer_status(at_.get())));
    }
    /// Room to fill in place and commit without a copy; waits as send does.
    expected<slot<T>> reserve(deadline until = deadline::never)
        requires payload::is_fixed
    {
        return room(sizeof(T), until);
    }
    /// Room for so many elements.
    expected<slot<T>> reserve(std::size_t count, deadline until = deadline::never)
        requires std::is_unbounded_array_v<T>
    {
        return room(count * sizeof(std::remove_extent_t<T>), until);
    }
    /// Whether a live consumer reads the queue. It may die right after the answer.
    [[nodiscard]] bool has_consumer() noexcept { return ::outlive_producer_has_consumer(at_.get()); }
    /// Waits until a live consumer reads the queue.
    expected<void> wait_for_consumer(deadline until) {
        return detail::done(::outlive_producer_wait_for_consumer(at_.get(), until.ns()));
    }
    [[nodiscard]] port_id id() const noexcept { return ::outlive_producer_id(at_.get()); }
    [[nodiscard]] ::outlive_producer *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit producer(::outlive_producer *at) : at_(at) {}

    expected<slot<T>> room(std::size_t size, deadline until) {
        void *data = ::outlive_producer_reserve(at_.get(), size, until.ns());
        if (data == nullptr) {
            return unexpected(error::last(::outlive_producer_status(at_.get())));
        }
        return slot<T>(data, size, at_.get());
    }

    detail::handle<::outlive_producer, ::outlive_producer_close> at_;
};

/// A message in its lane. It counts as received when this goes; the consumer must outlive it, and
/// there is one at a time.
template <class T> class message {
  public:
    explicit message(detail::unfilled) noexcept {}
    message(message &&other) noexcept
        : raw_(other.raw_), of_(std::exchange(other.of_, nullptr)) {}
    message &operator=(message &&) = delete;
    ~message() {
        if (of_ != nullptr) {
            ::outlive_consumer_done(of_);
        }
    }

    typename detail::payload<T>::view operator*() const noexcept {
        return detail::payload<T>::of(raw_.data, raw_.size);
    }
    const T *operator->() const noexcept
        requires detail::payload<T>::is_fixed
    {
        return &**this;
    }
    /// What was packed; OUTLIVE_CORRUPT: the bytes are none of it.
    [[nodiscard]] expected<T> value() const
        requires packable<T>
    {
        return detail::unpacked<T>(**this);
    }
    [[nodiscard]] port_id producer() const noexcept { return raw_.producer; }
    /// ns of CLOCK_MONOTONIC; 0 in a queue without time stamps.
    [[nodiscard]] std::uint64_t timestamp_ns() const noexcept { return raw_.timestamp_ns; }

  private:
    template <class> friend class consumer;
    ::outlive_message raw_;
    ::outlive_consumer *of_ = nullptr;
};

/// The one consumer of a queue. One thread at a time.
template <class T> class consumer {
  public:
    /// The next message, waiting for it until the deadline; as subscriber::receive.
    expected<message<T>> receive(deadline until = deadline::now) {
        expected<message<T>> got(std::in_place, detail::unfilled());
        const auto code = ::outlive_consumer_receive(at_.get(), until.ns(), &(*got).raw_);
        if (code == OUTLIVE_OK) {
            (*got).of_ = at_.get();
        } else {
            got = unexpected(error::last(code));
        }
        return got;
    }
    /// The oldest event that was not asked for yet.
    std::optional<event> next_event() {
        event found;
        if (::outlive_consumer_next_event(at_.get(), &found) != OUTLIVE_OK) {
            return std::nullopt;
        }
        return found;
    }
    [[nodiscard]] ::outlive_consumer *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit consumer(::outlive_consumer *at) : at_(at) {}
    detail::handle<::outlive_consumer, ::outlive_consumer_close> at_;
};

template <class T>
expected<producer<T>> node::producer(const char *queue, const queue_options &options) const {
    auto type = detail::make_type<T>();
    if (!type) {
        return unexpected(std::move(type).error());
    }
    const auto raw = options.raw();
    ::outlive_producer *at = nullptr;
    const auto code = ::outlive_producer_open(at_.get(), queue, type->get(), &raw, &at);
    if (code != OUTLIVE_OK) {
        return unexpected(error::last(code));
    }
    return outlive::producer<T>(at);
}
template <class T> expected<producer<T>> node::producer(const char *queue) const {
    return producer<T>(queue, queue_options{});
}
template <class T>
expected<consumer<T>> node::consumer(const char *queue, const queue_options &options) const {
    auto type = detail::make_type<T>();
    if (!type) {
        return unexpected(std::move(type).error());
    }
    const auto raw = options.raw();
    ::outlive_consumer *at = nullptr;
    const auto code = ::outlive_consumer_open(at_.get(), queue, type->get(), &raw, &at);
    if (code != OUTLIVE_OK) {
        return unexpected(error::last(code));
    }
    return outlive::consumer<T>(at);
}
template <class T> expected<consumer<T>> node::consumer(const char *queue) const {
    return consumer<T>(queue, queue_options{});
}

} // namespace outlive

#endif
