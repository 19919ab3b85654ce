// Messages of geo_msgs, made by `outlive types import`.
#ifndef GEO_MSGS_MESSAGES_H
#define GEO_MSGS_MESSAGES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <outlive.h>

// A point in the frame of the message that has it.
typedef struct geo_msgs_Point {
    // m, forward
    double x;
    // m, left
    double y;
    // m, up
    double z;
} geo_msgs_Point;
static_assert(sizeof(geo_msgs_Point) == 24, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status geo_msgs_Point_type(outlive_type **type) {
    return outlive_type_fixed("geo_msgs/msg/Point",
                              "outlive-type 1 align 8\n"
                              "struct:24\n"
                              " 0 f64 x\n"
                              " 8 f64 y\n"
                              " 16 f64 z\n",
                              type);
}
// One with its defaults; all else is zero.
static inline geo_msgs_Point geo_msgs_Point_default(void) {
    geo_msgs_Point made;
    memset(&made, 0, sizeof made);
    return made;
}

// At most 8 corners.
typedef struct geo_msgs_Polygon {
    geo_msgs_Point corners[8];
    // How many of corners there are.
    uint32_t corners_count;
    // Zero.
    uint8_t reserved[4];
} geo_msgs_Polygon;
static_assert(sizeof(geo_msgs_Polygon) == 200, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status geo_msgs_Polygon_type(outlive_type **type) {
    return outlive_type_fixed("geo_msgs/msg/Polygon",
                              "outlive-type 1 align 8\n"
                              "struct:200\n"
                              " 0 struct:24[8] corners\n"
                              "  0 f64 x\n"
                              "  8 f64 y\n"
                              "  16 f64 z\n"
                              " 192 u32 corners_count\n"
                              " 196 u8[4] reserved\n",
                              type);
}
// One with its defaults; all else is zero.
static inline geo_msgs_Polygon geo_msgs_Polygon_default(void) {
    geo_msgs_Polygon made;
    memset(&made, 0, sizeof made);
    return made;
}

// A rotation; no rotation by default.
typedef struct geo_msgs_Quaternion {
    double x;
    double y;
    double z;
    double w;
} geo_msgs_Quaternion;
static_assert(sizeof(geo_msgs_Quaternion) == 32, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status geo_msgs_Quaternion_type(outlive_type **type) {
    return outlive_type_fixed("geo_msgs/msg/Quaternion",
                              "outlive-type 1 align 8\n"
                              "struct:32\n"
                              " 0 f64 x\n"
                              " 8 f64 y\n"
                              " 16 f64 z\n"
                              " 24 f64 w\n",
                              type);
}
// One with its defaults; all else is zero.
static inline geo_msgs_Quaternion geo_msgs_Quaternion_default(void) {
    geo_msgs_Quaternion made;
    memset(&made, 0, sizeof made);
    made.x = 0.0;
    made.y = 0.0;
    made.z = 0.0;
    made.w = 1.0;
    return made;
}

typedef struct geo_msgs_Pose {
    geo_msgs_Point position;
    geo_msgs_Quaternion orientation;
} geo_msgs_Pose;
static_assert(sizeof(geo_msgs_Pose) == 56, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status geo_msgs_Pose_type(outlive_type **type) {
    return outlive_type_fixed("geo_msgs/msg/Pose",
                              "outlive-type 1 align 8\n"
                              "struct:56\n"
                              " 0 struct:24 position\n"
                              "  0 f64 x\n"
                              "  8 f64 y\n"
                              "  16 f64 z\n"
                              " 24 struct:32 orientation\n"
                              "  0 f64 x\n"
                              "  8 f64 y\n"
                              "  16 f64 z\n"
                              "  24 f64 w\n",
                              type);
}
// One with its defaults; all else is zero.
static inline geo_msgs_Pose geo_msgs_Pose_default(void) {
    geo_msgs_Pose made;
    memset(&made, 0, sizeof made);
    made.orientation = geo_msgs_Quaternion_default();
    return made;
}

// Row by row, about x, y, z.
typedef struct geo_msgs_Covariance {
    double data[9];
} geo_msgs_Covariance;
static_assert(sizeof(geo_msgs_Covariance) == 72, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status geo_msgs_Covariance_type(outlive_type **type) {
    return outlive_type_fixed("geo_msgs/msg/Covariance",
                              "outlive-type 1 align 8\n"
                              "struct:72\n"
                              " 0 f64[9] data\n",
                              type);
}
// One with its defaults; all else is zero.
static inline geo_msgs_Covariance geo_msgs_Covariance_default(void) {
    geo_msgs_Covariance made;
    memset(&made, 0, sizeof made);
    return made;
}

typedef struct geo_msgs_Flag {
    // 0 is false, 1 is true.
    uint8_t on;
} geo_msgs_Flag;
static_assert(sizeof(geo_msgs_Flag) == 1, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status geo_msgs_Flag_type(outlive_type **type) {
    return outlive_type_fixed("geo_msgs/msg/Flag",
                              "outlive-type 1 align 1\n"
                              "struct:1\n"
                              " 0 bool on\n",
                              type);
}
// One with its defaults; all else is zero.
static inline geo_msgs_Flag geo_msgs_Flag_default(void) {
    geo_msgs_Flag made;
    memset(&made, 0, sizeof made);
    return made;
}

typedef struct geo_msgs_Nothing {
    uint8_t structure_needs_at_least_one_member;
} geo_msgs_Nothing;
static_assert(sizeof(geo_msgs_Nothing) == 1, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status geo_msgs_Nothing_type(outlive_type **type) {
    return outlive_type_fixed("geo_msgs/msg/Nothing",
                              "outlive-type 1 align 1\n"
                              "struct:1\n"
                              " 0 u8 structure_needs_at_least_one_member\n",
                              type);
}
// One with its defaults; all else is zero.
static inline geo_msgs_Nothing geo_msgs_Nothing_default(void) {
    geo_msgs_Nothing made;
    memset(&made, 0, sizeof made);
    return made;
}

typedef struct geo_msgs_PoseWithCovariance {
    geo_msgs_Pose pose;
    geo_msgs_Covariance covariance;
} geo_msgs_PoseWithCovariance;
static_assert(sizeof(geo_msgs_PoseWithCovariance) == 128, "its layout");
// Its type, for ports; free it with outlive_type_free.
static inline outlive_status geo_msgs_PoseWithCovariance_type(outlive_type **type) {
    return outlive_type_fixed("geo_msgs/msg/PoseWithCovariance",
                              "outlive-type 1 align 8\n"
                              "struct:128\n"
                              " 0 struct:56 pose\n"
                              "  0 struct:24 position\n"
                              "   0 f64 x\n"
                              "   8 f64 y\n"
                              "   16 f64 z\n"
                              "  24 struct:32 orientation\n"
                              "   0 f64 x\n"
                              "   8 f64 y\n"
                              "   16 f64 z\n"
                              "   24 f64 w\n"
                              " 56 struct:72 covariance\n"
                              "  0 f64[9] data\n",
                              type);
}
// One with its defaults; all else is zero.
static inline geo_msgs_PoseWithCovariance geo_msgs_PoseWithCovariance_default(void) {
    geo_msgs_PoseWithCovariance made;
    memset(&made, 0, sizeof made);
    made.pose = geo_msgs_Pose_default();
    return made;
}

#endif
