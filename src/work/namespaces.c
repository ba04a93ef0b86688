#include "work/namespaces.h"

#include "work/audit.h"

/* Things that one step of a deletion takes out. */
#define ERASE_STEP 1024

static belay_rc check_name(struct bytes name, struct belay_error *err)
{
    if (namespace_is_valid(name, false))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "namespace",
                      "namespace: must match [a-z0-9][a-z0-9_-]{0,62}");
}

static bool is_deleting(const struct row *row)
{
    return bytes_eq(row_bytes(row, NAMESPACE_STATE), bytes_str(NAMESPACE_DELETING));
}

static belay_rc run_in_system(struct store *s, txn_body *body, void *arg, bool writes,
                              struct belay_arena *a, struct belay_error *err)
{
    const struct txn_options options = { .read_only = !writes };
    struct space *system = NULL;
    belay_rc rc = store_system_space(s, &system, err);

    return rc ? rc : txn_run(system, body, arg, &options, a, err);
}

/* --- looking --- */

struct listing {
    struct bytes after;
    size_t limit;
    struct namespace_info *out;
    size_t n;
};

static belay_rc list_body(struct txn *t, void *arg)
{
    static const struct fetch fetch = { .type = &row_namespace };
    struct listing *l = arg;
    struct bytes index = bytes_str(NAMESPACE_INDEX);
    struct scan_cursor after = { .member = l->after, .index = index };
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .after = l->after.len > 0 ? &after : NULL,
                         .limit = l->limit,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct hits hits;

    belay_rc rc = txn_scan(t, &scan, &hits);
    if (rc)
        return rc;
    l->n = 0;
    l->out = arena_zalloc(txn_arena(t), hits.n, sizeof(*l->out));
    if (!l->out)
        return err_no_memory(txn_error(t), "a list");
    for (size_t i = 0; i < hits.n; i++) {
        const struct row *row = hits.hit[i].rows[0];
        if (!row)
            return txn_fail(t, BELAY_CORRUPT, "rank_without_row",
                            "namespace %.*s: is listed and has no row",
                            (int)hits.hit[i].member.len,
                            (const char *)hits.hit[i].member.ptr);
        l->out[l->n++] = (struct namespace_info){
            .name = hits.hit[i].member,
            .created_at_ms = row_i64(row, NAMESPACE_CREATED_AT_MS, 0),
            .deleting = is_deleting(row),
        };
    }
    return BELAY_OK;
}

belay_rc namespaces_list(struct store *s, struct bytes after, size_t limit,
                         struct belay_arena *a, struct namespace_info **out,
                         size_t *out_n, struct belay_error *err)
{
    struct listing l = { .after = after, .limit = limit };
    belay_rc rc = run_in_system(s, list_body, &l, false, a, err);

    if (rc)
        return rc;
    *out = l.out;
    *out_n = l.n;
    return BELAY_OK;
}

/* A namespace, and what the registry says about it. */
struct naming {
    struct bytes name;
    const char *principal;
    bool exists, active, created;
    int64_t
        ver; /* of its row while it is being deleted: tells this life from the next */
};

static belay_rc look_body(struct txn *t, void *arg)
{
    struct naming *n = arg;
    struct value key = value_text(n->name);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_namespace, &key, &row);

    n->exists = !rc && row;
    n->active = n->exists && !is_deleting(row);
    n->ver = n->exists ? row->ver : 0;
    return rc;
}

static belay_rc look(struct store *s, struct naming *n, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };

    return run_in_system(s, look_body, n, false, &arena, err);
}

belay_rc namespaces_is_active(struct store *s, struct bytes name, bool *out,
                              struct belay_error *err)
{
    struct naming n = { .name = name };
    belay_rc rc = look(s, &n, err);

    if (rc == BELAY_OK)
        *out = n.active;
    return rc;
}

/* --- creating --- */

/* Adds {"name":..} or {"name":..,"step":..} to the system's chain. */
static belay_rc note(struct txn *t, const struct naming *n, const char *verb,
                     const char *step)
{
    CLEANUP(json_decrefp) json_t *detail = json_object();
    int failed = json_object_set_new(
        detail, "name", json_stringn((const char *)n->name.ptr, n->name.len));

    if (step)
        failed |= json_object_set_new(detail, "step", json_string(step));
    if (failed)
        return err_no_memory(txn_error(t), "an audit entry");
    return audit_append(t, &(struct audit_note){ .verb = verb,
                                                 .principal = n->principal,
                                                 .detail = detail });
}

