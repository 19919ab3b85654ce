// A plan with text and lists as MessagePack: the same bytes as those of a Rust struct with serde and
// of a Python dataclass. Needs msgpack-cxx.
#include <iostream>

#include <outlive.hpp>
#include <outlive/msgpack.hpp>

struct plan {
    std::string goal;
    std::vector<double> speeds; // m/s
    MSGPACK_DEFINE_MAP(goal, speeds)
};
OUTLIVE_MSGPACK(plan, "example/Plan")

int main() {
    using namespace std::chrono_literals;
    auto node = outlive::node::open("planner").value();
    auto plans = node.subscriber<plan>("/plan").value();
    node.publisher<plan>("/plan").value().publish(plan{"dock", {0.5, 0.25}}).value();

    auto sample = plans.receive(1s);
    while (!sample && sample.error() == OUTLIVE_EVENT) { // the publisher came, and left
        plans.next_event();
        sample = plans.receive(1s);
    }
    const auto got = sample.value().value(); // a plan, or why it is none
    std::cout << "messagepack: to the " << got->goal << " at " << got->speeds[0] << " m/s\n";
}
