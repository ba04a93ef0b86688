/* The rows of inboxes. */
#include "api/op_json.h"
#include "api/ops_args.h"
#include "api/ops_sessions.h"

#define ARG_BATCH                                                                      \
    {                                                                                  \
        .name = "batch", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 1, .max = 255, \
        .required = true, .placeholder = "B", .help = "its id"                         \
    }

static const struct op_arg enqueue_args[] = {
    ARG_SESSION,
    { .name = "delivery",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .required = true,
      .choices = op_delivery_names,
      .placeholder = "WHEN",
      .help = "when it may be delivered" },
    { .name = "slot",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .required = true,
      .choices = op_slot_names,
      .help = "whether it may be delivered with others" },
    { .name = "merge",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = 261,
      .placeholder = "never|payload_default|group:G",
      .fallback = "never",
      .help = "with which others: those of the same merge key" },
    { .name = "available_at",
      .kind = OP_OPTION,
      .type = OP_I64,
      .min = 0,
      .max = TIME_MAX_MS,
      .placeholder = "MS",
      .help = "not to be claimed before this time" },
    { .name = "source_key",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = 512,
      .placeholder = "K",
      .help = "while a batch of this key is in the inbox, that one is the answer" },
    { .name = "payload",
      .kind = OP_OPTION,
      .type = OP_JSON,
      .repeated = true,
      .help = "one item of the batch" },
};

static const struct op_arg claim_args[] = {
    ARG_SESSION,
    { .name = "owner",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .max = 255,
      .placeholder = "O",
      .help = "who claims" },
    { .name = "boundary",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .choices = op_boundary_names,
      .placeholder = "WHERE",
      .fallback = "idle",
      .help =
          "where the claimer stands: within a turn only what may be delivered there "
          "is given" },
    { .name = "max",
      .kind = OP_OPTION,
      .type = OP_I64,
      .min = 0,
      .max = BELAY_CLAIM_MAX,
      .placeholder = "N",
      .fallback = "1",
      .help = "how many batches at most" },
    ARG_LEASE,
    { .name = "wait",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 0,
      .max = BELAY_LEASE_MAX_MS,
      .placeholder = "D",
      .help = "how long to wait for something to claim" },
    { .name = "batch",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .repeated = true,
      .min = 1,
      .max = 255,
      .placeholder = "B",
      .help = "exactly these batches in this order, or nothing" },
};

static const struct op_arg renew_args[] = { ARG_CLAIM, ARG_SESSION_CHECK, ARG_LEASE };
static const struct op_arg abandon_args[] = { ARG_CLAIM, ARG_SESSION_CHECK };
static const struct op_arg complete_args[] = { ARG_CLAIM, ARG_SESSION_CHECK, ARG_EXPECT,
                                               ARG_TURN };
static const struct op_arg cancel_args[] = { ARG_SESSION, ARG_BATCH };

static const struct op_arg drop_args[] = {
    ARG_SESSION,
    { .name = "batch",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .max = 255,
      .placeholder = "B",
      .help = "its id, or its enqueue_seq" },
};

static const struct op_arg ls_args[] = {
    ARG_SESSION,
    { .name = "pending",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "leave out what somebody holds" },
    ARG_LIMIT,
    ARG_CURSOR,
};

static const char *const enqueue_columns[] = {
    "batch_id",        "enqueue_seq", "session_id",       "source_key",
    "delivery_policy", "slot_policy", "merge_key",        "available_at_ms",
    "enqueued_at_ms",  "replayed",    "payload_mismatch", NULL
};
static const char *const claim_columns[] = { "claimed", "reason", "next_at_ms",
                                             "handle", NULL };
static const char *const claimed_columns[] = { "enqueue_seq", "batch_id", "source_key",
                                               "items", NULL };
static const char *const renew_columns[] = { "claim_id", "expires_at_ms", NULL };
static const char *const abandon_columns[] = { "claim_id", "released", NULL };
static const char *const complete_columns[] = { "revision",       "replayed",
                                                "checkpoint_ref", "leaf_node_id",
                                                "node_count",     NULL };
