/* The rows about the cache of a fleet. */
#include <belay/cache.h>

#include "api/op_handlers.h"
#include "api/ops_args.h"
#include "api/ops_fleet.h"

#define ARG_FLEET                                                                 \
    {                                                                             \
        .name = "fleet", .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 63, \
        .placeholder = "NAME", .env = "BELAY_FLEET", .fallback = "default",       \
        .help = "the fleet"                                                       \
    }
#define ARG_KEY                                                             \
    {                                                                       \
        .name = "key", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 1,    \
        .max = BELAY_CACHE_KEY_MAX, .required = true, .placeholder = "KEY", \
        .help = "what it is called"                                         \
    }
#define ARG_PREFIX                                                                   \
    {                                                                                \
        .name = "prefix", .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 1024, \
        .placeholder = "P", .help = "what all keys begin with"                       \
    }

static const struct op_arg get_args[] = { ARG_KEY, ARG_FLEET, ARG_PREFIX };

static const struct op_arg put_args[] = {
    ARG_KEY,
    { .name = "value",
      .kind = OP_POSITIONAL,
      .type = OP_DATA,
      .required = true,
      .max = OP_TEXT_MAX,
      .placeholder = "VALUE",
      .help = "what is kept" },
    ARG_FLEET,
    ARG_PREFIX,
    { .name = "ttl",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 1,
      .max = TIME_MAX_MS,
      .placeholder = "D",
      .help = "how long; without it until its room is needed" },
};

static const struct op_arg reset_args[] = { ARG_FLEET, ARG_PREFIX };

static const struct op_arg ls_args[] = { ARG_FLEET, ARG_PREFIX, ARG_LIMIT, ARG_CURSOR };

static const char *const get_columns[] = { "key", "value", "bytes", "ttl_ms", NULL };
static const char *const put_columns[] = { "key", "bytes", "ttl_ms", "epoch", NULL };
static const char *const rm_columns[] = { "key", "removed", NULL };
static const char *const reset_columns[] = { "prefix", "removed", NULL };
static const char *const ls_columns[] = { "key", "bytes", "ttl_ms", "epoch", NULL };

const struct operation ops_fleet_cache[5] = {
    { .name = "fleet.cache.get",
      .words = "fleet cache get",
      .summary = "Print a value of a fleet's cache",
      .details = "not_found: there is none, or no more. Bytes that are no text are "
                 "value_base64.",
      .args = get_args,
      .n_args = COUNT_OF(get_args),
      .scope = OP_SCOPE_READ,
      .shape = OP_OBJECT,
      .columns = get_columns,
      .essence = "value",
      .handler = op_cache_get },
    { .name = "fleet.cache.put",
      .words = "fleet cache put",
      .summary = "Put a value into a fleet's cache",
      .details =
          "In memory of this machine: it is gone when it expires, when its room is "
          "needed and nobody has used it of late, and with the fleet.",
      .args = put_args,
      .n_args = COUNT_OF(put_args),
      .scope = OP_SCOPE_WORK,
      .shape = OP_OBJECT,
      .columns = put_columns,
      .essence = "epoch",
      .handler = op_cache_put },
    { .name = "fleet.cache.rm",
      .words = "fleet cache rm",
      .summary = "Delete a key from a fleet's cache",
      .args = get_args,
      .n_args = COUNT_OF(get_args),
      .scope = OP_SCOPE_WORK,
      .shape = OP_OBJECT,
      .columns = rm_columns,
      .essence = "removed",
      .handler = op_cache_rm },
    { .name = "fleet.cache.reset",
      .words = "fleet cache reset",
      .summary = "Delete all keys, or those of a prefix, from a fleet's cache",
      .details = "What is put meanwhile may stay.",
      .args = reset_args,
      .n_args = COUNT_OF(reset_args),
      .scope = OP_SCOPE_OPERATE,
      .shape = OP_OBJECT,
      .columns = reset_columns,
      .essence = "removed",
      .handler = op_cache_reset },
    { .name = "fleet.cache.ls",
      .words = "fleet cache ls",
      .summary = "List the keys of a fleet's cache",
      .details = "In no order. Keys are shown up to 255 bytes, without the prefix.",
      .args = ls_args,
      .n_args = COUNT_OF(ls_args),
      .scope = OP_SCOPE_READ,
      .shape = OP_LIST,
      .columns = ls_columns,
      .essence = "key",
      .handler = op_cache_ls },
};
