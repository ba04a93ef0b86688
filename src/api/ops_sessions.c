/* The rows of sessions. */
#include "api/ops_sessions.h"

#include "api/op_json.h"
#include "api/ops_args.h"

#define COMMIT_MAX ((int64_t)16 << 20)

#define ARG_PARENT                                                                  \
    {                                                                               \
        .name = "parent", .kind = OP_OPTION, .type = OP_TEXT, .min = 1, .max = 255, \
        .placeholder = "P", .help = "the session it comes from"                     \
    }

static const struct op_arg commit_args[] = {
    ARG_SESSION,
    ARG_EXPECT,
    ARG_TURN,
    { .name = "complete",
      .kind = OP_OPTION,
      .type = OP_CLAIM,
      .repeated = true,
      .min = 1,
      .max = OP_CLAIM_MAX,
      .help = "a claim whose batches are done with this commit" },
    ARG_PROFILE,
    { .name = "file",
      .kind = OP_OPTION,
      .type = OP_FILE,
      .max = COMMIT_MAX,
      .help = "the commit as JSON; not needed where claims are completed" },
};

static const struct op_arg one_args[] = { ARG_SESSION };
static const struct op_arg ls_args[] = {
    { .name = "parent",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = 255,
      .placeholder = "P",
      .help = "only those whose meta names this parent" },
    ARG_LIMIT,
    ARG_CURSOR,
};
static const struct op_arg page_args[] = { ARG_SESSION, ARG_LIMIT, ARG_CURSOR };

static const struct op_arg path_args[] = {
    ARG_SESSION,
    { .name = "leaf",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .max = 255,
      .placeholder = "N",
      .help = "where the path ends; without it, where the session's does" },
};

static const struct op_arg node_args[] = {
    ARG_SESSION,
    { .name = "node",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .max = 255,
      .placeholder = "N",
      .help = "its id" },
};

static const struct op_arg tombstone_args[] = {
    ARG_SESSION,
    { .name = "node",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .required = true,
      .repeated = true,
      .min = 1,
      .max = 255,
      .placeholder = "N",
      .help = "the nodes to hide" },
};

static const struct op_arg meta_args[] = {
    ARG_SESSION,
    { .name = "name",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .placeholder = "TEXT",
      .help = "what people call it; without it, its id" },
    { .name = "model",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .placeholder = "TEXT",
      .help = "the model it works with" },
    { .name = "cwd",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .placeholder = "DIR",
      .help = "the folder it works in" },
    ARG_PARENT,
    { .name = "caused_by",
      .kind = OP_OPTION,
      .type = OP_JSON,
      .help = "what it comes from; only with a parent" },
    { .name = "created_at",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .placeholder = "TIME",
      .help = "when it began, as any text; without it, now" },
    { .name = "if_absent",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "leave what is there" },
};

static const struct op_arg delete_args[] = {
    ARG_SESSION,
    { .name = "confirm",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .required = true,
      .min = 1,
      .placeholder = "S",
      .help = "the same id once more, since nothing brings it back" },
};

static const char *const commit_columns[] = {
    "revision", "replayed", "checkpoint_ref", "leaf_node_id", "node_count",
    "node_ids", NULL
};
static const char *const show_columns[] = {
    "session_id",     "revision",      "leaf_node_id",           "node_count",
    "checkpoint_ref", "agent_frames",  "current_agent_frame_id", "config",
    "meta",           "created_at_ms", "updated_at_ms",          NULL
};
static const char *const usage_columns[] = {
    "source",           "model", "input_tokens", "output_tokens", "cached_input_tokens",
    "reasoning_tokens", NULL
};
static const char *const ls_columns[] = { "session_id",     "revision",
                                          "leaf_node_id",   "node_count",
                                          "checkpoint_ref", "created_at_ms",
                                          "updated_at_ms",  NULL };
static const char *const log_columns[] = { "revision", "at_ms", "turn_id", "commit",
                                           NULL };
static const char *const node_columns[] = { "node_id", "parent_node_id", "kind",
                                            "timestamp", NULL };
static const char *const path_columns[] = { "leaf_node_id", "truncated", NULL };
static const char *const one_node_columns[] = {
    "node_id",   "parent_node_id", "kind",        "timestamp", "agent_frame_id",
    "caused_by", "event",          "plugin_type", "body",      NULL
};
static const char *const checkpoint_columns[] = { "checkpoint_ref",
                                                  "tool_state_ref",
                                                  "plugin_snapshot_ref",
                                                  "plugin_snapshot_revision",
                                                  "execution_state_ref",
                                                  "turn_state",
                                                  NULL };
static const char *const meta_columns[] = { "session_id", "name", "created_at",
                                            "model",      "cwd",  "parent",
                                            "caused_by",  NULL };
static const char *const tombstone_columns[] = { "session_id", "tombstoned", NULL };
static const char *const vacuum_columns[] = { "session_id", "removed", NULL };
static const char *const heal_columns[] = { "session_id", "changed", NULL };
static const char *const delete_columns[] = { "session_id", "deleted", NULL };

