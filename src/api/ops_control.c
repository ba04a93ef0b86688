/* The rows of operators: what is done to executions. */
#include "api/ops_executions.h"

#include "api/op_execution.h"
#include "api/ops_args.h"

static const struct op_arg end_args[] = { ARG_ID, ARG_REASON };

static const struct op_arg priority_args[] = {
    ARG_ID,
    { .name = "priority",
      .kind = OP_POSITIONAL,
      .type = OP_I64,
      .required = true,
      .min = 0,
      .max = BELAY_PRIORITY_MAX,
      .placeholder = "N",
      .help = "greater ones go first" },
};

static const struct op_arg revoke_args[] = {
    ARG_ID,
    ARG_REASON,
    ARG_TEXT("lease_id", "ID", "only this lease"),
};

static const struct op_arg tag_args[] = {
    ARG_ID,
    { .name = "tags",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .repeated = true,
      .min = 1,
      .max = 512,
      .placeholder = "K=V",
      .help = "a tag to set" },
    { .name = "remove",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .repeated = true,
      .min = 1,
      .max = 64,
      .placeholder = "K",
      .help = "a tag to remove" },
};

static const char *const cancel_columns[] = { "id", "state", NULL };
static const char *const replay_columns[] = { "id", "replayed", NULL };
static const char *const priority_columns[] = { "id", "priority", NULL };
static const char *const revoke_columns[] = { "id", "revoked", NULL };
static const char *const tag_columns[] = { "id", "tags", NULL };

const struct operation ops_control[5] = {
    { .name = "cancel",
      .words = "cancel",
      .http_method = "POST",
      .http_path = "/v1/executions/{id}/cancel",
      .summary = "Cancel an execution",
      .details = "Who works on it finds its lease lost; belay work ends the job.",
      .args = end_args,
      .n_args = COUNT_OF(end_args),
      .scope = OP_SCOPE_OPERATE,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = cancel_columns,
      .essence = "state",
      .handler = op_cancel },
    { .name = "replay",
      .words = "replay",
      .http_method = "POST",
      .http_path = "/v1/executions/{id}/replay",
      .summary = "Run an execution that has ended once more",
      .details = "Its counters of retries and reclaims begin anew, failure and result "
                 "go, a deadline counts from now. At most 10 times.",
      .args = end_args,
      .n_args = COUNT_OF(end_args),
      .scope = OP_SCOPE_OPERATE,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = replay_columns,
      .essence = "replayed",
      .handler = op_replay },
    { .name = "priority",
      .words = "priority",
      .http_method = "PUT",
      .http_path = "/v1/executions/{id}/priority",
      .summary = "Change the priority of an execution",
      .args = priority_args,
      .n_args = COUNT_OF(priority_args),
      .scope = OP_SCOPE_OPERATE,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = priority_columns,
      .essence = "priority",
      .handler = op_priority },
    { .name = "revoke",
      .words = "revoke",
      .http_method = "POST",
      .http_path = "/v1/executions/{id}/revoke",
      .summary = "Take an execution from whoever holds it",
      .details = "Others may claim it at once. That nobody holds it is no error: the "
                 "answer says.",
      .args = revoke_args,
      .n_args = COUNT_OF(revoke_args),
      .scope = OP_SCOPE_OPERATE,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = revoke_columns,
      .essence = "revoked",
      .handler = op_revoke },
    { .name = "tag",
      .words = "tag",
      .http_method = "PUT",
      .http_path = "/v1/executions/{id}/tags",
      .summary = "Set and remove tags of an execution",
      .args = tag_args,
      .n_args = COUNT_OF(tag_args),
      .scope = OP_SCOPE_OPERATE,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = tag_columns,
      .essence = "id",
      .handler = op_tag },
};
