/* The rows about what goes on. */
#include "api/ops_executions.h"

#include "api/op_execution.h"
#include "api/ops_args.h"

static const struct op_arg page_args[] = { ARG_LIMIT, ARG_CURSOR };

static const struct op_arg events_args[] = {
    { .name = "follow",
      .letter = 'f',
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "go on with what comes, until told to stop" },
    { .name = "after",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = 512,
      .placeholder = "C",
      .help = "only those behind this cursor; now for those that come" },
    { .name = "type",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .repeated = true,
      .choices = op_event_names,
      .placeholder = "TYPE",
      .help = "only these" },
    ARG_TAG_FILTER("tag", "only of executions with this tag"),
    ARG_TEXT("execution", "ID", "only of this execution"),
    ARG_LIMIT_ANY("how many at most; 100 unless told, with -f no end"),
};

static const struct op_arg timers_args[] = {
    { .name = "once",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "only what is due now" },
    ARG_TEXT("only_namespace", "NS", "only in this namespace"),
    ARG_TAG_FILTER("only_tag", "only executions with this tag"),
};

static const char *const lane_columns[] = { "lane", "waiting", "age:oldest_at_ms",
                                            "routes", NULL };
static const char *const event_columns[] = {
    "produced_at_ms", "type",  "execution", "lane",   "outcome",
    "worker",         "fence", "reason",    "cursor", NULL
};
static const char *const stats_columns[] = {
    "namespace",
    "durability",
    "executions.waiting",
    "executions.delayed",
    "executions.rate_limited",
    "executions.waiting_children",
    "executions.active",
    "executions.suspended",
    "executions.resumable",
    "executions.completed",
    "executions.failed",
    "executions.cancelled",
    "executions.expired",
    "executions.skipped",
    "lanes",
    "next_due_at_ms",
    NULL,
};
static const char *const timers_columns[] = {
    "promoted", "expired_leases", "capped", "timed_out", "expired", "purged",
    "keys",     "next_due_at_ms", "busy",   "stopped",   NULL
};

const struct operation ops_activity[4] = {
    { .name = "lane.ls",
      .words = "lane ls",
      .http_method = "GET",
      .http_path = "/v1/lanes",
      .summary = "List the lanes, and how much waits on them",
      .details = "Counted up to 10000.",
      .args = page_args,
      .n_args = COUNT_OF(page_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = lane_columns,
      .essence = "lane",
      .handler = op_lane_ls },
    { .name = "events",
      .words = "events",
      .http_method = "GET",
      .http_path = "/v1/events",
      .summary = "List what happened: ends of executions, and the history of leases",
      .details = "Whoever goes on with the cursor misses nothing and sees nothing "
                 "twice.",
      .args = events_args,
      .n_args = COUNT_OF(events_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = event_columns,
      .essence = "execution",
      .handler = op_events },
    { .name = "stats",
      .words = "stats",
      .http_method = "GET",
      .http_path = "/v1/stats",
      .summary = "Count the executions by their states",
      .details = "Each counted up to 10000.",
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = stats_columns,
      .essence = "lanes",
      .handler = op_stats },
    { .name = "timers",
      .words = "timers",
      .summary = "Do what happens by itself: delays, lost leases, timeouts, deadlines",
      .details =
          "Serves every namespace of the store, until it is told to stop. Any number "
          "of processes may do so: one at a time works in each, and of one host one "
          "process, whose place another takes when it ends. A claim sees to what "
          "is due by itself, so that a "
          "store without this still makes progress.",
      .args = timers_args,
      .n_args = COUNT_OF(timers_args),
      .scope = OP_SCOPE_OPERATE,
      .needs_store = true,
      .reach = OP_REACH_STORE,
      .shape = OP_OBJECT,
      .columns = timers_columns,
      .essence = "promoted",
      .lasts = true,
      .watches = true,
      .handler = op_timers },
};