static belay_rc create_body(struct txn *t, void *arg)
{
    struct naming *n = arg;
    struct value v[NAMESPACE_COLUMNS] = { [NAMESPACE_NAME] = value_text(n->name),
                                          [NAMESPACE_STATE] =
                                              value_str(NAMESPACE_ACTIVE) };
    const struct row *row;
    int64_t now_ms = 0;

    belay_rc rc = txn_get(t, &row_namespace, v, &row);
    if (rc)
        return rc;
    n->created = !row;
    if (row && is_deleting(row)) {
        rc = txn_fail(t, BELAY_WRONG_STATE, "deleting",
                      "namespace: is being deleted; delete it again to finish that");
        err_entity(txn_error(t), n->name);
        return rc;
    }
    if (row)
        return BELAY_OK;
    rc = txn_now(t, &now_ms);
    if (rc)
        return rc;
    v[NAMESPACE_CREATED_AT_MS] = value_i64(now_ms);
    rc = txn_insert(t, &row_namespace, v);
    if (rc == BELAY_OK)
        rc = txn_rank_add(t, bytes_str(NAMESPACE_INDEX), 0, n->name);
    return rc ? rc : note(t, n, "namespace.create", NULL);
}

belay_rc namespaces_create(struct store *s, struct bytes name, const char *principal,
                           bool *out_created, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct naming n = { .name = name, .principal = principal };
    belay_rc rc = check_name(name, err);

    if (rc == BELAY_OK)
        rc = run_in_system(s, create_body, &n, true, &arena, err);
    if (rc == BELAY_OK)
        *out_created = n.created;
    return rc;
}

/* --- deleting --- */

static belay_rc begin_body(struct txn *t, void *arg)
{
    static const struct change deleting = {
        NAMESPACE_STATE,
        { .kind = VALUE_TEXT,
          .b = { (const uint8_t *)NAMESPACE_DELETING, sizeof(NAMESPACE_DELETING) - 1 } }
    };
    struct naming *n = arg;
    struct value key = value_text(n->name);
    const struct row *row;

    belay_rc rc = txn_get(t, &row_namespace, &key, &row);
    if (rc)
        return rc;
    if (!row) {
        rc = txn_fail(t, BELAY_NOT_FOUND, "", "namespace: there is none of that name");
        err_entity(txn_error(t), n->name);
        return rc;
    }
    bool again = is_deleting(row);
    if (!again)
        rc = txn_put(t, &row_namespace, &key, &deleting, 1);
    return rc ? rc : note(t, n, "namespace.delete", again ? "resumed" : "begun");
}

/* Nothing is done when somebody else was faster: the name may have a new life. */
static belay_rc end_body(struct txn *t, void *arg)
{
    const struct naming *n = arg;
    struct value key = value_text(n->name);
    const struct row *row;

    belay_rc rc = txn_get(t, &row_namespace, &key, &row);
    if (rc || !row || row->ver != n->ver)
        return rc;
    rc = txn_delete(t, &row_namespace, &key);
    if (rc == BELAY_OK)
        rc = txn_rank_remove(t, bytes_str(NAMESPACE_INDEX), 0, n->name);
    return rc ? rc : note(t, n, "namespace.delete", "done");
}

/* One step.  When this life of the namespace has ended there is no more to do, and
 * n->ver is 0. */
static belay_rc erase_step(struct store *s, struct naming *n, bool *more,
                           struct belay_error *err)
{
    struct naming seen = { .name = n->name };
    belay_rc rc = look(s, &seen, err);
    if (rc)
        return rc;

    *more = false;
    bool same = seen.exists && !seen.active && (n->ver == 0 || n->ver == seen.ver);
    n->ver = same ? seen.ver : 0;
    return same ? driver_erase(store_driver(s), n->name, ERASE_STEP, more, err)
                : BELAY_OK;
}

belay_rc namespaces_delete(struct store *s, struct bytes name, const char *principal,
                           struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct naming n = { .name = name, .principal = principal };
    bool more = true;
    belay_rc rc = check_name(name, err);

    if (rc == BELAY_OK)
        rc = run_in_system(s, begin_body, &n, true, &arena, err);
    while (rc == BELAY_OK && more)
        rc = erase_step(s, &n, &more, err);
    if (rc)
        return rc;
    store_forget_space(s, name);
    arena_reset(&arena);
    return n.ver == 0 ? BELAY_OK : run_in_system(s, end_body, &n, true, &arena, err);
}
