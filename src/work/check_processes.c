/* Processes: that they stand where their rows say, that status, log and what is beside it
 * agree, that every wake and every grant has all that belongs to it and nothing else. */
#include <inttypes.h>

#include "base/clock.h"
#include "work/check_impl.h"
#include "work/process_event.h"
#include "work/process_grants.h"

/* What is told of a process by its rows, and by its log. */
enum beside {
    BESIDE_REF,
    BESIDE_END,
    BESIDE_KEY,
    BESIDE_PAYLOAD,
    BESIDE_WAKE,
    BESIDES
};

struct check_process {
    struct check_entry entry; /* key: its id */
    bool there, deleting, ended, spec;
    int64_t first_seq, last_seq, terminal_seq;
    int64_t logged, first_seen, last_seen, terminal_seen, terminals;
    int64_t rows[BESIDES],
        said[BESIDES]; /* how many there are; of the log: should be */
    int64_t targets;   /* wakes that are the one of their target and wake id */
};

static const char *const besides[] = {
    [BESIDE_REF] = "external refs", [BESIDE_END] = "ends",
    [BESIDE_KEY] = "replay keys",   [BESIDE_PAYLOAD] = "payloads",
    [BESIDE_WAKE] = "wakes",
};

static belay_rc process_of(struct check *c, struct bytes id, struct check_process **out,
                           struct belay_error *err)
{
    *out = (struct check_process *)check_find(&c->processes, id);
    if (*out)
        return BELAY_OK;
    struct check_process *new = arena_zalloc(&c->arena, 1, sizeof(*new));
    if (!new || !arena_copy(&c->arena, id, &new->entry.key) ||
        !check_add(&c->processes, &new->entry, &c->arena))
        return err_no_memory(err, "a check");
    *out = new;
    return BELAY_OK;
}

static belay_rc bad_value(struct check *c, const struct row *row, unsigned column,
                          struct belay_error *err)
{
    return check_found(c, "bad_value", row->v[0].b, err, "%s: %s cannot be what it is",
                       row->type->name, row->type->columns[column].name);
}

/* prefix + name, expected to hold a member. */
static belay_rc expect_in(struct check *c, const char *prefix, struct bytes name,
                          struct bytes member, int64_t rank, struct belay_error *err)
{
    struct bytes index;

    if (!proc_name(prefix, name, &c->arena, &index))
        return err_no_memory(err, "a check");
    return check_expect_rank(c, index, member, rank, err);
}

/* --- the process --- */

/* What is there exactly when somebody holds it. */
static const unsigned held_columns[] = {
    PROCESS_LEASE + LEASE_OWNER,
    PROCESS_LEASE + LEASE_TOKEN,
    PROCESS_LEASE + LEASE_ID,
    PROCESS_LEASE + LEASE_CLAIMED_AT_MS,
    PROCESS_LEASE + LEASE_EXPIRES_AT_MS,
};

static unsigned lease_fault(const struct row *row)
{
    struct lease l = lease_of(row, PROCESS_LEASE);
    bool held = lease_is_granted(&l);

    for (size_t i = 0; i < COUNT_OF(held_columns); i++) {
        if ((row->v[held_columns[i]].kind == VALUE_NULL) == held)
            return held_columns[i];
    }
    if (l.fence < held || l.fence > TIME_MAX_MS)
        return PROCESS_LEASE + LEASE_FENCE;
    return l.expires_at_ms < l.claimed_at_ms ? PROCESS_LEASE + LEASE_EXPIRES_AT_MS
                                             : PROCESS_COLUMNS;
}

belay_rc check_process_row(struct check *c, const struct row *row,
                           struct belay_error *err)
{
    struct bytes id = row_bytes(row, PROCESS_ID), word = row_bytes(row, PROCESS_STATUS);
    int status = proc_status_of(word);
    struct check_process *p;
    belay_rc rc = process_of(c, id, &p, err);

    if (rc)
        return rc;
    p->there = true;
    p->deleting = status == PROC_DELETING;
    p->ended = status > BELAY_PROCESS_RUNNING;
    p->first_seq = row_i64(row, PROCESS_FIRST_SEQ, 1);
    p->last_seq = row_i64(row, PROCESS_LAST_SEQ, 0);
    p->terminal_seq = row_i64(row, PROCESS_TERMINAL_SEQ, 0);
    if (status < 0)
        return bad_value(c, row, PROCESS_STATUS, err);
    unsigned column = lease_fault(row);
    if (column < PROCESS_COLUMNS)
        rc = bad_value(c, row, column, err);
    bool timed = row->v[PROCESS_PURGE_AT_MS].kind == VALUE_I64;
    if (rc == BELAY_OK && timed == (status == BELAY_PROCESS_RUNNING))
        rc = bad_value(c, row, PROCESS_PURGE_AT_MS, err);
    if (rc == BELAY_OK)
        rc = expect_in(c, PROCESS_STATUS_INDEX, word, id,
                       row_i64(row, PROCESS_PURGE_AT_MS, 0), err);
    return rc;
}

