#include <inttypes.h>
#include <stdio.h>

#include "work/session_impl.h"

/* Sums of one session: distinct (source, model). */
#define LEDGER_MAX 1024
#define LEDGER_TEXT_MAX ((size_t)4 << 20)

const char *const token_names[TOKENS] = {
    [TOKENS_CACHED] = "cached_input_tokens",
    [TOKENS_INPUT] = "input_tokens",
    [TOKENS_OUTPUT] = "output_tokens",
    [TOKENS_REASONING] = "reasoning_tokens",
};

/* --- before the body --- */

/* Given, or by its place in the turn, or new each time. */
static belay_rc name_delta(struct commit *c, size_t i, struct bytes *out,
                           struct belay_error *err)
{
    char minted[ID_MAX], derived[SESSION_NAME_MAX + 32];
    const char *id = c->in->usage[i].id;
    belay_rc rc = BELAY_OK;

    if (id) {
        rc = session_check_name(id, "usage_id", err);
    } else if (c->in->turn_id) {
        (void)snprintf(derived, sizeof(derived), "turn:%s:%zu", c->in->turn_id, i);
        id = derived;
    } else {
        rc = space_mint(c->s->sp, "use_", minted, err);
        id = minted;
    }
    if (rc)
        return rc;
    return arena_copy(c->a, bytes_str(id), out) ? BELAY_OK
                                                : err_no_memory(err, "usage");
}

static belay_rc hash_delta(struct commit *c, struct commit_usage *u,
                           struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    uint8_t digest[SHA256_LEN];

    buf_append_char(&text, '[');
    json_append_string(&text, u->source);
    buf_append_char(&text, ',');
    json_append_string(&text, u->model);
    for (size_t i = 0; i < TOKENS; i++)
        buf_printf(&text, ",%" PRId64, u->tokens[i]);
    buf_append_char(&text, ']');
    belay_rc rc = session_keep(&text, c->a, &u->content, err);
    if (rc == BELAY_OK)
        rc = sha256(u->content, digest, err);
    if (rc == BELAY_OK)
        hex_encode(bytes_of(digest, sizeof(digest)), u->hash);
    return rc;
}

static belay_rc take_delta(struct commit *c, size_t i, struct belay_error *err)
{
    const struct belay_usage *in = &c->in->usage[i];
    struct commit_usage *u = &c->usage[i];

    if (!in->source || !in->model)
        return err_reason(err, BELAY_INVALID, "usage",
                          "usage[%zu]: needs a source and a model", i);
    belay_rc rc = session_check_text(in->source, SESSION_NAME_MAX, "usage", err);
    if (rc == BELAY_OK)
        rc = session_check_text(in->model, SESSION_NAME_MAX, "usage", err);
    if (rc)
        return rc;
    u->source = bytes_str(in->source);
    u->model = bytes_str(in->model);
    u->tokens[TOKENS_CACHED] = in->cached_input_tokens;
    u->tokens[TOKENS_INPUT] = in->input_tokens;
    u->tokens[TOKENS_OUTPUT] = in->output_tokens;
    u->tokens[TOKENS_REASONING] = in->reasoning_tokens;
    rc = name_delta(c, i, &u->id, err);
    return rc ? rc : hash_delta(c, u, err);
}

belay_rc usage_prepare(struct commit *c, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf ids = { 0 };
    size_t n = c->in->n_usage;

    c->usage = arena_zalloc(c->a, n, sizeof(*c->usage));
    if (!c->usage)
        return err_no_memory(err, "usage");
    for (size_t i = 0; i < n; i++) {
        belay_rc rc = take_delta(c, i, err);
        if (rc)
            return rc;
    }
    append_texts(&ids, n > 0 ? &c->usage[0].id : NULL, n, sizeof(*c->usage));
    return session_keep(&ids, c->a, &c->usage_ids, err);
}

/* --- the ledger --- */

struct sums {
    struct bytes source, model;
    int64_t tokens[TOKENS];
};

struct ledger {
    struct sums *sums;
    size_t n;
};

/* `corrupt` is said without words. */
static belay_rc take_sums(const json_t *entry, struct belay_arena *a, struct sums *out,
                          struct belay_error *err)
{
    const char *source = json_string_value(json_object_get(entry, "source"));
    const char *model = json_string_value(json_object_get(entry, "model"));

