// A writer or a reader of every type; see crates/outlive-py/tests/test_matrix.py.
#include <outlive.hpp>

#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

enum class mode : std::uint8_t { idle, hold = 2 };

struct spot {
    float x, y;
};
OUTLIVE_MESSAGE(spot, "matrix/Spot", x, y)

struct own {
    outlive::optional<double> limit;
    double real;
    std::uint64_t big;
    spot at[2];
    std::int16_t grid[2][3];
    char name[8];
    ::mode mode;
    outlive::boolean on;
    std::int8_t small;
    std::uint8_t bytes[1];
};
OUTLIVE_MESSAGE(own, "matrix/Own", limit, real, big, at, grid, name, mode, on, small, bytes)

// Its alignment is that of what may be absent.
struct climate {
    outlive::optional<double> celsius, humidity;
};
OUTLIVE_MESSAGE(climate, "matrix/Climate", celsius, humidity)

static std::string dir;

static std::string file(const std::string &encoding, const char *what) {
    std::ifstream from(dir + "/" + encoding + "." + what, std::ios::binary);
    return {std::istreambuf_iterator<char>(from), {}};
}

// Bytes in a third-party encoding.
template <std::size_t> struct foreign {
    std::string bytes;
};
static constexpr const char *encodings[] = {"protobuf", "json", "cdr", "flatbuffer", "arrow"};
static constexpr const char *names[] = {"matrix.Plan", "matrix/Goal", "matrix_msgs/msg/Part",
                                        "robot.Plan", "table"};

template <std::size_t I> struct outlive::packed_traits<foreign<I>> {
    static constexpr const char *name = names[I];
    static outlive_status type(::outlive_type **out) {
        const auto schema = file(encodings[I], "schema");
        return ::outlive_type_encoded(encodings[I], name, schema.data(), schema.size(), out);
    }
    static void pack(const foreign<I> &value, std::vector<std::byte> &to) {
        const auto bytes = std::as_bytes(std::span(value.bytes));
        to.insert(to.end(), bytes.begin(), bytes.end());
    }
    static bool unpack(std::span<const std::byte> from, foreign<I> &value) {
        value.bytes.assign(reinterpret_cast<const char *>(from.data()), from.size());
        return true;
    }
};

static own make(unsigned number) {
    const auto f = static_cast<float>(number);
    own m{2.5,
          static_cast<double>(number),
          UINT64_MAX,
          {{f, 0.5F}, {f, -1.5F}},
          {{1, 2, 3}, {-4, 5, 6}},
          {},
          mode::hold,
          true,
          -7,
          {static_cast<std::uint8_t>(number)}};
    std::memcpy(m.name, "grüß", std::strlen("grüß"));
    return m;
}

static std::string topic(std::size_t i) { return std::string("/x/") + encodings[i]; }

template <std::size_t... I>
static void write_all(outlive::node &node, std::index_sequence<I...>) {
    auto to = node.publisher<own>("/x/own").value();
    auto others = std::tuple(node.publisher<foreign<I>>(topic(I)).value()...);
    const auto payloads = std::tuple(foreign<I>{file(encodings[I], "payload")}...);
    std::cout << "ready" << std::endl;
    unsigned number = 0;
    while (std::cin >> number) {
        to.publish(make(number)).value();
        (std::get<I>(others).publish(std::get<I>(payloads)).value(), ...);
        std::cout << "ok" << std::endl;
    }
}

template <class T> static auto next(outlive::subscriber<T> &from) {
    for (;;) {
        if (auto sample = from.receive(outlive::deadline::never)) {
            return std::move(*sample);
        }
        from.next_event();
    }
}

static void hex(const std::string &bytes) {
    for (const unsigned char byte : bytes) {
        std::printf("%02x", byte);
    }
    std::puts("");
}

template <std::size_t... I>
static void read_all(outlive::node &node, std::index_sequence<I...>) {
    auto from = node.subscriber<own>("/x/own").value();
    auto others = std::tuple(node.subscriber<foreign<I>>(topic(I)).value()...);
    std::puts("ready");
    for (;;) {
        const auto sample = next(from);
        const own &m = *sample;
        std::printf("%g %g %llu %g %g %d %.8s %d %d %d %d %d\n", m.limit.value_or(0), m.real,
                    static_cast<unsigned long long>(m.big), static_cast<double>(m.at[1].x),
                    static_cast<double>(m.at[1].y), m.grid[1][0], m.name, static_cast<int>(m.mode),
                    static_cast<bool>(m.on), m.small, m.bytes[0],
                    static_cast<bool>(m.limit));
        (hex(next(std::get<I>(others)).value().value().bytes), ...);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) {
        return 2;
    }
    setvbuf(stdout, nullptr, _IOLBF, 0);
    dir = argv[1];
    auto node = outlive::node::open("cpp").value();
    // Open, so that all agree on it.
    const auto of_climate = node.subscriber<climate>("/x/climate").value();
    const auto all = std::make_index_sequence<std::size(encodings)>{};
    if (std::string(argv[2]) == "write") {
        write_all(node, all);
    } else {
        read_all(node, all);
    }
}
