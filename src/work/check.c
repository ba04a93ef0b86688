#include "work/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "policy/fence.h"
#include "store/key.h"
#include "work/check_impl.h"
#include "work/namespaces.h"

#define FIRST_BUCKETS 64

/* --- maps --- */

struct check_entry *check_find(const struct check_map *m, struct bytes key)
{
    uint64_t hash = key_hash(key);
    struct check_entry *e = NULL;

    if (m->n_buckets > 0)
        e = m->buckets[hash & (m->n_buckets - 1)];
    while (e && (e->hash != hash || !bytes_eq(e->key, key)))
        e = e->next;
    return e;
}

static bool grow(struct check_map *m, struct belay_arena *a)
{
    size_t n_buckets = m->n_buckets > 0 ? 2 * m->n_buckets : FIRST_BUCKETS;
    struct check_entry **buckets = arena_zalloc(a, n_buckets, sizeof(*buckets));
    struct check_entry *next;

    if (!buckets)
        return false;
    for (size_t i = 0; i < m->n_buckets; i++) {
        for (struct check_entry *e = m->buckets[i]; e; e = next) {
            struct check_entry **head = &buckets[e->hash & (n_buckets - 1)];
            next = e->next;
            e->next = *head;
            *head = e;
        }
    }
    m->buckets = buckets;
    m->n_buckets = n_buckets;
    return true;
}

bool check_add(struct check_map *m, struct check_entry *e, struct belay_arena *a)
{
    if (m->n >= m->n_buckets && !grow(m, a))
        return false;
    e->hash = key_hash(e->key);
    struct check_entry **head = &m->buckets[e->hash & (m->n_buckets - 1)];
    e->next = *head;
    *head = e;
    m->n++;
    return true;
}

/* --- findings --- */

belay_rc check_found(struct check *c, const char *what, struct bytes entity,
                     struct belay_error *err, const char *fmt, ...)
{
    struct check_finding *kept = arena_zalloc(&c->arena, 1, sizeof(*kept));
    struct bytes message = { 0 };
    char text[256];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (!kept || !arena_copy(&c->arena, bytes_str(text), &message) ||
        !arena_copy(&c->arena, entity, &kept->f.entity))
        return err_no_memory(err, "a finding");
    kept->f.level = FINDING_BAD;
    kept->f.what = what;
    kept->f.ns = c->ns;
    kept->f.message = (const char *)message.ptr;
    *c->last = kept;
    c->last = &kept->next;
    return BELAY_OK;
}

/* Who is told, and how often already. */
struct teller {
    finding_report *report;
    void *arg;
    struct check_counts *counts;
};

static void tell(void *arg, const struct finding *f)
{
    struct teller *t = arg;

    if (t->counts->findings++ < CHECK_FINDINGS_MAX)
        t->report(t->arg, f);
}

/* --- ranks against rows --- */

/* An index, and how a row tells where it stands in it.  A noun with an index adds a
 * row. */
static bool namespace_rank(const struct row *row, struct check_rank *out)
{
    out->member = row_bytes(row, NAMESPACE_NAME);
    return true;
}

static bool slot_rank(const struct row *row, struct check_rank *out)
{
    out->member = row_bytes(row, SLOT_OWNER);
    out->rank = row_i64(row, SLOT_TOUCHED_AT_MS, 0);
    return true;
}

static bool upload_rank(const struct row *row, struct check_rank *out)
{
    out->member = row_bytes(row, UPLOAD_ID);
    out->rank = row_i64(row, UPLOAD_STARTED_AT_MS, 0);
    return true;
}

/* A blob that was never touched is older than the index. */
static bool blob_rank(const struct row *row, struct check_rank *out)
{
    out->member = row_bytes(row, BLOB_SHA256);
    out->rank = row_i64(row, BLOB_TOUCHED_AT_MS, 0);
    return row->v[BLOB_TOUCHED_AT_MS].kind != VALUE_NULL;
}

static const struct index_rule {
    const char *index;
    const struct row_type *type;
    /* False: the row stands in no such index now. */
    bool (*rank_of)(const struct row *row, struct check_rank *out);
} index_rules[] = {
    { NAMESPACE_INDEX, &row_namespace, namespace_rank },
    { SLOT_INDEX, &row_slot, slot_rank },
    { UPLOAD_INDEX, &row_upload, upload_rank },
    { BLOB_INDEX, &row_blob, blob_rank },
};

