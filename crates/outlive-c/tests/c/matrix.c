/* A writer or a reader of every type; see crates/outlive-py/tests/test_matrix.py. */
#include <outlive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct own {
    struct {
        uint8_t present, reserved[7];
        double value;
    } limit;
    double real;
    uint64_t big;
    struct {
        float x, y;
    } at[2];
    int16_t grid[2][3];
    char name[8];
    uint8_t mode, on;
    int8_t small;
    uint8_t bytes[1];
};

static const char *const OWN =
    "outlive-type 1 align 8\nstruct:72\n 0 struct:16 limit\n  0 bool present\n  8 f64 value\n"
    " 16 f64 real\n 24 u64 big\n 32 struct:8[2] at\n  0 f32 x\n  4 f32 y\n 48 i16[2][3] grid\n"
    " 60 char[8] name\n 68 u8 mode\n 69 bool on\n 70 i8 small\n 71 u8[1] bytes\n";

/* Its alignment is that of what may be absent. */
static const char *const CLIMATE =
    "outlive-type 1 align 8\nstruct:32\n 0 struct:16 celsius\n  0 bool present\n  8 f64 value\n"
    " 16 struct:16 humidity\n  0 bool present\n  8 f64 value\n";

enum { FOREIGN = 5 };
static const char *const ENCODINGS[FOREIGN] = {"protobuf", "json", "cdr", "flatbuffer", "arrow"};
static const char *const NAMES[FOREIGN] = {"matrix.Plan", "matrix/Goal", "matrix_msgs/msg/Part",
                                           "robot.Plan", "table"};

static void must(outlive_status status) {
    if (status != OUTLIVE_OK) {
        fprintf(stderr, "%s: %s\n", outlive_strerror(status), outlive_last_error());
        exit(1);
    }
}

struct bytes {
    unsigned char at[1 << 16];
    size_t size;
};

static struct bytes read_file(const char *dir, const char *encoding, const char *what) {
    static struct bytes bytes;
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", dir, encoding, what);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    bytes.size = fread(bytes.at, 1, sizeof bytes.at, file);
    fclose(file);
    return bytes;
}

static outlive_type *foreign(const char *dir, int i) {
    const struct bytes schema = read_file(dir, ENCODINGS[i], "schema");
    outlive_type *type;
    must(outlive_type_encoded(ENCODINGS[i], NAMES[i], schema.at, schema.size, &type));
    return type;
}

static struct own make(unsigned number) {
    const float f = (float)number;
    struct own m = {{1, {0}, 2.5}, number, UINT64_MAX, {{f, 0.5F}, {f, -1.5F}},
                    {{1, 2, 3}, {-4, 5, 6}}, "", 2, 1, -7, {(uint8_t)number}};
    memcpy(m.name, "grüß", strlen("grüß"));
    return m;
}

static void write_all(outlive_node *node, const char *dir, outlive_type *own) {
    outlive_publisher *to[FOREIGN + 1];
    static struct bytes payloads[FOREIGN];
    unsigned number;
    must(outlive_publisher_open(node, "/x/own", own, NULL, &to[FOREIGN]));
    for (int i = 0; i < FOREIGN; i++) {
        char topic[32];
        snprintf(topic, sizeof topic, "/x/%s", ENCODINGS[i]);
        must(outlive_publisher_open(node, topic, foreign(dir, i), NULL, &to[i]));
        payloads[i] = read_file(dir, ENCODINGS[i], "payload");
    }
    puts("ready");
    while (scanf("%u", &number) == 1) {
        const struct own m = make(number);
        must(outlive_publisher_publish(to[FOREIGN], &m, sizeof m, NULL));
        for (int i = 0; i < FOREIGN; i++) {
            must(outlive_publisher_publish(to[i], payloads[i].at, payloads[i].size, NULL));
        }
        puts("ok");
    }
}

static outlive_sample next(outlive_subscriber *from) {
    outlive_sample sample;
    outlive_event event;
    while (outlive_subscriber_receive(from, OUTLIVE_FOREVER, &sample)) {
        outlive_subscriber_next_event(from, &event);
    }
    return sample;
}

static void read_all(outlive_node *node, const char *dir, outlive_type *own) {
    outlive_subscriber *from[FOREIGN + 1];
    must(outlive_subscriber_open(node, "/x/own", own, NULL, &from[FOREIGN]));
    for (int i = 0; i < FOREIGN; i++) {
        char topic[32];
        snprintf(topic, sizeof topic, "/x/%s", ENCODINGS[i]);
        must(outlive_subscriber_open(node, topic, foreign(dir, i), NULL, &from[i]));
    }
    puts("ready");
    for (;;) {
        outlive_sample sample = next(from[FOREIGN]);
        struct own m;
        memcpy(&m, outlive_sample_data(&sample, NULL), sizeof m);
        outlive_sample_release(&sample);
        printf("%g %g %llu %g %g %d %.8s %d %d %d %d %d\n", m.limit.value, m.real,
               (unsigned long long)m.big, (double)m.at[1].x, (double)m.at[1].y, m.grid[1][0],
               m.name, m.mode, m.on, m.small, m.bytes[0], m.limit.present);
        for (int i = 0; i < FOREIGN; i++) {
            size_t size;
            sample = next(from[i]);
            const unsigned char *bytes = outlive_sample_data(&sample, &size);
            for (size_t at = 0; at < size; at++) {
                printf("%02x", bytes[at]);
            }
            puts("");
            outlive_sample_release(&sample);
        }
    }
}

int main(int argc, char **argv) {
    outlive_node *node;
    outlive_type *own, *climate;
    outlive_subscriber *of_climate;
    if (argc != 3) {
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(outlive_type_fixed("matrix/Own", OWN, &own));
    must(outlive_type_fixed("matrix/Climate", CLIMATE, &climate));
    must(outlive_node_open(NULL, &node));
    /* Open, so that all agree on it. */
    must(outlive_subscriber_open(node, "/x/climate", climate, NULL, &of_climate));
    if (strcmp(argv[2], "write") == 0) {
        write_all(node, argv[1], own);
    } else {
        read_all(node, argv[1], own);
    }
    return 0;
}
