/* The rows of processes: what they are, and what happens to them. */
#include "api/ops_processes.h"

#include "api/op_process.h"
#include "api/ops_args.h"

#define ARG_JSON(its_name, needed, its_help)                                      \
    {                                                                             \
        .name = (its_name), .kind = OP_OPTION, .type = OP_JSON, .min = 1,         \
        .max = (int64_t)OP_JSON_MAX, .required = (needed), .placeholder = "JSON", \
        .help = (its_help)                                                        \
    }
#define ARG_AFTER                                                     \
    {                                                                 \
        .name = "after", .kind = OP_OPTION, .type = OP_I64, .min = 0, \
        .max = TIME_MAX_MS, .placeholder = "N",                       \
        .help = "only those behind this sequence"                     \
    }
#define ARG_AUTHORITY                                                          \
    {                                                                          \
        .name = "authority", .kind = OP_OPTION, .type = OP_TEXT,               \
        .choices = op_authority_names, .placeholder = "A",                     \
        .help = "who ends it without a lease: its owner, the external system " \
                "that runs it, or an operator"                                 \
    }
#define ARG_WAKE_TARGET                                 \
    ARG_NAME("wake_target", "SCOPE",                    \
             "the session that the event wakes: S, or " \
             "session:S, or session:S/frame:F"),        \
        ARG_NAME("wake_frame", "F", "the agent frame of it")
#define ARG_FOLLOW                                                         \
    {                                                                      \
        .name = "follow", .letter = 'f', .kind = OP_FLAG, .type = OP_BOOL, \
        .help = "go on with what comes"                                    \
    }

static const struct op_arg register_args[] = {
    ARG_PROCESS,
    ARG_JSON("input", false, "what it is: an object with a type; external unless told"),
    ARG_JSON("event_types", false,
             "the types of its events, a list of {name, payload_schema?, semantics?}"),
    ARG_NAME("owner", "S", "the session it belongs to; root unless told"),
    ARG_NAME("owner_frame", "F", "the agent frame of that session"),
    ARG_NAME("host_profile", "H", "the profile of its host; default unless told"),
    ARG_JSON("caused_by", false, "what it comes from"),
    ARG_DURATION("retention", "how long it is kept after its end; 7d unless told"),
};

static const struct op_arg show_args[] = { ARG_PROCESS };

static const struct op_arg ls_args[] = {
    { .name = "status",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .choices = op_status_names,
      .placeholder = "STATUS",
      .help = "only those that are so" },
    ARG_NAME("owner", "S", "only those of this session"),
    ARG_NAME("kind", "K", "only those whose input is of this type"),
    ARG_NAME("host_profile", "H", "only those of this profile"),
    ARG_CREATED_FROM,
    ARG_CREATED_TO,
    ARG_LIMIT,
    ARG_CURSOR,
};

static const struct op_arg append_args[] = {
    ARG_PROCESS,
    { .name = "type",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .max = 255,
      .placeholder = "T",
      .help = "one of the types that it declares" },
    ARG_JSON("payload", true, "what the event says"),
    { .name = "key",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = 1024,
      .placeholder = "K",
      .help = "replay key: the same event once more is answered with the first" },
    ARG_WAKE_TARGET,
    ARG_WITH_LEASE,
    ARG_AUTHORITY,
};

static const struct op_arg events_args[] = {
    ARG_PROCESS,
    ARG_FOLLOW,
    ARG_AFTER,
    { .name = "tail",
      .kind = OP_OPTION,
      .type = OP_I64,
      .min = 1,
      .max = TIME_MAX_MS,
      .placeholder = "N",
      .help = "from the last so many on" },
    ARG_NAME("type", "T", "only those of this type"),
    { .name = "wakes",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "only those whose wake is not settled" },
    ARG_DURATION("wait", "how long to wait while there is none"),
    ARG_LIMIT_ANY("how many at most; all unless told, as JSON 100"),
};

static const struct op_arg await_args[] = {
    ARG_PROCESS,
    { .name = "timeout",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 0,
      .max = (int64_t)24 * 60 * 60 * 1000,
      .placeholder = "D",
      .help = "how long at most; a day unless told" },
};