/* Rows that tell more: where they stand, in indexes of their session as well, and what
 * is wrong with them. */
static const struct {
    const struct row_type *type;
    belay_rc (*check)(struct check *c, const struct row *row, struct belay_error *err);
} row_rules[] = {
    { &row_inbox, check_inbox_row },
    { &row_inbox_front, check_inbox_front_row },
    { &row_batch, check_batch_row },
    { &row_session, check_session_row },
    { &row_node, check_node_row },
    { &row_node_name, check_node_name_row },
    { &row_attachment, check_attachment_row },
    { &row_session_meta, check_meta_row },
    { &row_pin, check_pin_row },
    { &row_execution, check_execution_row },
    { &row_execution_spec, check_execution_spec_row },
    { &row_execution_end, check_execution_end_row },
    { &row_execution_progress, check_execution_progress_row },
    { &row_attempt, check_attempt_row },
    { &row_frame_head, check_frame_head_row },
    { &row_execution_key, check_execution_key_row },
    { &row_execution_grant, check_execution_grant_row },
    { &row_lane, check_lane_row },
    { &row_route, check_route_row },
    { &row_process, check_process_row },
    { &row_process_spec, check_process_spec_row },
    { &row_process_ref, check_process_part_row },
    { &row_process_end, check_process_part_row },
    { &row_process_key, check_process_part_row },
    { &row_process_payload, check_process_part_row },
    { &row_process_wake, check_wake_row },
    { &row_wake_target, check_wake_target_row },
    { &row_handle_grant, check_handle_grant_row },
    { &row_grant_count, check_grant_count_row },
};

/* The indexes whose members name such rows; one that ends in / is a family. */
static const char *const row_indexes[] = {
    READY_INDEX,         DUE_INDEX,        SESSION_INDEX, SESSION_DELETING_INDEX,
    TOMBSTONE_INDEX,     CHILD_INDEX,      INTENT_INDEX,  ATTACHED_INDEX,
    PIN_INDEX,           LANE_READY_INDEX, DELAYED_INDEX, LEASED_INDEX,
    GRANTED_INDEX,       HELD_INDEX,       DONE_INDEX,    EXECUTION_INDEX,
    LOST_INDEX,          DEADLINE_INDEX,   TAG_INDEX,     EXECUTION_KEY_INDEX,
    LANE_INDEX,          ROUTE_INDEX,      PROCESS_INDEX, PROCESS_STATUS_INDEX,
    PROCESS_OWNER_INDEX, WAKE_INDEX,       GRANT_INDEX,   GRANTED_TO_INDEX,
    SESSION_GRANT_INDEX,
};

static bool is_known_index(struct bytes index)
{
    for (size_t i = 0; i < COUNT_OF(index_rules); i++) {
        if (bytes_eq(index, bytes_str(index_rules[i].index)))
            return true;
    }
    for (size_t i = 0; i < COUNT_OF(row_indexes); i++) {
        struct bytes name = bytes_str(row_indexes[i]);
        bool family = name.ptr[name.len - 1] == '/';

        if (bytes_eq(index, name) || (family && index.len > name.len &&
                                      memcmp(index.ptr, name.ptr, name.len) == 0))
            return true;
    }
    return false;
}

static bool rank_key(struct belay_arena *a, struct bytes index, struct bytes member,
                     struct bytes *out)
{
    uint8_t *key = arena_alloc(a, index.len + 1 + member.len);

    if (!key)
        return false;
    memcpy(key, index.ptr, index.len);
    key[index.len] = 0;
    if (member.len > 0)
        memcpy(key + index.len + 1, member.ptr, member.len);
    *out = bytes_of(key, index.len + 1 + member.len);
    return true;
}

belay_rc check_expect_rank(struct check *c, struct bytes index, struct bytes member,
                           int64_t rank, struct belay_error *err)
{
    struct check_rank *r = arena_zalloc(&c->arena, 1, sizeof(*r));

    if (!r || !rank_key(&c->arena, index, member, &r->entry.key) ||
        !arena_copy(&c->arena, member, &r->member) ||
        !arena_copy(&c->arena, index, &r->index) ||
        !check_add(&c->ranks, &r->entry, &c->arena))
        return err_no_memory(err, "a check");
    r->rank = rank;
    return BELAY_OK;
}

