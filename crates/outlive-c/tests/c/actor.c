/* One voice of the conversation test; see crates/outlive-py/tests/test_conversation.py. */
#include <outlive.h>
#include <outlive/msg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
    uint64_t stamp_ns;
    uint32_t sender, number;
    double values[3];
    int16_t grid[2][2];
};

static const char *const READING = "outlive-type 1 align 8\nstruct:48\n 0 u64 stamp_ns\n"
                                   " 8 u32 sender\n 12 u32 number\n 16 f64[3] values\n"
                                   " 40 i16[2][2] grid\n";
static const char *const SUM = "outlive-type 1 align 8\nf64\n";

static void must(outlive_status status) {
    if (status != OUTLIVE_OK) {
        fprintf(stderr, "%s: %s\n", outlive_strerror(status), outlive_last_error());
        exit(1);
    }
}

static struct reading make(unsigned number) {
    struct reading r = {1, 2, number, {1.5, 2.5, 3.5}, {{1, 2}, {3, 4}}};
    return r;
}

static double sum(const struct reading *r) {
    return r->values[0] + r->values[1] + r->values[2] + r->grid[0][0] + r->grid[0][1] +
           r->grid[1][0] + r->grid[1][1];
}

static void show(const void *data) {
    struct reading r;
    memcpy(&r, data, sizeof r);
    printf("%u %g\n", r.number, sum(&r));
}

static void layout(void) {
    struct reading r = make(3);
    for (const char *c = READING; *c; c++) {
        putchar(*c == '\n' ? '|' : *c);
    }
    putchar('\n');
    for (size_t i = 0; i < sizeof r; i++) {
        printf("%02x", ((const unsigned char *)&r)[i]);
    }
    putchar('\n');
}

static void publish(outlive_node *node, outlive_type *type) {
    outlive_publisher *publisher;
    unsigned number;
    outlive_topic_options options = {.size = sizeof options, .depth = 64};
    must(outlive_publisher_open(node, "/c/topic", type, &options, &publisher));
    puts("ready");
    while (scanf("%u", &number) == 1) {
        struct reading r = make(number);
        must(outlive_publisher_publish(publisher, &r, sizeof r, NULL));
        puts("ok");
    }
}

static void subscribe(outlive_node *node, outlive_type *type) {
    outlive_subscriber *subscriber;
    must(outlive_subscriber_open(node, "/c/topic", type, NULL, &subscriber));
    puts("ready");
    for (;;) {
        outlive_sample sample;
        outlive_status status = outlive_subscriber_receive(subscriber, OUTLIVE_FOREVER, &sample);
        if (status == OUTLIVE_OK) {
            show(outlive_sample_data(&sample, NULL));
            outlive_sample_release(&sample);
        }
    }
}

static void produce(outlive_node *node, outlive_type *type) {
    outlive_producer *producer;
    unsigned number;
    must(outlive_producer_open(node, "/c/queue", type, NULL, &producer));
    puts("ready");
    while (scanf("%u", &number) == 1) {
        struct reading r = make(number);
        outlive_producer_send(producer, &r, sizeof r, OUTLIVE_FOREVER);
        puts(outlive_strerror(outlive_producer_status(producer)));
    }
}

static void consume(outlive_node *node, outlive_type *type) {
    outlive_consumer *consumer;
    must(outlive_consumer_open(node, "/c/queue", type, NULL, &consumer));
    puts("ready");
    for (;;) {
        outlive_message message;
        if (outlive_consumer_receive(consumer, OUTLIVE_FOREVER, &message) == OUTLIVE_OK) {
            show(message.data);
            outlive_consumer_ack(consumer, &message);
        }
    }
}

static void serve(outlive_node *node, outlive_type *type, outlive_type *answer) {
    outlive_server *server;
    must(outlive_server_open(node, "/c/service", type, answer, NULL, &server));
    puts("ready");
    for (;;) {
        outlive_request *request;
        struct reading r;
        must(outlive_server_receive(server, OUTLIVE_FOREVER, &request));
        memcpy(&r, outlive_request_data(request, NULL), sizeof r);
        double result = sum(&r) + r.number;
        outlive_server_respond(server, request, &result, sizeof result);
    }
}

