/* Names that keep blobs. */
#include "work/gc.h"

#define PIN_NAME_MAX 255
#define PINS_DEFAULT 100
#define PINS_MAX 1000

static belay_rc check_name(const char *name, struct belay_error *err)
{
    if (bytes_is_id(bytes_str(name), PIN_NAME_MAX))
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "pin_name",
                      "pin: a name has 1 to %d bytes of UTF-8 without control "
                      "characters",
                      PIN_NAME_MAX);
}

/* --- putting and removing --- */

struct pinning {
    const char *name, *sha256;
    bool removed;
};

static belay_rc no_blob(struct belay_error *err, const char *sha256)
{
    struct bytes name = bytes_str(sha256);

    (void)err_set(err, BELAY_NOT_FOUND, "pin: there is no blob %.*s",
                  (int)(name.len < SHA256_HEX_LEN ? name.len : SHA256_HEX_LEN),
                  (const char *)name.ptr);
    err_entity(err, name);
    return BELAY_NOT_FOUND;
}

/* A name that is taken moves to the new blob, and to the end of the list. */
static belay_rc move_pin(struct txn *t, const struct pinning *p, const struct row *row,
                         int64_t now_ms)
{
    struct value key = value_str(p->name);
    const struct change changes[] = {
        { PIN_SHA256, value_str(p->sha256) },
        { PIN_CREATED_AT_MS, value_i64(now_ms) },
    };
    int64_t old_ms = row_i64(row, PIN_CREATED_AT_MS, 0);

    belay_rc rc = txn_put(t, &row_pin, &key, changes, COUNT_OF(changes));
    if (rc || old_ms == now_ms)
        return rc;
    return txn_rank_move(t, bytes_str(PIN_INDEX), old_ms, now_ms, key.b);
}

static belay_rc add_pin(struct txn *t, const struct pinning *p, int64_t now_ms)
{
    const struct value v[PIN_COLUMNS] = {
        [PIN_NAME] = value_str(p->name),
        [PIN_SHA256] = value_str(p->sha256),
        [PIN_CREATED_AT_MS] = value_i64(now_ms),
    };

    belay_rc rc = txn_insert(t, &row_pin, v);
    return rc ? rc : txn_rank_add(t, bytes_str(PIN_INDEX), now_ms, v[PIN_NAME].b);
}

static belay_rc put_body(struct txn *t, void *arg)
{
    const struct pinning *p = arg;
    struct value name = value_str(p->name), sha = value_str(p->sha256);
    struct row_want wants[] = { { &row_pin, &name }, { &row_blob, &sha } };
    const struct row *rows[COUNT_OF(wants)];
    int64_t now_ms = 0;
    bool found = false;

    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);
    if (rc == BELAY_OK)
        rc = blob_touch(t, p->sha256, &found); /* S6 */
    if (rc == BELAY_OK && !found)
        rc = no_blob(txn_error(t), p->sha256);
    if (rc == BELAY_OK)
        rc = txn_now(t, &now_ms);
    if (rc)
        return rc;
    return rows[0] ? move_pin(t, p, rows[0], now_ms) : add_pin(t, p, now_ms);
}

belay_rc pin_put(struct space *sp, const char *name, const char *sha256,
                 struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct pinning p = { .name = name, .sha256 = sha256 };
    belay_rc rc = check_name(name, err);

    if (rc)
        return rc;
    if (!blob_is_name(bytes_str(sha256)))
        return no_blob(err, sha256);
    return txn_run(sp, put_body, &p, NULL, &arena, err);
}

static belay_rc remove_body(struct txn *t, void *arg)
{
    struct pinning *p = arg;
    struct value key = value_str(p->name);
    const struct row *row;

    belay_rc rc = txn_get(t, &row_pin, &key, &row);
    p->removed = rc == BELAY_OK && row;
    if (!p->removed)
        return rc;
    rc = txn_delete(t, &row_pin, &key);
    if (rc)
        return rc;
    return txn_rank_remove(t, bytes_str(PIN_INDEX), row_i64(row, PIN_CREATED_AT_MS, 0),
                           key.b);
}

belay_rc pin_remove(struct space *sp, const char *name, bool *out_removed,
                    struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct pinning p = { .name = name };
    belay_rc rc = check_name(name, err);

    if (rc == BELAY_OK)
        rc = txn_run(sp, remove_body, &p, NULL, &arena, err);
    if (rc == BELAY_OK && out_removed)
        *out_removed = p.removed;
    return rc;
}

