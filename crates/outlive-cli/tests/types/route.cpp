// Generated CDR in C++, sent and seen, see test_types.py; without arguments what it refuses.
#include <iostream>
#include <string>

#include "route_msgs.hpp"

using route_msgs::Leg;
using route_msgs::Route;
using traits = outlive::packed_traits<Route>;

#define CHECK(what)                                                                                \
    if (!(what)) {                                                                                 \
        std::cerr << __LINE__ << ": " #what << std::endl;                                          \
        return 1;                                                                                  \
    }

static Route make(std::uint64_t last) {
    Route route;
    route.plan.goals.emplace_back().name = "dock";
    route.legs = {{}, {Leg::LEFT, 2.5, {"halt", "\xc3\xa4"}}};
    route.words = {"x", ""};
    route.flags = {true, false, true};
    route.shorts = {-1};
    route.numbers = {1.5};
    route.data = {1, 2};
    route.nothings.resize(1);
    route.last = last;
    return route;
}

static std::vector<std::byte> packed(const Route &route) {
    std::vector<std::byte> bytes;
    return traits::pack(route, bytes).empty() ? bytes : std::vector<std::byte>();
}

/// What is said of a route that `change` has made wrong, when it is sent.
template <class F> static std::string refused(const F &change) {
    Route route = make(5);
    change(route);
    auto node = outlive::node::open("refused").value();
    auto sent = node.publisher<Route>("/refused").value().publish(route);
    return sent ? "" : sent.error().detail();
}

static int refusals() {
    const auto good = packed(make(5));
    Route route;
    for (std::size_t end = 0; end < good.size(); ++end) {
        CHECK(!traits::unpack(std::span(good).first(end), route));
    }
    std::size_t lies = 0;
    for (std::size_t at = 4; at + 8 < good.size(); at += 4) {
        auto bytes = good;
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 4, std::byte{255});
        lies += traits::unpack(bytes, route) ? 0 : 1;
    }
    CHECK(lies > 15);
    auto longer = good;
    longer.resize(good.size() + 3);
    CHECK(traits::unpack(longer, route) && packed(route) == good);
    longer.resize(good.size() + 4);
    CHECK(traits::fault(longer) == "4 bytes are left");
    const std::array nothing = {0, 1, 0, 0, 0};
    std::vector<std::byte> bytes;
    for (int byte : nothing) { bytes.push_back(static_cast<std::byte>(byte)); }
    plan_msgs::Nothing empty;
    CHECK(outlive::packed_traits<plan_msgs::Nothing>::unpack(bytes, empty));
    bytes[1] = std::byte{6};
    CHECK(outlive::packed_traits<plan_msgs::Nothing>::fault(bytes) ==
          "it is of form 6, which is not plain CDR");

    const std::string sending = "sending route_msgs/msg/Route: ";
    CHECK(refused([](Route &r) { r.legs.resize(4); }) ==
          sending + "legs: 4 elements instead of at most 3");
    CHECK(refused([](Route &r) { r.plan.tags = {"", std::string(21, 'x')}; }) ==
          sending + "plan.tags[1]: a text of 21 bytes instead of at most 20");
    CHECK(refused([](Route &r) { r.legs[1].signs[0] = std::string("a\0b", 3); }) ==
          sending + "legs[1].signs[0]: text with a zero in it");
    // As the Plan in test_cdr.py: five tags.
    bytes.assign(64, std::byte{0});
    bytes[1] = std::byte{1};
    bytes[12] = std::byte{1};
    bytes[24] = std::byte{5};
    CHECK(outlive::packed_traits<plan_msgs::Plan>::fault(bytes) ==
          "tags: 5 elements instead of at most 4");

    auto node = outlive::node::open("route").value();
    auto subscriber = node.subscriber<Route>("/route").value();
    auto publisher = node.publisher<Route>("/route").value();
    publisher.publish(std::span(good).first(7)).value();
    publisher.publish(make(7)).value();
    auto bad = subscriber.receive(std::chrono::seconds(60)).value().value();
    CHECK(!bad && bad.error().code() == OUTLIVE_CORRUPT);
    const auto &why = bad.error().detail();
    CHECK(why.find("receiving route_msgs/msg/Route: the bytes do not match this type: ") == 0);
    CHECK(subscriber.receive(std::chrono::seconds(60)).value().value().value().last == 7);
    std::cout << "route: refused what is wrong" << std::endl;
    return 0;
}

int main(int count, char **arguments) {
    if (count < 2) {
        return refusals();
    }
    const std::string role = arguments[1];
    auto node = outlive::node::open("cpp").value();
    if (role == "route") {
        auto publisher = node.publisher<Route>("/t/route").value();
        std::cout << "ready" << std::endl;
        for (std::uint64_t number; std::cin >> number;) {
            publisher.publish(make(number)).value();
            std::cout << "ok" << std::endl;
        }
        return 0;
    }
    auto routes = node.subscriber<Route>("/t/route").value();
    std::cout << "ready" << std::endl;
    routes
        .for_each([](const auto &sample) {
            const Route route = sample.value().value();
            std::uint64_t total = 0, at = 0;
            for (auto byte : packed(route)) { total += ++at * std::to_integer<std::uint64_t>(byte); }
            std::cout << route.last << ' ' << route.plan.goals[0].name << ' '
                      << route.legs[1].signs[1] << ' ' << route.label << ' ' << total << std::endl;
        })
        .value();
}
