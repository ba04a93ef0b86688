/* The rows.  Nothing else knows which operations there are. */
#include "api/op_handlers.h"

static const char *const outputs[] = { "table", "json", "jsonl", NULL };

static const struct op_arg globals[] = {
    { .name = "store",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .placeholder = "URL",
      .env = "BELAY_STORE",
      .fallback = "sqlite:belay.db",
      .help = "the store to work on" },
    { .name = "namespace",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .min = 1,
      .placeholder = "NS",
      .env = "BELAY_NAMESPACE",
      .fallback = "default",
      .help = "the namespace in it" },
    { .name = "output",
      .kind = OP_OPTION,
      .type = OP_TEXT,
      .choices = outputs,
      .fallback = "table",
      .help = "how to print the answer: for people, as JSON, or as one JSON value a "
              "line" },
    { .name = "json",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "short for --output json" },
    { .name = "quiet",
      .letter = 'q',
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "print only what a script needs: ids, and no remarks" },
    { .name = "help",
      .letter = 'h',
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "show what the command does and takes" },
    { .name = "version",
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "same as the command version" },
};

static const struct op_arg help_args[] = {
    { .name = "words",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .repeated = true,
      .placeholder = "COMMAND",
      .help = "the command, or its first word for all that begin with it" },
};

static const struct op_arg completion_args[] = {
    { .name = "shell",
      .kind = OP_POSITIONAL,
      .type = OP_TEXT,
      .required = true,
      .choices = op_completion_shells,
      .placeholder = "SHELL",
      .help = "the shell that will read it" },
};

static const char *const version_columns[] = { "version", "store_format", "drivers",
                                               NULL };
static const char *const errors_columns[] = { "number",    "code",      "http_status",
                                              "exit_code", "retryable", "text",
                                              NULL };

static const struct operation about[] = {
    { .name = "version",
      .words = "version",
      .http_method = "GET",
      .http_path = "/v1/version",
      .summary = "Show the version, the store format and the stores of this build",
      .scope = OP_SCOPE_READ,
      .shape = OP_OBJECT,
      .columns = version_columns,
      .essence = "version",
      .handler = op_version },
    { .name = "errors",
      .words = "errors",
      .http_method = "GET",
      .http_path = "/v1/errors",
      .summary = "List every error: its code, HTTP status and exit status",
      .details = "An error has the same code in C, over HTTP and on the command line. "
                 "Retryable means that the same call, unchanged, may succeed later.",
      .scope = OP_SCOPE_READ,
      .shape = OP_LIST,
      .columns = errors_columns,
      .essence = "code",
      .handler = op_errors },
    { .name = "help",
      .words = "help",
      .summary = "Show all commands, or one in full",
      .args = help_args,
      .n_args = COUNT_OF(help_args),
      .shape = OP_PROSE,
      .handler = op_help },
    { .name = "completion",
      .words = "completion",
      .summary = "Print a script that completes commands in a shell",
      .details =
          "For bash: eval \"$(belay completion bash)\". For zsh: the same, or a "
          "file _belay in a directory of $fpath. For fish: belay completion fish "
          "| source.",
      .args = completion_args,
      .n_args = COUNT_OF(completion_args),
      .shape = OP_PROSE,
      .handler = op_completion },
    { .name = "man",
      .words = "man",
      .summary = "Print the manual page belay(1) in roff",
      .shape = OP_PROSE,
      .handler = op_man },
};

static const struct op_group groups[] = {
    { .title = "About Belay", .ops = about, .n_ops = COUNT_OF(about) },
};

const struct op_table op_table_belay = {
    .groups = groups,
    .n_groups = COUNT_OF(groups),
    .globals = globals,
    .n_globals = COUNT_OF(globals),
};
