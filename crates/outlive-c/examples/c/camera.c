/* A camera that writes its frames into shared memory, and a viewer that reads them there. */
#include <outlive.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct frame_header {
    uint64_t stamp_ns;
    uint32_t width, height;
};
static const char *const HEADER = "outlive-type 1 align 8\nstruct:16\n"
                                  " 0 u64 stamp_ns\n 8 u32 width\n 12 u32 height\n";
static const char *const PIXEL = "outlive-type 1 align 1\nu8\n";

enum { WIDTH = 1280, HEIGHT = 720, PIXELS = 3 * WIDTH * HEIGHT };

static void must(outlive_status status) {
    if (status != OUTLIVE_OK) {
        fprintf(stderr, "%s: %s\n", outlive_strerror(status), outlive_last_error());
        exit(1);
    }
}

int main(void) {
    outlive_node *node;
    outlive_type *frame;
    outlive_publisher *camera;
    outlive_subscriber *viewer;
    must(outlive_node_open(NULL, &node));
    must(outlive_type_headed("example/Frame", HEADER, PIXEL, &frame));
    must(outlive_publisher_open(node, "/camera/front", frame, NULL, &camera));
    must(outlive_subscriber_open(node, "/camera/front", frame, NULL, &viewer));
    outlive_type_free(frame);

    for (int shade = 1; shade <= 3; shade++) {
        outlive_loan loan;
        must(outlive_publisher_loan(camera, sizeof(struct frame_header) + PIXELS, &loan));
        struct frame_header *header = loan.data;
        *header = (struct frame_header){outlive_now_ns(), WIDTH, HEIGHT};
        memset(header + 1, shade, PIXELS); /* what a driver would do */
        must(outlive_loan_publish(&loan, NULL));
    }

    int frames = 0;
    bool in_place = true;
    outlive_sample sample;
    while (outlive_subscriber_receive(viewer, OUTLIVE_NO_WAIT, &sample) == OUTLIVE_OK) {
        size_t size;
        const struct frame_header *header = outlive_sample_data(&sample, &size);
        in_place = in_place && outlive_sample_is_borrowed(&sample) &&
                   size == sizeof *header + 3 * (size_t)header->width * header->height;
        frames++;
        outlive_sample_release(&sample);
    }
    printf("camera: %d frames, %s\n", frames, in_place ? "without a copy" : "copied");
    outlive_subscriber_close(viewer);
    outlive_publisher_close(camera);
    outlive_node_close(node);
    return 0;
}
