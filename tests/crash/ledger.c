#include "ledger.h"

#include <stdlib.h>

/* --- one step --- */

static belay_rc put_i64(struct txn *t, const struct row_type *type,
                        const struct value *key, unsigned column, int64_t n)
{
    struct change change = { column, value_i64(n) };

    return txn_put(t, type, key, &change, 1);
}

static belay_rc put_thing(struct txn *t, const char *id, const struct row *row,
                          int64_t n)
{
    struct value v[THING_COLUMNS] = { [THING_ID] = value_str(id),
                                      [THING_N] = value_i64(n),
                                      [THING_TEXT] = value_str(id),
                                      [THING_COUNT] = value_i64(0),
                                      [THING_HIGH] = value_i64(0) };

    return row ? put_i64(t, &row_thing, v, THING_N, n) : txn_insert(t, &row_thing, v);
}

static belay_rc move_parts(struct txn *t, struct ledger_step *s)
{
    struct value part[PART_COLUMNS] = { value_str(s->id), value_i64(s->step),
                                        value_i64(s->step * 7 + s->slot) };
    int64_t gone = s->step - LEDGER_KEPT;
    const struct row *row;
    belay_rc rc = txn_insert(t, &row_part, part);

    (void)snprintf(s->at, sizeof(s->at), "%s.%lld", s->id, (long long)s->step);
    rc = rc ? rc : txn_rank_add(t, bytes_str("steps"), s->step, bytes_str(s->at));
    rc = rc             ? rc
         : s->step == 1 ? txn_rank_add(t, bytes_str("last"), 1, bytes_str(s->id))
                        : txn_rank_move(t, bytes_str("last"), s->step - 1, s->step,
                                        bytes_str(s->id));
    if (rc || gone < 1)
        return rc;
    (void)snprintf(s->was, sizeof(s->was), "%s.%lld", s->id, (long long)gone);
    part[PART_NO] = value_i64(gone);
    rc = txn_rank_remove(t, bytes_str("steps"), gone, bytes_str(s->was));
    rc = rc ? rc : txn_get(t, &row_part, part, &row);
    return rc ? rc : txn_delete(t, &row_part, part);
}

static belay_rc write_down(struct txn *t, struct ledger_step *s)
{
    const struct row *head;
    struct bytes text = bytes_str(s->at);
    belay_rc rc = txn_get(t, &row_head, NULL, &head);
    int64_t seq = !rc && head ? row_i64(head, HEAD_N, 0) + 1 : 1;
    struct value v[HEAD_COLUMNS] = { value_i64(seq), value_i64(0) };

    if (rc)
        return rc;
    rc = head ? put_i64(t, &row_head, NULL, HEAD_N, seq) : txn_insert(t, &row_head, v);
    rc = rc ? rc
            : txn_add(t, &row_head, NULL, HEAD_COUNT, 1, INT64_MIN, INT64_MAX, NULL);
    rc = rc ? rc : txn_log_append(t, bytes_str("all"), seq, text);
    if (!rc && seq % LEDGER_LOG_KEPT == 0)
        rc = txn_log_trim(t, bytes_str("all"), seq - LEDGER_LOG_KEPT);
    return rc ? rc : txn_feed_append(t, bytes_str("done"), text, NULL);
}

static belay_rc transfer(struct txn *t, struct ledger_step *s)
{
    unsigned from = (unsigned)(s->step + s->slot) % LEDGER_ACCOUNTS;
    const struct row *a, *b;

    (void)snprintf(s->from, sizeof(s->from), "a%u", from);
    (void)snprintf(s->to, sizeof(s->to), "a%u", (from + 1) % LEDGER_ACCOUNTS);
    struct value ka = value_str(s->from), kb = value_str(s->to);
    belay_rc rc = txn_get(t, &row_thing, &ka, &a);
    rc = rc ? rc : txn_get(t, &row_thing, &kb, &b);
    if (rc)
        return rc;
    int64_t amount = s->step % 5 + 1;
    int64_t na = a ? row_i64(a, THING_N, 0) : LEDGER_OPENING;
    int64_t nb = b ? row_i64(b, THING_N, 0) : LEDGER_OPENING;
    rc = put_thing(t, s->from, a, na - amount);
    return rc ? rc : put_thing(t, s->to, b, nb + amount);
}

