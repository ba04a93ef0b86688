/* The rows of blobs. */
#include "api/op_json.h"
#include "api/ops_args.h"
#include "api/ops_sessions.h"

#define ARG_SHA256                                                           \
    {                                                                        \
        .name = "sha256", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 64, \
        .max = 64, .required = true, .placeholder = "SHA",                   \
        .help = "the SHA-256 of its content, 64 lower-case hex digits"       \
    }
#define ARG_PIN                                                                       \
    {                                                                                 \
        .name = "name", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 1, .max = 255, \
        .required = true, .placeholder = "NAME", .help = "the pin"                    \
    }

static const struct op_arg put_args[] = {
    { .name = "kind",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .choices = op_kind_names,
      .placeholder = "K",
      .fallback = "generic_blob",
      .help = "what it is; a generic blob is never compressed" },
    { .name = "pin",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = 255,
      .placeholder = "NAME",
      .help = "keep it under this name" },
    { .name = "expect",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 64,
      .max = 64,
      .placeholder = "SHA",
      .help = "the SHA-256 it must have" },
    ARG_PROFILE,
    { .name = "content",
      .kind = OP_POSITIONAL,
      .type = OP_STREAM,
      .required = true,
      .min = 1,
      .help = "its content, of any length up to 1 GiB" },
};

static const struct op_arg get_args[] = {
    ARG_SHA256,
    { .name = "to",
      .kind = OP_OPTION,
      .type = OP_TARGET,
      .min = 1,
      .help = "where to put it instead of standard output" },
};

static const struct op_arg pin_args[] = { ARG_PIN, ARG_SHA256 };
static const struct op_arg unpin_args[] = { ARG_PIN };
static const struct op_arg pins_args[] = { ARG_LIMIT, ARG_CURSOR };

static const struct op_arg gc_args[] = {
    { .name = "grace",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 0,
      .max = TIME_MAX_MS,
      .placeholder = "D",
      .fallback = "1h",
      .help = "blobs put or asked for within it stay" },
    { .name = "dry_run",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "tell what would go, remove nothing" },
    { .name = "budget",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 1,
      .max = TIME_MAX_MS,
      .placeholder = "D",
      .help = "stop after so long, incomplete" },
};

static const char *const put_columns[] = { "sha256",  "size", "stored_size",
                                           "existed", "pin",  NULL };
static const char *const get_columns[] = { "sha256", "size", NULL };
static const char *const pin_columns[] = { "name", "sha256", NULL };
static const char *const unpin_columns[] = { "name", "removed", NULL };
static const char *const pins_columns[] = { "name", "sha256", "created_at_ms", NULL };
static const char *const gc_columns[] = { "outcome",         "dry_run",
                                          "roots",           "retained_blobs",
                                          "deleted_blobs",   "deleted_bytes",
                                          "deleted_uploads", "spared_blobs",
                                          "steps",           "code",
                                          "reason",          "entity",
                                          "message",         NULL };

const struct operation ops_blob[] = {
    { .name = "blob.put",
      .words = "blob put",
      .http_method = "PUT",
      .http_path = "/v1/blobs/{sha256}",
      .summary = "Store bytes under their SHA-256",
      .details =
          "The content is read piece by piece, never as a whole. Without a pin it "
          "stays for the grace of gc, and then as long as a session or a pin "
          "names it.",
      .args = put_args,
      .n_args = COUNT_OF(put_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = put_columns,
      .essence = "sha256",
      .handler = op_blob_put },
    { .name = "blob.get",
      .words = "blob get",
      .http_method = "GET",
      .http_path = "/v1/blobs/{sha256}",
      .summary = "Read bytes by their SHA-256",
      .details =
          "A file is written only when all of it was found to be right. On "
          "standard output more than 1 MiB comes as it is read: only exit status "
          "0 says that it was right to the end.",
      .args = get_args,
      .n_args = COUNT_OF(get_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_BYTES,
      .columns = get_columns,
      .essence = "sha256",
      .handler = op_blob_get },
    { .name = "blob.pin",
      .words = "blob pin",
      .http_method = "PUT",
      .http_path = "/v1/pins/{name}",
      .summary = "Keep a blob under a name; a name that is taken moves",
      .args = pin_args,
      .n_args = COUNT_OF(pin_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = pin_columns,
      .essence = "sha256",
      .handler = op_blob_pin },
    { .name = "blob.unpin",
      .words = "blob unpin",
      .http_method = "DELETE",
      .http_path = "/v1/pins/{name}",
      .summary = "Give a pin up",
      .args = unpin_args,
      .n_args = COUNT_OF(unpin_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = unpin_columns,
      .essence = "removed",
      .handler = op_blob_unpin },
    { .name = "blob.pins",
      .words = "blob pins",
      .http_method = "GET",
      .http_path = "/v1/pins",
      .summary = "List the pins, oldest first",
      .args = pins_args,
      .n_args = COUNT_OF(pins_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = pins_columns,
      .essence = "name",
      .handler = op_blob_pins },
    { .name = "gc",
      .words = "gc",
      .http_method = "POST",
      .http_path = "/v1/gc",
      .summary = "Remove the blobs that nothing names any more",
      .details =
          "Others may go on working. Where it cannot be proved what is alive "
          "nothing is removed. The outcome is swept or nothing, with exit status "
          "0; incomplete, 75; refused, 1; or failed, with that of the error.",
      .args = gc_args,
      .n_args = COUNT_OF(gc_args),
      .scope = OP_SCOPE_OPERATE,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = gc_columns,
      .essence = "outcome",
      .handler = op_gc,
      .exit_of = op_exit_of_gc },
};
