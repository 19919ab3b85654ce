/* What tests in C share. CHECK ends one that finds something wrong, and says where. */
#pragma once
#include <outlive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #what,              \
                    outlive_last_error());                                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) CHECK((call) == OUTLIVE_OK)

static inline uint64_t soon(void) { return outlive_now_ns() + 20000000000u; }

static inline outlive_node *open_node(const char *name) {
    outlive_node_options options = {.size = sizeof options, .name = name};
    outlive_node *node = NULL;
    OK(outlive_node_open(&options, &node));
    CHECK(strcmp(outlive_node_name(node), name) == 0);
    CHECK(outlive_node_id(node) > 0);
    return node;
}