static uint8_t chunk_byte(int64_t step, size_t i)
{
    return (uint8_t)((size_t)step * 31 + i * 7 + i / 256);
}

belay_rc ledger_body(struct txn *t, void *arg)
{
    struct ledger_step *s = arg;
    const struct row *row;

    (void)snprintf(s->id, sizeof(s->id), "w%u", s->slot);
    struct value key = value_str(s->id);
    belay_rc rc = txn_get(t, &row_thing, &key, &row);
    if (rc)
        return rc;
    s->step = row ? row_i64(row, THING_N, 0) + 1 : 1;
    if (s->checkpoint)
        rig_checkpoint_soon(s->rig);
    rc = put_thing(t, s->id, row, s->step);
    rc = rc ? rc
            : txn_add(t, &row_thing, &key, THING_COUNT, 1, INT64_MIN, INT64_MAX, NULL);
    rc = rc ? rc : move_parts(t, s);
    rc = rc ? rc : write_down(t, s);
    rc = rc ? rc : transfer(t, s);
    if (rc || s->step % 4 != 0)
        return rc;
    for (size_t i = 0; i < sizeof(s->chunk); i++)
        s->chunk[i] = chunk_byte(s->step, i);
    return txn_chunk_put(t, bytes_str(s->id), s->step / 4 % 3,
                         bytes_of(s->chunk, sizeof(s->chunk)));
}

/* --- the check --- */

struct tally {
    struct ledger *out;
    int64_t count[LEDGER_SLOTS];
    int64_t parts[LEDGER_SLOTS], ranks[LEDGER_SLOTS], chunks[LEDGER_SLOTS];
    int64_t last[LEDGER_SLOTS];
    int64_t accounts, money;
    int64_t head, head_count;
    int64_t log_first, log_last;
    int64_t fed;
    char *why;
};

/* "w<slot>" or "w<slot>.<step>". */
static bool parse(struct bytes b, unsigned *slot, int64_t *step)
{
    const uint8_t *dot = b.len ? memchr(b.ptr, '.', b.len) : NULL;
    size_t end = dot ? (size_t)(dot - b.ptr) : b.len;
    int64_t n = 0;

    *step = 0;
    if (end < 2 || b.ptr[0] != 'w' || !bytes_to_i64(bytes_of(b.ptr + 1, end - 1), &n) ||
        n < 0 || n >= LEDGER_SLOTS)
        return false;
    *slot = (unsigned)n;
    return !dot || bytes_to_i64(bytes_of(dot + 1, b.len - end - 1), step);
}

static void wrong(struct tally *y, const char *what, int64_t a, int64_t b)
{
    if (!*y->why)
        (void)snprintf(y->why, 200, "%s: %lld, %lld", what, (long long)a, (long long)b);
}

static void see_row(struct tally *y, const struct row *row)
{
    unsigned slot = 0;
    int64_t step = 0;

    if (row->type == &row_head) {
        y->head = row_i64(row, HEAD_N, -1);
        y->head_count = row_i64(row, HEAD_COUNT, -1);
    } else if (row->type == &row_part) {
        int64_t no = row_i64(row, PART_NO, -1);
        if (!parse(row_bytes(row, PART_OWNER), &slot, &step))
            wrong(y, "a part of nobody", no, 0);
        else if (row_i64(row, PART_N, -1) != no * 7 + slot)
            wrong(y, "a part's value", no, row_i64(row, PART_N, -1));
        else
            y->parts[slot] += no;
    } else if (row->type == &row_thing && row_bytes(row, THING_ID).ptr[0] == 'a') {
        y->accounts++;
        y->money += row_i64(row, THING_N, -1);
    } else if (row->type == &row_thing) {
        if (!parse(row_bytes(row, THING_ID), &slot, &step)) {
            wrong(y, "a thing of nobody", 0, 0);
            return;
        }
        y->out->steps[slot] = row_i64(row, THING_N, -1);
        y->count[slot] = row_i64(row, THING_COUNT, -1);
    }
}

static void see_rank(struct tally *y, const struct item *item)
{
    unsigned slot = 0;
    int64_t step = 0;

    if (!parse(item->member, &slot, &step))
        wrong(y, "a member of nobody", item->number, 0);
    else if (bytes_eq(item->name, bytes_str("last")))
        y->last[slot] = item->number;
    else if (item->number != step)
        wrong(y, "a rank", item->number, step);
    else
        y->ranks[slot] += step;
}