static void call(outlive_node *node, outlive_type *type, outlive_type *answer) {
    outlive_client *client;
    unsigned number;
    must(outlive_client_open(node, "/c/service", type, answer, NULL, &client));
    puts("ready");
    while (scanf("%u", &number) == 1) {
        struct reading r = make(number);
        outlive_reply *reply;
        outlive_status status =
            outlive_client_call(client, &r, sizeof r, OUTLIVE_FOREVER, &reply);
        if (status == OUTLIVE_OK) {
            printf("%g\n", *(const double *)outlive_reply_data(reply, NULL));
            outlive_reply_free(reply);
        } else {
            puts(outlive_strerror(status));
        }
    }
}

static void lock(outlive_node *node, outlive_type *type) {
    outlive_mutex *mutex;
    unsigned number;
    must(outlive_mutex_open(node, "/c/lock", type, NULL, &mutex));
    puts("ready");
    while (scanf("%u", &number) == 1) {
        struct reading *r = outlive_mutex_data(mutex);
        outlive_status status = outlive_mutex_lock(mutex, OUTLIVE_FOREVER);
        unsigned before = r->number;
        if (status == OUTLIVE_OWNER_DIED) {
            must(outlive_mutex_mark_consistent(mutex));
        }
        r->number = number;
        printf("%s %u\n", outlive_strerror(status), before); /* and keeps the lock */
    }
}

enum { POSE, TWIST, IMU, JOINTS, CLOUD, IMAGE, MESSAGES };

static const char *const TOPICS[] = {"/m/pose",   "/m/twist", "/m/imu",
                                     "/m/joints", "/m/cloud", "/m/image"};
static const char *const NAMES[] = {"outlive/Pose",       "outlive/Twist",      "outlive/Imu",
                                    "outlive/JointState", "outlive/PointCloud", "outlive/Image"};

struct joints {
    outlive_joint_state_header header;
    outlive_joint elbow;
};
struct cloud {
    outlive_point_cloud_header header;
    outlive_point_xyzi points[2];
};

/* The ready-made messages with a number in them. */
static void send_messages(outlive_node *node) {
    outlive_publisher *to[MESSAGES];
    outlive_header header = {.stamp_ns = 7, .frame_id = "map"};
    unsigned number;
    for (int i = 0; i < MESSAGES; i++) {
        outlive_type *type;
        must(outlive_type_message(NAMES[i], &type));
        must(outlive_publisher_open(node, TOPICS[i], type, NULL, &to[i]));
        outlive_type_free(type);
    }
    puts("ready");
    while (scanf("%u", &number) == 1) {
        double n = number;
        outlive_pose pose = {header, {1, 2, n}, OUTLIVE_QUATERNION_IDENTITY};
        must(outlive_publisher_publish(to[POSE], &pose, sizeof pose, NULL));
        outlive_twist twist = {header, {n, 0, 0}, {0, 0, 0.5}};
        must(outlive_publisher_publish(to[TWIST], &twist, sizeof twist, NULL));
        outlive_imu imu = {.header = header, .linear_acceleration = {0, 0, 9.75}};
        imu.orientation_covariance[0] = -1;
        must(outlive_publisher_publish(to[IMU], &imu, sizeof imu, NULL));
        struct joints joints = {{header}, {"elbow", n, 0.5, -1.5}};
        must(outlive_publisher_publish(to[JOINTS], &joints, sizeof joints, NULL));
        struct cloud cloud = {{.header = header, .width = 2, .height = 1},
                              {{number, 0, 0, 0.5F}, {0, number, 0, 0.25F}}};
        must(outlive_publisher_publish(to[CLOUD], &cloud, sizeof cloud, NULL));
        outlive_loan loan;
        must(outlive_publisher_loan(to[IMAGE], sizeof(outlive_image_header) + 12, &loan));
        outlive_image_header *image = loan.data;
        uint8_t *pixels = (uint8_t *)(image + 1);
        *image = (outlive_image_header){header, 2, 2, 6, OUTLIVE_PIXEL_RGB8, {0}};
        for (unsigned i = 0; i < 12; i++) {
            pixels[i] = (uint8_t)(number + i);
        }
        if (number == 2) {
            image->height = 9;
        } else if (number == 3) {
            image->format = 77;
        }
        must(outlive_loan_publish(&loan, NULL));
        puts("ok");
    }
}

