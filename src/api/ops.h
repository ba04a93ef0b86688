/* ops.h - every operation, declared once.
 *
 * Routes, the command line's parser, its help, the man page and the shell completions
 * are all derived from this table; a new operation is one row.
 *
 * Invariants (tests/unit/test_api_ops.c)
 *   O1  names and words are unique, and no operation's words begin another's
 *   O2  every operation has a summary, a handler and, over HTTP, a method and a path
 *   O3  positionals are declared in their order; only the last may be repeated, and
 *       what follows an optional one is optional
 *   O4  an option has the same shape, with or without a value, wherever it occurs
 *   O5  every {parameter} of a path is an argument by name; {sha256} of a PUT is what
 *       its body must have, the argument `expect`
 *   O6  at most one argument is a stream; a target goes with OP_BYTES and nothing else
 *   O7  what can be followed is a list with a flag `follow`, or is live; what can be
 *       watched is an object with a flag `watch` and an option `every`
 *   O8  a verb of a holder has an argument `handle`
 */
#ifndef API_OPS_H
#define API_OPS_H

#include <jansson.h>

#include <belay/belay.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/err.h"

enum op_kind {
    OP_POSITIONAL,
    OP_OPTION, /* --name VALUE */
    OP_FLAG,   /* --name; its type is OP_BOOL */
};

enum op_type {
    OP_TEXT,
    OP_I64,
    OP_DURATION, /* 30s; milliseconds in the value */
    OP_JSON,     /* the command line also takes @FILE and - for standard input */
    OP_BOOL,
    OP_FILE,   /* the command line takes a path or -; the value is the content */
    OP_CLAIM,  /* a claim on an inbox: its handle, or JSON that has it; the command line
                  also takes @FILE and -.  Read with op_read_claim */
    OP_STREAM, /* bytes of any number, which come from call->source; the command line
                  takes a path or -, and the value is only that name */
    OP_TARGET, /* where the command line puts an answer of bytes: a path or - */
    OP_DATA,   /* bytes; the command line takes them as a word, @FILE or - */
};

/* Whether the command line reads a value, or may, from a file that is named. */
bool op_takes_path(enum op_type type);

/* Longest values where `max` is 0. */
#define OP_TEXT_MAX ((size_t)65536)
#define OP_JSON_MAX ((size_t)1 << 20)

struct op_arg {
    const char *name; /* [a-z][a-z0-9_]*: the field; the option has - for _ */
    char letter;      /* of the short option; 0: there is none */
    enum op_kind kind;
    enum op_type type;
    bool required;
    bool repeated;
    int64_t min, max; /* OP_I64, OP_DURATION: bounds of the number; others: bytes */
    const char *const *choices; /* OP_TEXT: all that is allowed; NULL: anything */
    const char *placeholder;    /* in usage lines; NULL: after the type */
    const char *env;            /* read where the argument is absent; may be NULL */
    const char *fallback;       /* taken where that is absent too; may be NULL */
    const char *help;
};

/* One argument as given.  A repeated one has a value for each time. */
struct op_value {
    const struct op_arg *arg;
    struct bytes text; /* as given; a NUL stands behind it */
    int64_t number;    /* OP_I64, OP_DURATION, OP_BOOL */
    json_t *json;      /* OP_JSON: owned */
};

enum op_scope {
    OP_SCOPE_NONE,
    OP_SCOPE_READ,
    OP_SCOPE_SUBMIT,
    OP_SCOPE_WORK,
    OP_SCOPE_OPERATE,
    OP_SCOPE_ADMIN,
};

/* The shape of a result. */
enum op_shape {
    OP_OBJECT,
    OP_LIST,  /* {"items":[{...}...],"next_cursor":...} */
    OP_PROSE, /* {"text":"..."}: for people, printed as it is */
    OP_BYTES, /* bytes, given to call->sink as they come, and an object about them; the
                 command line prints that when the bytes went into a file */
};

/* --- bytes that are too many for a value or an answer ---
 *
 * Whoever calls a handler supplies the two ends: the command line files and pipes, a
 * server the bodies of its requests.  Both fail with an error that the handler hands
 * on. */

/* The next piece, borrowed until the next call; empty at the end. */
struct op_source {
    belay_rc (*read)(void *arg, struct bytes *out, struct belay_error *err);
    void *arg;
};

/* Takes one piece.  What was taken counts only when the handler succeeds: an end that
 * can hold it back until then does, and one that cannot says afterwards that it was
 * wrong. */
struct op_sink {
    belay_rc (*write)(void *arg, struct bytes piece, struct belay_error *err);
    void *arg;
};

/* Takes one item of a list at the moment when it is there, instead of all at the end.  It
 * is the handler's again afterwards. */
struct op_follow {
    belay_rc (*emit)(void *arg, const json_t *item, struct belay_error *err);
    void *arg;
};

/* --- a command that runs for as long as a handler has something for it --- */

struct op_command {
    char *const *argv;        /* ends with NULL */
    const char *name, *value; /* what is set in its environment */
    int64_t grace_ms;         /* from TERM to KILL */
    /* Called in turns, *out_us apart at most; when it fails the command is ended. */
    belay_rc (*keep)(void *arg, int64_t *out_us, struct belay_error *err);
    void *arg;
};

/* Runs it with the caller's standard descriptors, hands signals on to it, and waits for its end:
 * *out_status is its exit status, or 128 and the signal.  Fails as `keep` does, when the
 * command has ended; `unavailable`, reason `spawn`, or `command_missing` or `command_refused`
 * when it could not be run. */
