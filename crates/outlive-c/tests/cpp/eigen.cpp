// Eigen's fixed-size types as fields and as messages.
#include <outlive.hpp>
#include <outlive/eigen.hpp>

#include "check.hpp"

using namespace std::chrono_literals;

template <class S, int R, int C> using by_rows = Eigen::Matrix<S, R, C, Eigen::RowMajor>;
using vector4 = Eigen::Matrix<double, 4, 1, Eigen::DontAlign>;
using quaternion = Eigen::Quaternion<double, Eigen::DontAlign>;

struct point {
    Eigen::Vector3d at;
};
OUTLIVE_MESSAGE(point, "example/Point", at)

struct track {
    Eigen::Vector3d position;
    Eigen::RowVector3d velocity;
    Eigen::Matrix<double, 2, 3, Eigen::DontAlign> columns;
    Eigen::Matrix<double, 2, 3, Eigen::RowMajor | Eigen::DontAlign> rows;
    Eigen::Array<std::int16_t, 4, 1, Eigen::DontAlign> ticks;
    quaternion turn;
    vector4 plane;
    std::array<Eigen::Vector3f, 2> ends;
    point last;
};
OUTLIVE_MESSAGE(track, "example/Track", position, velocity, columns, rows, ticks, turn, plane, ends,
                last)

// As the same bytes are written without Eigen.
struct plain_point {
    double at[3];
};
OUTLIVE_MESSAGE(plain_point, "example/Point", at)
struct plain {
    double position[3], velocity[3];
    double columns[3][2]; // three columns of two rows
    double rows[2][3];
    std::int16_t ticks[4];
    double turn[4], plane[4];
    float ends[2][3];
    plain_point last;
};
OUTLIVE_MESSAGE(plain, "example/Track", position, velocity, columns, rows, ticks, turn, plane, ends,
                last)

static_assert(outlive::shareable<Eigen::Vector3d> && outlive::shareable<Eigen::Matrix3f>);
static_assert(outlive::shareable<quaternion> && outlive::shareable<track>);
// Aligned for vector instructions, of any size, of no size, of what is no number to others.
static_assert(!outlive::shareable<Eigen::Vector4d> && !outlive::shareable<Eigen::Quaterniond>);
static_assert(!outlive::shareable<Eigen::VectorXd> && !outlive::shareable<Eigen::MatrixXf>);
static_assert(!outlive::shareable<Eigen::Matrix<double, 0, 3>>);
static_assert(!outlive::shareable<Eigen::Matrix<bool, 3, 1>>);
static_assert(!outlive::shareable<Eigen::Vector3cd>);

int main() {
    CHECK(outlive::describe<track>() == outlive::describe<plain>());
    CHECK(outlive::describe<Eigen::Vector3d>() == outlive::describe<double[3]>());
    CHECK((outlive::describe<by_rows<float, 2, 3>>() == outlive::describe<float[2][3]>()));
    CHECK((outlive::describe<Eigen::Matrix<float, 2, 3>>() == outlive::describe<float[3][2]>()));

    auto node = outlive::node::open("eigen").value();
    auto publisher = node.publisher<track>("/track").value();
    auto subscriber = node.subscriber<plain>("/track").value();
    auto same = node.subscriber<track>("/track").value();
    {
        auto loan = publisher.loan().value();
        loan->position = Eigen::Vector3d(1, 2, 3);
        loan->velocity = Eigen::RowVector3d(4, 5, 6);
        loan->columns << 1, 2, 3, 4, 5, 6; // the rows 1 2 3 and 4 5 6, in both
        loan->rows = loan->columns;
        loan->ticks << 1, -2, 3, -4;
        loan->turn = quaternion(0.5, 1.5, 2.5, 3.5); // w, x, y, z
        loan->plane << 7, 8, 9, 10;
        loan->ends = {Eigen::Vector3f(1, 2, 3), Eigen::Vector3f(4, 5, 6)};
        loan->last.at = loan->position * 2;
        CHECK(std::move(loan).publish());
    }
    auto sample = subscriber.receive(10s).value();
    const plain &got = *sample;
    CHECK(got.position[2] == 3 && got.velocity[0] == 4);
    CHECK(got.columns[0][0] == 1 && got.columns[0][1] == 4 && got.columns[2][0] == 3);
    CHECK(got.rows[0][2] == 3 && got.rows[1][0] == 4);
    CHECK(got.ticks[1] == -2 && got.turn[0] == 1.5 && got.turn[3] == 0.5 && got.plane[3] == 10);
    CHECK(got.ends[1][2] == 6 && got.last.at[2] == 6);

    auto again = same.receive(10s).value();
    const track copy = *again;
    CHECK(copy.columns == again->rows && copy.columns(1, 0) == 4);
    CHECK(copy.turn.coeffs() == quaternion(0.5, 1.5, 2.5, 3.5).coeffs());

    // As messages of their own, and as elements.
    auto producer = node.producer<Eigen::Vector3d>("/points").value();
    auto consumer = node.consumer<Eigen::Vector3d>("/points").value();
    CHECK(producer.send(Eigen::Vector3d(1, 2, 3) * 2));
    CHECK(**consumer.receive(10s) == Eigen::Vector3d(2, 4, 6));
    auto cloud = node.publisher<Eigen::Vector3f[]>("/cloud").value();
    auto points = node.subscriber<Eigen::Vector3f[]>("/cloud").value();
    const std::array sent{Eigen::Vector3f(1, 2, 3), Eigen::Vector3f(4, 5, 6)};
    CHECK(cloud.publish(sent));
    auto received = points.receive(10s).value();
    CHECK((*received).size() == 2 && (*received)[1] == sent[1]);
    std::puts("eigen: fields and messages");
}