const struct operation ops_session[] = {
    { .name = "session.commit",
      .words = "session commit",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/commits",
      .summary = "Commit a session: its graph, its checkpoint and what it completes",
      .details =
          "All of it happens or nothing. The file is an object; each field may be left "
          "out: expected_revision, turn_id, config, agent_frames, "
          "current_agent_frame_id, graph {type: unchanged, append or replace; nodes; "
          "leaf_node_id}, checkpoint {turn_state, tool_state, plugin_snapshot, "
          "plugin_snapshot_revision, execution_state}, usage, completes, attachments, "
          "session_id. A part of a checkpoint has one of ref, body, body_base64 and "
          "json. A leaf_node_id of null clears the leaf. Without an expected revision "
          "nothing is compared. What options say "
          "goes before what the file says, and claims to complete are added to it. A "
          "revision that is not the expected one is exit status 4, with "
          "both in the detail of the error.",
      .args = commit_args,
      .n_args = COUNT_OF(commit_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = commit_columns,
      .essence = "revision",
      .handler = op_session_commit },
    { .name = "session.show",
      .words = "session show",
      .http_method = "GET",
      .http_path = "/v1/sessions/{session}",
      .summary = "Show the head of a session, its meta and the tokens it used",
      .args = one_args,
      .n_args = COUNT_OF(one_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = show_columns,
      .essence = "revision",
      .rows = "usage",
      .row_columns = usage_columns,
      .handler = op_session_show },
    { .name = "session.ls",
      .words = "session ls",
      .http_method = "GET",
      .http_path = "/v1/sessions",
      .summary = "List the sessions of the namespace",
      .args = ls_args,
      .n_args = COUNT_OF(ls_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = ls_columns,
      .essence = "session_id",
      .handler = op_session_ls },
    { .name = "session.log",
      .words = "session log",
      .http_method = "GET",
      .http_path = "/v1/sessions/{session}/commits",
      .summary = "List the commits of a session",
      .details = "A cursor is a revision: what follows it is listed.",
      .args = page_args,
      .n_args = COUNT_OF(page_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = log_columns,
      .essence = "revision",
      .handler = op_session_log },
    { .name = "session.nodes",
      .words = "session nodes",
      .http_method = "GET",
      .http_path = "/v1/sessions/{session}/nodes",
      .summary = "List the nodes of a session's graph, in the order of their commits",
      .args = page_args,
      .n_args = COUNT_OF(page_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_LIST,
      .columns = node_columns,
      .essence = "node_id",
      .handler = op_session_nodes },
    { .name = "session.path",
      .words = "session path",
      .http_method = "GET",
      .http_path = "/v1/sessions/{session}/path",
      .summary = "Show the nodes from the root to the leaf",
      .details = "Truncated is a path that ended at a node that is not there any more.",
      .args = path_args,
      .n_args = COUNT_OF(path_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = path_columns,
      .essence = "leaf_node_id",
      .rows = "nodes",
      .row_columns = node_columns,
      .handler = op_session_path },
    { .name = "session.node",
      .words = "session node",
      .http_method = "GET",
      .http_path = "/v1/sessions/{session}/nodes/{node}",
      .summary = "Show one node as it was committed",
      .args = node_args,
      .n_args = COUNT_OF(node_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = one_node_columns,
      .essence = "node_id",
      .handler = op_session_node },
    { .name = "session.checkpoint",
      .words = "session checkpoint",
      .http_method = "GET",
      .http_path = "/v1/sessions/{session}/checkpoint",
      .summary = "Show the checkpoint of a session and what its parts are called",
      .details = "blob get reads a part.",
      .args = one_args,
      .n_args = COUNT_OF(one_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = checkpoint_columns,
      .essence = "checkpoint_ref",
      .handler = op_session_checkpoint },
    { .name = "session.meta.show",
      .words = "session meta show",
      .http_method = "GET",
      .http_path = "/v1/sessions/{session}/meta",
      .summary = "Show what is known about a session beside its commits",
      .args = one_args,
      .n_args = COUNT_OF(one_args),
      .scope = OP_SCOPE_READ,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = meta_columns,
      .essence = "name",
      .handler = op_session_meta_show },
    { .name = "session.meta.set",
      .words = "session meta set",
      .http_method = "PUT",
      .http_path = "/v1/sessions/{session}/meta",
      .summary = "Replace what is known about a session beside its commits",
      .details =
          "What is not given is as if it had never been said. The answer is what "
          "is there now. No commit is needed before.",
      .args = meta_args,
      .n_args = COUNT_OF(meta_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = meta_columns,
      .essence = "name",
      .handler = op_session_meta_set },
    { .name = "session.tombstone",
      .words = "session tombstone",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/tombstone",
      .summary = "Hide nodes of a session from every read",
      .args = tombstone_args,
      .n_args = COUNT_OF(tombstone_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = tombstone_columns,
      .essence = "tombstoned",
      .handler = op_session_tombstone },
    { .name = "session.vacuum",
      .words = "session vacuum",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/vacuum",
      .summary = "Remove the hidden nodes of a session for good",
      .args = one_args,
      .n_args = COUNT_OF(one_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = vacuum_columns,
      .essence = "removed",
      .handler = op_session_vacuum },
    { .name = "session.heal",
      .words = "session heal",
      .http_method = "POST",
      .http_path = "/v1/sessions/{session}/heal",
      .summary = "Move a leaf that is not there any more to the last message",
      .args = one_args,
      .n_args = COUNT_OF(one_args),
      .scope = OP_SCOPE_WORK,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = heal_columns,
      .essence = "changed",
      .handler = op_session_heal },
    { .name = "session.delete",
      .words = "session delete",
      .http_method = "DELETE",
      .http_path = "/v1/sessions/{session}",
      .summary = "Delete a session with its inbox",
      .details =
          "Its id stays taken. A deletion that was interrupted goes on when it is "
          "asked for again.",
      .args = delete_args,
      .n_args = COUNT_OF(delete_args),
      .scope = OP_SCOPE_OPERATE,
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = delete_columns,
      .essence = "deleted",
      .handler = op_session_delete },
};
