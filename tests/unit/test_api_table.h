/* test_api_table.h - a small table of operations with everything a row can have. */
#ifndef TESTS_API_TABLE_H
#define TESTS_API_TABLE_H

#include "api/op_handlers.h"

static inline belay_rc made(json_t *answer, json_t **out, struct belay_error *err)
{
    if (!answer)
        return err_no_memory(err, "the answer");
    *out = answer;
    return BELAY_OK;
}

/* {"given":["name=text"...]}: what the operation was called with. */
static inline belay_rc echo(const struct op_call *call, json_t **out,
                            struct belay_error *err)
{
    json_t *given = json_array();
    int failed = 0;

    for (size_t i = 0; i < call->n_values; i++) {
        const struct op_value *v = &call->values[i];
        failed |= json_array_append_new(
            given, json_sprintf("%s=%.*s/%lld", v->arg->name, (int)v->text.len,
                                (const char *)v->text.ptr, (long long)v->number));
    }
    if (failed) {
        json_decref(given);
        return err_no_memory(err, "the answer");
    }
    return made(json_pack("{s:o}", "given", given), out, err);
}

static inline belay_rc where(const struct op_call *call, json_t **out,
                             struct belay_error *err)
{
    const char *durability = belay_durability_name((int)belay_durability(call->belay));

    return made(json_pack("{s:s, s:s}", "namespace", belay_namespace(call->belay),
                          "durability", durability),
                out, err);
}

static inline belay_rc lose(const struct op_call *call, json_t **out,
                            struct belay_error *err)
{
    (void)call;
    (void)out;
    (void)err_reason(err, BELAY_LEASE_LOST, "superseded", "exe_1: taken over");
    err_numbers(err, 3, 4);
    err_entity(err, bytes_str("exe_1"));
    return BELAY_LEASE_LOST;
}

static inline belay_rc page(const struct op_call *call, json_t **out,
                            struct belay_error *err)
{
    (void)call;
    return made(json_pack("{s:[{s:s,s:i},{s:s,s:n}],s:s}", "items", "id", "a", "n", 1,
                          "id", "bb", "n", "next_cursor", "c\n1"),
                out, err);
}

/* Counts what comes from the source. */
static inline belay_rc take_bytes(const struct op_call *call, json_t **out,
                                  struct belay_error *err)
{
    struct bytes piece = { 0 };
    size_t n = 0;

    do {
        belay_rc rc = call->source->read(call->source->arg, &piece, err);
        if (rc != BELAY_OK)
            return rc;
        n += piece.len;
    } while (piece.len > 0);
    return made(json_pack("{s:I}", "size", (json_int_t)n), out, err);
}

/* --size bytes into the sink, 'a' to 'z', a kibibyte at a time; then fails, if asked. */
static inline belay_rc give_bytes(const struct op_call *call, json_t **out,
                                  struct belay_error *err)
{
    int64_t size = op_get(call, "size")->number;
    char piece[1024];

    for (int64_t at = 0; at < size;) {
        size_t n = size - at < 1024 ? (size_t)(size - at) : sizeof(piece);
        for (size_t i = 0; i < n; i++)
            piece[i] = (char)('a' + (at + (int64_t)i) % 26);
        belay_rc rc = call->sink->write(call->sink->arg, bytes_of(piece, n), err);
        if (rc != BELAY_OK)
            return rc;
        at += (int64_t)n;
    }
    if (op_get(call, "fail"))
        return err_reason(err, BELAY_CORRUPT, "hash_mismatch", "it is wrong");
    return made(json_pack("{s:I}", "size", (json_int_t)size), out, err);
}

/* --size items, one by one where they are followed; then fails, if asked. */
static inline belay_rc tail(const struct op_call *call, json_t **out,
                            struct belay_error *err)
{
    int64_t size = op_get(call, "size")->number;
    json_t *items = json_array();
    belay_rc rc = BELAY_OK;

