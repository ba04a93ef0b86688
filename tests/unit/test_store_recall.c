/* Rows that a program left itself: what is not asked for, and what finds out when it no longer
 * stands.  Two stores on one driver are two programs. */
#include "store/recall.h"

#include <stdio.h>

#include "fakes.h"
#include "store/drivers/memory.h"
#include "store/trace.h"
#include "store/txn.h"
#include "tap.h"
#include "things.h"

enum { HERE, THERE, PROGRAMS };

struct lab {
    struct tap *t;
    struct fake_clock clock;
    struct fake_random random;
    struct driver_ops ops; /* the memory driver's, with an era */
    struct driver *driver;
    struct store *store[PROGRAMS];
    struct space *space[PROGRAMS];
    struct belay_arena arena;
};

/* The era is a column of nothing: each case sets it. */
static uint64_t era_now = 1;

static uint64_t era(struct driver *d, void *attempt)
{
    (void)d;
    (void)attempt;
    return era_now;
}

static bool lab_open(struct lab *l, struct tap *t)
{
    struct driver *memory = NULL;

    *l = (struct lab){ .t = t, .clock = { .wall_ms = 1700000000000 } };
    struct driver_config config = { .schema = &schema_things,
                                    .clock = fake_clock_hook(&l->clock),
                                    .random = fake_random_hook(&l->random) };
    struct store_options options = { .schema = &schema_things,
                                     .clock = config.clock,
                                     .random = config.random };
    era_now = 1;
    if (memory_open(&memory, &config, NULL))
        return false;
    l->ops = *memory->ops;
    l->ops.era = era;
    memory->ops = &l->ops;
    memory->caps |= DRIVER_FAR;
    if (trace_wrap(&l->driver, memory, NULL, NULL, NULL))
        return false;
    for (unsigned i = 0; i < PROGRAMS; i++) {
        if (store_open(&l->store[i], l->driver, &options, NULL) ||
            store_space(l->store[i], bytes_str("default"), &l->space[i], NULL))
            return false;
    }
    return true;
}

static void lab_close(struct lab *l)
{
    for (unsigned i = 0; i < PROGRAMS; i++)
        store_close(l->store[i]);
    driver_close(l->driver);
    arena_release(&l->arena);
}

/* --- bodies --- */

enum deed { ADD_ONE, LOOK, REMOVE, FAIL, ADD_LAST };

struct job {
    enum deed deed;
    int64_t n; /* seen, or to be there */
    unsigned runs;
    bool expect_none;
};

static const struct value part_key[] = {
    { .kind = VALUE_TEXT, .b = { .ptr = (const uint8_t *)"p", .len = 1 } },
    { .kind = VALUE_I64, .i = 7 },
};

static belay_rc change(struct txn *t, struct job *j, const struct row *row)
{
    const struct value new[PART_COLUMNS] = { part_key[0], part_key[1], value_i64(1) };
    const struct change more = { PART_N, value_i64(j->n + 1) };

    if (!row)
        return txn_insert(t, &row_part, new);
    return txn_put(t, &row_part, part_key, &more, 1);
}

static belay_rc body(struct txn *t, void *arg)
{
    struct job *j = arg;
    const struct row *row = NULL;
    belay_rc rc = BELAY_OK;

    j->runs++;
    if (j->expect_none)
        rc = txn_expect_none(t, &row_part, part_key);
    if (rc == BELAY_OK)
        rc = txn_get(t, &row_part, part_key, &row);
    j->n = rc == BELAY_OK && row ? row_i64(row, PART_N, 0) : 0;
    if (rc || j->deed == LOOK)
        return rc;
    if (j->deed == FAIL)
        return txn_fail(t, BELAY_WRONG_STATE, "", "n is %lld", (long long)j->n);
    if (j->deed == REMOVE)
        return row ? txn_delete(t, &row_part, part_key) : BELAY_OK;
    rc = change(t, j, row);
    if (j->deed == ADD_LAST)
        txn_spent(t, &row_part, part_key);
    return rc;
}

/* Runs it, and says what it took. */
static struct trace_counts act(struct lab *l, unsigned program, struct job *j,
                               belay_rc want)
{
    struct belay_error err;

    trace_reset(l->driver);
    TAP_EQ(l->t, txn_run(l->space[program], body, j, NULL, &l->arena, &err), want);
    arena_reset(&l->arena);
    return trace_counts(l->driver);
}

static struct trace_counts add_one(struct lab *l, unsigned program)
{
    struct job j = { .deed = ADD_ONE };

    return act(l, program, &j, BELAY_OK);
}

static void begin(struct lab *l)
{
    (void)add_one(l, HERE); /* the namespace, and the row */
    (void)add_one(l, HERE);
}

/* --- cases --- */