static const struct op_arg complete_args[] = {
    ARG_PROCESS,
    ARG_JSON("result", true,
             "what it leaves: an object of type success, failure or "
             "cancelled"),
    ARG_WITH_LEASE,
    ARG_AUTHORITY,
    ARG_WAKE_TARGET,
};

static const struct op_arg cancel_args[] = { ARG_PROCESS, ARG_REASON };

static const struct op_arg external_ref_args[] = {
    ARG_PROCESS,
    ARG_JSON("ref", true, "where it runs: {backend, id, metadata?}"),
    ARG_WITH_LEASE,
};

static const struct op_arg wakes_args[] = {
    ARG_PROCESS,
    { .name = "all",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "also those that are settled" },
    ARG_AFTER,
    ARG_LIMIT,
};

static const struct op_arg ack_args[] = {
    ARG_PROCESS,
    { .name = "sequence",
      .kind = OP_POSITIONAL,
      .type = OP_I64,
      .required = true,
      .min = 1,
      .max = TIME_MAX_MS,
      .placeholder = "N",
      .help = "of the event that wakes" },
};

static const struct op_arg changes_args[] = {
    ARG_FOLLOW,
    { .name = "after",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = 512,
      .placeholder = "C",
      .help = "only those behind this cursor" },
    ARG_LIMIT_ANY("how many at most; 100 unless told, with -f no end"),
};

static const struct op_arg delete_args[] = {
    ARG_PROCESS,
    { .name = "force",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "also while it runs or is held" },
};

static const char *const process_columns[] = { "process_id",
                                               "status",
                                               "kind",
                                               "owner.session_id",
                                               "last_sequence",
                                               "lease.owner_id",
                                               "fence",
                                               "created_at_ms",
                                               NULL };
static const char *const show_columns[] = { "process_id",
                                            "status",
                                            "kind",
                                            "owner.session_id",
                                            "owner.frame_id",
                                            "host_profile_id",
                                            "last_sequence",
                                            "created_at_ms",
                                            "updated_at_ms",
                                            "finished_at_ms",
                                            "purge_at_ms",
                                            "fence",
                                            "lease.owner_id",
                                            "lease.expires_at_ms",
                                            "external_ref",
                                            "await_output",
                                            "registration_hash",
                                            NULL };
static const char *const event_columns[] = { "sequence",   "occurred_at_ms",
                                             "event_type", "payload",
                                             "replay_key", "terminal",
                                             "wake.state", NULL };
static const char *const wake_columns[] = { "sequence",          "state",
                                            "target.session_id", "target.frame_id",
                                            "dedupe_key",        "input",
                                            "settled_at_ms",     NULL };
static const char *const ack_columns[] = { "acknowledged", NULL };
static const char *const change_columns[] = { "at_ms",  "change",   "process_id",
                                              "status", "sequence", "detail",
                                              "cursor", NULL };
static const char *const delete_columns[] = { "deleted", NULL };

