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
    const struct recall_news news = { *ref, v, ver, .own = true };
    const struct recall_lesson lesson = { .era = 1 };

    recall_put(r, &news, 1, &lesson);
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

/* --- indexes that a row covers --- */

/* Parts ("q", N) stand in index "q" at rank N; ("q", 0) covers it. */
struct line {
    int64_t up_to;            /* the last rank that is looked at */
    int64_t push, push_other; /* parts that are put in; 0: none */
    int64_t took;             /* the first, which is taken out; 0: there was none */
    size_t ahead;
    unsigned runs;
};

static struct value line_key[2] = {
    { .kind = VALUE_TEXT, .b = { .ptr = (const uint8_t *)"q", .len = 1 } },
    { .kind = VALUE_I64, .i = 0 },
};

static belay_rc line_move(struct txn *t, int64_t no, bool in)
{
    const struct value v[PART_COLUMNS] = { line_key[0], value_i64(no), value_i64(no) };
    char text[32];
    struct bytes member =
        bytes_of(text, (size_t)snprintf(text, sizeof(text), "%lld", (long long)no));
    belay_rc rc = in ? txn_rank_add(t, bytes_str("q"), no, member)
                     : txn_rank_remove(t, bytes_str("q"), no, member);

    if (rc)
        return rc;
    return in ? txn_insert(t, &row_part, v) : txn_delete(t, &row_part, v);
}

static belay_rc line_put(struct txn *t, const struct row *cover)
{
    const struct value v[PART_COLUMNS] = { line_key[0], line_key[1], value_i64(1) };
    const struct change more = { PART_N,
                                 value_i64(cover ? row_i64(cover, PART_N, 0) + 1 : 1) };

    return cover ? txn_put(t, &row_part, line_key, &more, 1)
                 : txn_insert(t, &row_part, v);
}

static belay_rc line_body(struct txn *t, void *arg)
{
    struct line *j = arg;
    const struct row_want want = { &row_part, line_key };
    const struct bytes index = bytes_str("q");
    const struct fetch fetch = { &row_part, line_key };
    const struct scan scan = { .indexes = &index,
                               .n_indexes = 1,
                               .max_rank = j->up_to,
                               .limit = 1,
                               .fetch = &fetch,
                               .n_fetch = 1,
                               .cover = &want,
                               .ahead = j->ahead };
    const struct row *cover = NULL;
    struct hits hits = { .n = 0 };
    bool takes = j->up_to > 0;
    belay_rc rc = txn_load(t, &want, 1, &cover, &scan, takes ? 1 : 0, &hits);

    j->runs++;
    j->took = 0;
    if (rc == BELAY_OK && hits.n > 0) {
        j->took = hits.hit[0].rank;
        rc = line_move(t, j->took, false);
    }
    if (rc == BELAY_OK && j->push > 0)
        rc = line_move(t, j->push, true);
    if (rc == BELAY_OK && j->push_other > 0)
        rc = line_move(t, j->push_other, true);
    if (rc || (j->took == 0 && j->push == 0))
        return rc;
    return line_put(t, cover);
}

static struct trace_counts line_act(struct lab *l, unsigned program, struct line *j)
{
    struct belay_error err;

    trace_reset(l->driver);
    TAP_EQ(l->t, txn_run(l->space[program], line_body, j, NULL, &l->arena, &err), 0);
    arena_reset(&l->arena);
    return trace_counts(l->driver);
}

static void push(struct lab *l, unsigned program, int64_t no)
{
    struct line j = { .push = no };

    (void)line_act(l, program, &j);
}

static void fill(struct lab *l, int64_t n)
{
    for (int64_t i = 1; i <= n; i++)
        push(l, HERE, 10 * i);
}

/* Takes the first one, which must be `want`, with so many reads. */
static void take(struct lab *l, unsigned program, int64_t want, uint64_t reads)
{
    struct line j = { .up_to = RANK_MAX, .ahead = 3 };
    struct trace_counts n = line_act(l, program, &j);

    TAP_EQ(l->t, j.took, want);
    TAP_EQ(l->t, n.reads, reads);
}

static void pages_are_kept(struct tap *t)
{
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        fill(&l, 6);
        take(&l, HERE, 10, 1); /* with 20, 30 and 40; of 40 others may have the rank */
        take(&l, HERE, 20, 0);
        take(&l, HERE, 30, 0);
        take(&l, HERE, 40, 1); /* with 50 and 60, and nothing behind */
        take(&l, HERE, 50, 0);
        push(&l, HERE, 70);
        take(&l, HERE, 60, 0);
        take(&l, HERE, 70, 1);
        take(&l, HERE, 0, 1); /* whoever expects something looks */
    }
    lab_close(&l);
}

