/* Granting processes to scopes: one, another one's, none any more. */
#include "work/process_grants.h"

#define TRANSFER_MAX 1000
#define UNIT ((uint8_t)0x1f)

/* --- scopes --- */

static bool join(struct bytes before, struct bytes behind, struct belay_arena *a,
                 struct bytes *out)
{
    uint8_t *text = arena_alloc(a, before.len + 1 + behind.len);

    if (!text)
        return false;
    memcpy(text, before.ptr, before.len);
    text[before.len] = UNIT;
    memcpy(text + before.len + 1, behind.ptr, behind.len);
    *out = bytes_of(text, before.len + 1 + behind.len);
    return true;
}

bool grant_scope_make(struct grant_scope *out, const struct belay_scope *scope,
                      struct belay_arena *a)
{
    *out = (struct grant_scope){ .session = bytes_str(scope->session_id),
                                 .frame_key = bytes_str(GRANT_TO_SESSION) };
    if (scope->frame_id) {
        out->frame = bytes_str(scope->frame_id);
        if (!proc_name(GRANT_TO_FRAME, out->frame, a, &out->frame_key))
            return false;
    }
    return join(out->session, out->frame_key, a, &out->member) &&
           proc_name(GRANT_INDEX, out->member, a, &out->index);
}

bool grant_member_split(struct bytes member, struct bytes *before, struct bytes *behind)
{
    const uint8_t *at = member.len > 0 ? memchr(member.ptr, UNIT, member.len) : NULL;

    if (!at)
        return false;
    size_t len = (size_t)(at - member.ptr);
    *before = bytes_of(member.ptr, len);
    *behind = bytes_of(at + 1, member.len - len - 1);
    return true;
}

struct bytes grant_frame(struct bytes frame_key)
{
    size_t prefix = strlen(GRANT_TO_FRAME);

    if (bytes_eq(frame_key, bytes_str(GRANT_TO_SESSION)) || frame_key.len <= prefix)
        return bytes_of(NULL, 0);
    return bytes_of(frame_key.ptr + prefix, frame_key.len - prefix);
}

/* --- counts --- */

static void count_key(const char *noun, struct bytes id, struct value out[2])
{
    out[0] = value_str(noun);
    out[1] = value_text(id);
}

belay_rc grant_count_get(struct txn *t, const char *noun, struct bytes id, int64_t *out)
{
    struct value key[2];
    const struct row *row;

    count_key(noun, id, key);
    belay_rc rc = txn_get(t, &row_grant_count, key, &row);
    if (rc == BELAY_OK)
        *out = row ? row_i64(row, GRANT_COUNT_N, 0) : 0;
    return rc;
}

belay_rc grant_count_add(struct txn *t, const char *noun, struct bytes id,
                         int64_t delta)
{
    struct value key[2];
    const struct row *row;

    count_key(noun, id, key);
    belay_rc rc = txn_get(t, &row_grant_count, key, &row);
    if (rc)
        return rc;
    int64_t n = (row ? row_i64(row, GRANT_COUNT_N, 0) : 0) + delta;
    if (n < 0) {
        rc = txn_fail(t, BELAY_CORRUPT, "grants", "%s %.*s: has fewer grants than none",
                      noun, (int)id.len, (const char *)id.ptr);
        err_entity(txn_error(t), id);
        return rc;
    }
    if (n == 0 && row)
        return txn_delete(t, &row_grant_count, key);
    const struct value v[GRANT_COUNT_COLUMNS] = {
        key[0], key[1], value_i64(n),
        value_i64(row ? row_i64(row, GRANT_COUNT_CHANGES, 0) + 1 : 1)
    };
    const struct change changes[] = { { GRANT_COUNT_N, v[GRANT_COUNT_N] },
                                      { GRANT_COUNT_CHANGES, v[GRANT_COUNT_CHANGES] } };
    return row ? txn_put(t, &row_grant_count, key, changes, COUNT_OF(changes))
               : txn_insert(t, &row_grant_count, v);
}