static belay_rc expect_rank(struct check *c, const struct index_rule *rule,
                            const struct row *row, struct belay_error *err)
{
    struct check_rank r = { .rank = 0 };

    if (!rule->rank_of(row, &r))
        return BELAY_OK;
    return check_expect_rank(c, bytes_str(rule->index), r.member, r.rank, err);
}

static belay_rc check_rank(struct check *c, const struct item *item,
                           struct belay_error *err)
{
    struct arena_mark mark = arena_mark(&c->arena);
    struct bytes key;

    c->counts->ranks++;
    if (!is_known_index(item->name))
        return BELAY_OK;
    if (!rank_key(&c->arena, item->name, item->member, &key))
        return err_no_memory(err, "a check");
    struct check_rank *r = (struct check_rank *)check_find(&c->ranks, key);
    arena_rewind(&c->arena, mark);
    if (!r)
        return check_found(c, "rank_without_row", item->member, err,
                           "index %.*s: the member has no row", (int)item->name.len,
                           (const char *)item->name.ptr);
    r->seen = true;
    if (r->rank != item->number)
        return check_found(c, "wrong_rank", item->member, err,
                           "index %.*s: stands at %" PRId64 ", its row says %" PRId64,
                           (int)item->name.len, (const char *)item->name.ptr,
                           item->number, r->rank);
    return BELAY_OK;
}

static belay_rc check_ranks_end(struct check *c, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < c->ranks.n_buckets; i++) {
        for (struct check_entry *e = c->ranks.buckets[i]; e && rc == BELAY_OK;
             e = e->next) {
            const struct check_rank *r = (const struct check_rank *)e;
            if (!r->seen)
                rc = check_found(c, "row_without_rank", r->member, err,
                                 "index %.*s: the row is not in it", (int)r->index.len,
                                 (const char *)r->index.ptr);
        }
    }
    return rc;
}

/* --- rows that every namespace has --- */

enum { HAS_FORMAT, HAS_EPOCH, HAS_FENCE_FLOOR, HAS_CLOCK, HAS_ROWS };

/* The number that decides, and its bounds. */
static const struct {
    const struct row_type *type;
    unsigned column;
    int64_t max;
} space_rows[HAS_ROWS] = {
    [HAS_FORMAT] = { &row_format, FORMAT_FORMAT, INT64_MAX },
    [HAS_EPOCH] = { &row_epoch, EPOCH_EPOCH, FENCE_EPOCH_MAX },
    [HAS_FENCE_FLOOR] = { &row_fence_floor, FENCE_FLOOR_FLOOR, ((int64_t)1 << 53) - 1 },
    [HAS_CLOCK] = { &row_clock, CLOCK_MARK_MS, TIME_MAX_MS },
};

static belay_rc check_space_row(struct check *c, const struct row *row,
                                struct belay_error *err)
{
    for (unsigned i = 0; i < HAS_ROWS; i++) {
        if (row->type != space_rows[i].type)
            continue;
        c->has |= 1U << i;
        int64_t n = row_i64(row, space_rows[i].column, -1);
        if (n < 0 || n > space_rows[i].max)
            return check_found(c, "bad_value", bytes_str(row->type->name), err,
                               "%s: %" PRId64 " is out of bounds",
                               row->type->columns[space_rows[i].column].name, n);
    }
    if (row->type == &row_format && row_i64(row, FORMAT_MIN_READER, 0) > SCHEMA_FORMAT)
        return check_found(c, "unsupported_format", bytes_str(row->type->name), err,
                           "format: %" PRId64 " is newer than this program",
                           row_i64(row, FORMAT_FORMAT, 0));
    if (row->type == &row_format && row_i64(row, FORMAT_FORMAT, 0) < SCHEMA_OLDEST)
        return check_found(c, "unsupported_format", bytes_str(row->type->name), err,
                           "format: %" PRId64 " is too old for this program",
                           row_i64(row, FORMAT_FORMAT, 0));
    return BELAY_OK;
}

/* A namespace that was registered and never written to has none of them. */
static belay_rc check_space_rows_end(struct check *c, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (unsigned i = 0; i < HAS_ROWS && c->holds_anything && rc == BELAY_OK; i++) {
        if (!(c->has & (1U << i)))
            rc = check_found(c, "missing_row", bytes_str(space_rows[i].type->name), err,
                             "every namespace has a row %s", space_rows[i].type->name);
    }
    return rc;
}

