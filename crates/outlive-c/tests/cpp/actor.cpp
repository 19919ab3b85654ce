// One voice of the conversation test; see crates/outlive-py/tests/test_conversation.py.
#include <outlive.hpp>
#include <outlive/msg.hpp>
#if __has_include(<msgpack.hpp>)
#include <outlive/msgpack.hpp>
#endif

#include <cstring>
#include <iostream>
#include <numeric>

struct reading {
    std::uint64_t stamp_ns;
    std::uint32_t sender, number;
    double values[3];
    std::array<std::array<std::int16_t, 2>, 2> grid;
};
OUTLIVE_MESSAGE(reading, "test/Reading", stamp_ns, sender, number, values, grid)

#ifdef OUTLIVE_MSGPACK
// What travels as MessagePack.
struct plan {
    std::string goal;
    unsigned number = 0;
    std::vector<double> speeds;
    MSGPACK_DEFINE_MAP(goal, number, speeds)
};
OUTLIVE_MSGPACK(plan, "test/Plan")
#endif

static reading make(unsigned number) {
    return {1, 2, number, {1.5, 2.5, 3.5}, {{{1, 2}, {3, 4}}}};
}

static double sum(const reading &r) {
    return r.values[0] + r.values[1] + r.values[2] + r.grid[0][0] + r.grid[0][1] + r.grid[1][0] +
           r.grid[1][1];
}

static void show(const reading &r) { std::cout << r.number << ' ' << sum(r) << std::endl; }

namespace msg = outlive::msg;

template <class T> static void describe() {
    std::printf("%s ", outlive::message_traits<T>::name);
    for (char c : outlive::describe<T>()) {
        std::putchar(c == '\n' ? '|' : c);
    }
    std::puts("");
}

static void described() {
    describe<msg::pose>();
    describe<msg::twist>();
    describe<msg::imu>();
    describe<msg::joint_state_header>();
    describe<msg::joint>();
    describe<msg::image_header>();
    describe<msg::point_cloud_header>();
    describe<msg::point_xyzi>();
}

// The ready-made messages with a number in them.
static void send(outlive::node &node) {
    auto poses = node.publisher<msg::pose>("/m/pose").value();
    auto twists = node.publisher<msg::twist>("/m/twist").value();
    auto imus = node.publisher<msg::imu>("/m/imu").value();
    auto joints = node.publisher<msg::joint_state>("/m/joints").value();
    auto clouds = node.publisher<msg::point_cloud>("/m/cloud").value();
    auto images = node.publisher<msg::image>("/m/image").value();
    std::cout << "ready" << std::endl;
    msg::header header{7, {}};
    msg::set(header.frame_id, "map");
    unsigned number = 0;
    while (std::cin >> number) {
        const double n = number;
        const auto f = static_cast<float>(number);
        poses.publish({header, {1, 2, n}, msg::identity}).value();
        twists.publish({header, {n, 0, 0}, {0, 0, 0.5}}).value();
        msg::imu imu{};
        imu.header = header;
        imu.linear_acceleration.z = 9.75;
        imu.orientation_covariance[0] = -1;
        imus.publish(imu).value();
        auto arm = joints.loan(msg::joint_state_header{header}, 1).value();
        arm.tail()[0] = {"", n, 0.5, -1.5};
        msg::set(arm.tail()[0].name, "elbow");
        std::move(arm).publish().value();
        auto cloud = clouds.loan(msg::point_cloud_header{header, 2, 1, {}}, 2).value();
        cloud.tail()[0] = {f, 0, 0, 0.5F};
        cloud.tail()[1] = {0, f, 0, 0.25F};
        std::move(cloud).publish().value();
        auto image = msg::loan_image(images, header, 2, 2, OUTLIVE_PIXEL_RGB8).value();
        std::iota(image.tail().begin(), image.tail().end(), static_cast<std::uint8_t>(number));
        if (number == 2) {
            image.header().height = 9;
        } else if (number == 3) {
            image.header().format = 77;
        }
        std::move(image).publish().value();
        std::cout << "ok" << std::endl;
    }
}

static void hex(std::span<const std::byte> bytes) {
    for (auto byte : bytes) {
        std::printf("%02x", std::to_integer<unsigned>(byte));
    }
}
template <class T> static void hex(const T &of) { hex(std::as_bytes(std::span(&of, 1))); }
template <class H, class E> static void hex(const H &header, std::span<const E> tail) {
    hex(header);
    hex(std::as_bytes(tail));
}