    if (!source || !model)
        return BELAY_CORRUPT;
    for (size_t i = 0; i < TOKENS; i++) {
        const json_t *tokens = json_object_get(entry, token_names[i]);
        if (!json_is_integer(tokens))
            return BELAY_CORRUPT;
        out->tokens[i] = json_integer_value(tokens);
    }
    if (!arena_copy(a, bytes_str(source), &out->source) ||
        !arena_copy(a, bytes_str(model), &out->model))
        return err_no_memory(err, "usage");
    return BELAY_OK;
}

static belay_rc take_ledger(const json_t *list, size_t more, struct belay_arena *a,
                            struct ledger *out, struct belay_error *err)
{
    size_t n = json_array_size(list);
    belay_rc rc = n <= LEDGER_MAX ? BELAY_OK : BELAY_CORRUPT;

    out->sums = arena_zalloc(a, n + more, sizeof(*out->sums));
    if (!out->sums)
        return err_no_memory(err, "usage");
    while (rc == BELAY_OK && out->n < n) {
        rc = take_sums(json_array_get(list, out->n), a, &out->sums[out->n], err);
        out->n++;
    }
    return rc;
}

/* `row` may be NULL.  There is room for `more`. */
static belay_rc ledger_read(const struct row *row, size_t more, struct belay_arena *a,
                            struct ledger *out, struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *list = NULL;
    belay_rc rc = BELAY_OK;

    *out = (struct ledger){ .n = 0 };
    if (row)
        rc = json_read(row_bytes(row, USAGE_LEDGER), LEDGER_TEXT_MAX, &list, err);
    if (rc == BELAY_OK && row && !json_is_array(list))
        rc = BELAY_CORRUPT;
    if (rc == BELAY_OK)
        rc = take_ledger(list, more, a, out, err);
    if (rc == BELAY_OK || rc == BELAY_NO_MEMORY)
        return rc;
    return err_reason(err, BELAY_CORRUPT, "bad_value",
                      "usage: the ledger cannot be read");
}

static void ledger_write(const struct ledger *l, struct buf *out)
{
    buf_append_char(out, '[');
    for (size_t i = 0; i < l->n; i++) {
        const struct sums *s = &l->sums[i];
        buf_printf(out,
                   "%s{\"cached_input_tokens\":%" PRId64 ",\"input_tokens\":%" PRId64,
                   i > 0 ? "," : "", s->tokens[TOKENS_CACHED], s->tokens[TOKENS_INPUT]);
        buf_append_str(out, ",\"model\":");
        json_append_string(out, s->model);
        buf_printf(out, ",\"output_tokens\":%" PRId64 ",\"reasoning_tokens\":%" PRId64,
                   s->tokens[TOKENS_OUTPUT], s->tokens[TOKENS_REASONING]);
        buf_append_str(out, ",\"source\":");
        json_append_string(out, s->source);
        buf_append_char(out, '}');
    }
    buf_append_char(out, ']');
}

/* The sums of (source, model), new ones at the end. */
static struct sums *ledger_find(struct ledger *l, const struct commit_usage *u)
{
    for (size_t i = 0; i < l->n; i++) {
        if (bytes_eq(l->sums[i].source, u->source) &&
            bytes_eq(l->sums[i].model, u->model))
            return &l->sums[i];
    }
    if (l->n == LEDGER_MAX)
        return NULL;
    l->sums[l->n] = (struct sums){ .source = u->source, .model = u->model };
    return &l->sums[l->n++];
}

/* --- in the body --- */

/* Whether the delta counts: it does once. */
static belay_rc see_delta(struct txn *t, struct bytes session,
                          const struct commit_usage *u, bool *out_new)
{
    struct value v[USAGE_SEEN_COLUMNS] = { [USAGE_SEEN_SESSION] = value_text(session),
                                           [USAGE_SEEN_ID] = value_text(u->id),
                                           [USAGE_SEEN_HASH] = value_str(u->hash) };
    const struct row *seen;
    belay_rc rc = txn_get(t, &row_usage_seen, v, &seen);

    *out_new = rc == BELAY_OK && !seen;
    if (rc)
        return rc;
    if (!seen)
        return txn_insert(t, &row_usage_seen, v);
    if (bytes_eq(row_bytes(seen, USAGE_SEEN_HASH), bytes_str(u->hash)))
        return BELAY_OK;
    rc = txn_fail(t, BELAY_KEY_CONFLICT, "usage",
                  "usage %.*s: was counted before with other content", (int)u->id.len,
                  (const char *)u->id.ptr);
    err_entity(txn_error(t), u->id);
    return rc;
}

