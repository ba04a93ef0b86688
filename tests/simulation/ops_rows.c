/* What actors do with rows and counters, and what must hold whatever they do. */
#include <stdio.h>

#include <belay/cancel.h>

#include "ops.h"

/* The text of a small id: a letter and a digit. */
static const char *id_of(char letter, unsigned i)
{
    static char ids[26][8][3];
    char *id = ids[letter - 'a'][i & 7];

    id[0] = letter;
    id[1] = (char)('0' + (i & 7));
    return id;
}

struct value thing_id(char letter, unsigned i)
{
    return value_str(id_of(letter, i));
}

/* A new thing with this number. */
static belay_rc insert_thing(struct run *r, struct value id, int64_t n)
{
    const struct value v[THING_COLUMNS] = {
        [THING_ID] = id,
        [THING_N] = value_i64(n),
        [THING_TEXT] = value_str("new"),
        [THING_COUNT] = value_i64(pick_of(r->op, 90, 3)),
    };

    return r_insert(r, &row_thing, v);
}

static belay_rc set_number(struct run *r, struct value id, int64_t n)
{
    struct change change = { THING_N, value_i64(n) };

    return r_put(r, &row_thing, &id, &change, 1);
}

/* Sets a thing's number whether it is there or not. */
belay_rc set_thing(struct run *r, struct value id, const struct row *row, int64_t n)
{
    return row ? set_number(r, id, n) : insert_thing(r, id, n);
}

/* --- one row --- */

static belay_rc rmw_body(struct run *r)
{
    struct value id = thing_id('t', pick_of(r->op, 1, r->s->swarm.n_keys));
    const struct row *row;
    char text[24];
    belay_rc rc = BELAY_OK;

    if (pick_of(r->op, 6, 4) == 0)
        rc = r_peek(r, &row_thing, &id, &row); /* a hint, which is looked at again */
    if (!rc)
        rc = r_get(r, &row_thing, &id, &row);
    if (rc)
        return rc;
    if (!row)
        return insert_thing(r, id, 1);
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)r->op->r);
    struct change changes[] = { { THING_N, value_i64(row_i64(row, THING_N, 0) + 1) },
                                { THING_TEXT, value_str(text) } };
    rc = r_put(r, &row_thing, &id, changes, 1 + pick_of(r->op, 2, 2));
    if (!rc && pick_of(r->op, 3, 2))
        rc = r_get(r, &row_thing, &id, &row);
    if (!rc && pick_of(r->op, 4, 3) == 0)
        rc = set_number(r, id, row_i64(row, THING_N, 0) + 1);
    if (!rc && pick_of(r->op, 7, 4) == 0)
        rc = r_peek(r, &row_thing, &id, &row);
    return rc;
}

void op_rmw(struct actor *a)
{
    struct txn_options options = { .deadline_us = a->sim->mono_us + 3000 };
    struct belay_cancel *cancel = NULL;

    if (pick_of(a->op, 8, 16) == 0 && belay_cancel_new(&cancel, NULL) == BELAY_OK) {
        belay_cancel_trigger(cancel);
        options.cancel = cancel;
    }
    (void)run_call(a, op_space(a), rmw_body, NULL,
                   cancel || pick_of(a->op, 5, 8) == 0 ? &options : NULL);
    belay_cancel_free(cancel);
}

static belay_rc churn_body(struct run *r)
{
    struct value id = thing_id('c', pick_of(r->op, 1, 2));
    const struct row *row = NULL;
    belay_rc rc;

    if (pick_of(r->op, 2, 3) == 0) /* blind: its absence is assumed */
        return insert_thing(r, id, pick_of(r->op, 3, 100));
    rc = r_get(r, &row_thing, &id, &row);
    if (rc)
        return rc;
    if (row && pick_of(r->op, 4, 4) > 0)
        return r_delete(r, &row_thing, &id);
    rc = set_thing(r, id, row, 1);
    if (!rc && !row && pick_of(r->op, 5, 6) == 0)
        rc = r_delete(r, &row_thing, &id); /* nothing but its absence is left */
    if (!rc && pick_of(r->op, 6, 2))
        rc = r_get(r, &row_thing, &id, &row);
    return rc;
}

void op_churn(struct actor *a)
{
    (void)run_call(a, op_space(a), churn_body, NULL, NULL);
}

