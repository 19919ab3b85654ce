// Ready-made messages: outlive::msg::pose, image, point_cloud and others, the same in all
// languages. outlive.hpp does not include this.
//
//     namespace msg = outlive::msg;
//     auto camera = node.publisher<msg::image>("/camera/front").value();
//     auto loan = msg::loan_image(camera, "front_optical", 640, 480, OUTLIVE_PIXEL_BGR8).value();
//     grab(cv::Mat(480, 640, CV_8UC3, loan.tail().data(), loan.header().row_bytes));
//     std::move(loan).publish().value();
//
//     auto sample = viewer.receive(1s).value();
//     auto image = msg::view(sample); // else OUTLIVE_CORRUPT, OUTLIVE_UNSUPPORTED
//     if (image && image->header.format == OUTLIVE_PIXEL_BGR8) { // or another, or a JPEG
//         const auto &h = image->header;
//         auto *pixels = const_cast<std::uint8_t *>(image->pixels.data()); // read-only memory
//         cv::imshow("front", cv::Mat(h.height, h.width, CV_8UC3, pixels, h.row_bytes));
//     }
//
// The structs, with units and axes, are those of outlive/msg.h.
#ifndef OUTLIVE_MSG_HPP
#define OUTLIVE_MSG_HPP

#include <string_view>

#include "msg.h"
#include "topic.hpp"

OUTLIVE_MESSAGE(outlive_header, "outlive/Header", stamp_ns, frame_id)
OUTLIVE_MESSAGE(outlive_vector3, "outlive/Vector3", x, y, z)
OUTLIVE_MESSAGE(outlive_quaternion, "outlive/Quaternion", x, y, z, w)
OUTLIVE_MESSAGE(outlive_pose, "outlive/Pose", header, position, orientation)
OUTLIVE_MESSAGE(outlive_twist, "outlive/Twist", header, linear, angular)
OUTLIVE_MESSAGE(outlive_imu, "outlive/Imu", header, orientation, angular_velocity,
                linear_acceleration, orientation_covariance, angular_velocity_covariance,
                linear_acceleration_covariance)
OUTLIVE_MESSAGE(outlive_joint_state_header, "outlive/JointState", header)
OUTLIVE_MESSAGE(outlive_joint, "outlive/Joint", name, position, velocity, effort)
OUTLIVE_MESSAGE(outlive_image_header, "outlive/Image", header, width, height, row_bytes, format,
                reserved)
OUTLIVE_MESSAGE(outlive_point_cloud_header, "outlive/PointCloud", header, width, height, reserved)
OUTLIVE_MESSAGE(outlive_point_xyzi, "outlive/PointXyzi", x, y, z, intensity)