/* --- one grant --- */

belay_rc grant_load(struct txn *t, const struct grant_scope *s, struct bytes process,
                    struct grant_rows *out)
{
    struct value of_process[2], of_session[2];
    const struct row *rows[3];

    out->key[0] = value_text(s->session);
    out->key[1] = value_text(s->frame_key);
    out->key[2] = value_text(process);
    count_key(GRANTS_OF_PROCESS, process, of_process);
    count_key(GRANTS_OF_SESSION, s->session, of_session);
    const struct row_want wants[] = { { &row_handle_grant, out->key },
                                      { &row_grant_count, of_process },
                                      { &row_grant_count, of_session } };
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);
    out->grant = rows[0];
    out->of_process = rows[1];
    out->of_session = rows[2];
    return rc;
}

/* The names of its entries beside that of its scope. */
static belay_rc entries_of(struct txn *t, const struct grant_scope *s,
                           struct bytes process, struct bytes *granted,
                           struct bytes *of_session, struct bytes *member)
{
    struct belay_arena *a = txn_arena(t);

    if (!proc_name(GRANTED_TO_INDEX, process, a, granted) ||
        !proc_name(SESSION_GRANT_INDEX, s->session, a, of_session) ||
        !join(s->frame_key, process, a, member))
        return err_no_memory(txn_error(t), "a grant");
    return BELAY_OK;
}

static belay_rc add_grant(struct txn *t, const struct grant_scope *s,
                          struct bytes process, const struct value v[])
{
    struct bytes granted, of_session, member;
    belay_rc rc = entries_of(t, s, process, &granted, &of_session, &member);

    if (rc == BELAY_OK)
        rc = txn_insert(t, &row_handle_grant, v);
    if (rc == BELAY_OK)
        rc = txn_rank_add(t, s->index, 0, process);
    if (rc == BELAY_OK)
        rc = txn_rank_add(t, granted, 0, s->member);
    if (rc == BELAY_OK)
        rc = txn_rank_add(t, of_session, 0, member);
    if (rc == BELAY_OK)
        rc = grant_count_add(t, GRANTS_OF_PROCESS, process, 1);
    return rc ? rc : grant_count_add(t, GRANTS_OF_SESSION, s->session, 1);
}

/* A new one, or another descriptor for the one that is there. */
static belay_rc set_grant(struct txn *t, const struct grant_scope *s,
                          struct bytes process, struct value kind, struct value label)
{
    const struct change changes[] = { { HANDLE_GRANT_KIND, kind },
                                      { HANDLE_GRANT_LABEL, label } };
    struct grant_rows rows;
    int64_t now_ms = 0;
    belay_rc rc = grant_load(t, s, process, &rows);

    if (rc == BELAY_OK)
        rc = txn_now(t, &now_ms);
    if (rc)
        return rc;
    if (rows.grant)
        return txn_put(t, &row_handle_grant, rows.key, changes, COUNT_OF(changes));
    const struct value v[HANDLE_GRANT_COLUMNS] = { rows.key[0], rows.key[1],
                                                   rows.key[2], kind,
                                                   label,       value_i64(now_ms) };
    return add_grant(t, s, process, v);
}

belay_rc grant_remove(struct txn *t, const struct grant_scope *s, struct bytes process)
{
    struct bytes granted, of_session, member;
    struct grant_rows rows;
    belay_rc rc = grant_load(t, s, process, &rows);

    if (rc || !rows.grant)
        return rc;
    rc = entries_of(t, s, process, &granted, &of_session, &member);
    if (rc == BELAY_OK)
        rc = txn_delete(t, &row_handle_grant, rows.key);
    if (rc == BELAY_OK)
        rc = txn_rank_remove(t, s->index, 0, process);
    if (rc == BELAY_OK)
        rc = txn_rank_remove(t, granted, 0, s->member);
    if (rc == BELAY_OK)
        rc = txn_rank_remove(t, of_session, 0, member);
    if (rc == BELAY_OK)
        rc = grant_count_add(t, GRANTS_OF_PROCESS, process, -1);
    return rc ? rc : grant_count_add(t, GRANTS_OF_SESSION, s->session, -1);
}

