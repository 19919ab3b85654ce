/* A camera that writes its frames into shared memory, and a viewer that reads them there. */
#include <outlive.h>
#include <outlive/msg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1280, HEIGHT = 720, PIXELS = 3 * WIDTH * HEIGHT };

static void must(outlive_status status) {
    if (status != OUTLIVE_OK) {
        fprintf(stderr, "%s: %s\n", outlive_strerror(status), outlive_last_error());
        exit(1);
    }
}

int main(void) {
    outlive_node *node;
    outlive_type *image;
    outlive_publisher *camera;
    outlive_subscriber *viewer;
    must(outlive_node_open(NULL, &node));
    must(outlive_type_message("outlive/Image", &image));
    must(outlive_publisher_open(node, "/camera/front", image, NULL, &camera));
    must(outlive_subscriber_open(node, "/camera/front", image, NULL, &viewer));
    outlive_type_free(image);

    for (int shade = 1; shade <= 3; shade++) {
        outlive_loan loan;
        must(outlive_publisher_loan(camera, sizeof(outlive_image_header) + PIXELS, &loan));
        outlive_image_header *header = loan.data;
        *header = (outlive_image_header){.header = {outlive_now_ns(), "front_optical"},
                                         .width = WIDTH,
                                         .height = HEIGHT,
                                         .row_bytes = 3 * WIDTH,
                                         .format = OUTLIVE_PIXEL_RGB8};
        memset(header + 1, shade, PIXELS); /* what a driver would do */
        must(outlive_loan_publish(&loan, NULL));
    }

    int frames = 0;
    bool in_place = true;
    outlive_sample sample;
    while (outlive_subscriber_receive(viewer, OUTLIVE_NO_WAIT, &sample) == OUTLIVE_OK) {
        size_t size;
        const outlive_image_header *header = outlive_sample_data(&sample, &size);
        must(outlive_image_check(header, size)); /* any program may publish here, */
        if (header->format == OUTLIVE_PIXEL_RGB8 && header->height > 0 && header->width > 0) {
            /* and of any size */
            const uint8_t *rows = (const uint8_t *)(header + 1);
            const uint8_t *last_row = rows + (size_t)header->row_bytes * (header->height - 1);
            in_place = in_place && outlive_sample_is_borrowed(&sample) && last_row[0] == ++frames;
        }
        outlive_sample_release(&sample);
    }
    printf("camera: %d frames, %s\n", frames, in_place ? "without a copy" : "copied");
    outlive_subscriber_close(viewer);
    outlive_publisher_close(camera);
    outlive_node_close(node);
    return 0;
}
