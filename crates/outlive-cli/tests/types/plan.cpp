// Generated MessagePack in C++, sent and seen; see test_types.py.
#include <iostream>
#include <string>

#include "plan_msgs.hpp"

using plan_msgs::Goal;
using plan_msgs::Plan;

int main(int, char **arguments) {
    const std::string role = arguments[1];
    auto node = outlive::node::open("cpp").value();
    if (role == "plan") {
        auto publisher = node.publisher<Plan>("/t/plan").value();
        std::cout << "ready" << std::endl;
        for (int number; std::cin >> number;) {
            Plan plan;
            plan.goals.emplace_back().name = "dock";
            plan.tags = {"a", "b"};
            plan.number = number;
            plan.digest = {1, 2, 255};
            publisher.publish(plan).value();
            std::cout << "ok" << std::endl;
        }
        return 0;
    }
    auto plans = node.subscriber<Plan>("/t/plan").value();
    std::cout << "ready" << std::endl;
    plans.for_each([](const auto &sample) {
             const Plan plan = sample.value().value();
             const Goal &goal = plan.goals[0];
             std::cout << plan.number << ' ' << goal.name << ' ' << goal.at[0] << ' '
                       << plan.tags[1] << ' '
                       << goal.covariance.size() + plan.digest[2] + plan.key.size() << std::endl;
         })
        .value();
}
