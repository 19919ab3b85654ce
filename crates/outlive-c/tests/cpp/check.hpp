// Ends a test that finds something wrong, and says where.
#pragma once
#include <outlive.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            std::fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #what,         \
                         outlive_last_error());                                                    \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)
