/* Who watches a peer learns of its death at once, whatever killed it; its last words are read. */
#include <outlive.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(outlive_status status) {
    if (status != OUTLIVE_OK) {
        fprintf(stderr, "%s: %s\n", outlive_strerror(status), outlive_last_error());
        exit(1);
    }
}

static void live(int to_parent) {
    outlive_node *node;
    outlive_publisher *publisher;
    must(outlive_node_open(NULL, &node));
    must(outlive_publisher_open(node, "/words", NULL, NULL, &publisher));
    must(outlive_publisher_publish(publisher, "still here", 10, NULL));
    uint64_t id = outlive_node_id(node);
    if (write(to_parent, &id, sizeof id) == sizeof id) {
        pause();
    }
}

int main(void) {
    int ends[2];
    if (pipe(ends) != 0) {
        return 1;
    }
    pid_t camera = fork(); /* before this process opens its node */
    if (camera == 0) {
        live(ends[1]);
        return 0;
    }
    uint64_t id = 0;
    if (read(ends[0], &id, sizeof id) != sizeof id) {
        return 1;
    }
    outlive_node *node;
    outlive_subscriber *words;
    outlive_watch *watch;
    outlive_topic_options options = {.size = sizeof options, .history = 1};
    must(outlive_node_open(NULL, &node));
    must(outlive_subscriber_open(node, "/words", NULL, &options, &words));
    must(outlive_watch_open(node, id, &watch));
    printf("alive: %s\n", outlive_watch_is_alive(watch) ? "yes" : "no");

    kill(camera, SIGKILL);
    must(outlive_watch_wait(watch, outlive_now_ns() + 60000000000u));
    outlive_sample sample;
    outlive_status status;
    do { /* that it joined is an event, and may come first */
        status = outlive_subscriber_receive(words, outlive_now_ns() + 1000000000u, &sample);
        outlive_event event;
        while (outlive_subscriber_next_event(words, &event) == OUTLIVE_OK) {
        }
    } while (status == OUTLIVE_EVENT);
    must(status);
    size_t size;
    const char *text = outlive_sample_data(&sample, &size);
    printf("watching: the camera died; its last words were '%.*s'\n", (int)size, text);
    outlive_sample_release(&sample);
    outlive_watch_free(watch);
    outlive_subscriber_close(words);
    outlive_node_close(node);
    waitpid(camera, NULL, 0);
    return 0;
}