belay_rc check_process_spec_row(struct check *c, const struct row *row,
                                struct belay_error *err)
{
    struct bytes id = row_bytes(row, PROCESS_SPEC_ID);
    int64_t created = row_i64(row, PROCESS_SPEC_CREATED_AT_MS, 0);
    struct check_process *p;
    belay_rc rc = process_of(c, id, &p, err);

    if (rc)
        return rc;
    p->spec = true;
    rc = check_expect_rank(c, bytes_str(PROCESS_INDEX), id, created, err);
    return rc ? rc
              : expect_in(c, PROCESS_OWNER_INDEX,
                          row_bytes(row, PROCESS_SPEC_OWNER_SESSION), id, created, err);
}

belay_rc check_process_part_row(struct check *c, const struct row *row,
                                struct belay_error *err)
{
    static const struct row_type *const types[] = {
        [BESIDE_REF] = &row_process_ref,
        [BESIDE_END] = &row_process_end,
        [BESIDE_KEY] = &row_process_key,
        [BESIDE_PAYLOAD] = &row_process_payload,
    };
    struct check_process *p;
    belay_rc rc = process_of(c, row->v[0].b, &p, err);

    for (size_t i = 0; i < COUNT_OF(types) && rc == BELAY_OK; i++)
        p->rows[i] += row->type == types[i];
    return rc;
}

/* --- wakes --- */

belay_rc check_wake_row(struct check *c, const struct row *row, struct belay_error *err)
{
    char text[I64_TEXT_MAX];
    int64_t seq = row_i64(row, WAKE_SEQ, 0);
    bool queued = bytes_eq(row_bytes(row, WAKE_STATE),
                           bytes_str(proc_wake_state_name(BELAY_WAKE_QUEUED)));
    struct check_process *p;
    belay_rc rc = process_of(c, row_bytes(row, WAKE_PROCESS), &p, err);

    if (rc)
        return rc;
    p->rows[BESIDE_WAKE]++;
    if (queued != (row->v[WAKE_SETTLED_AT_MS].kind == VALUE_NULL))
        return bad_value(c, row, WAKE_SETTLED_AT_MS, err);
    if (!queued)
        return BELAY_OK;
    return expect_in(c, WAKE_INDEX, row_bytes(row, WAKE_PROCESS),
                     bytes_of(text, bytes_put_i64(text, seq)), seq, err);
}

belay_rc check_wake_target_row(struct check *c, const struct row *row,
                               struct belay_error *err)
{
    struct check_process *p;
    belay_rc rc = process_of(c, row_bytes(row, WAKE_TARGET_PROCESS), &p, err);

    if (rc == BELAY_OK)
        p->targets++;
    return rc;
}

/* --- grants --- */

belay_rc check_handle_grant_row(struct check *c, const struct row *row,
                                struct belay_error *err)
{
    CLEANUP(buf_release) struct buf scope = { 0 }, member = { 0 };
    struct bytes session = row_bytes(row, HANDLE_GRANT_SESSION),
                 frame = row_bytes(row, HANDLE_GRANT_FRAME),
                 process = row_bytes(row, HANDLE_GRANT_PROCESS);
    struct check_process *p;

    buf_append(&scope, session);
    buf_append_char(&scope, '\x1f');
    buf_append(&scope, frame);
    buf_append(&member, frame);
    buf_append_char(&member, '\x1f');
    buf_append(&member, process);
    if (scope.failed || member.failed)
        return err_no_memory(err, "a check");
    belay_rc rc = process_of(c, process, &p, err);
    if (rc == BELAY_OK)
        rc = expect_in(c, GRANT_INDEX, buf_view(&scope), process, 0, err);
    if (rc == BELAY_OK)
        rc = expect_in(c, GRANTED_TO_INDEX, process, buf_view(&scope), 0, err);
    if (rc == BELAY_OK)
        rc = expect_in(c, SESSION_GRANT_INDEX, session, buf_view(&member), 0, err);
    if (rc == BELAY_OK)
        rc = check_seen(c, TALLY_GRANTS_OF_PROCESS, process, 0, err);
    return rc ? rc : check_seen(c, TALLY_GRANTS_OF_SESSION, session, 0, err);
}

