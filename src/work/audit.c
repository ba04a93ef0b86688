#include "work/audit.h"

#include "base/json.h"

#define PAGE 256
#define ENTRY_MAX ((size_t)1 << 20)

static const char no_hash[] =
    "0000000000000000000000000000000000000000000000000000000000000000";

/* A1, for an entry that has no `hash` in it. */
static belay_rc hash_of(const json_t *entry, char out[SHA256_HEX_LEN + 1],
                        struct belay_error *err)
{
    uint8_t digest[SHA256_LEN];
    belay_rc rc = json_hash(entry, digest, err);

    if (rc == BELAY_OK)
        hex_encode(bytes_of(digest, sizeof(digest)), out);
    return rc;
}

/* --- appending --- */

static json_t *text_of(struct bytes b)
{
    return json_stringn((const char *)b.ptr, b.len);
}

static belay_rc make_entry(const struct audit_note *note, int64_t seq, int64_t at_ms,
                           struct bytes previous, json_t **out, struct belay_error *err)
{
    json_t *entry = json_object();
    int failed = 0;

    failed |= json_object_set_new(entry, "seq", json_integer(seq));
    failed |= json_object_set_new(entry, "at_ms", json_integer(at_ms));
    failed |= json_object_set_new(entry, "verb", json_string(note->verb));
    failed |= json_object_set_new(entry, "principal", json_string(note->principal));
    failed |= json_object_set_new(entry, "detail", json_deep_copy(note->detail));
    failed |= json_object_set_new(entry, "previous", text_of(previous));
    if (failed) {
        json_decref(entry);
        return err_no_memory(err, "an audit entry");
    }
    *out = entry;
    return BELAY_OK;
}

static belay_rc write_head(struct txn *t, const struct row *head, int64_t seq,
                           const char *hash)
{
    const struct change changes[] = { { AUDIT_HEAD_SEQ, value_i64(seq) },
                                      { AUDIT_HEAD_HASH, value_str(hash) } };
    const struct value v[AUDIT_HEAD_COLUMNS] = {
        [AUDIT_HEAD_SEQ] = value_i64(seq), [AUDIT_HEAD_HASH] = value_str(hash)
    };

    return head ? txn_put(t, &row_audit_head, NULL, changes, COUNT_OF(changes))
                : txn_insert(t, &row_audit_head, v);
}

belay_rc audit_append(struct txn *t, const struct audit_note *note)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    CLEANUP(json_decrefp) json_t *entry = NULL;
    struct belay_error *err = txn_error(t);
    char hash[SHA256_HEX_LEN + 1];
    int64_t at_ms = note->at_ms;
    const struct row *head;

    belay_rc rc = txn_get(t, &row_audit_head, NULL, &head);
    if (rc == BELAY_OK && at_ms == 0)
        rc = txn_now(t, &at_ms);
    if (rc)
        return rc;
    int64_t seq = head ? row_i64(head, AUDIT_HEAD_SEQ, 0) + 1 : 1;
    struct bytes previous =
        head ? row_bytes(head, AUDIT_HEAD_HASH) : bytes_str(no_hash);
    rc = make_entry(note, seq, at_ms, previous, &entry, err);
    if (rc == BELAY_OK)
        rc = hash_of(entry, hash, err);
    if (rc == BELAY_OK && json_object_set_new(entry, "hash", json_string(hash)))
        rc = err_no_memory(err, "an audit entry");
    if (rc == BELAY_OK)
        rc = json_write(entry, &text, err);
    if (rc == BELAY_OK)
        rc = txn_log_append(t, bytes_str(AUDIT_STREAM), seq, buf_view(&text));
    return rc ? rc : write_head(t, head, seq, hash);
}

/* --- reading --- */

struct page {
    int64_t after;
    size_t limit;
    const struct row *head;
    struct log_entries entries;
};

/* The head first: an entry that came after it makes the guard fail. */
static belay_rc page_body(struct txn *t, void *arg)
{
    struct page *p = arg;
    belay_rc rc = txn_get(t, &row_audit_head, NULL, &p->head);

    return rc ? rc
              : txn_log_read(t, bytes_str(AUDIT_STREAM), p->after, p->limit,
                             &p->entries);
}

