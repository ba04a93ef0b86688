/* The rows of processes: who runs them, and who may see them. */
#include "api/op_process.h"
#include "api/ops_args.h"
#include "api/ops_processes.h"

#define ARG_HANDLE_OF_LEASE                                                 \
    {                                                                       \
        .name = "handle", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 1, \
        .max = 2048, .required = true, .placeholder = "HANDLE",             \
        .help = "the lease, as process lease has printed it"                \
    }
#define ARG_SCOPE              \
    { .name = "session",       \
      .kind = OP_OPTION,       \
      .type = OP_TEXT,         \
      .required = true,        \
      .min = 1,                \
      .max = 255,              \
      .placeholder = "S",      \
      .help = "the session" }, \
        ARG_NAME("frame", "F", "an agent frame of it, which is a scope of its own")

static const struct op_arg lease_args[] = {
    ARG_PROCESS,
    { .name = "owner",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .max = 255,
      .placeholder = "O",
      .help = "who holds it; the same one gets a new lease" },
    ARG_PROCESS_LEASE,
};
static const struct op_arg renew_args[] = { ARG_HANDLE_OF_LEASE, ARG_PROCESS_LEASE };
static const struct op_arg release_args[] = { ARG_HANDLE_OF_LEASE };

static const struct op_arg grant_args[] = {
    ARG_PROCESS,
    ARG_SCOPE,
    ARG_NAME("kind", "K", "what it is there"),
    ARG_NAME("label", "L", "what it is called there"),
};
static const struct op_arg revoke_args[] = { ARG_PROCESS, ARG_SCOPE };
static const struct op_arg transfer_args[] = {
    { .name = "process",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .required = true,
      .repeated = true,
      .min = 1,
      .max = 255,
      .placeholder = "P",
      .help = "the processes" },
    ARG_SCOPE,
    { .name = "to",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .max = 255,
      .placeholder = "S",
      .help = "the session that gets them" },
    ARG_NAME("to_frame", "F", "the agent frame of it"),
};
static const struct op_arg grants_args[] = {
    ARG_NAME("session", "S", "those of this session"),
    ARG_NAME("frame", "F", "those of this frame of it"),
    ARG_NAME("process", "P", "those of this process, whoever has them"),
    { .name = "live",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "only of processes that run" },
    ARG_LIMIT,
    ARG_CURSOR,
};
static const struct op_arg forget_args[] = {
    ARG_SESSION,
    { .name = "cancel",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "ask the processes that nobody else has to end, with the same commit" },
    ARG_REASON,
};

static const char *const lease_columns[] = { "process_id",    "owner_id", "fence",
                                             "expires_at_ms", "handle",   NULL };
static const char *const renew_columns[] = { "process_id", "fence", "expires_at_ms",
                                             NULL };
static const char *const release_columns[] = { "process_id", "released", NULL };
static const char *const grant_columns[] = { "granted", NULL };
static const char *const revoke_columns[] = { "revoked", NULL };
static const char *const transfer_columns[] = { "transferred", NULL };
static const char *const grants_columns[] = { "process_id",    "status", "session_id",
                                              "frame_id",      "kind",   "label",
                                              "granted_at_ms", NULL };
static const char *const forget_columns[] = {
    "session_id",         "revoked_handle_count",
    "cancel_process_ids", "preserved_process_ids",
    "cancel_requested",   NULL
};

const struct operation ops_process_scope[8] = {
    { .name = "process.lease",
      .words = "process lease",
      .http_method = "POST",
      .http_path = "/v1/processes/{process}/lease",
      .summary = "Hold a process",
      .details = "One holder at a time, under a fence that never repeats. Its handle "
                 "is the proof; with -q it is all that is printed. Held by somebody "
                 "else it is lease_held, unless that is past due.",
      .args = lease_args,
      .n_args = COUNT_OF(lease_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = lease_columns,
      .essence = "handle",
      .watches = true,
      .handler = op_process_lease },
    { .name = "process.renew",
      .words = "process renew",
      .http_method = "POST",
      .http_path = "/v1/process-leases/renew",
      .summary = "Hold a process for longer",
      .details = "The end of a lease never comes nearer. A lease that is past due is "
                 "not renewed.",
      .args = renew_args,
      .n_args = COUNT_OF(renew_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = renew_columns,
      .essence = "expires_at_ms",
      .handler = op_process_renew },
    { .name = "process.release",
      .words = "process release",
      .http_method = "POST",
      .http_path = "/v1/process-leases/release",
      .summary = "Give a process back",
      .details = "A lease that holds nothing any more is no error.",
      .args = release_args,
      .n_args = COUNT_OF(release_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = release_columns,
      .essence = "released",
      .handler = op_process_release },
    { .name = "process.grant",
      .words = "process grant",
      .http_method = "POST",
      .http_path = "/v1/processes/{process}/grants",
      .summary = "Make a process addressable from a session",
      .details = "Granted once more, it gets the new kind and label.",
      .args = grant_args,
      .n_args = COUNT_OF(grant_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = grant_columns,
      .essence = "granted",
      .handler = op_process_grant },
    { .name = "process.revoke",
      .words = "process revoke",
      .http_method = "DELETE",
      .http_path = "/v1/processes/{process}/grants",
      .summary = "Take that back",
      .details = "What was not granted is no error.",
      .args = revoke_args,
      .n_args = COUNT_OF(revoke_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = revoke_columns,
      .essence = "revoked",
      .handler = op_process_revoke },
    { .name = "process.transfer",
      .words = "process transfer",
      .http_method = "POST",
      .http_path = "/v1/process-grants/transfer",
      .summary = "Hand processes on to another session",
      .details = "All of them, or none when one was not granted.",
      .args = transfer_args,
      .n_args = COUNT_OF(transfer_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = transfer_columns,
      .essence = "transferred",
      .handler = op_process_transfer },
    { .name = "process.grants",
      .words = "process grants",
      .http_method = "GET",
      .http_path = "/v1/process-grants",
      .summary = "List grants, of a session or of a process",
      .args = grants_args,
      .n_args = COUNT_OF(grants_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = grants_columns,
      .essence = "process_id",
      .handler = op_process_grants },
    { .name = "process.forget-session",
      .words = "process forget-session",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/forget-processes",
      .summary = "Revoke every grant of a session and its frames",
      .details = "Tells which running processes nobody else has, and which ones others "
                 "have, too.",
      .args = forget_args,
      .n_args = COUNT_OF(forget_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = forget_columns,
      .essence = "revoked_handle_count",
      .handler = op_process_forget_session },
};
