// Messages of builtin_interfaces, made by `outlive types import`.
#ifndef BUILTIN_INTERFACES_MESSAGES_H
#define BUILTIN_INTERFACES_MESSAGES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <outlive.h>

typedef struct builtin_interfaces_Time {
    int32_t sec;
    uint32_t nanosec;
} builtin_interfaces_Time;
static_assert(sizeof(builtin_interfaces_Time) == 8, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status builtin_interfaces_Time_type(outlive_type **type) {
    return outlive_type_fixed("builtin_interfaces/msg/Time",
                              "outlive-type 1 align 4\n"
                              "struct:8\n"
                              " 0 i32 sec\n"
                              " 4 u32 nanosec\n",
                              type);
}
// One with its defaults; all else is zero.
static inline builtin_interfaces_Time builtin_interfaces_Time_default(void) {
    builtin_interfaces_Time made;
    memset(&made, 0, sizeof made);
    return made;
}

typedef struct builtin_interfaces_Duration {
    int32_t sec;
    uint32_t nanosec;
} builtin_interfaces_Duration;
static_assert(sizeof(builtin_interfaces_Duration) == 8, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status builtin_interfaces_Duration_type(outlive_type **type) {
    return outlive_type_fixed("builtin_interfaces/msg/Duration",
                              "outlive-type 1 align 4\n"
                              "struct:8\n"
                              " 0 i32 sec\n"
                              " 4 u32 nanosec\n",
                              type);
}
// One with its defaults; all else is zero.
static inline builtin_interfaces_Duration builtin_interfaces_Duration_default(void) {
    builtin_interfaces_Duration made;
    memset(&made, 0, sizeof made);
    return made;
}

#endif