/* --- listing --- */

struct listing {
    const struct scan_cursor *after;
    size_t limit;
    struct belay_pins out;
};

/* "<rank>:<name>" of the last pin that was given. */
static belay_rc read_cursor(const char *text, struct scan_cursor *out,
                            struct belay_error *err)
{
    const char *colon = strchr(text, ':');
    bool ok = colon && bytes_to_i64(bytes_of(text, (size_t)(colon - text)), &out->rank);

    if (!ok || !bytes_is_id(bytes_str(colon + 1), PIN_NAME_MAX))
        return err_reason(err, BELAY_INVALID, "cursor",
                          "pins: the cursor is none that was given");
    out->member = bytes_str(colon + 1);
    out->index = bytes_str(PIN_INDEX);
    return BELAY_OK;
}

static belay_rc write_cursor(struct txn *t, const struct hit *last, const char **out)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct bytes kept;

    buf_append_i64(&text, last->rank);
    buf_append_char(&text, ':');
    buf_append(&text, last->member);
    if (text.failed || !arena_copy(txn_arena(t), buf_view(&text), &kept))
        return err_no_memory(txn_error(t), "a cursor");
    *out = (const char *)kept.ptr;
    return BELAY_OK;
}

static belay_rc show_pin(struct txn *t, const struct hit *hit, struct belay_pin *out)
{
    const struct row *row = hit->rows[0];
    struct bytes name, sha256;

    if (!row)
        return txn_fail(t, BELAY_CORRUPT, "rank_without_row",
                        "pin %.*s: is listed and has no row", (int)hit->member.len,
                        (const char *)hit->member.ptr);
    if (!arena_copy(txn_arena(t), hit->member, &name) ||
        !arena_copy(txn_arena(t), row_bytes(row, PIN_SHA256), &sha256))
        return err_no_memory(txn_error(t), "a list");
    *out = (struct belay_pin){ .name = (const char *)name.ptr,
                               .sha256 = (const char *)sha256.ptr,
                               .created_at_ms = row_i64(row, PIN_CREATED_AT_MS, 0) };
    return BELAY_OK;
}

static belay_rc list_body(struct txn *t, void *arg)
{
    static const struct fetch fetch = { .type = &row_pin };
    struct listing *l = arg;
    struct bytes index = bytes_str(PIN_INDEX);
    struct scan scan = { .indexes = &index,
                         .n_indexes = 1,
                         .min_rank = -RANK_MAX,
                         .max_rank = RANK_MAX,
                         .after = l->after,
                         .limit = l->limit + 1,
                         .fetch = &fetch,
                         .n_fetch = 1 };
    struct hits hits;

    l->out = (struct belay_pins){ 0 };
    belay_rc rc = txn_scan(t, &scan, &hits);
    if (rc)
        return rc;
    size_t n = hits.n < l->limit ? hits.n : l->limit;
    struct belay_pin *pins = arena_zalloc(txn_arena(t), n, sizeof(*pins));
    if (!pins)
        return err_no_memory(txn_error(t), "a list");
    for (size_t i = 0; i < n && rc == BELAY_OK; i++)
        rc = show_pin(t, &hits.hit[i], &pins[i]);
    if (rc == BELAY_OK && hits.n > n)
        rc = write_cursor(t, &hits.hit[n - 1], &l->out.next_cursor);
    l->out.pins = pins;
    l->out.n = n;
    return rc;
}

belay_rc pin_list(struct space *sp, const char *cursor, size_t limit,
                  struct belay_arena *a, struct belay_pins *out,
                  struct belay_error *err)
{
    static const struct txn_options options = { .read_only = true };
    struct listing l = { .limit = limit };
    struct scan_cursor after;
    belay_rc rc = BELAY_OK;

    if (limit == 0)
        l.limit = PINS_DEFAULT;
    if (limit > PINS_MAX)
        l.limit = PINS_MAX;
    if (cursor) {
        rc = read_cursor(cursor, &after, err);
        l.after = &after;
    }
    if (rc == BELAY_OK)
        rc = txn_run(sp, list_body, &l, &options, a, err);
    if (rc == BELAY_OK)
        *out = l.out;
    return rc;
}