    for (int64_t i = 0; rc == BELAY_OK && i < size; i++) {
        json_t *item = json_pack("{s:I,s:s,s:s}", "n", (json_int_t)i, "id", "x", "kind",
                                 i % 2 ? "stderr" : "stdout");
        if (item && op_get(call, "text"))
            (void)json_object_set_new(item, "data", json_string(i % 2 ? "e" : "o"));
        if (item && call->follow)
            rc = call->follow->emit(call->follow->arg, item, err);
        else if (json_array_append(items, item))
            rc = err_no_memory(err, "an item");
        json_decref(item);
    }
    if (rc == BELAY_OK && op_get(call, "fail"))
        rc = err_reason(err, BELAY_CORRUPT, "broken", "it is wrong");
    if (rc == BELAY_OK)
        rc = made(json_pack("{s:O,s:n}", "items", items, "next_cursor"), out, err);
    json_decref(items);
    return rc;
}

static const char *const test_modes[] = { "fast", "slow", NULL };
static const char *const test_outputs[] = { "table", "json", "jsonl", NULL };
static const char *const given_columns[] = { "given", NULL };
static const char *const where_columns[] = { "namespace", "durability", NULL };
static const char *const page_columns[] = { "id", "n", NULL };

static const struct op_arg test_globals[] = {
    { .name = "store",
      .kind = OP_OPTION,
      .min = 1,
      .env = "TEST_STORE",
      .fallback = "memory:",
      .help = "store" },
    { .name = "namespace",
      .kind = OP_OPTION,
      .min = 1,
      .env = "TEST_NAMESPACE",
      .fallback = "default",
      .help = "namespace" },
    { .name = "output",
      .kind = OP_OPTION,
      .choices = test_outputs,
      .fallback = "table",
      .help = "output" },
    { .name = "json", .kind = OP_FLAG, .type = OP_BOOL, .help = "json" },
    { .name = "quiet",
      .letter = 'q',
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "quiet" },
    { .name = "help", .letter = 'h', .kind = OP_FLAG, .type = OP_BOOL, .help = "help" },
    { .name = "version", .kind = OP_FLAG, .type = OP_BOOL, .help = "version" },
};

static const struct op_arg submit_args[] = {
    { .name = "lane",
      .kind = OP_OPTION,
      .required = true,
      .repeated = true,
      .min = 1,
      .max = 8,
      .placeholder = "L",
      .help = "where it's queued" },
    { .name = "payload",
      .kind = OP_OPTION,
      .type = OP_JSON,
      .max = 64,
      .help = "what" },
    { .name = "token_file",
      .kind = OP_OPTION,
      .type = OP_FILE,
      .max = 16,
      .help = "secret" },
    { .name = "max_items",
      .letter = 'n',
      .kind = OP_OPTION,
      .type = OP_I64,
      .min = -2,
      .max = 10,
      .fallback = "3",
      .help = "how many" },
    { .name = "wait",
      .kind = OP_OPTION,
      .type = OP_DURATION,
      .min = 1000,
      .max = 3600000,
      .help = "how long" },
    { .name = "mode", .kind = OP_OPTION, .choices = test_modes, .help = "how" },
    { .name = "handle", .kind = OP_OPTION, .env = "TEST_HANDLE", .help = "claim" },
    { .name = "strict", .kind = OP_OPTION, .type = OP_BOOL, .help = "or not" },
    { .name = "follow",
      .letter = 'f',
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "go on" },
    { .name = "id",
      .kind = OP_POSITIONAL,
      .required = true,
      .placeholder = "ID",
      .help = "which" },
    { .name = "rest",
      .kind = OP_POSITIONAL,
      .repeated = true,
      .placeholder = "ARGV",
      .help = "command" },
};

static const struct op_arg test_help_args[] = {
    { .name = "words", .kind = OP_POSITIONAL, .repeated = true, .help = "command" },
};

static const struct operation test_flow_ops[] = {
    { .name = "flow.submit",
      .words = "flow submit",
      .http_method = "POST",
      .http_path = "/v1/flows",
      .summary = "Don't lose: \"work\" \\ .keep $(it) `here`",
      .details = ".Everything it takes, 'quoted' or not, ends in the store and stays "
                 "there until somebody asks for it or the retention of the lane ends.",
      .args = submit_args,
      .n_args = COUNT_OF(submit_args),
      .scope = OP_SCOPE_SUBMIT,
      .shape = OP_OBJECT,
      .columns = given_columns,
      .handler = echo },
    { .name = "flow.ls",
      .words = "flow ls",
      .summary = "List",
      .shape = OP_LIST,
      .columns = page_columns,
      .essence = "id",
      .handler = page },
};

