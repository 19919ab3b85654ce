/* A process is killed while it holds a lock; the next one repairs what it left. */
#include <outlive.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct account {
    int64_t left, right; /* their sum is always 100 */
};

static const char *const ACCOUNT = "outlive-type 1 align 8\nstruct:16\n 0 i64 left\n 8 i64 right\n";

static void must(outlive_status status) {
    if (status != OUTLIVE_OK) {
        fprintf(stderr, "%s: %s\n", outlive_strerror(status), outlive_last_error());
        exit(1);
    }
}

static outlive_mutex *open_account(outlive_node **node) {
    struct account start = {60, 40};
    outlive_type *type;
    outlive_mutex *mutex;
    must(outlive_node_open(NULL, node));
    must(outlive_type_fixed("example/Account", ACCOUNT, &type));
    must(outlive_mutex_open(*node, "/account", type, &start, &mutex));
    outlive_type_free(type);
    return mutex;
}

static void die_inside(void) {
    outlive_node *node;
    outlive_mutex *mutex = open_account(&node);
    must(outlive_mutex_lock(mutex, OUTLIVE_FOREVER));
    struct account *account = outlive_mutex_data(mutex);
    account->left -= 10; /* half of a transfer */
    raise(SIGKILL);
}

int main(void) {
    pid_t child = fork();
    if (child == 0) {
        die_inside();
    }
    waitpid(child, NULL, 0);

    outlive_node *node;
    outlive_mutex *mutex = open_account(&node);
    struct account *account = outlive_mutex_data(mutex);
    outlive_status status = outlive_mutex_lock(mutex, OUTLIVE_FOREVER);
    if (status == OUTLIVE_OWNER_DIED) {
        printf("its owner died: left %ld, right %ld\n", (long)account->left, (long)account->right);
        account->right = 100 - account->left; /* repair */
        must(outlive_mutex_mark_consistent(mutex));
    } else {
        must(status);
    }
    printf("robust lock: left %ld, right %ld\n", (long)account->left, (long)account->right);
    must(outlive_mutex_unlock(mutex));
    outlive_mutex_free(mutex);
    outlive_node_close(node);
    return 0;
}
