// Eigen's fixed-size matrices, vectors, arrays and quaternions as fields of messages, and as messages,
// for those who have it (Debian, Ubuntu: libeigen3-dev; CMake: find_package(Eigen3)). outlive.hpp does
// not include this.
//
// Example:
//
//     using vector4 = Eigen::Matrix<double, 4, 1, Eigen::DontAlign>;
//     struct track {
//         Eigen::Vector3d position; // m
//         Eigen::Matrix3d covariance;
//         vector4 corners;
//     };
//     OUTLIVE_MESSAGE(track, "robot/Track", position, covariance, corners)
//
// Other languages see arrays as the numbers lie in memory:
//
// | of Eigen | in a description | Rust, C | NumPy |
// |---|---|---|---|
// | Vector3d, RowVector3d, Array3d | f64[3] | [f64; 3], double[3] | shape (3,) |
// | Matrix<double, 2, 3>, by columns as is Eigen's habit | f64[3][2] | [[f64; 2]; 3]: three columns | shape (3, 2), of which .T is the matrix |
// | Matrix<double, 2, 3, RowMajor> | f64[2][3] | [[f64; 3]; 2]: two rows | shape (2, 3) |
// | Quaternion<double, DontAlign> | f64[4] | x, y, z, w | shape (4,) |
//
// A square matrix by columns and one by rows look the same to others: agree on one, and say
// Eigen::RowMajor where NumPy or ROS is the other end.
//
// Where Eigen would align a type for vector instructions (Vector4d, Matrix4d, Quaterniond), how much
// depends on the compiler's options: such types do not compile as messages. Give them Eigen::DontAlign.
#ifndef OUTLIVE_EIGEN_HPP
#define OUTLIVE_EIGEN_HPP

#include <Eigen/Core>
#include <Eigen/Geometry>

#include "message.hpp"

namespace outlive::inline OUTLIVE_ABI::detail {

/// Rows and columns as they lie in memory: `Inner` numbers in a row of it, or in a column.
template <class S, int Rows, int Cols, int Options> struct eigen_array : std::true_type {
    static constexpr bool by_rows = (Options & Eigen::RowMajorBit) != 0;
    static constexpr bool is_vector = Rows == 1 || Cols == 1;
    static constexpr std::size_t inner = by_rows ? Cols : Rows, outer = by_rows ? Rows : Cols;
    static constexpr std::size_t length = is_vector ? inner * outer : outer;
    using element = std::conditional_t<is_vector, S, std::array<S, inner>>;
};

template <class S, int Rows, int Cols, int Options>
    requires(Rows >= 0 && Cols >= 0)
struct is_array<Eigen::Matrix<S, Rows, Cols, Options, Rows, Cols>>
    : eigen_array<S, Rows, Cols, Options> {};
template <class S, int Rows, int Cols, int Options>
    requires(Rows >= 0 && Cols >= 0)
struct is_array<Eigen::Array<S, Rows, Cols, Options, Rows, Cols>>
    : eigen_array<S, Rows, Cols, Options> {};
template <class S, int Options>
struct is_array<Eigen::Quaternion<S, Options>> : eigen_array<S, 4, 1, Eigen::ColMajor> {};

// Their copies are of Eigen's own, which copy the numbers and nothing else.
template <class S, int Rows, int Cols, int Options>
struct is_foreign<Eigen::Matrix<S, Rows, Cols, Options, Rows, Cols>> : std::true_type {};
template <class S, int Rows, int Cols, int Options>
struct is_foreign<Eigen::Array<S, Rows, Cols, Options, Rows, Cols>> : std::true_type {};
template <class S, int Options> struct is_foreign<Eigen::Quaternion<S, Options>> : std::true_type {};

} // namespace outlive::inline OUTLIVE_ABI::detail

#endif
