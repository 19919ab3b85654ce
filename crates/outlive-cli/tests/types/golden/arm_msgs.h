// Messages of arm_msgs, made by `outlive types import`.
#ifndef ARM_MSGS_MESSAGES_H
#define ARM_MSGS_MESSAGES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <outlive.h>

#include "builtin_interfaces.h"
#include "geo_msgs.h"
#include "std_msgs.h"

typedef struct arm_msgs_FollowGoal {
    geo_msgs_Polygon path;
} arm_msgs_FollowGoal;
static_assert(sizeof(arm_msgs_FollowGoal) == 200, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_FollowGoal_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/action/Follow_Goal",
                              "outlive-type 1 align 8\n"
                              "struct:200\n"
                              " 0 struct:200 path\n"
                              "  0 struct:24[8] corners\n"
                              "   0 f64 x\n"
                              "   8 f64 y\n"
                              "   16 f64 z\n"
                              "  192 u32 corners_count\n"
                              "  196 u8[4] reserved\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_FollowGoal arm_msgs_FollowGoal_default(void) {
    arm_msgs_FollowGoal made;
    memset(&made, 0, sizeof made);
    return made;
}

typedef struct arm_msgs_FollowResult {
    float distance;
} arm_msgs_FollowResult;
static_assert(sizeof(arm_msgs_FollowResult) == 4, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_FollowResult_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/action/Follow_Result",
                              "outlive-type 1 align 4\n"
                              "struct:4\n"
                              " 0 f32 distance\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_FollowResult arm_msgs_FollowResult_default(void) {
    arm_msgs_FollowResult made;
    memset(&made, 0, sizeof made);
    return made;
}

typedef struct arm_msgs_FollowFeedback {
    uint32_t corner;
} arm_msgs_FollowFeedback;
static_assert(sizeof(arm_msgs_FollowFeedback) == 4, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_FollowFeedback_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/action/Follow_Feedback",
                              "outlive-type 1 align 4\n"
                              "struct:4\n"
                              " 0 u32 corner\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_FollowFeedback arm_msgs_FollowFeedback_default(void) {
    arm_msgs_FollowFeedback made;
    memset(&made, 0, sizeof made);
    return made;
}

typedef struct arm_msgs_Stamp {
    builtin_interfaces_Time stamp;
    char frame_id[16];
} arm_msgs_Stamp;
static_assert(sizeof(arm_msgs_Stamp) == 24, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Stamp_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Stamp",
                              "outlive-type 1 align 4\n"
                              "struct:24\n"
                              " 0 struct:8 stamp\n"
                              "  0 i32 sec\n"
                              "  4 u32 nanosec\n"
                              " 8 char[16] frame_id\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Stamp arm_msgs_Stamp_default(void) {
    arm_msgs_Stamp made;
    memset(&made, 0, sizeof made);
    return made;
}

// One joint.
//
// What is not measured is zero.
typedef struct arm_msgs_Joint {
    arm_msgs_Stamp header;
    // ROTATING or SLIDING
    uint8_t type;
    // Zero.
    uint8_t reserved[3];
    // rad, or m
    float position;
    // 0 is false, 1 is true.
    uint8_t brakes[3];
    char name[12];
    // Zero.
    uint8_t reserved2[1];
} arm_msgs_Joint;
// Kinds of joints.
#define ARM_MSGS_JOINT_ROTATING 0
#define ARM_MSGS_JOINT_SLIDING 1
static_assert(sizeof(arm_msgs_Joint) == 48, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Joint_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Joint",
                              "outlive-type 1 align 4\n"
                              "struct:48\n"
                              " 0 struct:24 header\n"
                              "  0 struct:8 stamp\n"
                              "   0 i32 sec\n"
                              "   4 u32 nanosec\n"
                              "  8 char[16] frame_id\n"
                              " 24 u8 type\n"
                              " 25 u8[3] reserved\n"
                              " 28 f32 position\n"
                              " 32 bool[3] brakes\n"
                              " 35 char[12] name\n"
                              " 47 u8[1] reserved2\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Joint arm_msgs_Joint_default(void) {
    arm_msgs_Joint made;
    memset(&made, 0, sizeof made);
    memcpy(made.name, "elbow", 5);
    return made;
}

