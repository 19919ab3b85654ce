// A process is killed while it holds a lock; the next one repairs what it left.
#include <outlive.hpp>

#include <cstdio>
#include <mutex>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

struct account {
    std::int64_t left, right; // their sum is always 100
};
OUTLIVE_MESSAGE(account, "example/Account", left, right)

static void die_inside() {
    auto node = outlive::node::open("clumsy").value();
    auto mutex = node.mutex<account>("/account", {60, 40}).value();
    std::scoped_lock held(mutex);
    mutex->left -= 10; // half of a transfer
    raise(SIGKILL);
}

int main() {
    const pid_t child = fork(); // before this process opens its node
    if (child == 0) {
        die_inside();
    }
    waitpid(child, nullptr, 0);

    auto node = outlive::node::open("careful").value();
    auto mutex = node.mutex<account>("/account", {60, 40}).value();
    mutex.on_owner_died([](account &inside) {
        std::printf("its owner died: left %ld, right %ld\n", inside.left, inside.right);
        inside.right = 100 - inside.left;
    });
    std::scoped_lock held(mutex); // repaired; without a repair this throws EOWNERDEAD
    std::printf("robust lock: left %ld, right %ld\n", mutex->left, mutex->right);
}
