/* Generated messages in C: their descriptions, sent and seen; see test_types.py. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "arm_msgs.h"

static void must(outlive_status status) {
    if (status != OUTLIVE_OK) {
        fprintf(stderr, "%s\n", outlive_last_error());
        exit(1);
    }
}

/* Calls a macro for each of the types. */
#define EACH(call)                                                                                 \
    call(arm_msgs_Arm);                                                                            \
    call(arm_msgs_Battery);                                                                        \
    call(arm_msgs_Defaults);                                                                       \
    call(geo_msgs_Flag);                                                                           \
    call(arm_msgs_FollowGoal);                                                                     \
    call(arm_msgs_Grid);                                                                           \
    call(arm_msgs_Imu);                                                                            \
    call(arm_msgs_Joint);                                                                          \
    call(geo_msgs_Nothing);                                                                        \
    call(arm_msgs_Numbers);                                                                        \
    call(arm_msgs_ReachRequest);                                                                   \
    call(arm_msgs_Scan);                                                                           \
    call(arm_msgs_Text);                                                                           \
    call(arm_msgs_Wheels)

static void say(const char *name, const void *data, size_t size) {
    printf("%s ", name);
    for (size_t i = 0; i < size; i++) {
        printf("%02x", ((const unsigned char *)data)[i]);
    }
    printf("\n");
}

static outlive_type *checked(outlive_status made, outlive_type *type, size_t size) {
    must(made);
    if (outlive_type_size(type) != size) {
        exit(2);
    }
    return type;
}

#define LAYOUT(name)                                                                               \
    do {                                                                                           \
        name made = name##_default();                                                              \
        outlive_type *type = NULL;                                                                 \
        outlive_status status = name##_type(&type);                                                \
        say(outlive_type_name(checked(status, type, sizeof made)), &made, sizeof made);            \
        outlive_type_free(type);                                                                   \
    } while (0)

enum { TYPES = 14 };

/* A message of each type, as it is by default, and its ends. */
struct every {
    outlive_type *type;
    char topic[64];
    size_t size;
    unsigned char made[1 << 14];
    outlive_publisher *publisher;
    outlive_subscriber *subscriber;
};

static size_t count_types;

static void fill(struct every *it, outlive_type *type, const void *made, size_t size) {
    if (size > sizeof it->made) {
        exit(2);
    }
    it->type = type;
    it->size = size;
    memcpy(it->made, made, size);
    snprintf(it->topic, sizeof it->topic, "/all/%s", outlive_type_name(type));
}

#define FILL(name)                                                                                 \
    do {                                                                                           \
        name made = name##_default();                                                              \
        outlive_type *type = NULL;                                                                 \
        outlive_status status = name##_type(&type);                                                \
        fill(&all[count_types++], checked(status, type, sizeof made), &made, sizeof made);         \
    } while (0)

static void every_type(outlive_node *node, int gives) {
    static struct every all[TYPES];
    int number;
    EACH(FILL);
    for (size_t i = 0; i < count_types; i++) {
        if (gives) {
            must(outlive_publisher_open(node, all[i].topic, all[i].type, NULL, &all[i].publisher));
        } else {
            must(outlive_subscriber_open(node, all[i].topic, all[i].type, NULL,
                                         &all[i].subscriber));
        }
    }
    puts("ready");
    while (!gives || scanf("%d", &number) == 1) {
        for (size_t i = 0; i < count_types; i++) {
            outlive_sample sample;
            outlive_event event;
            if (gives) {
                must(outlive_publisher_publish(all[i].publisher, all[i].made, all[i].size, NULL));
                continue;
            }
            while (outlive_subscriber_receive(all[i].subscriber, OUTLIVE_FOREVER, &sample)) {
                outlive_subscriber_next_event(all[i].subscriber, &event);
            }
            size_t size;
            const void *data = outlive_sample_data(&sample, &size);
            say(outlive_type_name(all[i].type), data, size);
            outlive_sample_release(&sample);
        }
        if (gives) {
            puts("ok");
        }
    }
}

static arm_msgs_Arm arm(int number) {
    arm_msgs_Arm made = arm_msgs_Arm_default();
    made.header.stamp.sec = number;
    memcpy(made.header.frame_id, "base", 4);
    made.joints[1].position = 0.5f;
    made.joints[1].brakes[2] = 1;
    made.reach.corners[0] = (geo_msgs_Point){.x = 1.0, .y = -2.0, .z = number};
    made.reach.corners_count = 1;
    return made;
}

static void layouts(void) {
    EACH(LAYOUT);
    printf("%" PRId64 " %" PRIu64 " %s\n", (int64_t)ARM_MSGS_NUMBERS_LEAST64,
           (uint64_t)ARM_MSGS_NUMBERS_MOST64, ARM_MSGS_NUMBERS_GREETING);
}

static void send(outlive_node *node, outlive_type *type) {
    outlive_publisher *publisher;
    int number;
    must(outlive_publisher_open(node, "/t/arm", type, NULL, &publisher));
    puts("ready");
    while (scanf("%d", &number) == 1) {
        arm_msgs_Arm made = arm(number);
        must(outlive_publisher_publish(publisher, &made, sizeof made, NULL));
        puts("ok");
    }
}

static void see(outlive_node *node, outlive_type *type) {
    outlive_subscriber *subscriber;
    must(outlive_subscriber_open(node, "/t/arm", type, NULL, &subscriber));
    puts("ready");
    for (;;) {
        outlive_sample sample;
        if (outlive_subscriber_receive(subscriber, OUTLIVE_FOREVER, &sample) != OUTLIVE_OK) {
            continue;
        }
        const arm_msgs_Arm *arm = outlive_sample_data(&sample, NULL);
        const arm_msgs_Joint *joint = &arm->joints[1];
        printf("%d %.16s %g %d %d %.12s %g %u %g\n", (int)arm->header.stamp.sec,
               arm->header.frame_id, (double)joint->position, joint->brakes[1], joint->brakes[2],
               joint->name, arm->tool.orientation.w, (unsigned)arm->reach.corners_count,
               arm->reach.corners[0].z);
        outlive_sample_release(&sample);
    }
}

int main(int count, char **arguments) {
    const char *role = count > 1 ? arguments[1] : "layout";
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(role, "layout") == 0) {
        layouts();
        return 0;
    }
    outlive_node *node;
    outlive_type *type;
    must(outlive_node_open(NULL, &node));
    must(arm_msgs_Arm_type(&type));
    if (strcmp(role, "give") == 0 || strcmp(role, "take") == 0) {
        every_type(node, role[0] == 'g');
    } else if (strcmp(role, "send") == 0) {
        send(node, type);
    } else {
        see(node, type);
    }
    outlive_type_free(type);
    outlive_node_close(node);
    return 0;
}