typedef struct arm_msgs_Arm {
    arm_msgs_Stamp header;
    arm_msgs_Joint joints[2];
    geo_msgs_Pose tool;
    geo_msgs_Polygon reach;
} arm_msgs_Arm;
static_assert(sizeof(arm_msgs_Arm) == 376, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Arm_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Arm",
                              "outlive-type 1 align 8\n"
                              "struct:376\n"
                              " 0 struct:24 header\n"
                              "  0 struct:8 stamp\n"
                              "   0 i32 sec\n"
                              "   4 u32 nanosec\n"
                              "  8 char[16] frame_id\n"
                              " 24 struct:48[2] joints\n"
                              "  0 struct:24 header\n"
                              "   0 struct:8 stamp\n"
                              "    0 i32 sec\n"
                              "    4 u32 nanosec\n"
                              "   8 char[16] frame_id\n"
                              "  24 u8 type\n"
                              "  25 u8[3] reserved\n"
                              "  28 f32 position\n"
                              "  32 bool[3] brakes\n"
                              "  35 char[12] name\n"
                              "  47 u8[1] reserved2\n"
                              " 120 struct:56 tool\n"
                              "  0 struct:24 position\n"
                              "   0 f64 x\n"
                              "   8 f64 y\n"
                              "   16 f64 z\n"
                              "  24 struct:32 orientation\n"
                              "   0 f64 x\n"
                              "   8 f64 y\n"
                              "   16 f64 z\n"
                              "   24 f64 w\n"
                              " 176 struct:200 reach\n"
                              "  0 struct:24[8] corners\n"
                              "   0 f64 x\n"
                              "   8 f64 y\n"
                              "   16 f64 z\n"
                              "  192 u32 corners_count\n"
                              "  196 u8[4] reserved\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Arm arm_msgs_Arm_default(void) {
    arm_msgs_Arm made;
    memset(&made, 0, sizeof made);
    for (uint32_t i = 0; i < 2; i++) {
        made.joints[i] = arm_msgs_Joint_default();
    }
    made.tool = geo_msgs_Pose_default();
    return made;
}

typedef struct arm_msgs_Battery {
    arm_msgs_Stamp header;
    float voltage;
    uint16_t cell_count;
    // Zero.
    uint8_t reserved[2];
    float cells[12];
    // How many of cells there are.
    uint32_t cells_count;
    uint8_t state;
    // Zero.
    uint8_t reserved2[3];
} arm_msgs_Battery;
#define ARM_MSGS_BATTERY_UNKNOWN 0
#define ARM_MSGS_BATTERY_CHARGING 1
static_assert(sizeof(arm_msgs_Battery) == 88, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Battery_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Battery",
                              "outlive-type 1 align 4\n"
                              "struct:88\n"
                              " 0 struct:24 header\n"
                              "  0 struct:8 stamp\n"
                              "   0 i32 sec\n"
                              "   4 u32 nanosec\n"
                              "  8 char[16] frame_id\n"
                              " 24 f32 voltage\n"
                              " 28 u16 cell_count\n"
                              " 30 u8[2] reserved\n"
                              " 32 f32[12] cells\n"
                              " 80 u32 cells_count\n"
                              " 84 u8 state\n"
                              " 85 u8[3] reserved2\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Battery arm_msgs_Battery_default(void) {
    arm_msgs_Battery made;
    memset(&made, 0, sizeof made);
    made.voltage = -1.0f;
    return made;
}

// Of a pack; Rust has a Cell, too.
typedef struct arm_msgs_Cell {
    // V
    float voltage;
} arm_msgs_Cell;
static_assert(sizeof(arm_msgs_Cell) == 4, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Cell_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Cell",
                              "outlive-type 1 align 4\n"
                              "struct:4\n"
                              " 0 f32 voltage\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Cell arm_msgs_Cell_default(void) {
    arm_msgs_Cell made;
    memset(&made, 0, sizeof made);
    return made;
}