namespace outlive::inline OUTLIVE_ABI::msg {
using header = ::outlive_header;
using vector3 = ::outlive_vector3;
using quaternion = ::outlive_quaternion;
using pose = ::outlive_pose;
using twist = ::outlive_twist;
using imu = ::outlive_imu;
using joint_state_header = ::outlive_joint_state_header;
using joint = ::outlive_joint;
using image_header = ::outlive_image_header;
using pixel_format = ::outlive_pixel_format; ///< OUTLIVE_PIXEL_RGB8 and so on
using point_cloud_header = ::outlive_point_cloud_header;
using point_xyzi = ::outlive_point_xyzi;

using joint_state = headed<joint_state_header, joint>;
using image = headed<image_header, std::uint8_t>;
using point_cloud = headed<point_cloud_header, point_xyzi>;

/// No rotation. A quaternion of zeros is "unknown".
inline constexpr quaternion identity{0.0, 0.0, 0.0, 1.0};

/// The text of a frame_id or a name, up to its first zero.
template <std::size_t N> [[nodiscard]] constexpr std::string_view text(const char (&from)[N]) {
    return {from, static_cast<std::size_t>(std::find(from, from + N, '\0') - from)};
}

/// Writes a frame_id or a name: the whole characters of `from` that fit, up to its first zero.
template <std::size_t N> constexpr void set(char (&to)[N], std::string_view from) {
    from = from.substr(0, from.find('\0'));
    auto end = std::min(from.size(), N);
    // In UTF-8 the bytes 10xxxxxx continue a character.
    while (end > 0 && end < from.size() && (static_cast<unsigned char>(from[end]) & 0xc0) == 0x80) {
        end--;
    }
    std::fill(std::copy_n(from.begin(), end, to), to + N, '\0');
}

/// Measured now, in that frame.
[[nodiscard]] inline header now(std::string_view frame_id) {
    header made{::outlive_now_ns(), {}};
    set(made.frame_id, frame_id);
    return made;
}

/// A slot for an uncompressed picture without gaps between its rows: the header is written, the
/// pixels (`tail()`) hold whatever was there before. For a compressed one use
/// `camera.loan(image_header, bytes)`.
///
/// Example:
///
///     namespace msg = outlive::msg;
///     auto camera = node.publisher<msg::image>("/camera/front").value();
///     auto loan = msg::loan_image(camera, "front_optical", 640, 480, OUTLIVE_PIXEL_BGR8).value();
///     std::ranges::fill(loan.tail(), std::uint8_t{128});
///     std::move(loan).publish().value();
[[nodiscard]] inline expected<loan<image>> loan_image(publisher<image> &camera,
                                                      const header &measured, std::uint32_t width,
                                                      std::uint32_t height, pixel_format format) {
    const std::uint64_t row_bytes = std::uint64_t{::outlive_pixel_bytes(format)} * width;
    if (::outlive_pixel_bytes(format) == 0 || row_bytes > UINT32_MAX) {
        return unexpected(error(OUTLIVE_INVALID_ARGUMENT,
                                "loaning an image: rows of " + std::to_string(width) +
                                    " pixels of format " + std::to_string(format) +
                                    (row_bytes > UINT32_MAX
                                         ? " are too large; a row has less than 4 GiB"
                                         : " have no size; use an uncompressed format")));
    }
    const image_header made{measured, width, height, static_cast<std::uint32_t>(row_bytes), format,
                            {}};
    return camera.loan(made, row_bytes * height);
}
/// As above, measured now in the frame `frame_id`.
[[nodiscard]] inline expected<loan<image>> loan_image(publisher<image> &camera,
                                                      std::string_view frame_id,
                                                      std::uint32_t width, std::uint32_t height,
                                                      pixel_format format) {
    return loan_image(camera, now(frame_id), width, height, format);
}

/// A received picture, as its header says: every row is there. Pixels stay as long as the sample.
/// Look at header.format first: a compressed picture has no rows.
///
/// Example:
///
///     namespace msg = outlive::msg;
///     auto viewer = node.subscriber<msg::image>("/camera/front", {.history = 1}).value();
///     if (auto sample = viewer.latest()) {
///         auto image = msg::view(*sample); // else OUTLIVE_CORRUPT, OUTLIVE_UNSUPPORTED
///         if (image && image->header.format == OUTLIVE_PIXEL_RGB8) {
///             std::cout << "the first red is " << int{image->row(0)[0]} << '\n';
///         }
///     }
struct image_view {
    image_header header;
    std::span<const std::uint8_t> pixels; ///< rows with their gaps; a compressed picture's file
    /// Row `y` from the top, without the gap behind it; none outside or in compressed pictures.
    [[nodiscard]] std::span<const std::uint8_t> row(std::uint32_t y) const {
        if (y >= header.height || ::outlive_pixel_bytes(header.format) == 0) {
            return {};
        }
        return pixels.subspan(std::size_t{y} * header.row_bytes,
                              std::size_t{::outlive_pixel_bytes(header.format)} * header.width);
    }
};

/// A received point cloud: all points of all rows are there, for as long as the sample.
///
/// Example:
///
///     namespace msg = outlive::msg;
///     auto lidar = node.publisher<msg::point_cloud>("/lidar").value();
///     auto viewer = node.subscriber<msg::point_cloud>("/lidar").value();
///     const msg::point_cloud_header header{msg::now("lidar"), 360, 1, {}};
///     std::move(lidar.loan(header, 360).value()).publish().value();
///     auto sample = viewer.receive(1s).value();
///     std::cout << msg::view(sample).value().points.size() << " points\n";
struct point_cloud_view {
    point_cloud_header header;
    std::span<const point_xyzi> points;
    /// Row `y` of an ordered cloud; none outside.
    [[nodiscard]] std::span<const point_xyzi> row(std::uint32_t y) const {
        return y < header.height ? points.subspan(std::size_t{y} * header.width, header.width)
                                 : std::span<const point_xyzi>{};
    }
};

/// A received picture, checked: any program may have written its header. OUTLIVE_CORRUPT: rows
/// overlap or are missing; OUTLIVE_UNSUPPORTED: the pixel format is unknown.
[[nodiscard]] inline expected<image_view>
view(const detail::headed_view<image_header, std::uint8_t> &of) {
    const auto size = sizeof of.header + of.tail.size_bytes();
    if (auto code = ::outlive_image_check(&of.header, size); code != OUTLIVE_OK) {
        return unexpected(error::last(code));
    }
    return image_view{of.header, of.tail};
}
/// A received point cloud, checked. OUTLIVE_CORRUPT: points are missing.
[[nodiscard]] inline expected<point_cloud_view>
view(const detail::headed_view<point_cloud_header, point_xyzi> &of) {
    const auto size = sizeof of.header + of.tail.size_bytes();
    if (auto code = ::outlive_point_cloud_check(&of.header, size); code != OUTLIVE_OK) {
        return unexpected(error::last(code));
    }
    return point_cloud_view{of.header, of.tail};
}
/// As above, of a sample, which stays for as long as the view is used: give it a name.
[[nodiscard]] inline expected<image_view> view(const sample<image> &of) { return view(*of); }
[[nodiscard]] inline expected<point_cloud_view> view(const sample<point_cloud> &of) {
    return view(*of);
}
expected<image_view> view(sample<image> &&) = delete;
expected<point_cloud_view> view(sample<point_cloud> &&) = delete;
} // namespace outlive::inline OUTLIVE_ABI::msg

#endif