struct op_runner {
    belay_rc (*run)(void *arg, const struct op_command *command, int *out_status,
                    struct belay_error *err);
    void *arg;
};

struct op_table;
struct operation;
struct op_call;

/* The caller json_decref()s *out, which is untouched on failure. */
typedef belay_rc op_handler(const struct op_call *call, json_t **out,
                            struct belay_error *err);

struct op_call {
    const struct op_table *table; /* the one the operation is in */
    const struct operation *op;
    const struct op_value *values;
    size_t n_values;
    struct belay *belay; /* NULL unless op->needs_store, or where it opens by itself */
    const char *store;   /* the URL, and ... */
    const char *ns;      /* ... the namespace, where op->needs_store */
    const char *fleet_dir; /* where shared memory lies; NULL: where it is by default */
    const char *principal; /* who asks, for the audit log; NULL: not known */
    const struct op_source *source; /* where an argument is OP_STREAM */
    const struct op_sink *sink;     /* where the shape is OP_BYTES */
    const struct op_follow *follow; /* gets the items of a list one by one, and all
                                       there are of them; NULL: one page is the answer */
    struct belay_cancel *cancel;    /* ends whatever waits; may be NULL */
    op_handler *work;               /* runs jobs as processes; NULL where nobody can */
    const struct op_runner *runner; /* runs a command; NULL where nobody can */
    int64_t frame_seq; /* of `frame`: the number by which a worker tells repeats; the
                          caller's own is for readers then.  0: the caller's tells them */
    bool is_quiet;     /* remarks are not wanted */
    bool fills_pages;  /* a page that ends before its limit ends the list: who reads it
                          does not see that it could go on */
};

/* What an operation that needs a store works on.  An argument called `url` names the
 * store instead of --store. */
enum op_reach {
    OP_REACH_NAMESPACE, /* the namespace: it must be one that can be opened */
    OP_REACH_STORE,     /* all of them: the handle stands in the system's own */
    OP_REACH_URL,       /* the handler opens the store itself */
};

/* The exit status that goes with an answer that was given. */
typedef int op_exit(const json_t *answer);

/* A list in an answer that people see as a table. */
struct op_rows {
    const char *field;
    const char *const *columns;
};

struct operation {
    const char *name;        /* "flow.submit" */
    const char *words;       /* "flow submit" */
    const char *http_method; /* NULL: not over HTTP */
    const char *http_path;   /* "/v1/flows/{id}" */
    const char *summary;     /* one line, no full stop */
    const char *details;     /* sentences; may be NULL */
    const struct op_arg *args;
    size_t n_args;
    enum op_scope scope;
    bool needs_store;
    enum op_reach reach;
    enum op_shape shape;
    const char *const *columns; /* of a table, in order; ends with NULL */
    const char *essence;        /* the one field printed with -q; NULL: none */
    const char *rows; /* a field of an object ("a", or "a.b" in one of it) that holds a
                         list of objects: people see it as a table below the others;
                         NULL: none */
    const char *const *row_columns; /* of that table */
    const struct op_rows *tables;   /* further ones, each under its field's name; ends
                                       with a field that is NULL; NULL: none */
    const char
        *body; /* a field that people see alone where it is there, of an answer or
                         of each item: JSON on a line, `<body>_base64` as the bytes it
                         stands for; NULL: none */
    bool body_is_text; /* the field is a text, seen as it is; that of an item of `kind`
                          stderr goes to standard error */
    bool
        terse; /* people see only the essence, as with -q; nothing where there is none */
    bool lasts;     /* goes on until call->cancel */
    bool watches;   /* waits for work or time: opened with BELAY_HOST_WATCH */
    bool is_live;   /* a list whose items are handed over when they come, always */
    bool by_handle; /* a verb of a holder: goes to the socket of a job where there is
                         one (cli/job_client.h) */
    op_handler *handler;
    op_exit *exit_of; /* NULL: every answer is a success */
};

/* Rows of one subject, as help and manual show them together. */
struct op_group {
    const char *title;
    const struct operation *ops;
    size_t n_ops;
};

struct op_table {
    const struct op_group *groups;
    size_t n_groups;
    const struct op_arg *globals; /* options that go with every command */
    size_t n_globals;
};

extern const struct op_table op_table_belay;

size_t op_count(const struct op_table *t);
const struct operation *op_at(const struct op_table *t, size_t i);

/* The operation with exactly these words, or NULL. */
const struct operation *op_find(const struct op_table *t, struct bytes words);

/* Whether `words` are a proper beginning of some operation's words ("flow"). */
bool op_is_prefix(const struct op_table *t, struct bytes words);

/* The i-th distinct word that can follow `words` (which may be empty); empty when there
 * are no more. */
struct bytes op_next_word(const struct op_table *t, struct bytes words, size_t i);

/* Whether `words` begin with all of `prefix`, word by word. */
bool op_words_begin(const char *words, struct bytes prefix);

/* The i-th argument of the whole table, the globals first; NULL when there are no more.
 */
const struct op_arg *op_arg_at(const struct op_table *t, size_t i);

/* The first value of the argument called `name`, or NULL when it is absent. */
const struct op_value *op_get(const struct op_call *call, const char *name);

/* Reads `text` as a value of `arg`; out->text is the given view.  `invalid`, reason
 * `argument`, entity the argument's name; the message has no context of its own. */
MUST_USE belay_rc op_value_parse(const struct op_arg *arg, struct bytes text,
                                 struct op_value *out, struct belay_error *err);

/* Most bytes a value of this argument may have. */
size_t op_value_max(const struct op_arg *arg);

#endif /* API_OPS_H */