typedef struct arm_msgs_Defaults {
    int16_t gains[3];
    // Zero.
    uint8_t reserved[2];
    float speeds[4];
    // How many of speeds there are.
    uint32_t speeds_count;
    char names[2][8];
    // Zero.
    uint8_t reserved2[4];
    geo_msgs_Quaternion rotations[2];
} arm_msgs_Defaults;
static_assert(sizeof(arm_msgs_Defaults) == 112, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Defaults_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Defaults",
                              "outlive-type 1 align 8\n"
                              "struct:112\n"
                              " 0 i16[3] gains\n"
                              " 6 u8[2] reserved\n"
                              " 8 f32[4] speeds\n"
                              " 24 u32 speeds_count\n"
                              " 28 char[2][8] names\n"
                              " 44 u8[4] reserved2\n"
                              " 48 struct:32[2] rotations\n"
                              "  0 f64 x\n"
                              "  8 f64 y\n"
                              "  16 f64 z\n"
                              "  24 f64 w\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Defaults arm_msgs_Defaults_default(void) {
    arm_msgs_Defaults made;
    memset(&made, 0, sizeof made);
    made.gains[0] = 1;
    made.gains[1] = -2;
    made.gains[2] = 3;
    made.speeds[0] = 0.5f;
    made.speeds[1] = 1.5f;
    made.speeds_count = 2;
    memcpy(made.names[0], "left", 4);
    memcpy(made.names[1], "right", 5);
    for (uint32_t i = 0; i < 2; i++) {
        made.rotations[i] = geo_msgs_Quaternion_default();
    }
    return made;
}

typedef struct arm_msgs_Grid {
    uint16_t width;
    uint16_t height;
    float resolution;
    geo_msgs_Pose origin;
    int8_t data[100];
    // How many of data there are.
    uint32_t data_count;
} arm_msgs_Grid;
static_assert(sizeof(arm_msgs_Grid) == 168, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Grid_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Grid",
                              "outlive-type 1 align 8\n"
                              "struct:168\n"
                              " 0 u16 width\n"
                              " 2 u16 height\n"
                              " 4 f32 resolution\n"
                              " 8 struct:56 origin\n"
                              "  0 struct:24 position\n"
                              "   0 f64 x\n"
                              "   8 f64 y\n"
                              "   16 f64 z\n"
                              "  24 struct:32 orientation\n"
                              "   0 f64 x\n"
                              "   8 f64 y\n"
                              "   16 f64 z\n"
                              "   24 f64 w\n"
                              " 64 i8[100] data\n"
                              " 164 u32 data_count\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Grid arm_msgs_Grid_default(void) {
    arm_msgs_Grid made;
    memset(&made, 0, sizeof made);
    made.resolution = 0.05f;
    made.origin = geo_msgs_Pose_default();
    return made;
}

typedef struct arm_msgs_Imu {
    arm_msgs_Stamp header;
    geo_msgs_Quaternion orientation;
    // rad/s
    geo_msgs_Point angular_velocity;
    // m/s^2
    geo_msgs_Point linear_acceleration;
    float covariance[9];
    // Zero.
    uint8_t reserved[4];
} arm_msgs_Imu;
static_assert(sizeof(arm_msgs_Imu) == 144, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Imu_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Imu",
                              "outlive-type 1 align 8\n"
                              "struct:144\n"
                              " 0 struct:24 header\n"
                              "  0 struct:8 stamp\n"
                              "   0 i32 sec\n"
                              "   4 u32 nanosec\n"
                              "  8 char[16] frame_id\n"
                              " 24 struct:32 orientation\n"
                              "  0 f64 x\n"
                              "  8 f64 y\n"
                              "  16 f64 z\n"
                              "  24 f64 w\n"
                              " 56 struct:24 angular_velocity\n"
                              "  0 f64 x\n"
                              "  8 f64 y\n"
                              "  16 f64 z\n"
                              " 80 struct:24 linear_acceleration\n"
                              "  0 f64 x\n"
                              "  8 f64 y\n"
                              "  16 f64 z\n"
                              " 104 f32[9] covariance\n"
                              " 140 u8[4] reserved\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Imu arm_msgs_Imu_default(void) {
    arm_msgs_Imu made;
    memset(&made, 0, sizeof made);
    made.orientation = geo_msgs_Quaternion_default();
    return made;
}

