/* things.h - a dictionary for tests: the product's rows and three of the tests' own. */
#ifndef TESTS_THINGS_H
#define TESTS_THINGS_H

#include "store/schema.h"

/* One column of every type, and two counters. */
enum {
    THING_ID,
    THING_N,
    THING_TEXT,
    THING_BYTES,
    THING_JSON,
    THING_COUNT,
    THING_HIGH,
    THING_COLUMNS
};
extern const struct row_type row_thing;

/* A key of two parts, the second a number. */
enum { PART_OWNER, PART_NO, PART_N, PART_COLUMNS };
extern const struct row_type row_part;

/* One row per namespace. */
enum { HEAD_N, HEAD_COUNT, HEAD_COLUMNS };
extern const struct row_type row_head;

extern const struct schema schema_things;

#endif /* TESTS_THINGS_H */