static const struct txn_options read_only = { .read_only = true };

belay_rc audit_page(struct space *sp, int64_t after, size_t limit,
                    struct belay_arena *a, struct log_entries *out,
                    struct belay_error *err)
{
    struct page p = { .after = after, .limit = limit };
    belay_rc rc = txn_run(sp, page_body, &p, &read_only, a, err);

    if (rc == BELAY_OK)
        *out = p.entries;
    return rc;
}

/* --- following a chain --- */

static void broken(struct audit_walk *w, int64_t seq, const char *reason)
{
    w->reason = reason;
    w->broken_at = seq;
}

static bool has_text(const json_t *entry, const char *key, const char *want)
{
    const char *got = json_string_value(json_object_get(entry, key));

    return got && strcmp(got, want) == 0;
}

/* What is wrong with an entry that stands where it should; NULL: nothing. */
static belay_rc judge(const struct audit_walk *w, json_t *entry, int64_t seq,
                      char hash[SHA256_HEX_LEN + 1], const char **why,
                      struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *told = json_incref(json_object_get(entry, "hash"));
    const char *before = w->seq > 0 ? w->hash : no_hash;

    *why = "malformed";
    if (!json_is_string(told) ||
        json_integer_value(json_object_get(entry, "seq")) != seq)
        return BELAY_OK;
    (void)json_object_del(entry, "hash"); /* it is there */
    belay_rc rc = hash_of(entry, hash, err);
    if (rc)
        return rc;
    if (strcmp(hash, json_string_value(told)) != 0)
        *why = "hash_mismatch";
    else if (!has_text(entry, "previous", before))
        *why = "chain_break";
    else
        *why = NULL;
    return BELAY_OK;
}

belay_rc audit_walk_entry(struct audit_walk *w, int64_t seq, struct bytes data,
                          struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *entry = NULL;
    char hash[SHA256_HEX_LEN + 1];
    const char *why = NULL;

    if (w->reason)
        return BELAY_OK;
    if (seq != w->seq + 1) {
        broken(w, w->seq + 1, "gap");
        return BELAY_OK;
    }
    belay_rc rc = json_read(data, ENTRY_MAX, &entry, err);
    if (rc == BELAY_INVALID) {
        broken(w, seq, "malformed");
        return BELAY_OK;
    }
    if (rc == BELAY_OK)
        rc = judge(w, entry, seq, hash, &why, err);
    if (rc)
        return rc;
    if (why) {
        broken(w, seq, why);
        return BELAY_OK;
    }
    w->seq = seq;
    memcpy(w->hash, hash, sizeof(hash));
    return BELAY_OK;
}

void audit_walk_end(struct audit_walk *w, const struct row *head)
{
    int64_t seq = head ? row_i64(head, AUDIT_HEAD_SEQ, -1) : 0;

    if (w->reason)
        return;
    if (seq != w->seq ||
        (head && !bytes_eq(row_bytes(head, AUDIT_HEAD_HASH), bytes_str(w->hash))))
        broken(w, w->seq, "head_mismatch");
}

belay_rc audit_verify(struct space *sp, struct audit_walk *out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { 0 };
    struct page p = { .limit = PAGE };
    struct audit_walk w = { 0 };
    bool more = true;

    while (more && !w.reason) {
        belay_rc rc = txn_run(sp, page_body, &p, &read_only, &arena, err);
        for (size_t i = 0; i < p.entries.n && rc == BELAY_OK; i++) {
            const struct log_entry *e = &p.entries.entry[i];
            rc = audit_walk_entry(&w, e->seq, e->data, err);
            p.after = e->seq;
        }
        if (rc)
            return rc;
        more = p.entries.n == PAGE;
        if (!more)
            audit_walk_end(&w, p.head);
        p.entries.n = 0;
        arena_reset(&arena);
    }
    *out = w;
    return BELAY_OK;
}
