/* The rows of those who look for work. */
#include "api/ops_executions.h"

#include "api/op_execution.h"
#include "api/ops_args.h"

#define ARG_LANES(is_required)                                                         \
    {                                                                                  \
        .name = "lane", .kind = OP_OPTION, .type = OP_TEXT, .required = (is_required), \
        .repeated = true, .min = 1, .max = 64, .placeholder = "L",                     \
        .help = "where to look for work"                                               \
    }
#define ARG_WORKER(is_required)                                              \
    {                                                                        \
        .name = "worker", .kind = OP_OPTION, .type = OP_TEXT,                \
        .required = (is_required), .min = 1, .max = 255, .placeholder = "W", \
        .help = "who works"                                                  \
    }
#define ARG_CAPABILITY                                                              \
    {                                                                               \
        .name = "capability", .kind = OP_OPTION, .type = OP_TEXT, .repeated = true, \
        .min = 1, .max = 4096, .placeholder = "CAP",                                \
        .help = "what the worker can do: work that requires more is not for it"     \
    }
#define ARG_WORK_LEASE(least_ms)                                                    \
    {                                                                               \
        .name = "lease", .kind = OP_OPTION, .type = OP_DURATION, .min = (least_ms), \
        .max = BELAY_LEASE_MAX_MS, .placeholder = "D", .fallback = "30s",           \
        .help = "for how long from now; past it others may have the work"           \
    }

/* Shorter ones would be past due before they can be renewed. */
#define KEPT_LEASE_MIN_MS 100

static const char *const results[] = { "exit", "stdout", NULL };

static const struct op_arg work_args[] = {
    ARG_LANES(true),
    { .name = "exec",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .placeholder = "CMD",
      .help = "for the shell, with the payload on its standard input; the payload's "
              "argv unless told" },
    ARG_CAPABILITY,
    ARG_WORKER(false),
    { .name = "concurrency",
      .kind = OP_OPTION,
      .type = OP_I64,
      .min = 1,
      .max = 256,
      .placeholder = "N",
      .fallback = "1",
      .help = "how many jobs at once" },
    ARG_WORK_LEASE(KEPT_LEASE_MIN_MS),
    { .name = "grace",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 0,
      .max = BELAY_LEASE_MAX_MS,
      .placeholder = "D",
      .fallback = "5s",
      .help = "between TERM and KILL" },
    { .name = "drain",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "end when nothing is due; what living workers hold keeps nobody" },
    { .name = "max",
      .kind = OP_OPTION,
      .type = OP_I64,
      .min = 1,
      .max = INT64_C(1000000000),
      .placeholder = "N",
      .help = "end after so many jobs" },
    { .name = "result",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .choices = results,
      .placeholder = "WHAT",
      .fallback = "exit",
      .help = "what a job's result is: {\"exit\":0}, or what it printed" },
};

static const struct op_arg claim_args[] = {
    ARG_LANES(false),
    ARG_WORKER(true),
    ARG_CAPABILITY,
    { .name = "max",
      .kind = OP_OPTION,
      .type = OP_I64,
      .min = 1,
      .max = BELAY_WORK_MAX,
      .placeholder = "N",
      .fallback = "1",
      .help = "how many at most" },
    ARG_WORK_LEASE(0),
    { .name = "wait",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 0,
      .max = BELAY_LEASE_MAX_MS,
      .placeholder = "D",
      .help = "how long to wait for something to do" },
    { .name = "grant",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = 255,
      .placeholder = "G",
      .help = "what this grant has set aside, instead of lanes" },
};

static const struct op_arg grant_args[] = {
    { .name = "id",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .min = 1,
      .max = 255,
      .placeholder = "ID",
      .help = "exactly this execution, whatever the worker can do, instead of lanes" },
    ARG_LANES(false),
    ARG_WORKER(true),
    ARG_CAPABILITY,
    { .name = "for",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 1,
      .max = 60000,
      .placeholder = "D",
      .fallback = "5s",
      .help = "how long it is set aside" },
};

static const char *const work_columns[] = { "jobs",     "completed", "failed",
                                            "released", "lost",      NULL };
static const char *const claim_columns[] = { "next_at_ms", NULL };
static const char *const grant_columns[] = { "grant", "execution",     "lane", "worker",
                                             "kind",  "expires_at_ms", NULL };

const char *const op_claim_columns[] = { "execution", "lane",   "kind", "attempt",
                                         "fence",     "handle", NULL };

const struct operation ops_worker[3] = {
    { .name = "work",
      .words = "work",
      .summary = "Work on lanes: run a command for every execution",
      .details =
          "The command has the payload on its standard input and BELAY_EXECUTION, "
          "BELAY_ATTEMPT, BELAY_FENCE, BELAY_LANE, BELAY_HANDLE and BELAY_SOCKET in "
          "its environment, so that it may call complete, fail, progress, frame, "
          "renew, "
          "delay, release and abort itself. What it prints becomes frames. Exit status "
          "0 completes, 75 fails transient, 100 fails permanent, a signal fails "
          "infra_crash, anything else fails transient. The lease is renewed beside it; "
          "when it is lost or the execution cancelled, the process group gets TERM, "
          "then KILL, and nothing more is written. TERM ends it when its jobs are "
          "done. Its leases are bound to its process: when that dies, other workers of "
          "this host have its jobs at once.",
      .args = work_args,
      .n_args = COUNT_OF(work_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .reach = OP_REACH_URL, /* so that its threads come after signals are blocked */
      .shape = OP_OBJECT,
      .columns = work_columns,
      .essence = "jobs",
      .handler = op_work },
    { .name = "claim",
      .words = "claim",
      .http_method = "POST",
      .http_path = "/v1/claims",
      .summary = "Claim work",
      .details = "By priority, then age, of all those lanes together. That there is "
                 "nothing to do is no error.",
      .args = claim_args,
      .n_args = COUNT_OF(claim_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = claim_columns,
      .essence = "handle",
      .rows = "claims",
      .row_columns = op_claim_columns,
      .watches = true,
      .handler = op_claim },
    { .name = "grant",
      .words = "grant",
      .http_method = "POST",
      .http_path = "/v1/grants",
      .summary = "Set work aside for a worker, who claims it with claim --grant",
      .args = grant_args,
      .n_args = COUNT_OF(grant_args),
      .scope = OP_SCOPE_OPERATE,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = grant_columns,
      .essence = "grant",
      .handler = op_grant },
};
