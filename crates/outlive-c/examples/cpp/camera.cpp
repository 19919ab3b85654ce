// A camera that writes its frames into shared memory, and a viewer that reads them there.
#include <outlive.hpp>
#include <outlive/msg.hpp>

#include <algorithm>
#include <cstdio>

namespace msg = outlive::msg;

int main() {
    auto node = outlive::node::open("camera").value();
    auto camera = node.publisher<msg::image>("/camera/front").value();
    auto viewer = node.subscriber<msg::image>("/camera/front").value();

    for (std::uint8_t shade = 1; shade <= 3; shade++) {
        auto loan = msg::loan_image(camera, "front_optical", 1280, 720, OUTLIVE_PIXEL_RGB8).value();
        std::ranges::fill(loan.tail(), shade); // what a driver would do
        std::move(loan).publish().value();
    }

    int frames = 0;
    bool in_place = true;
    while (auto sample = viewer.receive()) {
        const auto image = msg::view(*sample).value(); // checked: any program may publish here
        if (image.header.format == OUTLIVE_PIXEL_RGB8 && image.header.height > 0) { // of any size
            const auto last_row = image.row(image.header.height - 1);
            in_place &= sample->is_borrowed() && !last_row.empty() && last_row[0] == ++frames;
        }
    }
    std::printf("camera: %d frames, %s\n", frames, in_place ? "without a copy" : "copied");
}