/* --- the calls --- */

struct granting {
    struct grant_scope scope, to;
    struct bytes process;
    struct value kind, label;
    const char *const *ids;
    size_t n;
    bool found;
};

static struct value text_or_null(const char *text)
{
    return text ? value_str(text) : value_null();
}

/* Whether there is such a process.  What was registered is there as long as it is, and
 * stays the same: guarding it is in nobody's way. */
static belay_rc need_process(struct txn *t, struct bytes process)
{
    struct value key = value_text(process);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_process_spec, &key, &row);

    return rc || row ? rc : proc_unknown(t, process);
}

static belay_rc grant_body(struct txn *t, void *arg)
{
    const struct granting *g = arg;
    belay_rc rc = need_process(t, g->process);

    return rc ? rc : set_grant(t, &g->scope, g->process, g->kind, g->label);
}

static belay_rc revoke_body(struct txn *t, void *arg)
{
    struct granting *g = arg;
    struct grant_rows rows;
    belay_rc rc = grant_load(t, &g->scope, g->process, &rows);

    g->found = rc == BELAY_OK && rows.grant;
    return g->found ? grant_remove(t, &g->scope, g->process) : rc;
}

static belay_rc has_body(struct txn *t, void *arg)
{
    struct granting *g = arg;
    struct value key[] = { value_text(g->scope.session), value_text(g->scope.frame_key),
                           value_text(g->process) };
    const struct row *row = NULL;
    belay_rc rc = txn_get(t, &row_handle_grant, key, &row);

    g->found = row != NULL;
    return rc;
}

static belay_rc not_granted(struct txn *t, const struct granting *g,
                            struct bytes process)
{
    const struct scope from = { g->scope.session, g->scope.frame };

    return refuse_grant(process, from, txn_error(t));
}

/* Everything that a transfer will look at, in one round trip. */
static belay_rc load_transfer(struct txn *t, const struct granting *g,
                              const struct row **out)
{
    struct belay_arena *a = txn_arena(t);
    struct row_want *wants = arena_zalloc(a, 3 * g->n, sizeof(*wants));
    struct value *keys = arena_zalloc(a, 8 * g->n, sizeof(*keys));
    const struct row **rows = arena_zalloc(a, 3 * g->n, sizeof(*rows));
    size_t n = 0;

    if (!wants || !keys || !rows)
        return err_no_memory(txn_error(t), "a transfer");
    for (size_t i = 0; i < g->n; i++) {
        const struct grant_scope *scopes[] = { &g->scope, &g->to };
        struct value *key = keys + 8 * i;
        for (size_t k = 0; k < COUNT_OF(scopes); k++, key += 3) {
            key[0] = value_text(scopes[k]->session);
            key[1] = value_text(scopes[k]->frame_key);
            key[2] = value_str(g->ids[i]);
            wants[n++] = (struct row_want){ &row_handle_grant, key };
        }
        count_key(GRANTS_OF_PROCESS, bytes_str(g->ids[i]), key);
        wants[n++] = (struct row_want){ &row_grant_count, key };
    }
    belay_rc rc = txn_get_many(t, wants, n, rows);
    for (size_t i = 0; i < g->n && rc == BELAY_OK; i++)
        out[i] = rows[3 * i];
    return rc;
}

static belay_rc transfer_body(struct txn *t, void *arg)
{
    const struct granting *g = arg;
    const struct row **grants = arena_zalloc(txn_arena(t), g->n, sizeof(*grants));

    if (!grants)
        return err_no_memory(txn_error(t), "a transfer");
    belay_rc rc = load_transfer(t, g, grants);
    for (size_t i = 0; i < g->n && rc == BELAY_OK; i++) {
        if (!grants[i])
            rc = not_granted(t, g, bytes_str(g->ids[i]));
    }
    if (rc || bytes_eq(g->scope.member, g->to.member))
        return rc;
    for (size_t i = 0; i < g->n && grants[i] && rc == BELAY_OK; i++) {
        struct bytes process = bytes_str(g->ids[i]);
        /* In this order no count goes through nothing. */
        rc = set_grant(t, &g->to, process, grants[i]->v[HANDLE_GRANT_KIND],
                       grants[i]->v[HANDLE_GRANT_LABEL]);
        if (rc == BELAY_OK)
            rc = grant_remove(t, &g->scope, process);
    }
    return rc;
}