/* --- two rows --- */

#define ACCOUNTS 3
#define OPENING 100

static belay_rc set_account(struct run *r, const struct value *key,
                            const struct row *row, int64_t n)
{
    if (row) {
        struct change change = { PART_N, value_i64(n) };
        return r_put(r, &row_part, key, &change, 1);
    }
    const struct value v[PART_COLUMNS] = { key[0], key[1], value_i64(n) };
    return r_insert(r, &row_part, v);
}

static belay_rc transfer_body(struct run *r)
{
    unsigned from = pick_of(r->op, 1, ACCOUNTS);
    unsigned to = (from + 1 + pick_of(r->op, 2, ACCOUNTS - 1)) % ACCOUNTS;
    int64_t amount = 1 + pick_of(r->op, 3, 50);
    const struct value keys[2][2] = { { value_str("acct"), value_i64(from) },
                                      { value_str("acct"), value_i64(to) } };
    const struct row_want wants[] = { { &row_part, keys[0] }, { &row_part, keys[1] } };
    const struct row *rows[2] = { NULL, NULL };
    belay_rc rc;

    if (pick_of(r->op, 4, 2)) {
        rc = r_get_many(r, wants, 2, rows);
    } else {
        rc = r_get(r, &row_part, keys[0], &rows[0]);
        if (!rc)
            rc = r_get(r, &row_part, keys[1], &rows[1]);
    }
    if (rc)
        return rc;
    int64_t have = rows[0] ? row_i64(rows[0], PART_N, 0) : OPENING;
    int64_t other = rows[1] ? row_i64(rows[1], PART_N, 0) : OPENING;
    if (have < amount)
        return txn_fail(r->t, BELAY_BUDGET_EXHAUSTED, "", "not enough");
    rc = set_account(r, keys[0], rows[0], have - amount);
    return rc ? rc : set_account(r, keys[1], rows[1], other + amount);
}

void op_transfer(struct actor *a)
{
    (void)run_call(a, op_space(a), transfer_body, NULL, NULL);
}

/* Two rows of which one at most may be set: each writer reads both and writes one. */
static belay_rc skew_body(struct run *r)
{
    unsigned mine = pick_of(r->op, 1, 2);
    struct value id = thing_id('s', mine), other_id = thing_id('s', 1 - mine);
    const struct row *row = NULL, *other = NULL;
    belay_rc rc = r_get(r, &row_thing, &other_id, &other);

    if (!rc)
        rc = r_get(r, &row_thing, &id, &row);
    if (rc)
        return rc;
    if (pick_of(r->op, 2, 3) == 0)
        return set_thing(r, id, row, 0);
    if (other && row_i64(other, THING_N, 0))
        return txn_fail(r->t, BELAY_LEASE_HELD, "", "the other one is set");
    return set_thing(r, id, row, 1);
}

void op_skew(struct actor *a)
{
    (void)run_call(a, op_space(a), skew_body, NULL, NULL);
}

/* One row may exist only while another does not. */
static belay_rc absence_body(struct run *r)
{
    bool x = pick_of(r->op, 1, 2);
    struct value id = thing_id(x ? 'x' : 'y', 0), other_id = thing_id(x ? 'y' : 'x', 0);
    const struct row *row = NULL, *other = NULL;
    belay_rc rc = r_get(r, &row_thing, &other_id, &other);

    if (rc)
        return rc;
    if (other && pick_of(r->op, 2, 2))
        return r_delete(r, &row_thing, &other_id);
    if (other)
        return txn_fail(r->t, BELAY_LEASE_HELD, "", "the other one is there");
    if (pick_of(r->op, 3, 2))
        return insert_thing(r, id, 1); /* wrong_state when it is there */
    rc = r_get(r, &row_thing, &id, &row);
    return rc ? rc : set_thing(r, id, row, 1);
}

void op_absence(struct actor *a)
{
    (void)run_call(a, op_space(a), absence_body, NULL, NULL);
}

/* --- counters --- */

#define COUNT_MAX 6

struct counted {
    struct txn_sum first, second;
};

