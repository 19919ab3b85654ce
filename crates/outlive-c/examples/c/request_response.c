/* A planner that answers requests, in a process of its own; its death ends the client's wait. */
#include <outlive.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct point {
    double x, y; /* m */
};
static const char *const POINT = "outlive-type 1 align 8\nstruct:16\n 0 f64 x\n 8 f64 y\n";
static const char *const F64 = "outlive-type 1 align 8\nf64\n";

static void must(outlive_status status) {
    if (status != OUTLIVE_OK) {
        fprintf(stderr, "%s: %s\n", outlive_strerror(status), outlive_last_error());
        exit(1);
    }
}

static void types(outlive_type **request, outlive_type **response) {
    must(outlive_type_fixed("example/Point", POINT, request));
    must(outlive_type_fixed("f64", F64, response));
}

static void plan(void) {
    outlive_node *node;
    outlive_type *request_type, *response_type;
    outlive_server *server;
    must(outlive_node_open(NULL, &node));
    types(&request_type, &response_type);
    must(outlive_server_open(node, "/planner/distance", request_type, response_type, NULL, &server));
    for (;;) {
        outlive_request *request;
        struct point to;
        must(outlive_server_receive(server, OUTLIVE_FOREVER, &request));
        memcpy(&to, outlive_request_data(request, NULL), sizeof to);
        if (to.x < 0) {
            raise(SIGKILL); /* the crash of this example */
        }
        double way = to.x + to.y;
        must(outlive_server_respond(server, request, &way, sizeof way));
    }
}

int main(void) {
    pid_t planner = fork(); /* before this process opens its node */
    if (planner == 0) {
        plan();
    }
    outlive_node *node;
    outlive_type *request_type, *response_type;
    outlive_client *client;
    must(outlive_node_open(NULL, &node));
    types(&request_type, &response_type);
    must(outlive_client_open(node, "/planner/distance", request_type, response_type, NULL, &client));
    uint64_t deadline = outlive_now_ns() + 60000000000u;
    must(outlive_client_wait_for_server(client, deadline));

    struct point to = {3, 4}, bad = {-1, 0};
    outlive_reply *reply;
    double way;
    must(outlive_client_call(client, &to, sizeof to, deadline, &reply));
    memcpy(&way, outlive_reply_data(reply, NULL), sizeof way);
    outlive_reply_free(reply);

    outlive_status died = outlive_client_call(client, &bad, sizeof bad, deadline, &reply);
    printf("request/response: %.1f m, then %s\n", way, outlive_strerror(died));
    outlive_client_close(client);
    outlive_type_free(request_type);
    outlive_type_free(response_type);
    outlive_node_close(node);
    waitpid(planner, NULL, 0);
    return died == OUTLIVE_SERVER_DIED ? 0 : 1;
}
