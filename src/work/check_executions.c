/* Executions: that they stand where their rows say, that the rows can be true, and that
 * what belongs to one is all there and nothing else is. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/json.h"
#include "store/blob.h"
#include "work/check_impl.h"
#include "work/exec_submit.h"

#define VECTORS_MAX 1024

/* Something that rows of several types are about: one has it, others name it. */
enum part { PART_EXECUTION, PART_SPEC, PART_GRANT, PART_LANE, PART_ROUTE, PART_FRAMES };

struct check_part {
    struct check_entry entry; /* key: part, name */
    enum part part;
    struct bytes name;
    bool there, named;
    int64_t created_at_ms;        /* of an execution */
    int64_t attempts, rows, last; /* its attempts, their rows, the last of those */
    int64_t first_seq, last_seq;  /* of frames, by their head ... */
    int64_t first_seen, last_seen, logged; /* ... and as the log has them */
};

/* What it means when only one of the two is true. */
static const struct {
    const char *what;
    bool unless_named; /* what is there and named by nobody is wrong, too */
} parts[] = {
    [PART_EXECUTION] = { "an execution", false },
    [PART_SPEC] = { "what was submitted", true },
    [PART_GRANT] = { "a grant", true },
    [PART_LANE] = { "a lane", false },
    [PART_ROUTE] = { "a route", false },
    [PART_FRAMES] = { "the head of frames", false },
};

static belay_rc part_of(struct check *c, enum part part, struct bytes name,
                        struct check_part **out, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf key = { 0 };

    buf_append_char(&key, (char)('a' + (int)part));
    buf_append(&key, name);
    if (key.failed)
        return err_no_memory(err, "a check");
    *out = (struct check_part *)check_find(&c->executions, buf_view(&key));
    if (*out)
        return BELAY_OK;
    struct check_part *new = arena_zalloc(&c->arena, 1, sizeof(*new));
    if (!new || !arena_copy(&c->arena, buf_view(&key), &new->entry.key) ||
        !check_add(&c->executions, &new->entry, &c->arena))
        return err_no_memory(err, "a check");
    new->part = part;
    new->name = bytes_of(new->entry.key.ptr + 1, new->entry.key.len - 1);
    new->last = -1;
    *out = new;
    return BELAY_OK;
}

static belay_rc has(struct check *c, enum part part, struct bytes name,
                    struct belay_error *err)
{
    struct check_part *p;
    belay_rc rc = part_of(c, part, name, &p, err);

    if (rc == BELAY_OK)
        p->there = true;
    return rc;
}

static belay_rc names(struct check *c, enum part part, struct bytes name,
                      struct belay_error *err)
{
    struct check_part *p;
    belay_rc rc = part_of(c, part, name, &p, err);

    if (rc == BELAY_OK)
        p->named = true;
    return rc;
}

static belay_rc bad_value(struct check *c, const struct row *row, struct bytes entity,
                          unsigned column, struct belay_error *err)
{
    return check_found(c, "bad_value", entity, err, "%s: %s cannot be what it is",
                       row->type->name, row->type->columns[column].name);
}

/* --- the vector --- */

static const struct {
    unsigned column;
    enum belay_dimension dim;
} dimensions[] = {
    { EXEC_PHASE, BELAY_DIM_PHASE },
    { EXEC_OWNERSHIP, BELAY_DIM_OWNERSHIP },
    { EXEC_ELIGIBILITY, BELAY_DIM_ELIGIBILITY },
    { EXEC_BLOCKING, BELAY_DIM_BLOCKING },
    { EXEC_OUTCOME, BELAY_DIM_OUTCOME },
    { EXEC_ATTEMPT_STATE, BELAY_DIM_ATTEMPT_STATE },
};

/* The first column that holds what it cannot, or EXEC_COLUMNS. */
static unsigned read_vector(const struct row *row, struct belay_vector *out)
{
    int32_t *const at[] = { &out->phase,    &out->ownership, &out->eligibility,
                            &out->blocking, &out->outcome,   &out->attempt };

    for (size_t i = 0; i < COUNT_OF(dimensions); i++) {
        int value;
        if (!vector_parse(dimensions[i].dim, row_bytes(row, dimensions[i].column),
                          &value))
            return dimensions[i].column;
        *at[i] = value;
    }
    const char *state = vector_name(BELAY_DIM_STATE, (int)vector_state(out)); /* V1 */
    bool same = state && bytes_eq(row_bytes(row, EXEC_STATE), bytes_str(state));
    return same ? EXEC_COLUMNS : EXEC_STATE;
}