static const struct operation test_other_ops[] = {
    { .name = "where",
      .words = "where",
      .summary = "Tell where",
      .needs_store = true,
      .shape = OP_OBJECT,
      .columns = where_columns,
      .essence = "namespace",
      .handler = where },
    { .name = "lose",
      .words = "lose",
      .summary = "Fail",
      .shape = OP_OBJECT,
      .columns = given_columns,
      .handler = lose },
    { .name = "help",
      .words = "help",
      .summary = "Help",
      .args = test_help_args,
      .n_args = COUNT_OF(test_help_args),
      .shape = OP_PROSE,
      .handler = op_help },
    { .name = "version",
      .words = "version",
      .summary = "Version",
      .shape = OP_OBJECT,
      .columns = given_columns,
      .handler = echo },
};

static const char *const size_columns[] = { "size", NULL };

static const struct op_arg take_args[] = {
    { .name = "claim", .kind = OP_OPTION, .type = OP_CLAIM, .help = "which" },
    { .name = "content",
      .kind = OP_POSITIONAL,
      .type = OP_STREAM,
      .required = true,
      .min = 1,
      .help = "what" },
};

static const struct op_arg give_args[] = {
    { .name = "size",
      .kind = OP_OPTION,
      .type = OP_I64,
      .max = 1 << 24,
      .fallback = "0",
      .help = "how many" },
    { .name = "fail", .kind = OP_FLAG, .type = OP_BOOL, .help = "or not" },
    { .name = "to", .kind = OP_OPTION, .type = OP_TARGET, .min = 1, .help = "where" },
};

static const struct operation test_bytes_ops[] = {
    { .name = "bytes.take",
      .words = "bytes take",
      .summary = "Take bytes",
      .args = take_args,
      .n_args = COUNT_OF(take_args),
      .shape = OP_OBJECT,
      .columns = size_columns,
      .essence = "size",
      .handler = take_bytes },
    { .name = "bytes.give",
      .words = "bytes give",
      .summary = "Give bytes",
      .args = give_args,
      .n_args = COUNT_OF(give_args),
      .shape = OP_BYTES,
      .columns = size_columns,
      .essence = "size",
      .handler = give_bytes },
};

static const struct op_arg tail_args[] = {
    { .name = "size",
      .kind = OP_OPTION,
      .type = OP_I64,
      .max = 1 << 24,
      .fallback = "2",
      .help = "how many" },
    { .name = "fail", .kind = OP_FLAG, .type = OP_BOOL, .help = "or not" },
    { .name = "text", .kind = OP_FLAG, .type = OP_BOOL, .help = "with a text" },
    { .name = "follow",
      .letter = 'f',
      .kind = OP_FLAG,
      .type = OP_BOOL,
      .help = "go on" },
};

static const struct operation test_tail_ops[] = {
    { .name = "tail",
      .words = "tail",
      .summary = "Tell what comes",
      .args = tail_args,
      .n_args = COUNT_OF(tail_args),
      .shape = OP_LIST,
      .columns = page_columns,
      .essence = "n",
      .handler = tail },
    { .name = "read",
      .words = "read",
      .summary = "Tell what was written",
      .args = tail_args,
      .n_args = COUNT_OF(tail_args),
      .shape = OP_LIST,
      .columns = page_columns,
      .essence = "n",
      .body = "data",
      .body_is_text = true,
      .handler = tail },
};

static const struct op_group test_groups[] = {
    { .title = "Flows", .ops = test_flow_ops, .n_ops = COUNT_OF(test_flow_ops) },
    { .title = "Others", .ops = test_other_ops, .n_ops = COUNT_OF(test_other_ops) },
    { .title = "Bytes", .ops = test_bytes_ops, .n_ops = COUNT_OF(test_bytes_ops) },
    { .title = "Tails", .ops = test_tail_ops, .n_ops = COUNT_OF(test_tail_ops) },
};

static const struct op_table test_table = {
    .groups = test_groups,
    .n_groups = COUNT_OF(test_groups),
    .globals = test_globals,
    .n_globals = COUNT_OF(test_globals),
};

#endif /* TESTS_API_TABLE_H */