static belay_rc prepare(struct granting *g, const struct belay_scope *scope,
                        const char *process_id, struct belay_arena *a,
                        struct belay_error *err)
{
    belay_rc rc = proc_check_scope(scope, "scope", err);

    if (rc == BELAY_OK)
        rc = proc_check_id(process_id, "process_id", err);
    if (rc)
        return rc;
    g->process = bytes_str(process_id);
    return grant_scope_make(&g->scope, scope, a) ? BELAY_OK
                                                 : err_no_memory(err, "a grant");
}

belay_rc proc_grant(const struct proc_site *site, const struct belay_scope *scope,
                    const char *process_id, const char *kind, const char *label,
                    struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct granting g = { .kind = text_or_null(kind), .label = text_or_null(label) };
    belay_rc rc = prepare(&g, scope, process_id, &arena, err);

    if (rc == BELAY_OK && kind)
        rc = proc_check_id(kind, "kind", err);
    if (rc == BELAY_OK && label)
        rc = proc_check_id(label, "label", err);
    return rc ? rc : txn_run(site->space, grant_body, &g, NULL, &arena, err);
}

belay_rc proc_revoke(const struct proc_site *site, const struct belay_scope *scope,
                     const char *process_id, bool *out_revoked, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct granting g = { .found = false };
    belay_rc rc = prepare(&g, scope, process_id, &arena, err);

    if (rc == BELAY_OK)
        rc = txn_run(site->space, revoke_body, &g, NULL, &arena, err);
    if (rc == BELAY_OK && out_revoked)
        *out_revoked = g.found;
    return rc;
}

belay_rc proc_has_grant(const struct proc_site *site, const struct belay_scope *scope,
                        const char *process_id, bool *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct txn_options read_only = { .read_only = true };
    struct granting g = { .found = false };
    belay_rc rc = prepare(&g, scope, process_id, &arena, err);

    if (rc == BELAY_OK)
        rc = txn_run(site->space, has_body, &g, &read_only, &arena, err);
    if (rc == BELAY_OK)
        *out = g.found;
    return rc;
}

static belay_rc check_ids(const char *const *ids, size_t n, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (n < 1 || n > TRANSFER_MAX)
        return err_reason(err, BELAY_INVALID, "process_ids",
                          "transfer: %zu processes, must be 1 to %d", n, TRANSFER_MAX);
    for (size_t i = 0; i < n && rc == BELAY_OK; i++) {
        rc = proc_check_id(ids[i], "process_id", err);
        for (size_t k = 0; k < i && rc == BELAY_OK; k++) {
            if (strcmp(ids[i], ids[k]) == 0)
                rc = err_reason(err, BELAY_INVALID, "process_ids",
                                "transfer: it lists a process twice");
        }
    }
    return rc;
}

belay_rc proc_transfer(const struct proc_site *site, const struct belay_scope *from,
                       const struct belay_scope *to, const char *const *process_ids,
                       size_t n, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct granting g = { .ids = process_ids, .n = n };
    belay_rc rc = check_ids(process_ids, n, err);

    if (rc == BELAY_OK)
        rc = prepare(&g, from, process_ids[0], &arena, err);
    if (rc == BELAY_OK)
        rc = proc_check_scope(to, "scope", err);
    if (rc == BELAY_OK && !grant_scope_make(&g.to, to, &arena))
        rc = err_no_memory(err, "a grant");
    return rc ? rc : txn_run(site->space, transfer_body, &g, NULL, &arena, err);
}