/* Whether any steps lead to it. */
static belay_rc check_vector(struct check *c, const struct exec *e,
                             struct belay_error *err)
{
    if (!c->vectors) {
        c->vectors = arena_zalloc(&c->arena, VECTORS_MAX, sizeof(*c->vectors));
        if (!c->vectors)
            return err_no_memory(err, "a check");
        size_t n = step_reachable(c->vectors, VECTORS_MAX);
        c->n_vectors = n < VECTORS_MAX ? n : VECTORS_MAX;
    }
    for (size_t i = 0; i < c->n_vectors; i++) {
        if (vector_eq(&c->vectors[i], &e->vector))
            return BELAY_OK;
    }
    return check_found(c, "bad_vector", e->id, err,
                       "execution: no steps lead to the state it is in");
}

/* --- where it stands --- */

/* Whether the rank is what the place asks for; of a leased one it is a lower bound. */
static bool rank_fits(const struct exec *e)
{
    int64_t rank = exec_i64(e, EXEC_RANK, 0);

    switch (vector_place(&e->vector)) {
    case PLACE_READY:
        return rank == exec_i64(e, EXEC_GRANT_UNTIL_MS,
                                exec_order(exec_i64(e, EXEC_CREATED_AT_MS, 0),
                                           exec_i64(e, EXEC_PRIORITY, 0)));
    case PLACE_DELAYED:
        return rank == exec_i64(e, EXEC_DELAY_UNTIL_MS, rank);
    case PLACE_DONE:
        return rank == time_add_ms(exec_i64(e, EXEC_FINISHED_AT_MS, 0),
                                   exec_i64(e, EXEC_RETENTION_MS, BELAY_RETENTION_MS));
    case PLACE_LEASED:
    case PLACE_HELD:
        break;
    }
    return rank >= 0;
}

static belay_rc expect_timed(struct check *c, const struct exec *e, const char *index,
                             unsigned column, struct belay_error *err)
{
    if (e->v[column].kind != VALUE_I64)
        return BELAY_OK;
    return check_expect_rank(c, bytes_str(index), e->id, e->v[column].i, err);
}

/* W1: one place, and the lists that it is in. */
static belay_rc expect_standing(struct check *c, const struct exec *e,
                                struct belay_error *err)
{
    struct bytes place;

    if (!exec_index(e, &c->arena, &place))
        return err_no_memory(err, "a check");
    belay_rc rc = check_expect_rank(c, place, e->id, exec_i64(e, EXEC_RANK, 0), err);
    if (rc == BELAY_OK)
        rc = check_expect_rank(c, bytes_str(EXECUTION_INDEX), e->id,
                               exec_i64(e, EXEC_CREATED_AT_MS, 0), err);
    if (rc == BELAY_OK)
        rc = expect_timed(c, e, LOST_INDEX, EXEC_LOST_AT_MS, err);
    if (rc == BELAY_OK && !vector_is_terminal(&e->vector))
        rc = expect_timed(c, e, DEADLINE_INDEX, EXEC_DEADLINE_AT_MS, err);
    if (rc == BELAY_OK && !rank_fits(e))
        rc = bad_value(c, e->row, e->id, EXEC_RANK, err);
    return rc;
}

/* --- what belongs to it --- */

static belay_rc route_name(struct buf *out, struct bytes lane, struct bytes route,
                           struct belay_error *err)
{
    buf_append(out, lane);
    buf_append_char(out, '\0');
    buf_append(out, route);
    return out->failed ? err_no_memory(err, "a check") : BELAY_OK;
}

static belay_rc name_parts(struct check *c, const struct exec *e,
                           struct belay_error *err)
{
    CLEANUP(buf_release) struct buf route = { 0 };
    struct bytes lane = exec_bytes(e, EXEC_LANE);
    belay_rc rc = names(c, PART_SPEC, e->id, err);

    if (rc == BELAY_OK)
        rc = names(c, PART_LANE, lane, err);
    if (rc == BELAY_OK)
        rc = route_name(&route, lane, exec_bytes(e, EXEC_ROUTE), err);
    if (rc == BELAY_OK)
        rc = names(c, PART_ROUTE, buf_view(&route), err);
    if (rc == BELAY_OK && e->v[EXEC_GRANT].kind != VALUE_NULL)
        rc = names(c, PART_GRANT, exec_bytes(e, EXEC_GRANT), err);
    return rc;
}

belay_rc check_execution_row(struct check *c, const struct row *row,
                             struct belay_error *err)
{
    struct exec e = { .row = row, .id = row_bytes(row, EXEC_ID), .due_ms = TIME_NONE };
    struct check_part *p;
    unsigned column = read_vector(row, &e.vector);
    belay_rc rc = part_of(c, PART_EXECUTION, e.id, &p, err);

