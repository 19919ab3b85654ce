/* Ready-made messages in C: poses, images, point clouds and other types that most robots need.
 *
 * Made from crates/outlive/src/types/msg by `make header`; a test compares the two.
 *
 * | message | its payload | its type by name |
 * |---|---|---|
 * | pose, twist | outlive_pose, outlive_twist | outlive/Pose, outlive/Twist |
 * | inertial measurement | outlive_imu | outlive/Imu |
 * | joints | outlive_joint_state_header, then any number of outlive_joint | outlive/JointState |
 * | picture | outlive_image_header, then pixels | outlive/Image |
 * | point cloud | outlive_point_cloud_header, then outlive_point_xyzi | outlive/PointCloud |
 *
 * outlive_type_message("outlive/Image", &type) gives the type. Units are SI: metres, seconds,
 * radians, newtons; stamps are ns of CLOCK_MONOTONIC (outlive_now_ns). Bodies look along x, y is
 * left, z is up; optical frames (name ends in _optical) look along z, x is right, y is down.
 * Rotations are right-handed. Unused bytes are zero.
 *
 * A frame_id or a name is UTF-8, filled up with zeros; one of 32 bytes has no zero at its end:
 *     strncpy(header.frame_id, "base_link", sizeof header.frame_id);
 *     printf("%.32s", header.frame_id);
 *
 * Example:
 *
 *     outlive_type *image;
 *     outlive_publisher *camera;
 *     outlive_loan loan;
 *     must(outlive_type_message("outlive/Image", &image));
 *     must(outlive_publisher_open(node, "/camera/front", image, NULL, &camera));
 *     must(outlive_publisher_loan(camera, sizeof(outlive_image_header) + 640 * 480, &loan));
 *     outlive_image_header *header = loan.data; // the pixels are behind it
 *     *header = (outlive_image_header){{outlive_now_ns(), "front_optical"},
 *                                      640, 480, 640, OUTLIVE_PIXEL_MONO8, {0}};
 *     must(outlive_loan_publish(&loan, NULL));
 *     outlive_publisher_close(camera);
 *     outlive_type_free(image);
 *
 * Read a received picture after outlive_image_check(data, size), for instance with OpenCV:
 *     auto *image = static_cast<const outlive_image_header *>(outlive_sample_data(&sample, &size));
 *     if (outlive_image_check(image, size) == OUTLIVE_OK && image->format == OUTLIVE_PIXEL_BGR8) {
 *         cv::Mat mat(image->height, image->width, CV_8UC3, (void *)(image + 1), image->row_bytes);
 *     }
 */

#ifndef OUTLIVE_MSG_H
#define OUTLIVE_MSG_H

#include "../outlive.h"

// When something was measured and which frame its coordinates are in; 40 bytes.
typedef struct outlive_header {
    // When it was measured, ns of CLOCK_MONOTONIC; 0 unknown.
    uint64_t stamp_ns;
    // Coordinate frame of the data, like `base_link` or `camera_front_optical`; UTF-8, filled up
    // with zeros.
    char frame_id[32];
} outlive_header;

// Three coordinates; the field that holds it gives unit and frame.
typedef struct outlive_vector3 {
    // Forward; right in optical frames.
    double x;
    // Left; down in optical frames.
    double y;
    // Up; forward in optical frames.
    double z;
} outlive_vector3;

// A rotation as unit quaternion `w + xi + yj + zk`: x² + y² + z² + w² = 1. The default, all
// zero, means "unknown".
typedef struct outlive_quaternion {
    // Coefficient of i, -1 to 1.
    double x;
    // Coefficient of j, -1 to 1.
    double y;
    // Coefficient of k, -1 to 1.
    double z;
    // Real part, -1 to 1.
    double w;
} outlive_quaternion;
// No rotation.
#define OUTLIVE_QUATERNION_IDENTITY (outlive_quaternion){ .x = 0.0, .y = 0.0, .z = 0.0, .w = 1.0 }

// Position and orientation of a body in the frame `header.frame_id`; 96 bytes.
typedef struct outlive_pose {
    // When, and in which frame.
    struct outlive_header header;
    // Position of the body's origin, m.
    struct outlive_vector3 position;
    // Rotation from the body's axes to those of the frame.
    struct outlive_quaternion orientation;
} outlive_pose;