static belay_rc count_body(struct run *r)
{
    struct counted *out = r->arg;
    struct value id = thing_id('k', pick_of(r->op, 1, 2));
    int64_t delta = (int64_t)pick_of(r->op, 2, 7) - 3;
    const struct row *row = NULL;
    belay_rc rc = BELAY_OK;

    *out = (struct counted){ .first.known = false };
    if (pick_of(r->op, 3, 2)) {
        rc = r_get(r, &row_thing, &id, &row);
        if (!rc && !row)
            rc = insert_thing(r, id, 0);
    }
    if (!rc)
        rc = r_add(r, &row_thing, &id, THING_COUNT, delta, 0, COUNT_MAX, &out->first);
    if (!rc && pick_of(r->op, 4, 3) == 0)
        rc = r_add(r, &row_thing, &id, THING_COUNT, 1, 0, COUNT_MAX, &out->second);
    if (!rc && pick_of(r->op, 5, 3) == 0)
        rc = r_raise(r, &row_thing, &id, THING_HIGH, pick_of(r->op, 6, 50));
    if (!rc && row && pick_of(r->op, 7, 3) == 0)
        rc = set_number(r, id, delta);
    if (!rc && pick_of(r->op, 8, 3) == 0)
        rc = r_get(r, &row_thing, &id, &row);
    return rc;
}

void op_count(struct actor *a)
{
    struct counted out;

    (void)run_call(a, op_space(a), count_body, &out, NULL);
}

static belay_rc put_counted_body(struct run *r)
{
    struct value id = thing_id('k', pick_of(r->op, 1, 2));
    const struct row *row = NULL;
    belay_rc rc = r_get(r, &row_thing, &id, &row);

    if (rc)
        return rc;
    if (row && pick_of(r->op, 2, 5) == 0)
        return r_delete(r, &row_thing, &id);
    return set_thing(r, id, row, pick_of(r->op, 3, 1000));
}

/* The one row of its type in the namespace. */
static belay_rc head_body(struct run *r)
{
    const struct value v[HEAD_COLUMNS] = { value_i64(1), value_i64(0) };
    const struct row *row = NULL;
    belay_rc rc = r_get(r, &row_head, NULL, &row);

    if (rc)
        return rc;
    struct change change = { HEAD_N, value_i64(row ? row_i64(row, HEAD_N, 0) + 1 : 1) };
    rc = row ? r_put(r, &row_head, NULL, &change, 1) : r_insert(r, &row_head, v);
    if (!rc && pick_of(r->op, 4, 2))
        rc = r_add(r, &row_head, NULL, HEAD_COUNT, 1, 0, 1000, NULL);
    return rc;
}

void op_put_counted(struct actor *a)
{
    run_body *body = pick_of(a->op, 6, 3) == 0 ? head_body : put_counted_body;

    (void)run_call(a, op_space(a), body, NULL, NULL);
}

/* --- reading --- */

/* All accounts, one by one: the sum tells whether they stood together. */
static belay_rc add_up_body(struct run *r)
{
    int64_t sum = 0;

    for (unsigned i = 0; i < ACCOUNTS; i++) {
        const struct value key[] = { value_str("acct"), value_i64(i) };
        const struct row *row = NULL;
        belay_rc rc = r_get(r, &row_part, key, &row);
        if (rc)
            return rc;
        sum += row ? row_i64(row, PART_N, 0) - OPENING : 0;
    }
    if (sum != 0)
        return txn_fail(r->t, BELAY_WRONG_STATE, "", "the sum is wrong");
    return BELAY_OK;
}

/* Several round trips, and an answer that depends on all of them. */
static belay_rc hunt_body(struct run *r)
{
    static const char letters[] = { 's', 't', 'x', 'y', 'c', 'w', 'l' };
    unsigned n = 2 + pick_of(r->op, 1, 3), found = 0;

    for (unsigned i = 0; i < n; i++) {
        char letter = letters[pick_of(r->op, 10 + i, sizeof(letters))];
        struct value id = thing_id(letter, pick_of(r->op, 20 + i, 2));
        const struct row *row = NULL;
        belay_rc rc = r_get(r, &row_thing, &id, &row);
        if (rc)
            return rc;
        found += row != NULL;
    }
    if (found == 0)
        return txn_fail(r->t, BELAY_NOT_FOUND, "", "nothing is there");
    if (found < n)
        return txn_fail(r->t, BELAY_WRONG_STATE, "", "some are there");
    return BELAY_OK;
}