belay_rc check_grant_count_row(struct check *c, const struct row *row,
                               struct belay_error *err)
{
    bool of_process =
        bytes_eq(row_bytes(row, GRANT_COUNT_NOUN), bytes_str(GRANTS_OF_PROCESS));

    return check_told(c, of_process ? TALLY_GRANTS_OF_PROCESS : TALLY_GRANTS_OF_SESSION,
                      row_bytes(row, GRANT_COUNT_ID), row_i64(row, GRANT_COUNT_N, -1),
                      err);
}

/* --- the log --- */

belay_rc check_event_entry(struct check *c, const struct item *item,
                           struct belay_error *err)
{
    const size_t prefix = sizeof(PROCESS_STREAM) - 1;
    struct arena_mark mark;
    struct check_process *p;
    struct proc_event e;

    if (item->name.len <= prefix || memcmp(item->name.ptr, PROCESS_STREAM, prefix) != 0)
        return BELAY_OK;
    belay_rc rc = process_of(
        c, bytes_of(item->name.ptr + prefix, item->name.len - prefix), &p, err);
    if (rc)
        return rc;
    if (p->logged++ == 0)
        p->first_seen = item->number;
    p->last_seen = item->number;
    mark = arena_mark(&c->arena);
    rc = event_read(item->data, &c->arena, &e, err);
    if (rc == BELAY_OK) {
        p->said[BESIDE_KEY] += e.key.ptr != NULL;
        p->said[BESIDE_PAYLOAD] += e.apart;
        p->said[BESIDE_WAKE] += e.wakes;
        p->terminals += e.terminal != 0;
        p->terminal_seen = e.terminal ? item->number : p->terminal_seen;
    }
    arena_rewind(&c->arena, mark);
    if (rc != BELAY_CORRUPT)
        return rc;
    return check_found(c, "bad_value", p->entry.key, err,
                       "process: event %" PRId64 " cannot be read", item->number);
}

/* --- at the end --- */

static belay_rc end_log(struct check *c, const struct check_process *p,
                        struct belay_error *err)
{
    int64_t kept = p->last_seq - p->first_seq + 1;
    bool same =
        kept == p->logged &&
        (kept == 0 || (p->first_seq == p->first_seen && p->last_seq == p->last_seen));

    if (!same) /* E1 */
        return check_found(
            c, "wrong_count", p->entry.key, err,
            "events: %" PRId64 " to %" PRId64 " by the process, found %" PRId64
            " of them, %" PRId64 " to %" PRId64,
            p->first_seq, p->last_seq, p->logged, p->first_seen, p->last_seen);
    if (p->deleting)
        return BELAY_OK;
    bool agrees = p->terminal_seq == p->terminal_seen && p->terminals == p->ended &&
                  (p->terminal_seq > 0) == p->ended;
    if (!agrees) /* P2 */
        return check_found(c, "wrong_status", p->entry.key, err,
                           "process: ended by event %" PRId64
                           " as its row says, by %" PRId64 " as the log does",
                           p->terminal_seq, p->terminal_seen);
    return BELAY_OK;
}

static belay_rc end_beside(struct check *c, const struct check_process *p,
                           struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (!p->deleting && !p->spec)
        rc = check_found(c, "missing_row", p->entry.key, err,
                         "process: what was registered is missing");
    if (rc == BELAY_OK && !p->deleting && p->rows[BESIDE_END] != p->ended)
        rc = check_found(c, "wrong_count", p->entry.key, err,
                         "process: what it left does not go with its status");
    if (rc == BELAY_OK && p->targets > p->rows[BESIDE_WAKE])
        rc = check_found(c, "orphan_row", p->entry.key, err,
                         "wake_target: %" PRId64 " of them, and %" PRId64 " wakes",
                         p->targets, p->rows[BESIDE_WAKE]);
    for (int i = BESIDE_KEY; i < BESIDES && rc == BELAY_OK; i++) {
        if (p->rows[i] != p->said[i])
            rc = check_found(c, "wrong_count", p->entry.key, err,
                             "%s: %" PRId64 " by the log, found %" PRId64, besides[i],
                             p->said[i], p->rows[i]);
    }
    return rc;
}

belay_rc check_processes_end(struct check *c, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < c->processes.n_buckets; i++) {
        for (struct check_entry *e = c->processes.buckets[i]; e && rc == BELAY_OK;
             e = e->next) {
            const struct check_process *p = (const struct check_process *)e;
            if (!p->there) {
                rc = check_found(c, "orphan_row", p->entry.key, err,
                                 "process: it has no row, and others that are its own");
                continue;
            }
            rc = end_log(c, p, err);
            if (rc == BELAY_OK)
                rc = end_beside(c, p, err);
        }
    }
    return rc;
}
