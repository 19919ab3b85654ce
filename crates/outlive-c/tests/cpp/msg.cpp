// Ready-made messages: sent, read, and what is malformed.
#include <array>
#include <outlive.hpp>
#include <outlive/msg.hpp>

#include <numeric>
#include <string>

#include "check.hpp"

namespace msg = outlive::msg;

static void texts() {
    msg::header header = msg::now("base_link");
    CHECK(msg::text(header.frame_id) == "base_link" && header.stamp_ns > 0);
    msg::set(header.frame_id, std::string(40, 'x'));
    CHECK(msg::text(header.frame_id) == std::string(32, 'x'));
    msg::set(header.frame_id, std::string(31, 'x') + "\xc3\xa4");
    CHECK(msg::text(header.frame_id) == std::string(31, 'x'));
    msg::set(header.frame_id, std::string(30, 'x') + "\xc3\xa4");
    CHECK(msg::text(header.frame_id).size() == 32);
    msg::set(header.frame_id, std::string_view("a\0b", 3));
    CHECK(msg::text(header.frame_id) == "a" && header.frame_id[31] == '\0');
    msg::set(header.frame_id, {});
    CHECK(msg::text(header.frame_id).empty());
}

static void images(outlive::node &node) {
    auto camera = node.publisher<msg::image>("/camera").value();
    auto viewer = node.subscriber<msg::image>("/camera").value();
    const auto read = [&] { return viewer.receive(outlive::deadline::never).value(); };

    auto loan = msg::loan_image(camera, "front", 4, 3, OUTLIVE_PIXEL_BGR8).value();
    CHECK(loan.tail().size() == 36 && loan.header().row_bytes == 12);
    std::iota(loan.tail().begin(), loan.tail().end(), std::uint8_t{0});
    std::move(loan).publish().value();
    const auto sample = read();
    const auto image = msg::view(sample).value();
    CHECK(msg::text(image.header.header.frame_id) == "front" && image.pixels.size() == 36);
    CHECK(image.row(2).size() == 12 && image.row(2)[11] == 35);
    CHECK(image.row(3).empty() && image.row(UINT32_MAX).empty());

    // Rows that are not there, and an unknown format.
    auto header = image.header;
    header.height = 4;
    std::move(camera.loan(header, 36).value()).publish().value();
    header.format = 77;
    std::move(camera.loan(header, 36).value()).publish().value();
    auto broken = read();
    auto found = msg::view(broken);
    CHECK(!found && found.error() == OUTLIVE_CORRUPT);
    CHECK(found.error().detail().find("promises 4 rows") != std::string::npos);
    broken = read();
    found = msg::view(broken);
    CHECK(!found && found.error() == OUTLIVE_UNSUPPORTED);
    CHECK(found.error().detail().find("format 77") != std::string::npos);

    // A file.
    const msg::image_header jpeg{msg::now("front"), 4, 3, 0, OUTLIVE_PIXEL_JPEG, {}};
    std::move(camera.loan(jpeg, 10).value()).publish().value();
    const auto file = read();
    CHECK(msg::view(file).value().pixels.size() == 10 && msg::view(file)->row(0).empty());

    // What has no size.
    for (auto [width, format] : {std::pair{4U, OUTLIVE_PIXEL_PNG}, {4U, 77}, {1U << 31, 3}}) {
        const auto refused = msg::loan_image(camera, "front", width, 3,
                                             static_cast<msg::pixel_format>(format));
        CHECK(!refused && refused.error() == OUTLIVE_INVALID_ARGUMENT);
        const auto *why = width == 4 ? "have no size" : "are too large";
        CHECK(refused.error().detail().find(why) != std::string::npos);
    }
}

static void clouds(outlive::node &node) {
    auto lidar = node.publisher<msg::point_cloud>("/lidar").value();
    auto viewer = node.subscriber<msg::point_cloud>("/lidar").value();
    const msg::point_cloud_header header{msg::now("lidar"), 2, 2, {}};
    auto loan = lidar.loan({msg::now("lidar"), 2, 2, {}}, 4).value();
    for (std::size_t i = 0; i < 4; i++) {
        loan.tail()[i] = {static_cast<float>(i), 0, 0, 0};
    }
    std::move(loan).publish().value();
    std::move(lidar.loan(header, 3).value()).publish().value();
    auto sample = viewer.receive().value();
    const auto cloud = msg::view(sample).value();
    CHECK(cloud.points.size() == 4 && cloud.row(1)[1].x == 3 && cloud.row(2).empty());
    sample = viewer.receive().value();
    CHECK(msg::view(sample).error() == OUTLIVE_CORRUPT);
}

static void batches(outlive::node &node) {
    auto publisher = node.publisher<msg::vector3>("/steps").value();
    auto subscriber = node.subscriber<msg::vector3>("/steps").value();
    const std::array<msg::vector3, 2> batch{{{7, 8, 9}, {10, 11, 12}}};
    CHECK(publisher.publish_batch(batch) && publisher.publish_batch({}));
    CHECK(publisher.published() == 2);
    CHECK(subscriber.receive().value()->x == 7 && subscriber.receive().value()->z == 12);
    outlive::publisher<msg::vector3> none;
    CHECK(none.publish_batch(batch).error() == OUTLIVE_INVALID_ARGUMENT);
}

int main() {
    texts();
    auto node = outlive::node::open("msg").value();
    images(node);
    clouds(node);
    batches(node);
    std::puts("msg: sent and read");
}
