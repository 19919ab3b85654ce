// A plugin host: it loads the library, uses it in a thread, and unloads it. Its thread ends and it
// forks afterwards.
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct permit {
    char bytes[256];
};

static void *plugin(void *unused) {
    (void)unused;
    void *library = dlopen("liboutlive.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return "not found";
    }
    int (*open_node)(void *, void **);
    void (*close_node)(void *);
    int (*open_semaphore)(void *, const char *, size_t, void **);
    int (*acquire)(void *, uint64_t, struct permit *);
    // The way of POSIX: a pointer to data may not be cast to one to a function.
    *(void **)&open_node = dlsym(library, "outlive_node_open");
    *(void **)&close_node = dlsym(library, "outlive_node_close");
    *(void **)&open_semaphore = dlsym(library, "outlive_semaphore_open");
    *(void **)&acquire = dlsym(library, "outlive_semaphore_acquire");
    void *node = NULL, *semaphore = NULL;
    struct permit permit;
    memset(&permit, 0, sizeof permit);
    if (open_node(NULL, &node) || open_semaphore(node, "/plugin", 2, &semaphore)
        || acquire(semaphore, UINT64_MAX, &permit)) {
        return "refused";
    }
    close_node(node);
    dlclose(library);
    return NULL;
}

int main(void) {
    pthread_t thread;
    void *wrong = "no thread";
    assert(dlopen("liboutlive.so", RTLD_NOW | RTLD_NOLOAD) == NULL); // not linked to this program
    if (pthread_create(&thread, NULL, plugin, NULL) == 0) {
        pthread_join(thread, &wrong);
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    puts(wrong ? (char *)wrong : "unloaded");
    return wrong || status;
}
