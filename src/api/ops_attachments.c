/* The rows of attachments. */
#include "api/op_handlers.h"
#include "api/ops_args.h"
#include "api/ops_sessions.h"

#define ARG_ATTACHMENT                                                          \
    {                                                                           \
        .name = "attachment", .kind = OP_POSITIONAL, .type = OP_TEXT, .min = 1, \
        .max = 255, .required = true, .placeholder = "ID", .help = "its id"     \
    }

static const struct op_arg intent_args[] = {
    ARG_SESSION,
    ARG_ATTACHMENT,
    { .name = "uri",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .placeholder = "U",
      .help = "where its bytes will be" },
};

static const struct op_arg fulfil_args[] = {
    ARG_SESSION,
    { .name = "attachment",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .required = true,
      .repeated = true,
      .min = 1,
      .max = 255,
      .placeholder = "ID",
      .help = "their ids" },
};

static const struct op_arg uncommitted_args[] = {
    ARG_SESSION,
    { .name = "older_than",
      .kind = OP_OPTION,
      .type = OP_I64,
      .min = 0,
      .max = TIME_MAX_MS,
      .placeholder = "MS",
      .fallback = "9007199254740991",
      .help = "only those announced at or before this time" },
    ARG_LIMIT,
};

static const struct op_arg forget_args[] = { ARG_SESSION, ARG_ATTACHMENT };

static const char *const intent_columns[] = { "attachment_id", "new", NULL };
static const char *const fulfil_columns[] = { "session_id", "committed", NULL };
static const char *const uncommitted_columns[] = { "attachment_id", "uri",
                                                   "intent_at_ms", NULL };
static const char *const forget_columns[] = { "attachment_id", "removed", NULL };

const struct operation ops_attachment[] = {
    { .name = "attachment.intent",
      .words = "attachment intent",
      .http_method = "PUT",
      .http_path = "/v1/sessions/{session}/attachments/{attachment}",
      .summary = "Announce bytes that will be kept elsewhere, before they are written",
      .args = intent_args,
      .n_args = COUNT_OF(intent_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = intent_columns,
      .essence = "new",
      .handler = op_attachment_intent },
    { .name = "attachment.commit",
      .words = "attachment commit",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/attachments/commit",
      .summary = "Say that announced attachments are written",
      .details = "session commit does this, too.",
      .args = fulfil_args,
      .n_args = COUNT_OF(fulfil_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = fulfil_columns,
      .essence = "committed",
      .handler = op_attachment_commit },
    { .name = "attachment.ls",
      .words = "attachment ls",
      .http_method = "GET",
      .http_path = "/v1/sessions/{session}/attachments",
      .summary = "List attachments that were announced and not written, oldest first",
      .args = uncommitted_args,
      .n_args = COUNT_OF(uncommitted_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = uncommitted_columns,
      .essence = "attachment_id",
      .handler = op_attachment_ls },
    { .name = "attachment.forget",
      .words = "attachment forget",
      .http_method = "DELETE",
      .http_path = "/v1/sessions/{session}/attachments/{attachment}",
      .summary = "Forget an attachment",
      .args = forget_args,
      .n_args = COUNT_OF(forget_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = forget_columns,
      .essence = "removed",
      .handler = op_attachment_forget },
};