// Every number, with its limits as constants.
typedef struct arm_msgs_Numbers {
    // 0 is false, 1 is true.
    uint8_t b;
    uint8_t o;
    uint8_t c;
    int8_t i8;
    int16_t i16;
    // Zero.
    uint8_t reserved[2];
    int32_t i32;
    // Zero.
    uint8_t reserved2[4];
    int64_t i64;
    uint8_t u8;
    // Zero.
    uint8_t reserved3[1];
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32;
    // Zero.
    uint8_t reserved4[4];
    double f64;
} arm_msgs_Numbers;
#define ARM_MSGS_NUMBERS_YES 1
#define ARM_MSGS_NUMBERS_LEAST_BYTE 0
#define ARM_MSGS_NUMBERS_LETTER 65
#define ARM_MSGS_NUMBERS_LEAST8 (-128)
#define ARM_MSGS_NUMBERS_LEAST16 (-32768)
#define ARM_MSGS_NUMBERS_LEAST32 (-2147483647 - 1)
#define ARM_MSGS_NUMBERS_LEAST64 (-9223372036854775807ll - 1)
#define ARM_MSGS_NUMBERS_MOST8 255
#define ARM_MSGS_NUMBERS_MOST16 65535
#define ARM_MSGS_NUMBERS_MOST32 4294967295u
#define ARM_MSGS_NUMBERS_MOST64 18446744073709551615ull
#define ARM_MSGS_NUMBERS_HALF 0.5f
#define ARM_MSGS_NUMBERS_PI 3.141592653589793
#define ARM_MSGS_NUMBERS_GREETING "say \"hi\" # loud"
// not a trigraph ?? /
#define ARM_MSGS_NUMBERS_ODD "?\?= \\ ä"
static_assert(sizeof(arm_msgs_Numbers) == 56, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Numbers_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Numbers",
                              "outlive-type 1 align 8\n"
                              "struct:56\n"
                              " 0 bool b\n"
                              " 1 u8 o\n"
                              " 2 u8 c\n"
                              " 3 i8 i8\n"
                              " 4 i16 i16\n"
                              " 6 u8[2] reserved\n"
                              " 8 i32 i32\n"
                              " 12 u8[4] reserved2\n"
                              " 16 i64 i64\n"
                              " 24 u8 u8\n"
                              " 25 u8[1] reserved3\n"
                              " 26 u16 u16\n"
                              " 28 u32 u32\n"
                              " 32 u64 u64\n"
                              " 40 f32 f32\n"
                              " 44 u8[4] reserved4\n"
                              " 48 f64 f64\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Numbers arm_msgs_Numbers_default(void) {
    arm_msgs_Numbers made;
    memset(&made, 0, sizeof made);
    made.b = 1;
    made.o = 1;
    made.c = 65;
    made.i8 = -8;
    made.i16 = -16;
    made.i32 = -32;
    made.i64 = -64ll;
    made.u8 = 8;
    made.u16 = 16;
    made.u32 = 32u;
    made.u64 = 64ull;
    made.f32 = 0.25f;
    made.f64 = -1.5;
    return made;
}

// Has types whose names Rust has for others.
typedef struct arm_msgs_Pack {
    arm_msgs_Cell cells[2];
    builtin_interfaces_Duration age;
} arm_msgs_Pack;
static_assert(sizeof(arm_msgs_Pack) == 16, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Pack_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Pack",
                              "outlive-type 1 align 4\n"
                              "struct:16\n"
                              " 0 struct:4[2] cells\n"
                              "  0 f32 voltage\n"
                              " 8 struct:8 age\n"
                              "  0 i32 sec\n"
                              "  4 u32 nanosec\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Pack arm_msgs_Pack_default(void) {
    arm_msgs_Pack made;
    memset(&made, 0, sizeof made);
    return made;
}

// A planar scan of at most 360 rays.
typedef struct arm_msgs_Scan {
    arm_msgs_Stamp header;
    // rad
    float angle_min;
    // m
    float ranges[360];
    // How many of ranges there are.
    uint32_t ranges_count;
    uint8_t intensities[360];
    // How many of intensities there are.
    uint32_t intensities_count;
} arm_msgs_Scan;
static_assert(sizeof(arm_msgs_Scan) == 1836, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Scan_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Scan",
                              "outlive-type 1 align 4\n"
                              "struct:1836\n"
                              " 0 struct:24 header\n"
                              "  0 struct:8 stamp\n"
                              "   0 i32 sec\n"
                              "   4 u32 nanosec\n"
                              "  8 char[16] frame_id\n"
                              " 24 f32 angle_min\n"
                              " 28 f32[360] ranges\n"
                              " 1468 u32 ranges_count\n"
                              " 1472 u8[360] intensities\n"
                              " 1832 u32 intensities_count\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Scan arm_msgs_Scan_default(void) {
    arm_msgs_Scan made;
    memset(&made, 0, sizeof made);
    return made;
}