static void see_chunk(struct tally *y, const struct item *item)
{
    unsigned slot = 0;
    int64_t step = 0;

    if (!parse(item->name, &slot, &step) || item->data.len != 5000) {
        wrong(y, "a chunk", item->number, (int64_t)item->data.len);
        return;
    }
    y->chunks[slot]++;
    /* Bytes 0 and 1 tell nothing of the step alone; all of them must agree. */
    uint8_t first = (uint8_t)(item->data.ptr[0] - chunk_byte(0, 0));
    for (size_t i = 0; i < item->data.len; i++) {
        if ((uint8_t)(item->data.ptr[i] - chunk_byte(0, i)) != first)
            wrong(y, "a chunk's byte", item->number, (int64_t)i);
    }
}

static belay_rc see(void *arg, const struct item *item, struct belay_error *err)
{
    struct tally *y = arg;

    (void)err;
    switch (item->kind) {
    case ITEM_ROW:
        if (!row_type_is(item->row->type, ROW_INTERNAL))
            see_row(y, item->row);
        break;
    case ITEM_RANK:
        if (!bytes_eq(item->name, bytes_str(SLOT_INDEX)))
            see_rank(y, item);
        break;
    case ITEM_LOG:
        if (!y->log_first)
            y->log_first = item->number;
        else if (item->number != y->log_last + 1)
            wrong(y, "a gap in the log", y->log_last, item->number);
        y->log_last = item->number;
        break;
    case ITEM_FEED:
        y->fed++;
        break;
    case ITEM_CHUNK:
        see_chunk(y, item);
        break;
    }
    return BELAY_OK;
}

/* The sum of the steps that are kept. */
static int64_t kept_sum(int64_t n)
{
    int64_t sum = 0;

    for (int64_t i = n > LEDGER_KEPT ? n - LEDGER_KEPT + 1 : 1; i <= n; i++)
        sum += i;
    return sum;
}

static void add_up(struct tally *y)
{
    for (unsigned i = 0; i < LEDGER_SLOTS; i++) {
        int64_t n = y->out->steps[i];
        int64_t chunks = n / 4 > 3 ? 3 : n / 4;
        y->out->total += n;
        if (y->count[i] != n)
            wrong(y, "a slot's counter", y->count[i], n);
        if (y->last[i] != n)
            wrong(y, "a slot's rank", y->last[i], n);
        if (y->parts[i] != kept_sum(n))
            wrong(y, "a slot's parts", y->parts[i], kept_sum(n));
        if (y->ranks[i] != kept_sum(n))
            wrong(y, "a slot's ranks", y->ranks[i], kept_sum(n));
        if (y->chunks[i] != chunks)
            wrong(y, "a slot's chunks", y->chunks[i], chunks);
    }
    int64_t total = y->out->total;
    if (y->head != total || y->head_count != total)
        wrong(y, "the head", y->head, total);
    if (y->log_last != total)
        wrong(y, "the log's end", y->log_last, total);
    if (y->fed != total)
        wrong(y, "the feed", y->fed, total);
    if (y->money != y->accounts * LEDGER_OPENING)
        wrong(y, "the accounts", y->money, y->accounts * LEDGER_OPENING);
}

bool ledger_check(struct rig *r, struct ledger *out, char why[200])
{
    struct tally y = { .out = out, .why = why };

    memset(out, 0, sizeof(*out));
    *why = 0;
    if (driver_walk(r->driver, bytes_str("default"), see, &y, &r->err))
        (void)snprintf(why, 200, "walk: %.190s", r->err.message);
    else
        add_up(&y);
    return !*why;
}

struct last_call {
    unsigned slot;
    int64_t step;
};

static belay_rc last_body(struct txn *t, void *arg)
{
    struct last_call *c = arg;
    char id[16];
    const struct row *row;

    (void)snprintf(id, sizeof(id), "w%u", c->slot);
    struct value key = value_str(id);
    belay_rc rc = txn_get(t, &row_thing, &key, &row);
    c->step = !rc && row ? row_i64(row, THING_N, 0) : 0;
    return rc;
}

belay_rc ledger_last(struct rig *r, unsigned slot, int64_t *out)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct last_call c = { .slot = slot };
    struct txn_options options = { .read_only = true };
    belay_rc rc = txn_run(r->space, last_body, &c, &options, &arena, NULL);

    *out = c.step;
    return rc;
}