/* --- a walk --- */

/* The namespaces of the registry. */
struct check_name {
    struct check_name *next;
    struct bytes name;
    bool deleting;
};
struct check_names {
    struct belay_arena arena;
    struct check_name *first, **last;
};

static belay_rc keep_name(struct check_names *names, const struct row *row,
                          struct belay_error *err)
{
    struct check_name *n = arena_zalloc(&names->arena, 1, sizeof(*n));

    if (!n || !arena_copy(&names->arena, row_bytes(row, NAMESPACE_NAME), &n->name))
        return err_no_memory(err, "a check");
    n->deleting =
        bytes_eq(row_bytes(row, NAMESPACE_STATE), bytes_str(NAMESPACE_DELETING));
    *names->last = n;
    names->last = &n->next;
    return BELAY_OK;
}

static belay_rc keep_head(struct check *c, const struct row *row,
                          struct belay_error *err)
{
    for (unsigned i = 0; i < AUDIT_HEAD_COLUMNS; i++) {
        c->head_values[i] = row->v[i];
        if (!arena_copy(&c->arena, row->v[i].b, &c->head_values[i].b))
            return err_no_memory(err, "a check");
    }
    c->head = (struct row){ .type = row->type, .ver = row->ver, .v = c->head_values };
    c->has_head = true;
    return BELAY_OK;
}

static belay_rc check_row(struct check *c, const struct row *row,
                          struct belay_error *err)
{
    belay_rc rc = check_space_row(c, row, err);

    c->counts->rows++;
    for (size_t i = 0; i < COUNT_OF(index_rules) && rc == BELAY_OK; i++) {
        if (row->type == index_rules[i].type)
            rc = expect_rank(c, &index_rules[i], row, err);
    }
    for (size_t i = 0; i < COUNT_OF(row_rules) && rc == BELAY_OK; i++) {
        if (row->type == row_rules[i].type)
            rc = row_rules[i].check(c, row, err);
    }
    if (rc)
        return rc;
    if (row->type == &row_namespace && c->names)
        return keep_name(c->names, row, err);
    if (row->type == &row_audit_head)
        return keep_head(c, row, err);
    if (row->type == &row_blob)
        return check_blob_row(c, row, err);
    return row->type == &row_upload ? check_upload_row(c, row, err) : BELAY_OK;
}

/* Logs begin anywhere, since they may be trimmed, and have no gap; the audit log is
 * never trimmed. */
static belay_rc check_log(struct check *c, const struct item *item,
                          struct belay_error *err)
{
    c->counts->logs++;
    if (bytes_eq(item->name, bytes_str(AUDIT_STREAM))) {
        c->counts->audits++;
        return audit_walk_entry(&c->audit, item->number, item->data, err);
    }
    struct bytes commits = bytes_str(COMMIT_STREAM);
    if (item->name.len > commits.len &&
        memcmp(item->name.ptr, commits.ptr, commits.len) == 0) {
        struct bytes session =
            bytes_of(item->name.ptr + commits.len, item->name.len - commits.len);
        belay_rc rc = check_seen(c, TALLY_COMMITS, session, item->number, err);
        if (rc)
            return rc;
    }
    belay_rc rc = check_frame_entry(c, item, err);
    if (rc == BELAY_OK)
        rc = check_event_entry(c, item, err);
    if (rc)
        return rc;
    bool same = bytes_eq(buf_view(&c->stream), item->name);
    int64_t before = c->seq;
    c->seq = item->number;
    if (same && item->number == before + 1)
        return BELAY_OK;
    if (same || item->number < 1)
        return check_found(c, "log_gap", item->name, err,
                           "log: entry %" PRId64 " follows entry %" PRId64,
                           item->number, same ? before : 0);
    buf_reset(&c->stream);
    buf_append(&c->stream, item->name);
    return c->stream.failed ? err_no_memory(err, "a check") : BELAY_OK;
}