void op_hunt(struct actor *a)
{
    struct txn_options options = { .read_only = true };

    bool sum = pick_of(a->op, 3, 2);
    belay_rc rc = run_call(a, op_space(a), sum ? add_up_body : hunt_body, NULL,
                           pick_of(a->op, 2, 2) ? &options : NULL);

    if (sum && rc == BELAY_WRONG_STATE)
        violation(a->sim, "invariant", "a reader found a sum that never was");
}

/* Writes a bit of everything and then fails. */
static belay_rc fail_body(struct run *r)
{
    struct value id = thing_id('t', pick_of(r->op, 1, r->s->swarm.n_keys));
    struct value other = thing_id('s', pick_of(r->op, 2, 2));
    const struct row *row = NULL, *second = NULL;
    belay_rc rc = r_get(r, &row_thing, &id, &row);

    if (!rc)
        rc = set_thing(r, id, row, -1);
    if (!rc)
        rc = r_feed_append(r, bytes_str("f0"), bytes_str("never"), NULL);
    if (!rc && pick_of(r->op, 3, 2))
        rc = r_get(r, &row_thing, &other, &second);
    if (!rc)
        rc = r_wake(r, bytes_str("w0"));
    if (rc)
        return rc;
    return txn_fail(r->t, BELAY_TURN_CONFLICT, "", "on purpose");
}

void op_fail(struct actor *a)
{
    (void)run_call(a, op_space(a), fail_body, NULL, NULL);
}

static belay_rc now_body(struct run *r)
{
    struct belay_error err;
    int64_t now_ms = 0, again_ms = 0;
    struct value id = thing_id('t', 0);
    const struct row *row = NULL;
    belay_rc rc = r_now(r, &now_ms);

    if (!rc && pick_of(r->op, 1, 2))
        rc = r_get(r, &row_thing, &id, &row);
    if (!rc)
        rc = r_now(r, &again_ms);
    if (rc)
        return rc;
    if (again_ms != now_ms)
        violation(r->s, "time", "two times in one run of a body");
    struct space *sp = NULL;
    if (store_space(r->s->running->front->store, r->ns, &sp, &err) != BELAY_MISUSE)
        violation(r->s, "answer", "a body called the store and was not refused");
    return row ? set_number(r, id, now_ms) : BELAY_OK;
}

void op_now(struct actor *a)
{
    struct coroutine *co = a->sim->running;
    struct space *sp = NULL;

    (void)run_call(a, op_space(a), now_body, NULL, NULL);
    /* Somebody accepts a step of the clock. */
    if (!co->dead && pick_of(a->op, 2, 8) == 0 &&
        !store_space(co->front->store, space_bytes(op_space(a)), &sp, NULL))
        space_clock_accept(sp);
}

void op_new_space(struct actor *a)
{
    (void)run_call(a, 2 + pick_of(a->op, 9, SPACES_MAX - 2), rmw_body, NULL, NULL);
}

/* --- what must hold after every commit --- */

static const struct mrow *thing_in(struct sim *s, struct bytes ns, char letter,
                                   unsigned i)
{
    struct value id = thing_id(letter, i);

    return model_row(&s->model, key_of(ns, &row_thing, &id));
}

void check_invariants(struct sim *s, struct bytes ns)
{
    const struct mrow *a = thing_in(s, ns, 's', 0), *b = thing_in(s, ns, 's', 1);
    int64_t sum = 0;

    if (a && b && a->v[THING_N].i && b->v[THING_N].i)
        violation(s, "invariant", "write skew: both of a pair are set");
    if (thing_in(s, ns, 'x', 0) && thing_in(s, ns, 'y', 0))
        violation(s, "invariant", "both of two rows exist that exclude each other");
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        const struct value key[] = { value_str("acct"), value_i64(i) };
        const struct mrow *row = model_row(&s->model, key_of(ns, &row_part, key));
        sum += row ? row->v[PART_N].i - OPENING : 0;
    }
    if (sum != 0)
        violation(s, "invariant", "transfers changed the sum by %lld", (long long)sum);

    /* The registry first: a namespace that holds anything is listed. */
    struct bytes system = bytes_str(SYSTEM_NAMESPACE);
    struct value name = value_text(ns);
    if (!bytes_eq(ns, system) &&
        !model_row(&s->model, key_of(system, &row_namespace, &name)))
        violation(s, "registry", "a namespace holds something and is not listed");
}
