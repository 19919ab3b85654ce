/* One voice of the conversation test; see crates/outlive-py/tests/test_conversation.py. */
#include <outlive.h>
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