    if (rc)
        return rc;
    memcpy(e.v, row->v, sizeof(e.v));
    p->there = true;
    p->created_at_ms = exec_i64(&e, EXEC_CREATED_AT_MS, 0);
    p->attempts = exec_i64(&e, EXEC_ATTEMPTS, 0);
    if (column != EXEC_COLUMNS) /* where it stands cannot be told */
        return bad_value(c, row, e.id, column, err);
    rc = check_vector(c, &e, err);
    if (rc == BELAY_OK)
        rc = expect_standing(c, &e, err);
    return rc ? rc : name_parts(c, &e, err);
}

static belay_rc check_blob_name(struct check *c, const struct row *row,
                                struct bytes entity, unsigned column,
                                struct belay_error *err)
{
    struct bytes name = row_bytes(row, column);

    if (row->v[column].kind == VALUE_NULL)
        return BELAY_OK;
    return blob_is_name(name) ? check_told(c, TALLY_BLOB, name, 1, err)
                              : bad_value(c, row, entity, column, err);
}

/* Tags are listed under the time of the execution, whose row comes before this one. */
static belay_rc expect_tags(struct check *c, const struct row *row,
                            struct belay_error *err)
{
    CLEANUP(json_decrefp) json_t *tags = NULL;
    struct bytes id = row_bytes(row, SPEC_ID), text = row_bytes(row, SPEC_TAGS), index;
    struct check_part *p;
    const char *key;
    json_t *value;

    if (row->v[SPEC_TAGS].kind == VALUE_NULL)
        return BELAY_OK;
    belay_rc rc = json_read(text, text.len, &tags, NULL);
    if (rc == BELAY_NO_MEMORY)
        return err_no_memory(err, "a check");
    if (rc || !json_is_object(tags))
        return bad_value(c, row, id, SPEC_TAGS, err);
    rc = part_of(c, PART_EXECUTION, id, &p, err);
    json_object_foreach(tags, key, value)
    {
        struct belay_tag tag = { key, json_string_value(value) };
        if (rc)
            break;
        if (!tag.value)
            return bad_value(c, row, id, SPEC_TAGS, err);
        if (!exec_tag_index(&tag, &c->arena, &index))
            return err_no_memory(err, "a check");
        rc = check_expect_rank(c, index, id, p->created_at_ms, err);
    }
    return rc;
}

belay_rc check_execution_spec_row(struct check *c, const struct row *row,
                                  struct belay_error *err)
{
    struct bytes id = row_bytes(row, SPEC_ID);
    belay_rc rc = has(c, PART_SPEC, id, err);

    if (rc == BELAY_OK)
        rc = check_blob_name(c, row, id, SPEC_PAYLOAD_BLOB, err);
    return rc ? rc : expect_tags(c, row, err);
}

belay_rc check_execution_end_row(struct check *c, const struct row *row,
                                 struct belay_error *err)
{
    struct bytes id = row_bytes(row, END_ID);
    belay_rc rc = names(c, PART_EXECUTION, id, err);

    return rc ? rc : check_blob_name(c, row, id, END_RESULT_BLOB, err);
}

belay_rc check_execution_progress_row(struct check *c, const struct row *row,
                                      struct belay_error *err)
{
    return names(c, PART_EXECUTION, row_bytes(row, PROGRESS_ID), err);
}

belay_rc check_attempt_row(struct check *c, const struct row *row,
                           struct belay_error *err)
{
    int64_t index = row_i64(row, ATTEMPT_INDEX, 0);
    struct check_part *p;
    belay_rc rc =
        part_of(c, PART_EXECUTION, row_bytes(row, ATTEMPT_EXECUTION), &p, err);

    if (rc)
        return rc;
    p->named = true;
    p->rows++;
    p->last = index > p->last ? index : p->last;
    return BELAY_OK;
}

belay_rc check_execution_key_row(struct check *c, const struct row *row,
                                 struct belay_error *err)
{
    return check_expect_rank(c, bytes_str(EXECUTION_KEY_INDEX),
                             row_bytes(row, EXEC_KEY_KEY),
                             row_i64(row, EXEC_KEY_UNTIL_MS, 0), err);
}

belay_rc check_execution_grant_row(struct check *c, const struct row *row,
                                   struct belay_error *err)
{
    belay_rc rc = names(c, PART_EXECUTION, row_bytes(row, GRANT_EXECUTION), err);

    return rc ? rc : has(c, PART_GRANT, row_bytes(row, GRANT_ID), err);
}

/* --- lanes --- */

belay_rc check_lane_row(struct check *c, const struct row *row, struct belay_error *err)
{
    struct bytes lane = row_bytes(row, LANE_LANE);
    belay_rc rc = has(c, PART_LANE, lane, err);

    return rc ? rc : check_expect_rank(c, bytes_str(LANE_INDEX), lane, 0, err);
}