const struct operation ops_process[13] = {
    { .name = "process.register",
      .words = "process register",
      .http_method = "POST",
      .http_path = "/v1/processes",
      .summary = "Register a process",
      .details = "The same registration once more is answered with the process as it "
                 "is now; another one under the same id is registration_conflict, and "
                 "names both hashes.",
      .args = register_args,
      .n_args = COUNT_OF(register_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = show_columns,
      .essence = "process_id",
      .handler = op_process_register },
    { .name = "process.show",
      .words = "process show",
      .http_method = "GET",
      .http_path = "/v1/processes/{process}",
      .summary = "Show a process",
      .args = show_args,
      .n_args = COUNT_OF(show_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = show_columns,
      .essence = "status",
      .handler = op_process_show },
    { .name = "process.ls",
      .words = "process ls",
      .http_method = "GET",
      .http_path = "/v1/processes",
      .summary = "List processes",
      .details = "Running ones are ordered by id, ended ones by when they are purged, "
                 "others by when they were registered.",
      .args = ls_args,
      .n_args = COUNT_OF(ls_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = process_columns,
      .essence = "process_id",
      .handler = op_process_ls },
    { .name = "process.append",
      .words = "process append",
      .http_method = "POST",
      .http_path = "/v1/processes/{process}/events",
      .summary = "Append an event to the log of a process",
      .details =
          "Its type must be declared, its payload what the type says. An event that "
          "ends the process takes a key, and a lease or an authority; one that wakes a "
          "session puts a batch into its inbox with the same commit.",
      .args = append_args,
      .n_args = COUNT_OF(append_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = event_columns,
      .essence = "sequence",
      .handler = op_process_append },
    { .name = "process.events",
      .words = "process events",
      .http_method = "GET",
      .http_path = "/v1/processes/{process}/events",
      .summary = "Read the events of a process",
      .details = "Followed, they end with the process.",
      .args = events_args,
      .n_args = COUNT_OF(events_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = event_columns,
      .essence = "sequence",
      .handler = op_process_events },
    { .name = "process.await",
      .words = "process await",
      .http_method = "GET",
      .http_path = "/v1/processes/{process}/await",
      .summary = "Wait until a process has ended",
      .details = "The exit status is 0 only for one that completed.",
      .args = await_args,
      .n_args = COUNT_OF(await_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = show_columns,
      .essence = "await_output",
      .exit_of = op_exit_of_process,
      .handler = op_process_await },
    { .name = "process.complete",
      .words = "process complete",
      .http_method = "POST",
      .http_path = "/v1/processes/{process}/complete",
      .summary = "End a process",
      .details =
          "With a lease that is checked, and ended, in the same commit; without one an "
          "authority is named. The same output once more is the same answer.",
      .args = complete_args,
      .n_args = COUNT_OF(complete_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = show_columns,
      .essence = "status",
      .handler = op_process_complete },
    { .name = "process.cancel",
      .words = "process cancel",
      .http_method = "POST",
      .http_path = "/v1/processes/{process}/cancel",
      .summary = "Ask a process to end",
      .details = "Records the wish, once for each reason; whoever runs the process "
                 "watches for it.",
      .args = cancel_args,
      .n_args = COUNT_OF(cancel_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = event_columns,
      .essence = "sequence",
      .handler = op_process_cancel },
    { .name = "process.external-ref",
      .words = "process external-ref",
      .http_method = "PUT",
      .http_path = "/v1/processes/{process}/external-ref",
      .summary = "Say where a process runs elsewhere",
      .args = external_ref_args,
      .n_args = COUNT_OF(external_ref_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = show_columns,
      .essence = "process_id",
      .handler = op_process_external_ref },
    { .name = "process.wakes",
      .words = "process wakes",
      .http_method = "GET",
      .http_path = "/v1/processes/{process}/wakes",
      .summary = "List the wakes of a process, and what became of them",
      .args = wakes_args,
      .n_args = COUNT_OF(wakes_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = wake_columns,
      .essence = "sequence",
      .handler = op_process_wakes },
    { .name = "process.ack",
      .words = "process ack",
      .http_method = "POST",
      .http_path = "/v1/processes/{process}/wakes/{sequence}/ack",
      .summary = "Acknowledge a wake",
      .details = "Its batch leaves the inbox unless somebody is working on it. "
                 "Completing that batch acknowledges the wake by itself.",
      .args = ack_args,
      .n_args = COUNT_OF(ack_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = ack_columns,
      .essence = "acknowledged",
      .handler = op_process_ack },
    { .name = "process.changes",
      .words = "process changes",
      .http_method = "GET",
      .http_path = "/v1/processes/changes",
      .summary = "Read what has changed about processes",
      .details = "Registrations, external refs, wishes to cancel, ends and deletions, "
                 "in the order of their commits, none missing.",
      .args = changes_args,
      .n_args = COUNT_OF(changes_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = change_columns,
      .essence = "cursor",
      .handler = op_process_changes },
    { .name = "process.delete",
      .words = "process delete",
      .http_method = "DELETE",
      .http_path = "/v1/processes/{process}",
      .summary = "Remove a process that has ended",
      .details = "With its events, grants and wakes; what is in an inbox stays there.",
      .args = delete_args,
      .n_args = COUNT_OF(delete_args),
      .scope = OP_SCOPE_OPERATE,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = delete_columns,
      .essence = "deleted",
      .handler = op_process_delete },
};