// What came, field by field, and the bytes of it.
static void see(outlive::node &node) {
    auto poses = node.subscriber<msg::pose>("/m/pose").value();
    auto twists = node.subscriber<msg::twist>("/m/twist").value();
    auto imus = node.subscriber<msg::imu>("/m/imu").value();
    auto joints = node.subscriber<msg::joint_state>("/m/joints").value();
    auto clouds = node.subscriber<msg::point_cloud>("/m/cloud").value();
    auto images = node.subscriber<msg::image>("/m/image").value();
    std::puts("ready");
    // Events are of no interest here.
    const auto next = [](auto &from) {
        for (;;) {
            if (auto sample = from.receive(outlive::deadline::never)) {
                return std::move(*sample);
            }
            from.next_event();
        }
    };
    for (;;) {
        const auto pose = next(poses);
        const auto twist = next(twists);
        const auto imu = next(imus);
        const auto state = next(joints);
        const auto cloud = next(clouds);
        const auto image = next(images);
        const auto [arm, elbows] = *state;
        const auto checked = msg::view(cloud).value();
        std::cout << msg::text(pose->header.frame_id) << ' ' << pose->header.stamp_ns << ' '
                  << pose->position.z << ' ' << twist->linear.x << ' ' << twist->angular.z << ' '
                  << imu->linear_acceleration.z << ' ' << imu->orientation_covariance[0] << ' '
                  << elbows[0].position << ' ' << elbows[0].effort << ' ' << checked.row(0)[1].y
                  << ' ' << checked.points[1].intensity << ' ';
        if (const auto picture = msg::view(image)) {
            std::cout << int{picture->row(1)[5]} << std::endl;
        } else {
            std::cout << picture.error().detail() << std::endl;
        }
        hex(*pose);
        hex(*twist);
        hex(*imu);
        hex(arm, elbows);
        hex(checked.header, checked.points);
        hex((*image).header, (*image).tail);
        std::puts("");
    }
}

static void layout() {
    for (char c : outlive::describe<reading>()) {
        std::cout << (c == '\n' ? '|' : c);
    }
    std::cout << std::endl;
    const reading r = make(3);
    unsigned char bytes[sizeof r];
    std::memcpy(bytes, &r, sizeof r);
    for (auto byte : bytes) {
        std::printf("%02x", byte);
    }
    std::puts("");
    described();
}

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    const std::string role = argc > 1 ? argv[1] : "";
    if (role == "layout") {
        layout();
        return 0;
    }
    const auto never = outlive::deadline::never;
    auto node = outlive::node::open("cpp").value();
    const auto ready = [] { std::cout << "ready" << std::endl; };
    unsigned number = 0;
    if (role == "publish") {
        outlive::topic_options options;
        options.depth = 64;
        auto publisher = node.publisher<reading>("/c/topic", options).value();
        ready();
        while (std::cin >> number) {
            publisher.publish(make(number)).value();
            std::cout << "ok" << std::endl;
        }
#ifdef OUTLIVE_MSGPACK
    } else if (role == "plan") {
        auto publisher = node.publisher<plan>("/c/plan").value();
        ready();
        while (std::cin >> number) {
            publisher.publish(plan{"dock", number, {0.5, 0.25}}).value();
            std::cout << "ok" << std::endl;
        }
    } else if (role == "follow") {
        auto subscriber = node.subscriber<plan>("/c/plan").value();
        ready();
        for (;;) {
            if (auto sample = subscriber.receive(never)) {
                const auto got = sample->value().value();
                const auto sum = std::accumulate(got.speeds.begin(), got.speeds.end(), 0.0);
                std::cout << got.goal << ' ' << got.number << ' ' << sum << std::endl;
            } else {
                subscriber.next_event();
            }
        }
#endif
    } else if (role == "subscribe") {
        auto subscriber = node.subscriber<reading>("/c/topic").value();
        ready();
        for (;;) {
            if (auto sample = subscriber.receive(never)) {
                show(**sample);
            }
        }
    } else if (role == "send") {
        send(node);
    } else if (role == "see") {
        see(node);
    } else if (role == "produce") {
        auto producer = node.producer<reading>("/c/queue").value();
        ready();
        while (std::cin >> number) {
            const auto sent = producer.send(make(number));
            std::cout << (sent ? "ok" : sent.error().what()) << std::endl;
        }
    } else if (role == "consume") {
        auto consumer = node.consumer<reading>("/c/queue").value();
        ready();
        for (;;) {
            if (auto message = consumer.receive(never)) {
                show(**message);
            }
        }
    } else if (role == "serve") {
        auto server = node.server<reading, double>("/c/service").value();
        ready();
        for (;;) {
            auto request = server.receive(never).value();
            const double answer = sum(*request) + request->number;
            (void)server.respond(std::move(request), answer);
        }
    } else if (role == "call") {
        auto client = node.client<reading, double>("/c/service").value();
        ready();
        while (std::cin >> number) {
            if (auto reply = client.call(make(number))) {
                std::cout << **reply << std::endl;
            } else {
                std::cout << reply.error().what() << std::endl;
            }
        }
    } else if (role == "lock") {
        auto mutex = node.mutex<reading>("/c/lock").value();
        ready();
        while (std::cin >> number) {
            const bool died = mutex.acquire().value() == outlive::acquired::owner_died;
            const auto before = mutex->number;
            if (died) {
                mutex.mark_consistent().value();
            }
            mutex->number = number; // and keeps the lock
            std::cout << (died ? "owner died " : "ok ") << before << std::endl;
        }
    }
}
