// Topics: publishers, subscribers, loans, samples.
#ifndef OUTLIVE_TOPIC_HPP
#define OUTLIVE_TOPIC_HPP

#include <optional>

#include "node.hpp"

namespace outlive::inline OUTLIVE_ABI {

/// Settings of a topic's ports; 0: the default.
///
/// Example:
///
///     auto publisher = node.publisher<pose>("/odometry", {.depth = 64}).value();
///     auto subscriber = node.subscriber<pose>("/odometry", {.reliable = true}).value();
///     publisher.publish({1.0, 2.0, 0.5}).value(); // waits while 64 messages are unread
struct topic_options {
    std::uint64_t depth = 0;            ///< messages each publisher's ring holds
    std::uint64_t history = 0;          ///< subscriber: messages from before it joined
    std::uint64_t borrows = 0;          ///< subscriber: samples it may hold at once
    std::uint64_t memory_bytes_max = 0; ///< publisher: bound on its shared memory
    bool reliable = false;              ///< subscriber: publishers wait for it
    /// publisher: how long a publish waits for the slowest live reliable subscriber; 1 s unless
    /// given, zero or less for not at all (OUTLIVE_WOULD_BLOCK)
    std::optional<timespan> reliable_timeout{};
    bool is_volatile = false; ///< publisher: drops what every subscriber has read

