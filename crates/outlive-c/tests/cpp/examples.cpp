// Runs the examples in the comments of the headers, each in a process of its own; the argument is
// the number of another node. tests/programs/examples.rs writes what is included from `made`.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace std::chrono_literals;

#include "made/declarations.h"

template <class To> static void drive(const To &) { std::cout << "driving\n"; }

struct example {
    const char *where;
    void (*run)(outlive::node &node, std::uint64_t camera_id);
};
#include "made/examples.h"

static int run(const example &example, std::uint64_t camera_id) {
    alarm(120);
    auto node = outlive::node::open("examples").value();
    example.run(node, camera_id);
    return 0;
}

int main(int argc, char **argv) {
    int failed = argc != 2;
    for (const auto &example : EXAMPLES) {
        std::cout.flush();
        const pid_t child = fork(); // before any node is open here
        if (child == 0) {
            return argc == 2 ? run(example, std::strtoull(argv[1], nullptr, 10)) : 1;
        }
        int how = 1;
        if (waitpid(child, &how, 0) != child || how != 0) {
            std::fprintf(stderr, "%s: this example ended with %#x\n", example.where, how);
            failed = 1;
        }
    }
    std::cout << std::size(EXAMPLES) << " examples\n";
    return failed;
}