// The name of its list is also one of a count.
typedef struct arm_msgs_Tally {
    uint32_t count[8];
    // How many of count there are.
    uint32_t count_count;
} arm_msgs_Tally;
static_assert(sizeof(arm_msgs_Tally) == 36, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Tally_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Tally",
                              "outlive-type 1 align 4\n"
                              "struct:36\n"
                              " 0 u32[8] count\n"
                              " 32 u32 count_count\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Tally arm_msgs_Tally_default(void) {
    arm_msgs_Tally made;
    memset(&made, 0, sizeof made);
    return made;
}

typedef struct arm_msgs_Text {
    char lines[3][32];
    // How many of lines there are.
    uint32_t lines_count;
    uint8_t digest[16];
} arm_msgs_Text;
static_assert(sizeof(arm_msgs_Text) == 116, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Text_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Text",
                              "outlive-type 1 align 4\n"
                              "struct:116\n"
                              " 0 char[3][32] lines\n"
                              " 96 u32 lines_count\n"
                              " 100 u8[16] digest\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Text arm_msgs_Text_default(void) {
    arm_msgs_Text made;
    memset(&made, 0, sizeof made);
    return made;
}

typedef struct arm_msgs_Wheels {
    double speed[4];
    int64_t ticks;
    std_msgs_ColorRGBA light;
} arm_msgs_Wheels;
static_assert(sizeof(arm_msgs_Wheels) == 56, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_Wheels_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/msg/Wheels",
                              "outlive-type 1 align 8\n"
                              "struct:56\n"
                              " 0 f64[4] speed\n"
                              " 32 i64 ticks\n"
                              " 40 struct:16 light\n"
                              "  0 f32 r\n"
                              "  4 f32 g\n"
                              "  8 f32 b\n"
                              "  12 f32 a\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_Wheels arm_msgs_Wheels_default(void) {
    arm_msgs_Wheels made;
    memset(&made, 0, sizeof made);
    return made;
}

// Moves the tool.
typedef struct arm_msgs_ReachRequest {
    geo_msgs_Pose goal;
    double seconds;
} arm_msgs_ReachRequest;
static_assert(sizeof(arm_msgs_ReachRequest) == 64, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_ReachRequest_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/srv/Reach_Request",
                              "outlive-type 1 align 8\n"
                              "struct:64\n"
                              " 0 struct:56 goal\n"
                              "  0 struct:24 position\n"
                              "   0 f64 x\n"
                              "   8 f64 y\n"
                              "   16 f64 z\n"
                              "  24 struct:32 orientation\n"
                              "   0 f64 x\n"
                              "   8 f64 y\n"
                              "   16 f64 z\n"
                              "   24 f64 w\n"
                              " 56 f64 seconds\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_ReachRequest arm_msgs_ReachRequest_default(void) {
    arm_msgs_ReachRequest made;
    memset(&made, 0, sizeof made);
    made.goal = geo_msgs_Pose_default();
    made.seconds = 2.0;
    return made;
}

typedef struct arm_msgs_ReachResponse {
    // 0 is false, 1 is true.
    uint8_t reached;
    char message[64];
} arm_msgs_ReachResponse;
static_assert(sizeof(arm_msgs_ReachResponse) == 65, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status arm_msgs_ReachResponse_type(outlive_type **type) {
    return outlive_type_fixed("arm_msgs/srv/Reach_Response",
                              "outlive-type 1 align 1\n"
                              "struct:65\n"
                              " 0 bool reached\n"
                              " 1 char[64] message\n",
                              type);
}
// One with its defaults; all else is zero.
static inline arm_msgs_ReachResponse arm_msgs_ReachResponse_default(void) {
    arm_msgs_ReachResponse made;
    memset(&made, 0, sizeof made);
    return made;
}

#endif