static const char *const cancel_columns[] = { "cancelled", "batch", NULL };
static const char *const drop_columns[] = { "dropped", NULL };
static const char *const ls_columns[] = { "enqueue_seq", "batch_id", "delivery_policy",
                                          "slot_policy", "owner_id", "expires_at_ms",
                                          "source_key",  NULL };

const struct operation ops_queue[] = {
    { .name = "queue.enqueue",
      .words = "queue enqueue",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/queue",
      .summary = "Put a batch of work into a session's inbox",
      .details =
          "A batch has as many items as there are payloads, in their order. With "
          "a source key that the inbox has already nothing is added: the answer "
          "is the batch that is there, with replayed, and with payload_mismatch "
          "where its payloads are others.",
      .args = enqueue_args,
      .n_args = COUNT_OF(enqueue_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = enqueue_columns,
      .essence = "batch_id",
      .handler = op_queue_enqueue },
    { .name = "queue.claim",
      .words = "queue claim",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/queue/claim",
      .summary = "Claim the batches at the front of a session's inbox",
      .details =
          "The claim is held until it is completed or given back, or until it is "
          "past due and somebody else takes it over. Its handle is the proof; "
          "with -q it is all that is printed. Nothing to claim is an answer, with "
          "the reason: empty, not_yet_available, boundary_blocked, head_held, "
          "zero_limit or other_batches.",
      .args = claim_args,
      .n_args = COUNT_OF(claim_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = claim_columns,
      .essence = "handle",
      .rows = "claim.batches",
      .row_columns = claimed_columns,
      .watches = true,
      .handler = op_queue_claim },
    { .name = "queue.renew",
      .words = "queue renew",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/queue/renew",
      .summary = "Hold a claim for longer",
      .details = "The end of a lease never comes nearer. A claim that is past due is "
                 "renewed as long as nobody has taken it over.",
      .args = renew_args,
      .n_args = COUNT_OF(renew_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = renew_columns,
      .essence = "expires_at_ms",
      .handler = op_queue_renew },
    { .name = "queue.abandon",
      .words = "queue abandon",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/queue/abandon",
      .summary = "Give the batches of a claim back to the inbox",
      .details = "A claim that holds nothing any more is no error.",
      .args = abandon_args,
      .n_args = COUNT_OF(abandon_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = abandon_columns,
      .essence = "released",
      .handler = op_queue_abandon },
    { .name = "queue.complete",
      .words = "queue complete",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/queue/complete",
      .summary = "Complete the batches of a claim",
      .details =
          "This is a commit of the session that changes nothing else, and raises "
          "its revision. To commit a turn's work with it use session commit "
          "--complete.",
      .args = complete_args,
      .n_args = COUNT_OF(complete_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = complete_columns,
      .essence = "revision",
      .handler = op_queue_complete },
    { .name = "queue.cancel",
      .words = "queue cancel",
      .http_method = "DELETE",
      .http_path = "/v1/sessions/{session}/queue/{batch}",
      .summary = "Take a batch that nobody is working on out of an inbox",
      .details = "The exit status is 4 when it is not there, or somebody holds it.",
      .args = cancel_args,
      .n_args = COUNT_OF(cancel_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = cancel_columns,
      .essence = "cancelled",
      .handler = op_queue_cancel,
      .exit_of = op_exit_of_cancelled },
    { .name = "queue.drop",
      .words = "queue drop",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/queue/{batch}/drop",
      .summary = "Remove a batch, whatever is in it and whoever holds it",
      .details = "For a batch that cannot be read: its content is not looked at.",
      .args = drop_args,
      .n_args = COUNT_OF(drop_args),
      .scope = OP_SCOPE_OPERATE,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = drop_columns,
      .essence = "dropped",
      .handler = op_queue_drop },
    { .name = "queue.ls",
      .words = "queue ls",
      .http_method = "GET",
      .http_path = "/v1/sessions/{session}/queue",
      .summary = "List the batches of a session's inbox",
      .args = ls_args,
      .n_args = COUNT_OF(ls_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = ls_columns,
      .essence = "batch_id",
      .handler = op_queue_ls },
};