belay_rc check_route_row(struct check *c, const struct row *row,
                         struct belay_error *err)
{
    CLEANUP(buf_release) struct buf name = { 0 }, index = { 0 };
    struct bytes lane = row_bytes(row, ROUTE_LANE), route = row_bytes(row, ROUTE_ROUTE);
    belay_rc rc = route_name(&name, lane, route, err);

    buf_append_str(&index, ROUTE_INDEX);
    buf_append(&index, lane);
    if (index.failed)
        return err_no_memory(err, "a check");
    if (rc == BELAY_OK)
        rc = has(c, PART_ROUTE, buf_view(&name), err);
    if (rc == BELAY_OK)
        rc = names(c, PART_LANE, lane, err);
    return rc ? rc : check_expect_rank(c, buf_view(&index), route, 0, err);
}

/* --- frames --- */

belay_rc check_frame_head_row(struct check *c, const struct row *row,
                              struct belay_error *err)
{
    CLEANUP(buf_release) struct buf stream = { 0 };
    struct bytes id = row_bytes(row, FRAME_HEAD_EXECUTION);
    struct check_part *p;

    buf_append(&stream, id);
    buf_append_char(&stream, '/');
    buf_append_i64(&stream, row_i64(row, FRAME_HEAD_ATTEMPT, 0));
    if (stream.failed)
        return err_no_memory(err, "a check");
    belay_rc rc = part_of(c, PART_FRAMES, buf_view(&stream), &p, err);
    if (rc)
        return rc;
    p->there = true;
    p->first_seq = row_i64(row, FRAME_HEAD_FIRST_SEQ, 0);
    p->last_seq = row_i64(row, FRAME_HEAD_LAST_SEQ, 0);
    return names(c, PART_EXECUTION, id, err);
}

belay_rc check_frame_entry(struct check *c, const struct item *item,
                           struct belay_error *err)
{
    const size_t prefix = sizeof(FRAME_STREAM) - 1;
    struct check_part *p;

    if (item->name.len <= prefix || memcmp(item->name.ptr, FRAME_STREAM, prefix) != 0)
        return BELAY_OK;
    belay_rc rc =
        part_of(c, PART_FRAMES,
                bytes_of(item->name.ptr + prefix, item->name.len - prefix), &p, err);
    if (rc)
        return rc;
    p->named = true;
    if (p->logged++ == 0)
        p->first_seen = item->number;
    p->last_seen = item->number;
    return BELAY_OK;
}

/* --- at the end --- */

static belay_rc end_frames(struct check *c, const struct check_part *p,
                           struct belay_error *err)
{
    int64_t kept = p->last_seq - p->first_seq + 1;
    bool same =
        kept == p->logged &&
        (kept == 0 || (p->first_seq == p->first_seen && p->last_seq == p->last_seen));

    if (!p->there || same)
        return BELAY_OK;
    return check_found(
        c, "wrong_count", p->name, err,
        "frames: %" PRId64 " to %" PRId64 " by their head, found %" PRId64
        " of them, %" PRId64 " to %" PRId64,
        p->first_seq, p->last_seq, p->logged, p->first_seen, p->last_seen);
}

/* W3: those that have a row are numbered from 0 without a gap; the last attempt has one
 * only when another was to follow it. */
static belay_rc end_attempts(struct check *c, const struct check_part *p,
                             struct belay_error *err)
{
    bool adds_up = p->rows == p->last + 1 &&
                   (p->rows == p->attempts || p->rows == p->attempts - 1);

    if (!p->there || adds_up)
        return BELAY_OK;
    return check_found(c, "wrong_count", p->name, err,
                       "attempts: %" PRId64 " by the execution, found %" PRId64
                       " former ones, the last one is number %" PRId64,
                       p->attempts, p->rows, p->last);
}

static belay_rc end_part(struct check *c, const struct check_part *p,
                         struct belay_error *err)
{
    if (p->named && !p->there)
        return check_found(c, "missing_row", p->name, err, "%s: has no row",
                           parts[p->part].what);
    if (p->there && !p->named && parts[p->part].unless_named)
        return check_found(c, "orphan_row", p->name, err, "%s: belongs to nothing",
                           parts[p->part].what);
    if (p->part == PART_FRAMES)
        return end_frames(c, p, err);
    return p->part == PART_EXECUTION ? end_attempts(c, p, err) : BELAY_OK;
}

belay_rc check_executions_end(struct check *c, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < c->executions.n_buckets; i++) {
        for (struct check_entry *e = c->executions.buckets[i]; e && rc == BELAY_OK;
             e = e->next)
            rc = end_part(c, (const struct check_part *)e, err);
    }
    return rc;
}
