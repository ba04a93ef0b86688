#include "things.h"

#include "base/attr.h"

/* clang-format off */
static const struct column thing_columns[] = {
    [THING_ID]    = { "id",    VALUE_TEXT,  false },
    [THING_N]     = { "n",     VALUE_I64,   false },
    [THING_TEXT]  = { "text",  VALUE_TEXT,  false },
    [THING_BYTES] = { "bytes", VALUE_BYTES, false },
    [THING_JSON]  = { "json",  VALUE_JSON,  false },
    [THING_COUNT] = { "count", VALUE_I64,   true },
    [THING_HIGH]  = { "high",  VALUE_I64,   true },
};
const struct row_type row_thing = { "thing", 201, 1, THING_COLUMNS, thing_columns, 0 };

static const struct column part_columns[] = {
    [PART_OWNER] = { "owner", VALUE_TEXT, false },
    [PART_NO]    = { "no",    VALUE_I64,  false },
    [PART_N]     = { "n",     VALUE_I64,  false },
};
const struct row_type row_part = { "part", 202, 2, PART_COLUMNS, part_columns, 0 };

static const struct column head_columns[] = {
    [HEAD_N]     = { "n",     VALUE_I64, false },
    [HEAD_COUNT] = { "count", VALUE_I64, true },
};
const struct row_type row_head = { "head", 203, 0, HEAD_COLUMNS, head_columns, 0 };
/* clang-format on */

static const struct row_type *const types[] = {
    &row_namespace, &row_format, &row_epoch, &row_fence_floor, &row_clock, &row_slot,
    &row_upload,    &row_blob,   &row_thing, &row_part,        &row_head,
};

const struct schema schema_things = { .types = types, .n_types = COUNT_OF(types) };