/* What came, field by field, and the bytes of it. */
static void see_messages(outlive_node *node) {
    outlive_subscriber *from[MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        outlive_type *type;
        must(outlive_type_message(NAMES[i], &type));
        must(outlive_subscriber_open(node, TOPICS[i], type, NULL, &from[i]));
        outlive_type_free(type);
    }
    puts("ready");
    for (;;) {
        outlive_sample samples[MESSAGES];
        const void *data[MESSAGES];
        size_t sizes[MESSAGES];
        for (int i = 0; i < MESSAGES; i++) {
            outlive_event event;
            while (outlive_subscriber_receive(from[i], OUTLIVE_FOREVER, &samples[i])) {
                outlive_subscriber_next_event(from[i], &event);
            }
            data[i] = outlive_sample_data(&samples[i], &sizes[i]);
        }
        const outlive_pose *pose = data[POSE];
        const outlive_twist *twist = data[TWIST];
        const outlive_imu *imu = data[IMU];
        const struct joints *joints = data[JOINTS];
        const struct cloud *cloud = data[CLOUD];
        const outlive_image_header *image = data[IMAGE];
        must(outlive_point_cloud_check(cloud, sizes[CLOUD]));
        printf("%.32s %d %g ", pose->header.frame_id, (int)pose->header.stamp_ns, pose->position.z);
        printf("%g %g ", twist->linear.x, twist->angular.z);
        printf("%g %g ", imu->linear_acceleration.z, imu->orientation_covariance[0]);
        printf("%g %g ", joints->elbow.position, joints->elbow.effort);
        printf("%g %g ", (double)cloud->points[1].y, (double)cloud->points[1].intensity);
        if (outlive_image_check(image, sizes[IMAGE]) == OUTLIVE_OK) {
            printf("%d\n", ((const uint8_t *)(image + 1))[image->row_bytes + 5]);
        } else {
            puts(outlive_last_error());
        }
        for (int i = 0; i < MESSAGES; i++) {
            for (size_t at = 0; at < sizes[i]; at++) {
                printf("%02x", ((const unsigned char *)data[i])[at]);
            }
            outlive_sample_release(&samples[i]);
        }
        puts("");
    }
}

int main(int argc, char **argv) {
    const char *role = argc > 1 ? argv[1] : "";
    outlive_node *node;
    outlive_type *type, *answer;
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(outlive_type_fixed("test/Reading", READING, &type));
    must(outlive_type_fixed("f64", SUM, &answer));
    if (strcmp(role, "layout") == 0) {
        layout();
        return 0;
    }
    must(outlive_node_open(NULL, &node));
    if (strcmp(role, "publish") == 0) {
        publish(node, type);
    } else if (strcmp(role, "subscribe") == 0) {
        subscribe(node, type);
    } else if (strcmp(role, "send") == 0) {
        send_messages(node);
    } else if (strcmp(role, "see") == 0) {
        see_messages(node);
    } else if (strcmp(role, "produce") == 0) {
        produce(node, type);
    } else if (strcmp(role, "consume") == 0) {
        consume(node, type);
    } else if (strcmp(role, "serve") == 0) {
        serve(node, type, answer);
    } else if (strcmp(role, "call") == 0) {
        call(node, type, answer);
    } else if (strcmp(role, "lock") == 0) {
        lock(node, type);
    }
    return 0;
}
