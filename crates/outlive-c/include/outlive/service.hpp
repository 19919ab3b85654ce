// Services: requests and responses.
#ifndef OUTLIVE_SERVICE_HPP
#define OUTLIVE_SERVICE_HPP

#include "topic.hpp"

namespace outlive::inline OUTLIVE_ABI {

/// Settings of a service's ends; 0: the default.
///
/// Example:
///
///     auto planner = node.client<pose, pose>("/planner/next", {.resume = true}).value();
///     planner.wait_for_server(10s).value();
///     drive(*planner.call({1.0, 2.0, 0.5}, 10s).value()); // also if the server is replaced
struct service_options {
    std::uint64_t bound_bytes = 0; ///< most shared memory for messages in flight
    bool resume = false; ///< client: unanswered requests go to the next server when one dies

    [[nodiscard]] ::outlive_service_options raw() const {
        ::outlive_service_options raw{};
        raw.size = sizeof raw;
        raw.bound_bytes = bound_bytes;
        raw.resume = resume ? 1 : 0;
        return raw;
    }
};

/// An answer, or the news that there will be none. A copy of its own.
///
/// Example:
///
///     auto planner = node.client<pose, pose>("/planner/next").value();
///     planner.wait_for_server(10s).value();
///     auto ticket = planner.send({1.0, 2.0, 0.5}, 10s).value();
///     auto reply = planner.receive_for(ticket, 10s).value();
///     if (reply.state()) {
///         drive(*reply);
///     }
template <class R> class reply {
  public:
    reply() = default; ///< empty until one is assigned
    /// Whether it is a reply; state() tells whether there is an answer in it.
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// OUTLIVE_OK, OUTLIVE_REFUSED, OUTLIVE_SERVER_DIED, OUTLIVE_TIMEOUT when its deadline had
    /// passed and no answer was there when the client looked, or OUTLIVE_CORRUPT when what the
    /// server sent cannot be read.
    [[nodiscard]] expected<void> state() const {
        return detail::done(::outlive_reply_status(at_.get()));
    }
    /// The answer. Without one it fails as value() of an error does: ask state() first.
    typename detail::payload<R>::view operator*() const & { return shown(); }
    detail::copy_of<R> operator*() const &&
        requires detail::is_small<R>
    {
        return shown();
    }
    typename detail::payload<R>::view operator*() const && = delete;
    const R *operator->() const
        requires detail::payload<R>::is_fixed
    {
        return &shown();
    }
    /// What was packed; OUTLIVE_CORRUPT: the bytes are not that.
    [[nodiscard]] expected<R> value() const
        requires packable<R>
    {
        if (auto there = state(); !there) {
            return unexpected(std::move(there).error());
        }
        return detail::unpacked<R>(shown());
    }
    [[nodiscard]] std::uint64_t ticket() const noexcept { return ::outlive_reply_ticket(at_.get()); }
    /// Whether it is the last for that request.
    [[nodiscard]] bool is_last() const noexcept { return ::outlive_reply_is_last(at_.get()); }

  private:
    template <class, class> friend class client;
    explicit reply(::outlive_reply *at) : at_(at) {}
    typename detail::payload<R>::view shown() const {
        std::size_t size = 0;
        const void *data = ::outlive_reply_data(at_.get(), &size);
        if (data == nullptr) [[unlikely]] {
            detail::nothing(at_ ? state().error() : error(OUTLIVE_INVALID_ARGUMENT,
                                                          "reading a reply that is none"));
        }
        return detail::payload<R>::of(data, size);
    }
    detail::handle<::outlive_reply, ::outlive_reply_free> at_;
};

/// The asking end of a service. One thread at a time.
///
/// Example:
///
///     auto planner = node.client<pose, pose>("/planner/next").value();
///     planner.wait_for_server(10s).value();
///     if (auto next = planner.call({1.0, 2.0, 0.5}, 10s)) {
///         drive(**next);
///     } else { // OUTLIVE_REFUSED, OUTLIVE_SERVER_DIED, OUTLIVE_TIMEOUT ...
///         std::cerr << next.error().message() << '\n';
///     }
template <class Q, class R> class client {
    using payload = detail::payload<Q>;

  public:
    client() = default; ///< empty until one is assigned
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// Sends a request and waits for the answer: OUTLIVE_SERVER_DIED at once when the server dies.
    expected<reply<R>> call(typename payload::argument request, deadline until = deadline::never) {
        if (const auto refused = detail::refused(request)) {
            return unexpected(*refused);
        }
        ::outlive_reply *at = nullptr;
        const auto code = ::outlive_client_call(at_.get(), payload::data(request),
                                                payload::size(request), until.ns(), &at);
        if (code != OUTLIVE_OK) {
            return unexpected(error::told(code));
        }
        return reply<R>(at);
    }
    /// Sends a request and returns its ticket; never waits. The answer comes with receive; `until`
    /// is when it is of no use any more, and the request is late: deadline::now makes it so at once.
    /// An answer that is there when the client looks is received, even if it came late.
    expected<std::uint64_t> send(typename payload::argument request, deadline until = deadline::never) {
        if (const auto refused = detail::refused(request)) {
            return unexpected(*refused);
        }
        std::uint64_t ticket = 0;
        const auto code = ::outlive_client_send(at_.get(), payload::data(request),
                                                payload::size(request), until.ns(), &ticket);
        if (code != OUTLIVE_OK) {
            return unexpected(error::told(code));
        }
        return ticket;
    }
    /// The next reply to any request.
    expected<reply<R>> receive(deadline until = deadline::now) {
        ::outlive_reply *at = nullptr;
        const auto code = ::outlive_client_receive(at_.get(), until.ns(), &at);
        return given(at, code);
    }
    /// The next reply to one request; others are kept.
    expected<reply<R>> receive_for(std::uint64_t ticket, deadline until) {
        ::outlive_reply *at = nullptr;
        const auto code = ::outlive_client_receive_for(at_.get(), ticket, until.ns(), &at);
        return given(at, code);
    }
    /// Gives a request up.
    expected<void> cancel(std::uint64_t ticket) {
        return detail::done(::outlive_client_cancel(at_.get(), ticket));
    }
    /// Waits until a live server is there.
    expected<void> wait_for_server(deadline until) {
        return detail::waited(::outlive_client_wait_for_server(at_.get(), until.ns()));
    }
    [[nodiscard]] ::outlive_client *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit client(::outlive_client *at) : at_(at) {}
    static expected<reply<R>> given(::outlive_reply *at, status code) {
        if (code != OUTLIVE_OK) {
            return unexpected(error::last(code));
        }
        return reply<R>(at);
    }
    detail::handle<::outlive_client, ::outlive_client_close> at_;
};

/// A request, a copy of its own. Answer it with server::respond.
///
/// Example:
///
///     auto reach = node.server<pose, pose>("/arm/reach").value();
///     if (auto request = reach.receive(10s)) {
///         std::cerr << "refused node " << request->client().node << '\n';
///         reach.refuse(std::move(*request), "the arm is parked").value();
///     }
template <class Q> class request {
  public:
    request() = default; ///< empty until one is assigned, and once it is answered
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    typename detail::payload<Q>::view operator*() const & { return shown(); }
    detail::copy_of<Q> operator*() const &&
        requires detail::is_small<Q>
    {
        return shown();
    }
    typename detail::payload<Q>::view operator*() const && = delete;
    const Q *operator->() const
        requires detail::payload<Q>::is_fixed
    {
        return &shown();
    }
    /// What was packed; OUTLIVE_CORRUPT: the bytes are not that.
    [[nodiscard]] expected<Q> value() const
        requires packable<Q>
    {
        return detail::unpacked<Q>(shown());
    }
    [[nodiscard]] port_id client() const noexcept { return ::outlive_request_client(at_.get()); }
    [[nodiscard]] deadline until() const noexcept {
        return deadline::at_ns(::outlive_request_deadline_ns(at_.get()));
    }

  private:
    template <class, class> friend class server;
    explicit request(::outlive_request *at) : at_(at) {}
    typename detail::payload<Q>::view shown() const {
        std::size_t size = 0;
        const void *data = ::outlive_request_data(at_.get(), &size);
        if (data == nullptr) [[unlikely]] {
            detail::nothing("a request that is answered or was moved from");
        }
        return detail::payload<Q>::of(data, size);
    }
    detail::handle<::outlive_request, ::outlive_request_free> at_;
};

/// The one server of a service. One thread at a time.
///
/// Example:
///
///     auto reach = node.server<pose, pose>("/arm/reach").value();
///     if (auto request = reach.receive(10s)) {
///         const pose reached = **request;
///         if (auto sent = reach.respond(std::move(*request), reached); !sent) {
///             std::cerr << sent.error().message() << '\n'; // OUTLIVE_CLIENT_DIED: continue
///         }
///     }
template <class Q, class R> class server {
    using payload = detail::payload<R>;

  public:
    server() = default; ///< empty until one is assigned
    explicit operator bool() const noexcept { return static_cast<bool>(at_); }

    /// The next request; skips late ones, those of dead clients, and those whose cancellation was
    /// read: one that is cancelled may still come, see is_cancelled(). A client's requests wait while
    /// the lane of its replies cannot be opened: a full RAM disk, no descriptors, no rights. That is
    /// not an error here; it is tried again after 2 to 250 ms.
    expected<request<Q>> receive(deadline until = deadline::now) {
        ::outlive_request *at = nullptr;
        const auto code = ::outlive_server_receive(at_.get(), until.ns(), &at);
        if (code != OUTLIVE_OK) {
            return unexpected(error::last(code));
        }
        return request<Q>(at);
    }
    /// Answers a request. OUTLIVE_CLIENT_DIED: nobody waits for it; continue with the next.
    expected<void> respond(request<Q> &&to, typename payload::argument response) {
        if (const auto refused = detail::refused(response)) {
            return unexpected(*refused);
        }
        return detail::done(::outlive_server_respond(at_.get(), to.at_.release(),
                                                     payload::data(response),
                                                     payload::size(response)));
    }
    /// Sends one part of the answer; more follow, and respond sends the last.
    expected<void> respond_part(const request<Q> &to, typename payload::argument response) {
        if (const auto refused = detail::refused(response)) {
            return unexpected(*refused);
        }
        return detail::done(::outlive_server_respond_part(
            at_.get(), to.at_.get(), payload::data(response), payload::size(response)));
    }
    /// Refuses a request and says why.
    expected<void> refuse(request<Q> &&to, std::string_view why) {
        const std::string text(why.substr(0, why.find('\0')));
        return detail::done(::outlive_server_refuse(at_.get(), to.at_.release(), text.c_str()));
    }
    /// Whether the client has given the request up or is dead.
    [[nodiscard]] bool is_cancelled(const request<Q> &of) {
        return ::outlive_server_is_cancelled(at_.get(), of.at_.get());
    }
    [[nodiscard]] ::outlive_server *get() const noexcept { return at_.get(); }

  private:
    friend class node;
    explicit server(::outlive_server *at) : at_(at) {}
    detail::handle<::outlive_server, ::outlive_server_close> at_;
};

template <class Q, class R>
expected<client<Q, R>> node::client(std::string_view name, const service_options &options) const {
    const auto request = detail::make_type<Q>();
    const auto response = detail::make_type<R>();
    if (!request || !response) {
        return unexpected(!request ? request.error() : response.error());
    }
    const auto raw = options.raw();
    return opened<outlive::client<Q, R>, ::outlive_client>(name, [&](const char *text, ::outlive_client **out) {
        return ::outlive_client_open(at_.get(), text, request->get(), response->get(), &raw, out);
    });
}
template <class Q, class R> expected<client<Q, R>> node::client(std::string_view name) const {
    return client<Q, R>(name, service_options{});
}
template <class Q, class R>
expected<server<Q, R>> node::server(std::string_view name, const service_options &options) const {
    const auto request = detail::make_type<Q>();
    const auto response = detail::make_type<R>();
    if (!request || !response) {
        return unexpected(!request ? request.error() : response.error());
    }
    const auto raw = options.raw();
    return opened<outlive::server<Q, R>, ::outlive_server>(name, [&](const char *text, ::outlive_server **out) {
        return ::outlive_server_open(at_.get(), text, request->get(), response->get(), &raw, out);
    });
}
template <class Q, class R> expected<server<Q, R>> node::server(std::string_view name) const {
    return server<Q, R>(name, service_options{});
}

} // namespace outlive::inline OUTLIVE_ABI

#endif