// Velocity of a body, in its own axes: `header.frame_id` is the body's frame; 88 bytes.
typedef struct outlive_twist {
    // When, and of which body.
    struct outlive_header header;
    // Velocity, m/s.
    struct outlive_vector3 linear;
    // Rate of rotation about each axis, rad/s.
    struct outlive_vector3 angular;
} outlive_twist;

// Reading of an inertial measurement unit, in the sensor's frame `header.frame_id`; 336 bytes.
//
// Covariances are 3 x 3, row by row, about x, y, z. All zero: unknown. First element -1: the
// sensor has no such reading.
typedef struct outlive_imu {
    // When, and in which frame.
    struct outlive_header header;
    // Rotation from the sensor's axes to a frame whose z points up.
    struct outlive_quaternion orientation;
    // Rate of rotation about each axis, rad/s.
    struct outlive_vector3 angular_velocity;
    // Acceleration with gravity, m/s²: at rest and level z is about +9.81.
    struct outlive_vector3 linear_acceleration;
    // Of `orientation`, rad².
    double orientation_covariance[9];
    // Of `angular_velocity`, (rad/s)².
    double angular_velocity_covariance[9];
    // Of `linear_acceleration`, (m/s²)².
    double linear_acceleration_covariance[9];
} outlive_imu;

// The header before the joints; 40 bytes.
typedef struct outlive_joint_state_header {
    // When; the frame is that of the robot's base and may be empty.
    struct outlive_header header;
} outlive_joint_state_header;

// One joint; 56 bytes. NaN where not measured.
typedef struct outlive_joint {
    // Its name, as in the robot's description.
    char name[32];
    // Position: rad for a rotating joint, m for a sliding one.
    double position;
    // Velocity: rad/s, or m/s.
    double velocity;
    // Effort: torque in N m, or force in N.
    double effort;
} outlive_joint;

// What the bytes of an image mean. A number, because other programs may write any.
typedef uint32_t outlive_pixel_format;
// One byte of brightness, 0 black to 255 white.
#define OUTLIVE_PIXEL_MONO8 1
// Two bytes of brightness, little-endian.
#define OUTLIVE_PIXEL_MONO16 2
// Red, green, blue, a byte each.
#define OUTLIVE_PIXEL_RGB8 3
// Blue, green, red, a byte each.
#define OUTLIVE_PIXEL_BGR8 4
// Red, green, blue, opacity, a byte each.
#define OUTLIVE_PIXEL_RGBA8 5
// Blue, green, red, opacity, a byte each.
#define OUTLIVE_PIXEL_BGRA8 6
// YUV 4:2:2, bytes Y U Y V for two pixels.
#define OUTLIVE_PIXEL_YUYV 7
// Colour filter array, first row red green, second row green blue, a byte each.
#define OUTLIVE_PIXEL_BAYER_RGGB8 8
// Depth along z as u16, mm; 0 unknown.
#define OUTLIVE_PIXEL_DEPTH_MM16 9
// Depth along z as f32, m; NaN unknown.
#define OUTLIVE_PIXEL_DEPTH_M32 10
// A JPEG file.
#define OUTLIVE_PIXEL_JPEG 100
// A PNG file.
#define OUTLIVE_PIXEL_PNG 101

// The header before the pixels; 64 bytes, so that the pixels begin on a cache line.
typedef struct outlive_image_header {
    // When exposure began, and the optical frame of the camera.
    struct outlive_header header;
    // Columns, pixels.
    uint32_t width;
    // Rows, pixels.
    uint32_t height;
    // From the start of one row to the next, bytes; 0 for a compressed picture.
    uint32_t row_bytes;
    // What the bytes mean.
    outlive_pixel_format format;
    // Zero.
    uint32_t reserved[2];
} outlive_image_header;

// The header before the points; 64 bytes, so that the points begin on a cache line.
typedef struct outlive_point_cloud_header {
    // When, and in which frame.
    struct outlive_header header;
    // Points in a row.
    uint32_t width;
    // Rows; 1 for an unordered cloud.
    uint32_t height;
    // Zero.
    uint32_t reserved[4];
} outlive_point_cloud_header;

// A point; 16 bytes. A ray without an echo has NaN coordinates.
typedef struct outlive_point_xyzi {
    // Forward, m; right in optical frames.
    float x;
    // Left, m; down in optical frames.
    float y;
    // Up, m; forward in optical frames.
    float z;
    // Strength of the echo, 0 to 1, or as the sensor counts it; 0 without.
    float intensity;
} outlive_point_xyzi;

#endif  /* OUTLIVE_MSG_H */