static void own_rows(struct tap *t)
{
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        (void)add_one(&l, HERE);
        struct trace_counts n = add_one(&l, HERE); /* what was inserted */
        TAP_EQ(t, n.reads, 0);
        TAP_EQ(t, n.commits, 1);
        n = add_one(&l, HERE); /* what was put */
        TAP_EQ(t, n.reads, 0);
        struct job look = { .deed = LOOK };
        n = act(&l, HERE, &look, BELAY_OK);
        TAP_EQ(t, look.n, 3);
        TAP_EQ(t, n.commits, 1); /* T4: confirmed */
    }
    lab_close(&l);
}

static void others_write(struct tap *t)
{
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        begin(&l);
        (void)add_one(&l, THERE);
        struct job j = { .deed = ADD_ONE };
        struct trace_counts n = act(&l, HERE, &j, BELAY_OK);
        TAP_EQ(t, j.runs, 2);
        TAP_EQ(t, j.n, 3);
        TAP_EQ(t, n.conflicts, 1);
        TAP_EQ(t, n.reads, 1);
        /* R3: it is not kept for a while, so that nobody asks in vain again. */
        for (unsigned i = 1; i < RECALL_DISTRUST; i++)
            TAP_EQ(t, add_one(&l, HERE).reads, 1);
        TAP_EQ(t, add_one(&l, HERE).reads, 0);
    }
    lab_close(&l);
}

static belay_rc hint_body(struct txn *t, void *arg)
{
    const struct row *row = NULL;
    belay_rc rc = txn_hint(t, &row_part, part_key, &row);

    *(int64_t *)arg = row ? row_i64(row, PART_N, 0) : -1;
    return rc;
}

static int64_t hint_of(struct lab *l, unsigned program)
{
    int64_t n = 0;

    TAP_EQ(l->t, txn_run(l->space[program], hint_body, &n, NULL, &l->arena, NULL), 0);
    return n;
}

/* What is not kept for a while is a hint, as old as what this program wrote last. */
static void hints(struct tap *t)
{
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        TAP_EQ(t, hint_of(&l, HERE), -1);
        begin(&l);
        TAP_EQ(t, hint_of(&l, HERE), 2);
        (void)add_one(&l, THERE);
        TAP_EQ(t, hint_of(&l, HERE), 2);
        TAP_EQ(t, add_one(&l, HERE).conflicts, 1); /* no longer kept (R3) */
        TAP_EQ(t, hint_of(&l, HERE), 4);
        (void)add_one(&l, THERE);
        TAP_EQ(t, hint_of(&l, HERE), 4);
        TAP_EQ(t, hint_of(&l, THERE), 5);
        TAP_EQ(t, add_one(&l, HERE).reads, 1);
        TAP_EQ(t, hint_of(&l, HERE), 6);
        era_now = 2; /* R2 */
        TAP_EQ(t, hint_of(&l, HERE), -1);
    }
    lab_close(&l);
}

static void spent_rows(struct tap *t)
{
    struct job last = { .deed = ADD_LAST };
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        begin(&l);
        TAP_EQ(t, act(&l, HERE, &last, BELAY_OK).reads, 0);
        TAP_EQ(t, add_one(&l, HERE).reads, 1);
        TAP_EQ(t, add_one(&l, HERE).reads, 0);
    }
    lab_close(&l);
}

static void answers_are_confirmed(struct tap *t)
{
    struct job look = { .deed = LOOK }, fail = { .deed = FAIL };
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        begin(&l);
        (void)add_one(&l, THERE);
        (void)act(&l, HERE, &fail, BELAY_WRONG_STATE);
        TAP_EQ(t, fail.n, 3);
        (void)add_one(&l, HERE);
        (void)add_one(&l, THERE);
        (void)act(&l, HERE, &look, BELAY_OK);
        TAP_EQ(t, look.n, 5);
    }
    lab_close(&l);
}

static void removed_rows(struct tap *t)
{
    struct job remove = { .deed = REMOVE }, look = { .deed = LOOK };
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        begin(&l);
        (void)act(&l, THERE, &remove, BELAY_OK);
        (void)act(&l, HERE, &look, BELAY_OK);
        TAP_EQ(t, look.n, 0);
        (void)add_one(&l, THERE);
        (void)add_one(&l, THERE);
        (void)act(&l, THERE, &remove, BELAY_OK); /* one's own, too */
        (void)act(&l, THERE, &look, BELAY_OK);
        TAP_EQ(t, look.n, 0);
    }
    lab_close(&l);
}

static void another_era(struct tap *t)
{
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        begin(&l);
        era_now = 2; /* R2 */
        TAP_EQ(t, add_one(&l, HERE).reads, 1);
        TAP_EQ(t, add_one(&l, HERE).reads, 0);
        era_now = 0; /* cannot be told */
        TAP_EQ(t, add_one(&l, HERE).reads, 1);
        TAP_EQ(t, add_one(&l, HERE).reads, 1);
    }
    lab_close(&l);
}