/* R4: what the program itself did to the index since. */
static void pages_follow(struct tap *t)
{
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        fill(&l, 6);
        take(&l, HERE, 10, 1);
        push(&l, HERE, 25); /* into the middle: what is behind is not known any more */
        take(&l, HERE, 20, 0);
        take(&l, HERE, 25, 1);
        take(&l, HERE, 30, 0);
        push(&l, HERE, 5); /* before all of it */
        take(&l, HERE, 5, 1);
        struct line both = { .up_to = RANK_MAX, .ahead = 3, .push = 41 };
        TAP_EQ(t, line_act(&l, HERE, &both).reads, 0);
        TAP_EQ(t, both.took, 40);
        take(&l, HERE, 41, 1);
        take(&l, HERE, 50, 0);
    }
    lab_close(&l);
}

/* Others change the index, and its cover with it: nothing is taken twice, or missed. */
static void others_change_pages(struct tap *t)
{
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        fill(&l, 6);
        take(&l, HERE, 10, 1);
        struct line other = { .up_to = RANK_MAX };
        (void)line_act(&l, THERE, &other);
        TAP_EQ(t, other.took, 20);
        struct line j = { .up_to = RANK_MAX, .ahead = 3 };
        struct trace_counts n = line_act(&l, HERE, &j);
        TAP_EQ(t, n.conflicts, 1);
        TAP_EQ(t, j.runs, 2);
        TAP_EQ(t, j.took, 30);
        push(&l, THERE, 35);
        take(&l, HERE, 35, 1); /* R3: it asks for a while */
        take(&l, HERE, 40, 1);
    }
    lab_close(&l);
}

/* What is not there stays so until somebody comes: also behind what was asked. */
static void empty_pages(struct tap *t)
{
    struct lab l;
    struct line j = { .up_to = 15, .push = 40 };

    if (TAP_OK(t, lab_open(&l, t))) {
        push(&l, HERE, 30);
        TAP_EQ(t, line_act(&l, HERE, &j).reads, 1);
        TAP_EQ(t, j.took, 0);
        j = (struct line){ .up_to = 29, .push = 50 };
        TAP_EQ(t, line_act(&l, HERE, &j).reads, 0);
        TAP_EQ(t, j.took, 0);
        j = (struct line){ .up_to = 30 };
        TAP_EQ(t, line_act(&l, HERE, &j).reads, 1);
        TAP_EQ(t, j.took, 30);
        j = (struct line){ .up_to = 29, .push = 60 };
        TAP_EQ(t, line_act(&l, HERE, &j).reads, 0);
        j = (struct line){ .up_to = 39, .push = 35, .push_other = 20 };
        TAP_EQ(t, line_act(&l, HERE, &j).reads, 1);
        TAP_EQ(t, j.took, 0);
        j = (struct line){ .up_to = 38 };
        TAP_EQ(t, line_act(&l, HERE, &j).reads, 1);
        TAP_EQ(t, j.took, 20);
        j = (struct line){ .up_to = 34, .push = 70 };
        TAP_EQ(t, line_act(&l, HERE, &j).reads, 1);
        j = (struct line){ .up_to = 34 }; /* an answer that writes nothing */
        struct trace_counts n = line_act(&l, HERE, &j);
        TAP_EQ(t, n.reads, 0);
        TAP_EQ(t, n.commits, 1); /* T4 */
        push(&l, THERE, 33);
        TAP_EQ(t, line_act(&l, HERE, &j).conflicts, 1);
        TAP_EQ(t, j.took, 33);
    }
    lab_close(&l);
}

static void pages_of_another_era(struct tap *t)
{
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        fill(&l, 6);
        take(&l, HERE, 10, 1);
        era_now = 2;
        take(&l, HERE, 20, 1);
    }
    lab_close(&l);
}

struct beside {
    bool foresees, gives_up;
};

static belay_rc beside_body(struct txn *t, void *arg)
{
    const struct beside *b = arg;
    struct value key[] = { line_key[0], value_i64(20) };
    const struct row_want want = { &row_part, key };
    const struct row *row = NULL, *mine = NULL;
    belay_rc rc = txn_get(t, &row_part, line_key, &mine);

    if (rc == BELAY_OK)
        rc = b->foresees ? txn_foresee(t, &want, 1) : txn_get(t, &row_part, key, &row);
    if (rc == BELAY_OK && b->gives_up)
        return txn_fail(t, BELAY_WRONG_STATE, "", "no");
    return rc ? rc : line_put(t, mine);
}

