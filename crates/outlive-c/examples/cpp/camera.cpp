// A camera that writes its frames into shared memory, and a viewer that reads them there.
#include <outlive.hpp>

#include <algorithm>
#include <cstdio>

struct frame_header {
    std::uint64_t stamp_ns;
    std::uint32_t width, height;
};
OUTLIVE_MESSAGE(frame_header, "example/Frame", stamp_ns, width, height)

using frame = outlive::headed<frame_header, std::uint8_t>;

int main() {
    using namespace std::chrono_literals;
    constexpr std::uint32_t width = 1280, height = 720;
    auto node = outlive::node::open("camera").value();
    auto camera = node.publisher<frame>("/camera/front").value();
    auto viewer = node.subscriber<frame>("/camera/front").value();

    for (std::uint8_t shade = 1; shade <= 3; shade++) {
        auto loan = camera.loan(frame_header{outlive_now_ns(), width, height}, 3 * width * height);
        std::ranges::fill(loan->tail(), shade); // what a driver would do
        std::move(*loan).publish().value();
    }

    int frames = 0;
    bool in_place = true;
    while (auto sample = viewer.receive()) {
        const auto [header, pixels] = **sample;
        in_place &= sample->is_borrowed() && pixels.size() == 3 * header.width * header.height;
        frames++;
    }
    std::printf("camera: %d frames, %s\n", frames, in_place ? "without a copy" : "copied");
}
