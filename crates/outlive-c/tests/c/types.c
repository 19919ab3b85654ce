/* Types made from descriptions, and what is refused. */
#include "check.h"

static const char *const U64 = "outlive-type 1 align 8\nu64\n";
static const char *const POINT = "outlive-type 1 align 8\nstruct:16\n 0 f64 x\n 8 f64 y\n";

static void types(void) {
    outlive_type *type = NULL;
    CHECK(outlive_type_fixed("x", "nonsense", &type) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(strstr(outlive_last_error(), "type description") != NULL);
    CHECK(outlive_type_fixed(NULL, U64, &type) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(outlive_type_fixed("u64", U64, NULL) == OUTLIVE_INVALID_ARGUMENT);
    OK(outlive_type_headed("example/Scan", POINT, U64, &type));
    CHECK(outlive_type_size(type) == 16 && outlive_type_align(type) == 8);
    CHECK(strcmp(outlive_type_name(type), "example/Scan") == 0);
    outlive_type_free(type);
    OK(outlive_type_msgpack("example/Plan", &type));
    outlive_type_free(type);
    OK(outlive_type_encoded("json", "example/Goal", "{\"type\": \"object\"}", 18, &type));
    CHECK(strcmp(outlive_type_name(type), "example/Goal") == 0);
    outlive_type_free(type);
    CHECK(outlive_type_encoded("xml", "x", NULL, 0, &type) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(strstr(outlive_last_error(), "use cdr, protobuf") != NULL);
    CHECK(outlive_type_encoded("json", "x", "{", 1, &type) == OUTLIVE_INVALID_ARGUMENT);
    CHECK(outlive_type_encoded("json", "x", NULL, 1, &type) == OUTLIVE_INVALID_ARGUMENT);
    outlive_type_free(NULL);
}

#define AS(align, what) "outlive-type 1 align " #align "\n" what "\n"

/* What a number is called and how its type is described must not contradict each other. */
static void numbers(void) {
    outlive_type *type = NULL;
    static const struct {
        const char *name, *description, *says;
    } wrong[] = {
        {"f32", AS(8, "f64"), "f32"},
        {"f64", AS(4, "f32[2]"), "f64"},
        {"f32", AS(4, "u32"), "f32"},
        {"u64", AS(8, "struct:8\n 0 u64 n"), "u64"},
        {"u16", AS(1, "opaque:3"), "u16"},
        {"u8", AS(2, "enum:u16{A=1}"), "u8"},
        {"f64", AS(4, "f64"), "align 8"},
        {"example/Big", AS(4, "f64[2]"), "align 8"},
        {"u8", AS(64, "u8[64]"), "align 1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *name = wrong[i].name, *description = wrong[i].description;
        CHECK(outlive_type_fixed(name, description, &type) == OUTLIVE_INVALID_ARGUMENT);
        CHECK(strstr(outlive_last_error(), wrong[i].says) != NULL);
        CHECK(outlive_type_slice(name, description, &type) == OUTLIVE_INVALID_ARGUMENT);
        CHECK(outlive_type_headed(name, description, AS(1, "u8"), &type)
              == OUTLIVE_INVALID_ARGUMENT);
    }
    CHECK(outlive_type_headed("example/Scan", POINT, AS(4, "f64"), &type)
          == OUTLIVE_INVALID_ARGUMENT);
    static const char *const right[][2] = {
        {"f32", AS(4, "f32[3]")},   {"example/Big", AS(8, "f64[2]")}, {"char", AS(1, "char[8]")},
        {"u8", AS(1, "enum:u8{A=1}")}, {"u16", AS(2, "opaque:4")}, {"u128", AS(16, "u128")},
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        OK(outlive_type_fixed(right[i][0], right[i][1], &type));
        outlive_type_free(type);
    }
}

int main(void) {
    types();
    numbers();
    puts("types: every call");
    return 0;
}