static uint64_t beside_reads(struct lab *l, struct beside b)
{
    trace_reset(l->driver);
    TAP_EQ(l->t, txn_run(l->space[HERE], beside_body, &b, NULL, &l->arena, NULL),
           b.gives_up ? BELAY_WRONG_STATE : 0);
    arena_reset(&l->arena);
    return trace_counts(l->driver).reads;
}

/* What was foreseen is kept with a commit, and only so. */
static void foreseen_rows(struct tap *t)
{
    struct lab l;

    if (TAP_OK(t, lab_open(&l, t))) {
        push(&l, HERE, 10);
        push(&l, THERE, 20); /* HERE runs twice, and asks for a while */
        for (unsigned i = 0; i <= RECALL_DISTRUST; i++)
            push(&l, HERE, 30 + i);
        TAP_EQ(t, beside_reads(&l, (struct beside){ true, true }), 1);
        TAP_EQ(t, beside_reads(&l, (struct beside){ true, false }), 1);
        TAP_EQ(t, beside_reads(&l, (struct beside){ true, false }), 0);
        TAP_EQ(t, beside_reads(&l, (struct beside){ false, false }), 0);
    }
    lab_close(&l);
}

/* All pages together are bounded: older ones go. */
static void pages_are_bounded(struct tap *t)
{
    enum { MANY = 2 * RECALL_PAGES_MAX / 32768, ROWS = 10 };
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    static char owner[3000];
    struct value v[PART_COLUMNS] = { value_text(bytes_of(owner, sizeof(owner))),
                                     value_i64(1), value_i64(5) };
    const struct row row = { .type = &row_part, .ver = 1, .v = v };
    const struct bytes index = bytes_str("q");
    const struct fetch fetch = { &row_part, line_key };
    const struct scan scan = { .indexes = &index,
                               .n_indexes = 1,
                               .max_rank = RANK_MAX,
                               .limit = ROWS,
                               .fetch = &fetch,
                               .n_fetch = 1 };
    struct recalled_hit hit[ROWS];
    struct value cover[PART_COLUMNS] = { value_str("p"), value_i64(0), value_i64(5) };
    struct row_ref ref;
    struct recall r;
    struct hits hits;
    size_t kept = 0;

    recall_init(&r);
    for (int64_t i = 0; i < ROWS; i++) {
        hit[i] =
            (struct recalled_hit){ .rank = i, .member = bytes_str("m"), .row = &row };
        if (!make_ref(&hit[i].ref, &arena, i))
            return;
    }
    for (int64_t i = 0; i < MANY && make_ref(&ref, &arena, i); i++) {
        const struct recall_page page = {
            .cover = ref, .index = index, .to = RANK_MAX, .hit = hit, .n = ROWS
        };
        const struct recall_news news = { ref, cover, 7, .own = true };
        recall_put(&r, &news, 1, &(struct recall_lesson){ .era = 1, .pages = &page });
        kept += recall_scan(&r, &ref, 7, 1, &scan, &arena, &hits) && hits.n == ROWS;
        TAP_OK(t, r.page_bytes <= RECALL_PAGES_MAX);
        arena_reset(&arena);
        for (int64_t k = 0; k < ROWS; k++)
            (void)make_ref(&hit[k].ref, &arena, k);
    }
    TAP_EQ(t, kept, MANY);
    TAP_OK(t, make_ref(&ref, &arena, MANY - 1) &&
                  !recall_scan(&r, &ref, 8, 1, &scan, &arena, &hits)); /* R4 */
    TAP_OK(t, !recall_scan(&r, &ref, 7, 2, &scan, &arena, &hits));     /* R2 */
    recall_clear(&r);
    TAP_EQ(t, r.page_bytes, 0);
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
    { "what was read ahead of an index is not asked for", pages_are_kept },
    { "what a program does to an index itself it knows", pages_follow },
    { "what others do to an index is found out by the commit", others_change_pages },
    { "that an index is empty is known, too", empty_pages },
    { "indexes of another era are not known", pages_of_another_era },
    { "rows that are foreseen are kept with a commit", foreseen_rows },
    { "older pages make room", pages_are_bounded },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
