// Messages of std_msgs, made by `outlive types import`.
#ifndef STD_MSGS_MESSAGES_H
#define STD_MSGS_MESSAGES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <outlive.h>

typedef struct std_msgs_ColorRGBA {
    float r;
    float g;
    float b;
    float a;
} std_msgs_ColorRGBA;
static_assert(sizeof(std_msgs_ColorRGBA) == 16, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status std_msgs_ColorRGBA_type(outlive_type **type) {
    return outlive_type_fixed("std_msgs/msg/ColorRGBA",
                              "outlive-type 1 align 4\n"
                              "struct:16\n"
                              " 0 f32 r\n"
                              " 4 f32 g\n"
                              " 8 f32 b\n"
                              " 12 f32 a\n",
                              type);
}
// One with its defaults; all else is zero.
static inline std_msgs_ColorRGBA std_msgs_ColorRGBA_default(void) {
    std_msgs_ColorRGBA made;
    memset(&made, 0, sizeof made);
    return made;
}

#endif
