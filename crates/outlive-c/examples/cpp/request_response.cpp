// A planner that answers requests, in a process of its own; its death ends the client's wait.
#include <outlive.hpp>

#include <cmath>
#include <cstdio>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

struct point {
    double x, y; // m
};
OUTLIVE_MESSAGE(point, "example/Point", x, y)

static void plan() {
    auto node = outlive::node::open("planner").value();
    auto server = node.server<point, double>("/planner/distance").value();
    for (;;) {
        auto request = server.receive(outlive::deadline::never).value();
        const point to = *request;
        if (std::isnan(to.x)) {
            raise(SIGKILL); // the crash of this example
        }
        server.respond(std::move(request), std::hypot(to.x, to.y)).value();
    }
}

int main() {
    using namespace std::chrono_literals;
    const pid_t planner = fork(); // before this process opens its node
    if (planner == 0) {
        plan();
    }
    auto node = outlive::node::open("robot").value();
    auto client = node.client<point, double>("/planner/distance").value();
    client.wait_for_server(10s).value();

    const auto reply = client.call({3, 4}, 10s).value();
    std::printf("the way is %.1f m\n", *reply);

    const auto died = client.call({NAN, 0}, 10s);
    std::printf("request/response: %.1f m, then %s\n", *reply, died.error().what());
    waitpid(planner, nullptr, 0);
    return died.error() == OUTLIVE_SERVER_DIED ? 0 : 1;
}