static belay_rc check_item(void *arg, const struct item *item, struct belay_error *err)
{
    struct check *c = arg;

    /* Commit slots may be there before the namespace is founded. */
    bool internal =
        (item->kind == ITEM_ROW && row_type_is(item->row->type, ROW_INTERNAL)) ||
        (item->kind == ITEM_RANK && bytes_eq(item->name, bytes_str(SLOT_INDEX)));
    c->holds_anything = c->holds_anything || !internal;
    switch (item->kind) {
    case ITEM_ROW:
        return check_row(c, item->row, err);
    case ITEM_RANK:
        return check_rank(c, item, err);
    case ITEM_LOG:
        return check_log(c, item, err);
    case ITEM_FEED: /* a walk tells places, not positions: those are the driver's */
        c->counts->feeds++;
        return BELAY_OK;
    case ITEM_CHUNK:
        return check_chunk(c, item, err);
    }
    return BELAY_OK;
}

static belay_rc check_end(struct check *c, struct belay_error *err)
{
    audit_walk_end(&c->audit, c->has_head ? &c->head : NULL);
    belay_rc rc = check_space_rows_end(c, err);

    if (rc == BELAY_OK)
        rc = check_ranks_end(c, err);
    if (rc == BELAY_OK)
        rc = check_blobs_end(c, err);
    if (rc == BELAY_OK)
        rc = check_tallies_end(c, err);
    if (rc == BELAY_OK)
        rc = check_executions_end(c, err);
    if (rc == BELAY_OK)
        rc = check_processes_end(c, err);
    if (rc == BELAY_OK && c->audit.reason)
        rc = check_found(c, "audit_broken", bytes_str(AUDIT_STREAM), err,
                         "audit log: %s at %" PRId64, c->audit.reason,
                         c->audit.broken_at);
    return rc;
}

static void check_release(struct check *c)
{
    check_blobs_release(c);
    buf_release(&c->stream);
    buf_release(&c->orphan);
    arena_release(&c->arena);
}

/* Looks at one namespace.  What was damaged so that it cannot even be read is a finding
 * like any other. */
static belay_rc check_space(struct store *s, struct check *c, struct belay_error *err)
{
    struct belay_error local = { .code = 0 };
    belay_rc rc = driver_walk(store_driver(s), c->ns, check_item, c, &local);

    if (rc == BELAY_CORRUPT)
        return check_found(c, "unreadable", bytes_of(NULL, 0), err, "%s",
                           local.message);
    if (rc == BELAY_OK)
        return check_end(c, err);
    if (err)
        *err = local;
    return rc;
}

static belay_rc check_namespace(struct store *s, struct bytes ns,
                                struct check_names *names, struct teller *t,
                                struct belay_error *err)
{
    CLEANUP(check_release)
    struct check c = { .ns = ns, .counts = t->counts, .names = names };
    bool active = true;

    c.last = &c.first;
    t->counts->namespaces++;
    belay_rc rc = check_space(s, &c, err);
    /* Somebody may have begun to delete it after the registry was read. */
    if (rc == BELAY_OK && c.first && !names)
        rc = namespaces_is_active(s, ns, &active, err);
    for (struct check_finding *f = c.first; f && rc == BELAY_OK && active; f = f->next)
        tell(t, &f->f);
    return rc;
}

static void names_release(struct check_names *names)
{
    arena_release(&names->arena);
}

static belay_rc check_all(struct store *s, struct teller *t, struct belay_error *err)
{
    CLEANUP(names_release) struct check_names names = { .first = NULL };

    names.last = &names.first;
    belay_rc rc = check_namespace(s, bytes_str(SYSTEM_NAMESPACE), &names, t, err);
    for (const struct check_name *n = names.first; n && rc == BELAY_OK; n = n->next) {
        if (n->deleting)
            t->counts->deleting++;
        else
            rc = check_namespace(s, n->name, NULL, t, err);
    }
    return rc;
}

belay_rc check_store(struct store *s, finding_report *report, void *arg,
                     struct check_counts *out, struct belay_error *err)
{
    struct check_counts counts = { 0 };
    struct teller t = { .report = report, .arg = arg, .counts = &counts };
    struct belay_error local = { .code = 0 };
    belay_rc rc = driver_check(store_driver(s), tell, &t, &local);

    if (rc == BELAY_CORRUPT) {
        tell(&t, &(struct finding){ .level = FINDING_BAD,
                                    .what = "unreadable",
                                    .message = local.message });
        rc = BELAY_OK;
    }
    if (rc == BELAY_OK)
        rc = check_all(s, &t, &local);
    if (rc == BELAY_OK)
        *out = counts;
    else if (err)
        *err = local;
    return rc;
}
