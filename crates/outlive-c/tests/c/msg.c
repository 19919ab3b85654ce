/* Ready-made messages: their types by name, and payloads that are none. */
#include <outlive.h>
#include <outlive/msg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define SAYS(text) CHECK(strstr(outlive_last_error(), text) != NULL)

static void types(void) {
    static const struct {
        const char *name;
        size_t size;
    } ALL[] = {
        {"outlive/Pose", sizeof(outlive_pose)},
        {"outlive/Twist", sizeof(outlive_twist)},
        {"outlive/Imu", sizeof(outlive_imu)},
        {"outlive/JointState", sizeof(outlive_joint_state_header)},
        {"outlive/Image", sizeof(outlive_image_header)},
        {"outlive/PointCloud", sizeof(outlive_point_cloud_header)},
    };
    outlive_type *type;
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++) {
        CHECK(outlive_type_message(ALL[i].name, &type) == OUTLIVE_OK);
        CHECK(outlive_type_size(type) == ALL[i].size && outlive_type_align(type) == 8);
        CHECK(strcmp(outlive_type_name(type), ALL[i].name) == 0);
        outlive_type_free(type);
    }
    CHECK(outlive_type_message("outlive/Picture", &type) == OUTLIVE_NOT_FOUND);
    SAYS("outlive/Picture: not found; ready-made messages are outlive/Pose");
    CHECK(outlive_type_message(NULL, &type) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(outlive_type_message("outlive/Pose", NULL) == OUTLIVE_INVALID_ARGUMENT);
}

static void images(void) {
    struct {
        outlive_image_header header;
        uint8_t pixels[2 * 8];
    } image = {.header = {.width = 2, .height = 2, .row_bytes = 8}};
    outlive_image_header *header = &image.header;
    header->format = OUTLIVE_PIXEL_RGB8;
    CHECK(outlive_image_check(&image, sizeof image) == OUTLIVE_OK);
    CHECK(outlive_image_check(&image, sizeof image - 2) == OUTLIVE_OK); /* the last gap */
    CHECK(outlive_image_check(&image, sizeof image - 3) == OUTLIVE_CORRUPT);
    SAYS("2 rows of 2 rgb8 pixels (6 bytes), 8 bytes apart, and 13 bytes follow it");
    CHECK(outlive_image_check(&image, 63) == OUTLIVE_CORRUPT);
    SAYS("a payload is a header of 64 bytes");
    CHECK(outlive_image_check((char *)&image + 1, 64) == OUTLIVE_CORRUPT);
    CHECK(outlive_image_check(NULL, 0) == OUTLIVE_CORRUPT);
    CHECK(outlive_image_check(NULL, 64) == OUTLIVE_INVALID_ARGUMENT);
    header->row_bytes = 5;
    CHECK(outlive_image_check(&image, sizeof image) == OUTLIVE_CORRUPT);
    header->width = header->height = header->row_bytes = UINT32_MAX;
    CHECK(outlive_image_check(&image, sizeof image) == OUTLIVE_CORRUPT);
    header->format = 77;
    CHECK(outlive_image_check(&image, sizeof image) == OUTLIVE_UNSUPPORTED);
    SAYS("pixel format 77 is unknown here");
    header->format = OUTLIVE_PIXEL_JPEG;
    CHECK(outlive_image_check(&image, sizeof image) == OUTLIVE_OK);
    CHECK(outlive_pixel_bytes(OUTLIVE_PIXEL_BGRA8) == 4);
    CHECK(outlive_pixel_bytes(OUTLIVE_PIXEL_PNG) == 0 && outlive_pixel_bytes(77) == 0);
}

static void clouds(void) {
    struct {
        outlive_point_cloud_header header;
        outlive_point_xyzi points[3];
    } cloud = {.header = {.width = 3, .height = 1}};
    CHECK(outlive_point_cloud_check(&cloud, sizeof cloud) == OUTLIVE_OK);
    CHECK(outlive_point_cloud_check(&cloud, sizeof cloud - 1) == OUTLIVE_CORRUPT);
    SAYS("whole elements");
    cloud.header.height = 2;
    CHECK(outlive_point_cloud_check(&cloud, sizeof cloud) == OUTLIVE_CORRUPT);
    SAYS("2 rows of 3 points, and 3 points follow it");
}

int main(void) {
    types();
    images();
    clouds();
    puts("msg: types and payloads");
    return 0;
}
