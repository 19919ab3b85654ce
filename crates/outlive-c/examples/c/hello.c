/* A publisher and a subscriber of a described type, in one program for brevity. */
#include <outlive.h>
#include <stdio.h>
#include <stdlib.h>

struct pose {
    double x, y, heading; /* m, m, rad */
};

static const char *const POSE = "outlive-type 1 align 8\nstruct:24\n 0 f64 x\n 8 f64 y\n"
                                " 16 f64 heading\n";

static void must(outlive_status status) {
    if (status != OUTLIVE_OK) {
        fprintf(stderr, "%s: %s\n", outlive_strerror(status), outlive_last_error());
        exit(1);
    }
}

int main(void) {
    outlive_node_options options = {.size = sizeof options, .name = "hello"};
    outlive_node *node;
    outlive_type *type;
    outlive_publisher *publisher;
    outlive_subscriber *subscriber;
    must(outlive_node_open(&options, &node));
    must(outlive_type_fixed("example/Pose", POSE, &type));
    must(outlive_publisher_open(node, "/robot/pose", type, NULL, &publisher));
    must(outlive_subscriber_open(node, "/robot/pose", type, NULL, &subscriber));

    struct pose here = {1.0, 2.0, 0.5};
    must(outlive_publisher_publish(publisher, &here, sizeof here, NULL));

    outlive_sample sample;
    must(outlive_subscriber_receive(subscriber, outlive_now_ns() + 1000000000, &sample));
    const struct pose *got = outlive_sample_data(&sample, NULL);
    printf("hello: x %.1f m, y %.1f m, heading %.1f rad\n", got->x, got->y, got->heading);
    outlive_sample_release(&sample);

    outlive_subscriber_close(subscriber);
    outlive_publisher_close(publisher);
    outlive_type_free(type);
    outlive_node_close(node);
    return 0;
}
