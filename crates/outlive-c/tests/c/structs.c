/* Structs that programs are compiled with: their sizes, and that what is reserved is 0. */
#include "check.h"

/* A program keeps the size it was compiled with. Settings grow by their `size`; what the library
 * fills grows into its reserved words. */
static void sizes(void) {
    CHECK(sizeof(outlive_topic_options) == 56 && sizeof(outlive_node_options) == 40);
    CHECK(sizeof(outlive_queue_options) == 40 && sizeof(outlive_service_options) == 24);
    CHECK(sizeof(outlive_node_info) == 64 && sizeof(outlive_topic_info) == 96);
    CHECK(sizeof(outlive_clean_report) == 64 && sizeof(outlive_event) == 64);
    CHECK(sizeof(outlive_meta) == 64 && sizeof(outlive_permit) == 64);
    CHECK(sizeof(outlive_sample) == 32 && sizeof(outlive_loan) == 80);
    CHECK(sizeof(outlive_message) == 64 && sizeof(outlive_slot) == 32);
    CHECK(sizeof(outlive_member) == 24 && sizeof(outlive_port_id) == 16);
}

static bool is_zero(const void *from, size_t size) {
    const unsigned char *bytes = from;
    while (size > 0 && bytes[size - 1] == 0) {
        size--;
    }
    return size == 0;
}

#define DIRTY(room) memset(&(room), 0xff, sizeof(room))
#define IS_ZERO(of) is_zero(&(of), sizeof(of))

static void on_node(const outlive_node_info *info, void *count) {
    CHECK(IS_ZERO(info->reserved));
    ++*(int *)count;
}

static void on_topic(const outlive_topic_info *info, void *count) {
    CHECK(IS_ZERO(info->reserved));
    ++*(int *)count;
}

static void topics(outlive_node *node) {
    outlive_publisher *publisher;
    outlive_subscriber *subscriber;
    outlive_sample sample;
    outlive_meta meta;
    outlive_event event;
    OK(outlive_subscriber_open(node, "/structs", NULL, NULL, &subscriber));
    OK(outlive_publisher_open(node, "/structs", NULL, NULL, &publisher));
    OK(outlive_publisher_publish(publisher, "1", 1, NULL));
    OK(outlive_subscriber_latest(subscriber, &sample));
    DIRTY(meta);
    OK(outlive_sample_meta(&sample, &meta));
    CHECK(IS_ZERO(meta.reserved));
    outlive_sample_release(&sample);
    DIRTY(event);
    OK(outlive_subscriber_next_event(subscriber, &event));
    CHECK(IS_ZERO(event.reserved) && event.why == NULL && event.lost == 0);

    int found = 0;
    outlive_clean_report report;
    OK(outlive_domain_nodes(NULL, on_node, &found));
    OK(outlive_domain_topics(NULL, on_topic, &found));
    CHECK(found == 2);
    DIRTY(report);
    OK(outlive_domain_clean(NULL, &report));
    CHECK(IS_ZERO(report.reserved));
    outlive_publisher_close(publisher);
    outlive_subscriber_close(subscriber);
}

static void queues(outlive_node *node) {
    outlive_producer *producer;
    outlive_consumer *consumer;
    outlive_slot slot;
    outlive_message message;
    outlive_event event;
    OK(outlive_consumer_open(node, "/structs", NULL, NULL, &consumer));
    OK(outlive_producer_open(node, "/structs", NULL, NULL, &producer));
    DIRTY(slot);
    CHECK(outlive_producer_reserve(producer, 1, OUTLIVE_NO_WAIT, &slot) == 0);
    CHECK(IS_ZERO(slot.reserved));
    *(char *)slot.data = 'a';
    CHECK(outlive_producer_commit(producer, &slot) == 0);
    outlive_status received;
    do {
        DIRTY(message);
        received = outlive_consumer_receive(consumer, soon(), &message);
    } while (received == OUTLIVE_EVENT);
    OK(received);
    CHECK(message.size == 1 && IS_ZERO(message.reserved) && message.timestamp_ns == 0);
    OK(outlive_consumer_ack(consumer, &message));
    DIRTY(event);
    OK(outlive_consumer_next_event(consumer, &event));
    CHECK(IS_ZERO(event.reserved) && event.why == NULL && event.lost == 0);
    outlive_producer_close(producer);
    outlive_consumer_close(consumer);
}

static void permits(outlive_node *node) {
    outlive_semaphore *semaphore;
    outlive_permit permit, none;
    OK(outlive_semaphore_open(node, "/structs/permits", 1, &semaphore));
    DIRTY(permit);
    OK(outlive_semaphore_acquire(semaphore, OUTLIVE_NO_WAIT, &permit));
    CHECK(permit.held == 1 && IS_ZERO(permit.reserved));
    DIRTY(none);
    CHECK(outlive_semaphore_acquire(semaphore, OUTLIVE_NO_WAIT, &none) != OUTLIVE_OK);
    CHECK(none.held == 0 && IS_ZERO(none.reserved));
    outlive_permit_release(&permit);
    outlive_semaphore_free(semaphore);
}

int main(void) {
    sizes();
    outlive_node *node = open_node("structs");
    topics(node);
    queues(node);
    permits(node);
    outlive_node_close(node);
    puts("structs: every call");
    return 0;
}