    /// Points into these options.
    [[nodiscard]] ::outlive_topic_options raw() const & {
        ::outlive_topic_options raw{};
        raw.size = sizeof raw;
        raw.depth = depth;
        raw.history = history;
        raw.borrows = borrows;
        raw.memory_bytes_max = memory_bytes_max;
        raw.reliable = reliable ? 1 : 0;
        raw.reliable_timeout_ns = reliable_timeout ? reliable_timeout->raw() : nullptr;
        raw.is_volatile = is_volatile ? 1 : 0;
        return raw;
    }
};

namespace detail {
using publisher_handle = lender<::outlive_publisher, &::outlive_publisher_close>;
} // namespace detail

/// A writable slot in shared memory, lent by a publisher, which stays open until it is gone. Dropped
/// unpublished, the slot is free again. Empty once it is published or moved from.
///
/// Example:
///
///     auto clouds = node.publisher<float[]>("/cloud").value();
///     auto loan = clouds.loan(3 * 1000).value();
///     std::ranges::fill(loan.span(), 0.0f); // in shared memory
///     std::move(loan).publish().value();
template <class T> class loan {
  public:
    loan() noexcept { raw_.data = nullptr, raw_.size = 0; }
    loan(loan &&other) noexcept : of_(std::move(other.of_)), raw_(other.raw_) { other.forget(); }
    loan &operator=(loan &&other) noexcept {
        if (this != &other) {
            ::outlive_loan_drop(&raw_);
            of_ = std::move(other.of_);
            raw_ = other.raw_;
            other.forget();
        }
        return *this;
    }
    ~loan() {
        if (raw_.data != nullptr) {
            ::outlive_loan_drop(&raw_);
        }
    }
    explicit operator bool() const noexcept { return raw_.data != nullptr; }

    /// The value; holds whatever was there before.
    T &operator*() &
        requires detail::payload<T>::is_fixed
    {
        return *static_cast<T *>(lent());
    }
    T *operator->() &
        requires detail::payload<T>::is_fixed
    {
        return static_cast<T *>(lent());
    }
    /// All bytes; of T[], the elements. None of an empty loan.
    auto span() & noexcept {
        if constexpr (std::is_unbounded_array_v<T>) {
            using element = std::remove_extent_t<T>;
            return std::span<element>(static_cast<element *>(raw_.data),
                                      raw_.size / sizeof(element));
        } else {
            return std::span<std::byte>(static_cast<std::byte *>(raw_.data), raw_.size);
        }
    }
    // A loan without a name ends with its statement, unpublished.
    T &operator*() && = delete;
    T *operator->() && = delete;
    void span() && = delete;

    /// Makes it visible to subscribers; returns its number. The loan is gone then, even if it fails.
    expected<std::uint64_t> publish() && {
        const auto of = std::move(of_); // lent no longer
        std::uint64_t seq = 0;
        const auto code = ::outlive_loan_publish(&raw_, &seq);
        forget();
        if (code != OUTLIVE_OK) {
            return unexpected(error::told(code));
        }
        return seq;
    }

  private:
    template <class> friend class publisher;
    void *lent() {
        if (raw_.data == nullptr) [[unlikely]] {
            detail::nothing("a loan that is published or was moved from");
        }
        return raw_.data;
    }
    void forget() noexcept { raw_.data = nullptr, raw_.size = 0; }
    detail::publisher_handle of_;
    ::outlive_loan raw_;
};

/// As a loan of headed<H, E>: writes the header, shows the elements.
template <class H, class E> class loan<headed<H, E>> {
  public:
    loan() = default;
    explicit operator bool() const noexcept { return static_cast<bool>(bytes_); }
    H &header() & {
        if (!bytes_) [[unlikely]] {
            detail::nothing("a loan that is published or was moved from");
        }
        return *reinterpret_cast<H *>(bytes_.span().data());
    }
    /// The elements; none of an empty loan.
    std::span<E> tail() & noexcept {
        const auto bytes = bytes_.span();
        if (bytes.size() < sizeof(H)) {
            return {};
        }
        return {reinterpret_cast<E *>(bytes.data() + sizeof(H)),
                (bytes.size() - sizeof(H)) / sizeof(E)};
    }
    H &header() && = delete;
    std::span<E> tail() && = delete;
    expected<std::uint64_t> publish() && { return std::move(bytes_).publish(); }

  private:
    template <class> friend class publisher;
    explicit loan(loan<std::byte[]> bytes) : bytes_(std::move(bytes)) {}
    loan<std::byte[]> bytes_;
};

/// Sends messages on a topic. One thread at a time.
///
/// Example:
///
///     auto poses = node.publisher<pose>("/robot/pose").value();
///     if (auto sent = poses.publish({1.0, 2.0, 0.5}); !sent) {
///         std::cerr << sent.error().message() << '\n'; // nothing was published
///     }
template <class T> class publisher {
    using payload = detail::payload<T>;
    template <class H, class E> static H head_of(headed<H, E> *);
    static std::nullptr_t head_of(void *); // has no header
    template <class X> using header_of = decltype(head_of(static_cast<X *>(nullptr)));

  public:
    publisher() = default; ///< empty until one is assigned
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// Copies a value in and publishes it; returns its number.
    expected<std::uint64_t> publish(typename payload::argument value)
        requires requires { payload::size(value); }
    {
        if (const auto refused = detail::refused(value)) {
            return unexpected(*refused);
        }
        std::uint64_t seq = 0;
        const auto code = ::outlive_publisher_publish(at_.get(), payload::data(value),
                                                      payload::size(value), &seq);
        if (code != OUTLIVE_OK) {
            return unexpected(error::told(code));
        }
        return seq;
    }
    /// Publishes each of them, in order. Small ones take half the time of as many calls of publish;
    /// those have the same time stamp, but one that had to wait and those behind it have another.
    /// Those before one that failed are sent: published() tells how many.
    expected<void> publish_batch(std::span<const T> values)
        requires payload::is_fixed
    {
        const auto code =
            ::outlive_publisher_publish_batch(at_.get(), values.data(), values.size());
        if (code != OUTLIVE_OK) {
            return unexpected(error::told(code));
        }
        return {};
    }

    /// A slot to fill and publish without a copy.
    expected<outlive::loan<T>> loan()
        requires payload::is_fixed
    {
        return lend<T>(sizeof(T));
    }
    /// A slot for `count` elements.
    expected<outlive::loan<T>> loan(std::size_t count)
        requires std::is_unbounded_array_v<T>
    {
        using element = std::remove_extent_t<T>;
        const auto size = detail::bytes_of(count, sizeof(element));
        if (!size) {
            return unexpected(detail::too_many(count, sizeof(element)));
        }
        return lend<T>(*size);
    }
    /// A slot of `bytes`, for a library that writes its encoding in place.
    expected<outlive::loan<T>> loan(std::size_t bytes)
        requires detail::lent_as_bytes<T>
    {
        return lend<T>(bytes);
    }
    /// A slot with `header` written, for `count` elements after it.
    template <class H = header_of<T>> // for `loan({...}, count)`
    expected<outlive::loan<T>> loan(const H &header, std::size_t count)
        requires(!payload::is_fixed && !std::is_unbounded_array_v<T>)
    {
        constexpr std::size_t each = tail_size(static_cast<T *>(nullptr));
        static_assert(std::is_same_v<H, header_of<T>>, "outlive: this is not the header's type");
        const auto size = detail::bytes_of(count, each, sizeof(H));
        if (!size) {
            return unexpected(detail::too_many(count, each));
        }
        auto bytes = lend<std::byte[]>(*size);
        if (!bytes) {
            return unexpected(std::move(bytes).error());
        }
        outlive::loan<T> lent(std::move(*bytes));
        lent.header() = header;
        return lent;
    }

    [[nodiscard]] port_id id() const noexcept { return ::outlive_publisher_id(at_.get()); }
    /// Messages published so far.
    [[nodiscard]] std::uint64_t published() const noexcept {
        return ::outlive_publisher_published(at_.get());
    }
    /// Counts the live subscribers.
    [[nodiscard]] expected<std::size_t> subscribers() const {
        std::size_t count = 0;
        if (auto c = ::outlive_publisher_subscribers(at_.get(), &count); c != OUTLIVE_OK) {
            return unexpected(error::last(c));
        }
        return count;
    }
    [[nodiscard]] ::outlive_publisher *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit publisher(::outlive_publisher *at) : at_(at) {}

    template <class H, class E> static constexpr std::size_t tail_size(headed<H, E> *) {
        return sizeof(E);
    }
    template <class U> expected<outlive::loan<U>> lend(std::size_t size) {
        expected<outlive::loan<U>> lent(std::in_place);
        const auto code = ::outlive_publisher_loan(at_.get(), size, &(*lent).raw_);
        if (code == OUTLIVE_OK) {
            (*lent).of_ = at_.share();
        } else {
            lent = unexpected(error::told(code));
        }
        return lent;
    }

    detail::publisher_handle at_;
};

/// Where a message comes from.
using meta = ::outlive_meta;

/// A received message. Large ones lie in shared memory, without a copy; it may outlive its
/// subscriber, and its publisher's death does not affect it.
///
/// What `*` refers to lives as long as the sample: give it a name. From an unnamed sample small
/// values are copied, and large ones and spans do not compile.
///
/// Example:
///
///     auto poses = node.subscriber<pose>("/robot/pose", {.history = 1}).value();
///     if (auto sample = poses.latest()) {
///         std::cout << (*sample)->x << " m, message " << sample->meta().seq << '\n';
///     }
template <class T> class sample {
    using payload = detail::payload<T>;

  public:
    sample() noexcept { raw_.held = 0; }
    sample(sample &&other) noexcept : raw_(other.raw_) { other.raw_.held = 0; }
    sample &operator=(sample &&other) noexcept {
        if (this != &other) {
            ::outlive_sample_release(&raw_);
            raw_ = other.raw_;
            other.raw_.held = 0;
        }
        return *this;
    }
    ~sample() {
        if (raw_.held != 0) {
            ::outlive_sample_release(&raw_);
        }
    }
    explicit operator bool() const noexcept { return raw_.held != 0; }

    /// The value; of T[], a span; of headed<H, E>, header and tail.
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
    [[nodiscard]] outlive::meta meta() const noexcept {
        outlive::meta meta{};
        ::outlive_sample_meta(&raw_, &meta);
        return meta;
    }
    /// Whether it lies in shared memory, without a copy.
    [[nodiscard]] bool is_borrowed() const noexcept { return ::outlive_sample_is_borrowed(&raw_); }

  private:
    template <class> friend class subscriber;
    typename payload::view shown() const {
        if constexpr (payload::is_fixed) {
            if (raw_.held > 1) {
                return *reinterpret_cast<const T *>(raw_.held);
            }
        }
        std::size_t size = 0;
        const void *data = ::outlive_sample_data(&raw_, &size);
        if (data == nullptr) [[unlikely]] {
            detail::nothing("a sample that holds no message");
        }
        return payload::of(data, size);
    }
    ::outlive_sample raw_;
};

/// What happened to a publisher or a producer.
///
/// Example:
///
///     auto poses = node.subscriber<pose>("/robot/pose").value();
///     while (std::optional<outlive::event> event = poses.next_event()) {
///         if (event->kind == OUTLIVE_DIED) {
///             std::cerr << "node " << event->port.node << " died, " << event->lost << " lost\n";
///         }
///     }
struct event {
    ::outlive_event_kind kind{};
    bool unfinished = false; ///< a death: it died while writing a message, which nobody ever sees
    port_id port{};          ///< to whom
    std::uint64_t lost = 0;  ///< a death: messages lost after the last one received
    std::string why{};       ///< OUTLIVE_PEER_CORRUPT: what is wrong
};

namespace detail {
/// The event that `next` gives, with text of its own.
template <class Next> std::optional<event> event_of(Next next) {
    ::outlive_event raw;
    if (next(&raw) != OUTLIVE_OK) {
        return std::nullopt;
    }
    return event{raw.kind, raw.unfinished, raw.port, raw.lost, raw.why == nullptr ? "" : raw.why};
}

/// Hands each message that `from` receives to `see`, until that returns false or a call fails.
template <class Shown, class From, class See> expected<void> for_each_of(From &from, See &see) {
    for (;;) {
        auto got = from.receive(deadline::never);
        if (got) {
            Shown &shown = *got;
            if constexpr (std::is_same_v<decltype(see(shown)), bool>) {
                if (!see(shown)) {
                    return {};
                }
            } else {
                see(shown);
            }
        } else if (got.error() != OUTLIVE_EVENT) {
            return unexpected(got.error());
        } else {
            while (from.next_event()) {
            }
        }
    }
}
} // namespace detail

/// Receives the messages of all publishers of a topic. One thread at a time.
///
/// Example:
///
///     auto poses = node.subscriber<pose>("/robot/pose").value();
///     auto ended = poses.for_each([](const outlive::sample<pose> &sample) {
///         drive(*sample);
///         return sample->x < 1.0; // false: enough
///     });
///     ended.value(); // throws if a call failed
template <class T> class subscriber {
  public:
    subscriber() = default; ///< empty until one is assigned
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// The next message, waiting for it until the deadline: else OUTLIVE_TIMEOUT, or OUTLIVE_EVENT
    /// when there is an event to look at first. OUTLIVE_WOULD_BLOCK with deadline::now, which leaves
    /// events to next_event.
    expected<sample<T>> receive(deadline until = deadline::now) {
        return take([&](::outlive_sample *to) {
            return ::outlive_subscriber_receive(at_.get(), until.ns(), to);
        });
    }
    /// Waits for messages and hands each to `see`, as a `const sample<T> &`. Quiet times and events
    /// do not end it: only `see`, by returning false, or a failing call, with its error.
    template <class See> expected<void> for_each(See &&see) {
        return detail::for_each_of<const sample<T>>(*this, see);
    }
    /// The newest message; older ones are skipped. Never waits.
    expected<sample<T>> latest() {
        return take(
            [&](::outlive_sample *to) { return ::outlive_subscriber_latest(at_.get(), to); });
    }
    /// The earliest published of the available messages, over all publishers. Never waits.
    expected<sample<T>> receive_in_order() {
        return take([&](::outlive_sample *to) {
            return ::outlive_subscriber_receive_in_order(at_.get(), to);
        });
    }

    /// The oldest event not returned yet.
    std::optional<event> next_event() {
        return detail::event_of([&](::outlive_event *to) {
            return ::outlive_subscriber_next_event(at_.get(), to);
        });
    }
    /// Messages lost so far, over all publishers.
    [[nodiscard]] std::uint64_t lost() const noexcept { return ::outlive_subscriber_lost(at_.get()); }
    /// A descriptor for epoll and the like: see outlive_subscriber_fd. While nothing comes it becomes
    /// readable about every 100 ms, to look again: the next receive() then finds nothing.
    [[nodiscard]] expected<int> fd() {
        int fd = -1;
        if (auto code = ::outlive_subscriber_fd(at_.get(), &fd); code != OUTLIVE_OK) {
            return unexpected(error::last(code));
        }
        return fd;
    }
    [[nodiscard]] ::outlive_subscriber *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit subscriber(::outlive_subscriber *at) : at_(at) {}

    /// Written where the caller has it: samples are large.
    template <class Call> static expected<sample<T>> take(Call &&call) {
        expected<sample<T>> got(std::in_place);
        if (const auto code = call(&(*got).raw_); code != OUTLIVE_OK) {
            got = unexpected(error::last(code));
        }
        return got;
    }

    detail::handle<::outlive_subscriber, ::outlive_subscriber_close> at_;
};

template <class T>
expected<publisher<T>> node::publisher(std::string_view name, const topic_options &options) const {
    const auto type = detail::make_type<T>();
    if (!type) {
        return unexpected(type.error());
    }
    const auto raw = options.raw();
    return opened<outlive::publisher<T>, ::outlive_publisher>(name, [&](const char *text, ::outlive_publisher **out) {
        return ::outlive_publisher_open(at_.get(), text, type->get(), &raw, out);
    });
}
template <class T> expected<publisher<T>> node::publisher(std::string_view name) const {
    return publisher<T>(name, topic_options{});
}
template <class T>
expected<subscriber<T>> node::subscriber(std::string_view name, const topic_options &options) const {
    const auto type = detail::make_type<T>();
    if (!type) {
        return unexpected(type.error());
    }
    const auto raw = options.raw();
    return opened<outlive::subscriber<T>, ::outlive_subscriber>(name, [&](const char *text, ::outlive_subscriber **out) {
        return ::outlive_subscriber_open(at_.get(), text, type->get(), &raw, out);
    });
}
template <class T> expected<subscriber<T>> node::subscriber(std::string_view name) const {
    return subscriber<T>(name, topic_options{});
}

} // namespace outlive::inline OUTLIVE_ABI

#endif
