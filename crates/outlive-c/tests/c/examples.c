/* Runs the examples in the comments of the headers, each in a process of its own; the argument is
 * the number of another node. tests/programs/examples.rs writes what is included from `made`. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "made/declarations.h"

static void drive(const struct pose *to) { printf("to %.1f m, %.1f m\n", to->x, to->y); }

typedef void example(outlive_node *node, outlive_type *type, uint64_t camera_id);
#include "made/examples.h"

static int run(example *example, uint64_t camera_id) {
    outlive_node *node;
    outlive_type *type;
    alarm(120);
    must(outlive_node_open(NULL, &node));
    must(outlive_type_fixed("robot/Pose", POSE, &type));
    example(node, type, camera_id);
    outlive_type_free(type);
    outlive_node_close(node);
    return 0;
}

int main(int argc, char **argv) {
    const size_t count = sizeof EXAMPLES / sizeof *EXAMPLES;
    int failed = argc != 2;
    for (size_t i = 0; i < count && argc == 2; i++) {
        fflush(stdout);
        const pid_t child = fork(); /* before any node is open here */
        if (child == 0) {
            return run(EXAMPLES[i].run, strtoull(argv[1], NULL, 10));
        }
        int how = 1;
        if (waitpid(child, &how, 0) != child || how != 0) {
            fprintf(stderr, "%s: this example ended with %#x\n", EXAMPLES[i].where, how);
            failed = 1;
        }
    }
    printf("%zu examples\n", count);
    return failed;
}
