/* Producers in processes of their own, one consumer; without it a send fails with EOWNERDEAD. */
#include <errno.h>
#include <outlive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PRODUCERS = 3, MESSAGES = 100 };

static void must(outlive_status status) {
    if (status != OUTLIVE_OK) {
        fprintf(stderr, "%s: %s\n", outlive_strerror(status), outlive_last_error());
        exit(1);
    }
}

static int produce(int number) {
    outlive_node *node;
    outlive_producer *producer;
    must(outlive_node_open(NULL, &node));
    must(outlive_producer_open(node, "/commands", NULL, NULL, &producer));
    must(outlive_producer_wait_for_consumer(producer, OUTLIVE_FOREVER));
    for (int i = 0; i < MESSAGES; i++) {
        char text[32];
        int size = snprintf(text, sizeof text, "%d: %d", number, i);
        if (outlive_producer_send(producer, text, (size_t)size, OUTLIVE_FOREVER) != 0) {
            perror("send");
            return 1;
        }
    }
    outlive_producer_close(producer);
    outlive_node_close(node);
    return 0;
}

int main(void) {
    /* Before this process opens its node: no handle survives fork. */
    for (int i = 0; i < PRODUCERS; i++) {
        if (fork() == 0) {
            return produce(i);
        }
    }
    outlive_node *node;
    outlive_producer *early;
    outlive_consumer *consumer;
    must(outlive_node_open(NULL, &node));

    must(outlive_producer_open(node, "/nobody", NULL, NULL, &early));
    int sent = outlive_producer_send(early, "x", 1, OUTLIVE_FOREVER);
    printf("without a consumer: %d, %s\n", sent, errno == EOWNERDEAD ? "EOWNERDEAD" : "?");
    outlive_producer_close(early);

    must(outlive_consumer_open(node, "/commands", NULL, NULL, &consumer));
    int received = 0;
    while (received < PRODUCERS * MESSAGES) {
        outlive_message message;
        outlive_status status = outlive_consumer_receive(consumer, OUTLIVE_FOREVER, &message);
        if (status == OUTLIVE_EVENT) {
            outlive_event event;
            while (outlive_consumer_next_event(consumer, &event) == OUTLIVE_OK) {
            }
            continue;
        }
        must(status);
        received++; /* it counts as received only now: a crash before this, and it comes again */
        must(outlive_consumer_ack(consumer, &message));
    }
    outlive_consumer_close(consumer);
    outlive_node_close(node);
    while (wait(NULL) > 0) {
    }
    printf("many producers: %d messages of %d producers\n", received, PRODUCERS);
    return 0;
}