static void readers_ask(struct tap *t)
{
    const struct txn_options read_only = { .read_only = true };
    struct job look = { .deed = LOOK };
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        begin(&l);
        trace_reset(l.driver);
        TAP_EQ(t, txn_run(l.space[HERE], body, &look, &read_only, &l.arena, NULL), 0);
        TAP_EQ(t, trace_counts(l.driver).reads, 1);
        TAP_EQ(t, trace_counts(l.driver).commits, 0);
    }
    lab_close(&l);
}

static void expected_absence(struct tap *t)
{
    struct job first = { .deed = ADD_ONE, .expect_none = true }, second = first;
    struct job look = { .deed = LOOK, .expect_none = true };
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        (void)add_one(&l, THERE); /* the namespace is founded */
        (void)act(&l, THERE, &(struct job){ .deed = REMOVE }, BELAY_OK);
        (void)act(&l, THERE, &look, BELAY_OK);
        TAP_EQ(t, look.n, 0);
        (void)act(&l, HERE, &first, BELAY_OK);
        TAP_EQ(t, first.n, 0);
        struct trace_counts n = act(
            &l, THERE, &second, BELAY_OK); /* it is there: found out by the commit */
        TAP_EQ(t, second.n, 1);
        TAP_EQ(t, n.conflicts, 1);
        look.expect_none = true;
        (void)act(&l, THERE, &look, BELAY_OK);
        TAP_EQ(t, look.n, 2);
    }
    lab_close(&l);
}

/* --- what is kept --- */

static bool make_ref(struct row_ref *out, struct belay_arena *a, int64_t no)
{
    struct value *key = arena_zalloc(a, 2, sizeof(*key));

    key[0] = value_str("p");
    key[1] = value_i64(no);
    return row_ref_make(out, &row_part, key, a, NULL) == BELAY_OK;
}

static void keep(struct recall *r, const struct row_ref *ref, const struct value *v,
                 int64_t ver)
{
    const struct recall_news news = { *ref, v, ver };

    recall_put(r, &news, 1, 1);
}

static void is_bounded(struct tap *t)
{
    enum { MANY = 3 * RECALL_SETS * RECALL_WAYS };
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct recall r;
    size_t kept = 0;

    recall_init(&r);
    for (int64_t i = 0; i < MANY; i++) {
        struct value v[PART_COLUMNS] = { value_str("p"), value_i64(i), value_i64(-i) };
        struct row_ref ref;
        if (!TAP_OK(t, make_ref(&ref, &arena, i)))
            break;
        keep(&r, &ref, v, i + 1);
        const struct row *row = recall_get(&r, &ref, 1, &arena);
        TAP_OK(t, row && row->ver == i + 1 && row_i64(row, PART_N, 0) == -i);
    }
    for (int64_t i = 0; i < MANY; i++) {
        struct row_ref ref;
        kept += make_ref(&ref, &arena, i) && recall_get(&r, &ref, 1, &arena);
    }
    TAP_OK(t, kept > 0 && kept <= (size_t)RECALL_SETS * RECALL_WAYS);
    recall_clear(&r);
    struct row_ref last;
    TAP_OK(t, make_ref(&last, &arena, MANY - 1) && !recall_get(&r, &last, 1, &arena));
    recall_release(&r);
}

static void what_is_not_kept(struct tap *t)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    static char large[RECALL_ROW_MAX + 1];
    struct value v[PART_COLUMNS] = { value_str("p"), value_i64(1), value_i64(5) };
    struct value counted[THING_COLUMNS] = { value_str("a") };
    struct row_ref part, thing;
    struct recall r;

    recall_init(&r);
    if (!TAP_OK(t, make_ref(&part, &arena, 1)) ||
        !TAP_EQ(t, row_ref_make(&thing, &row_thing, counted, &arena, NULL), 0))
        return;
    keep(&r, &thing, counted, 1); /* counters change without a version */
    TAP_OK(t, !recall_get(&r, &thing, 1, &arena));
    keep(&r, &part, v, 9);
    keep(&r, &part, v, 8); /* told later, done before */
    const struct row *row = recall_get(&r, &part, 1, &arena);
    TAP_EQ(t, row ? row->ver : 0, 9);
    v[PART_OWNER] = value_text(bytes_of(large, sizeof(large)));
    keep(&r, &part, v, 10); /* too large: and what was before it is gone */
    TAP_OK(t, !recall_get(&r, &part, 1, &arena));
    recall_release(&r);
}

static const struct tap_case cases[] = {
    { "what a program wrote it does not ask for", own_rows },
    { "what others wrote since is found out by the commit", others_write },
    { "what is not kept for a while is a hint", hints },
    { "a row that nobody needs again is not kept", spent_rows },
    { "answers that write nothing are confirmed", answers_are_confirmed },
    { "rows that are gone do not come back", removed_rows },
    { "another era of the server begins with nothing", another_era },
    { "readers ask", readers_ask },
    { "an absence that was expected is found out by the commit", expected_absence },
    { "older rows make room", is_bounded },
    { "counters, large rows and older versions are not kept", what_is_not_kept },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