static belay_rc add_delta(struct txn *t, struct ledger *l, const struct commit_usage *u)
{
    struct sums *sums = ledger_find(l, u);

    if (!sums)
        return txn_fail(t, BELAY_INVALID, "usage",
                        "usage: more than %d pairs of source and model", LEDGER_MAX);
    for (size_t i = 0; i < TOKENS; i++) {
        if (__builtin_add_overflow(sums->tokens[i], u->tokens[i], &sums->tokens[i]))
            return txn_fail(t, BELAY_OUT_OF_RANGE, token_names[i],
                            "usage: the sum of %s leaves the range of 64 bits",
                            token_names[i]);
    }
    return BELAY_OK;
}

static belay_rc ledger_put(struct txn *t, struct bytes session, const struct row *old,
                           const struct ledger *l)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct value key = value_text(session);

    ledger_write(l, &text);
    if (text.failed)
        return err_no_memory(txn_error(t), "usage");
    struct change change = { USAGE_LEDGER, value_json(buf_view(&text)) };
    const struct value v[USAGE_COLUMNS] = {
        [USAGE_SESSION] = key, [USAGE_LEDGER] = change.value
    };
    return old ? txn_put(t, &row_session_usage, &key, &change, 1)
               : txn_insert(t, &row_session_usage, v);
}

belay_rc usage_apply(struct txn *t, const struct commit *c)
{
    struct value key = value_text(c->session);
    const struct row *old;
    struct ledger ledger;
    bool counts = false, any = false;

    if (c->in->n_usage == 0)
        return BELAY_OK;
    belay_rc rc = txn_get(t, &row_session_usage, &key, &old);
    if (rc == BELAY_OK)
        rc = ledger_read(old, c->in->n_usage, txn_arena(t), &ledger, txn_error(t));
    for (size_t i = 0; i < c->in->n_usage && rc == BELAY_OK; i++) {
        rc = see_delta(t, c->session, &c->usage[i], &counts);
        if (rc == BELAY_OK && counts)
            rc = add_delta(t, &ledger, &c->usage[i]);
        any |= counts;
    }
    return rc || !any ? rc : ledger_put(t, c->session, old, &ledger);
}

/* --- reading --- */

struct usage_read {
    struct bytes session;
    const struct row *row;
};

static belay_rc read_body(struct txn *t, void *arg)
{
    struct usage_read *r = arg;
    struct value key = value_text(r->session);
    const struct row_want wants[] = { { &row_session, &key },
                                      { &row_session_usage, &key } };
    const struct row *rows[COUNT_OF(wants)] = { NULL };
    struct session_now now;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = session_to_read(t, r->session, &now);
    r->row = rows[1];
    return rc;
}

/* input + output + reasoning is 0, exactly: the sum itself may not fit. */
static bool is_nothing(const struct sums *s)
{
    const int64_t *n = s->tokens;
    uint64_t low = (uint64_t)n[TOKENS_INPUT] + (uint64_t)n[TOKENS_OUTPUT] +
                   (uint64_t)n[TOKENS_REASONING];
    double about = (double)n[TOKENS_INPUT] + (double)n[TOKENS_OUTPUT] +
                   (double)n[TOKENS_REASONING];

    return low == 0 && about > -1e18 && about < 1e18;
}

belay_rc session_usage(const struct session *s, struct belay_arena *a,
                       const struct belay_usage **out, size_t *out_n,
                       struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena scratch = { 0 };
    struct usage_read r = { .session = bytes_str(s->id) };
    struct ledger ledger = { 0 };
    size_t n = 0;

    belay_rc rc = session_check_id(s->id, err);
    if (rc == BELAY_OK)
        rc = txn_run(s->sp, read_body, &r, &session_reads, &scratch, err);
    if (rc == BELAY_OK)
        rc = ledger_read(r.row, 0, a, &ledger, err);
    if (rc)
        return rc;
    struct belay_usage *list = arena_zalloc(a, ledger.n, sizeof(*list));
    if (!list)
        return err_no_memory(err, "usage");
    for (size_t i = 0; i < ledger.n; i++) {
        const struct sums *sums = &ledger.sums[i];
        if (is_nothing(sums))
            continue;
        list[n++] = (struct belay_usage){
            .source = (const char *)sums->source.ptr,
            .model = (const char *)sums->model.ptr,
            .input_tokens = sums->tokens[TOKENS_INPUT],
            .output_tokens = sums->tokens[TOKENS_OUTPUT],
            .cached_input_tokens = sums->tokens[TOKENS_CACHED],
            .reasoning_tokens = sums->tokens[TOKENS_REASONING],
        };
    }
    *out = list;
    *out_n = n;
    return BELAY_OK;
}
