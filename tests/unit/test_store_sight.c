/* What is kept of scans that will be asked again, and when it is not trusted. */
#include "store/sight.h"

#include <stdio.h>

#include "tap.h"
#include "things.h"

static const struct bytes names[] = { { (const uint8_t *)"i", 1 },
                                      { (const uint8_t *)"j", 1 } };
static const struct fetch fetch_thing = { .type = &row_thing };

static struct scan plain(void)
{
    return (struct scan){ .indexes = names,
                          .n_indexes = 2,
                          .max_rank = 100,
                          .limit = 2,
                          .again = true,
                          .ahead = 2 };
}

static struct scan pick(void)
{
    struct scan s = plain();

    s.pick = true;
    return s;
}

/* What was found, in words of three as in "ia1"; a capital member has a row of many bytes. */
struct shown {
    struct hit hit[8];
    struct hits hits;
};

static const struct hits *shown(struct shown *x, const char *text)
{
    size_t n = 0;

    for (; *text; text += 3 + (text[3] == ' '))
        x->hit[n++] = (struct hit){ .index = bytes_of(text, 1),
                                    .member = bytes_of(text + 1, 1),
                                    .rank = text[2] - '0' };
    x->hits = (struct hits){ .hit = x->hit, .n = n };
    return &x->hits;
}

struct lab {
    struct tap *t;
    struct sights s;
    struct belay_arena arena;
};

static void lab_open(struct lab *l, struct tap *t)
{
    *l = (struct lab){ .t = t };
    sights_init(&l->s);
}

static void lab_close(struct lab *l)
{
    sights_release(&l->s);
    arena_release(&l->arena);
}

/* Asks, as far as that is let, and keeps the answer of a scan for `most`. */
static void keep(struct lab *l, const struct scan *scan, const char *text, size_t most)
{
    struct shown x;

    TAP_OK(l->t, sight_ask(&l->s, scan));
    sight_put(&l->s, scan, 1, shown(&x, text), most);
    sight_end(&l->s, scan, SIGHT_ASKED);
}

/* What is recalled, in words as above; "?": it must be asked. */
static void expect(struct lab *l, const struct scan *scan, uint64_t era,
                   const char *want)
{
    struct hits hits = { .n = 0 };
    char text[64] = "?";
    size_t at = 0;

    if (sight_recall(&l->s, scan, era, &l->arena, &hits)) {
        text[0] = '\0';
        for (size_t i = 0; i < hits.n; i++)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%c%c%lld",
                                   i ? " " : "", hits.hit[i].index.ptr[0],
                                   hits.hit[i].member.ptr[0],
                                   (long long)hits.hit[i].rank);
        sight_end(&l->s, scan, SIGHT_UNUSED);
    }
    TAP_STR(l->t, text, want);
}

static void apply(struct lab *l, enum effect_kind kind, const char *index,
                  const char *member, int64_t old_rank, int64_t rank)
{
    struct effect e = { .kind = kind,
                        .rank = { .index = bytes_str(index),
                                  .member = bytes_str(member),
                                  .old_rank = old_rank,
                                  .rank = rank } };
    const struct plan plan = { .effects = &e, .n_effects = 1 };

    sights_apply(&l->s, &plan);
}

/* --- cases --- */

static void parts(struct tap *t)
{
    struct scan s = plain();
    struct lab l;

    lab_open(&l, t);
    expect(&l, &s, 1, "?");
    keep(&l, &s, "ia1 jb2 ic4", 4); /* fewer than there might be: these are all */
    expect(&l, &s, 1, "ia1 jb2");
    s.limit = 8;
    expect(&l, &s, 1, "ia1 jb2 ic4");
    s.max_rank = 3;
    expect(&l, &s, 1, "ia1 jb2");
    s.max_rank = 0;
    expect(&l, &s, 1, "");
    expect(&l, &s, 2, "?"); /* another era */
    s.min_rank = 1;
    expect(&l, &s, 1, "?"); /* another scan */
    lab_close(&l);
}

/* As many as were asked for: behind the last one nobody has looked. */
static void beginnings(struct tap *t)
{
    struct scan s = plain();
    struct lab l;

    lab_open(&l, t);
    keep(&l, &s, "ia1 jb2 ic4", 3);
    s.limit = 3;
    expect(&l, &s, 1, "ia1 jb2 ic4");
    s.limit = 4;
    expect(&l, &s, 1, "?");
    s.max_rank = 3;
    expect(&l, &s, 1, "ia1 jb2");
    s.max_rank = 4;
    expect(&l, &s, 1, "?"); /* others may stand at 4 */
    lab_close(&l);
}

static void own_changes(struct tap *t)
{
    struct scan s = plain();
    struct lab l;

    lab_open(&l, t);
    keep(&l, &s, "ia1 jb2 ic4 id6", 8);
    s.limit = 8;
    apply(&l, EFFECT_RANK_REMOVE, "i", "a", 1, 0);
    expect(&l, &s, 1, "jb2 ic4 id6");
    apply(&l, EFFECT_RANK_REMOVE, "i", "c", 4, 0); /* not the first */
    expect(&l, &s, 1, "jb2 id6");
    apply(&l, EFFECT_RANK_REMOVE, "k", "b", 2, 0); /* another index */
    apply(&l, EFFECT_RANK_REMOVE, "i", "b", 2, 0); /* the same member of another */
    expect(&l, &s, 1, "jb2 id6");
    apply(&l, EFFECT_RANK_ADD, "j", "e", 0, 5);
    expect(&l, &s, 1, "?"); /* its rows are not known */
    s.max_rank = 4;
    expect(&l, &s, 1, "jb2");
    apply(&l, EFFECT_RANK_MOVE, "j", "b", 2, 3);
    expect(&l, &s, 1, "?");
    s.max_rank = 2;
    expect(&l, &s, 1, "");
    lab_close(&l);
}

/* Who picks hopes for something. */
static void empty_picks(struct tap *t)
{
    struct scan s = pick();
    struct lab l;

    lab_open(&l, t);
    keep(&l, &s, "", 4);
    expect(&l, &s, 1, "?");
    keep(&l, &s, "ia1", 4);
    expect(&l, &s, 1, "ia1");
    apply(&l, EFFECT_RANK_REMOVE, "i", "a", 1, 0);
    expect(&l, &s, 1, "?");
    lab_close(&l);
}

/* Asks so often that it does no good; then it does. */
static void ask_in_vain(struct lab *l, const struct scan *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        TAP_OK(l->t, !sight_ask(&l->s, s));
        sight_end(&l->s, s, SIGHT_ASKED);
    }
}

static void recall(struct lab *l, const struct scan *s, enum sight_end how)
{
    struct hits hits;

    TAP_OK(l->t, sight_recall(&l->s, s, 1, &l->arena, &hits));
    sight_end(&l->s, s, how);
}

static void distrust(struct tap *t)
{
    struct scan s = pick();
    struct lab l;

    lab_open(&l, t);
    keep(&l, &s, "ia1", 4);
    recall(&l, &s, SIGHT_GONE); /* for another's sake */
    expect(&l, &s, 1, "?");
    keep(&l, &s, "ia1", 4);
    recall(&l, &s, SIGHT_FALSE);
    expect(&l, &s, 1, "?");
    ask_in_vain(&l, &s, SIGHT_DISTRUST);
    keep(&l, &s, "ia1", 4);
    recall(&l, &s, SIGHT_FALSE); /* again: for longer */
    ask_in_vain(&l, &s, 4 * SIGHT_DISTRUST);
    keep(&l, &s, "ia1", 4);
    for (unsigned i = 0; i < 16; i++)
        recall(&l, &s, SIGHT_STOOD); /* which is forgotten */
    recall(&l, &s, SIGHT_FALSE);
    ask_in_vain(&l, &s, SIGHT_DISTRUST);
    for (unsigned i = 0; i < 16; i++) {
        keep(&l, &s, "ia1", 4);
        recall(&l, &s, SIGHT_FALSE);
        ask_in_vain(&l, &s,
                    i == 0   ? 4 * SIGHT_DISTRUST
                    : i == 1 ? 16 * SIGHT_DISTRUST
                    : i == 2 ? 64 * SIGHT_DISTRUST
                             : SIGHT_DISTRUST_MAX);
    }
    lab_close(&l);
}

static void rivals(struct tap *t)
{
    struct scan s = pick();
    struct hits hits;
    struct lab l;

    lab_open(&l, t);
    keep(&l, &s, "ia1 ib2", 4);
    TAP_OK(t, sight_recall(&l.s, &s, 1, &l.arena, &hits));
    TAP_OK(t, !sight_recall(&l.s, &s, 1, &l.arena, &hits)); /* another has it */
    TAP_OK(t, !sight_ask(&l.s, &s));
    sight_end(&l.s, &s, SIGHT_STOOD);
    expect(&l, &s, 1, "?"); /* somebody else has picked, too */
    sight_end(&l.s, &s, SIGHT_ASKED);
    ask_in_vain(&l, &s, SIGHT_DISTRUST);
    TAP_OK(t, sight_ask(&l.s, &s));
    TAP_OK(t, !sight_ask(&l.s, &s)); /* two at a time */
    sight_end(&l.s, &s, SIGHT_ASKED);
    sight_end(&l.s, &s, SIGHT_ASKED);
    lab_close(&l);
}

/* Those who only look do not compete, but one of them reads ahead. */
static void lookers(struct tap *t)
{
    struct scan s = plain();
    struct hits hits;
    struct lab l;

    lab_open(&l, t);
    TAP_OK(t, sight_ask(&l.s, &s));
    TAP_OK(t, !sight_ask(&l.s, &s));
    struct shown x;
    sight_put(&l.s, &s, 1, shown(&x, "ia1"), 4);
    sight_end(&l.s, &s, SIGHT_ASKED);
    sight_end(&l.s, &s, SIGHT_ASKED);
    TAP_OK(t, sight_recall(&l.s, &s, 1, &l.arena, &hits));
    TAP_OK(t, sight_recall(&l.s, &s, 1, &l.arena, &hits));
    sight_end(&l.s, &s, SIGHT_STOOD);
    sight_end(&l.s, &s, SIGHT_STOOD);
    expect(&l, &s, 1, "ia1");
    lab_close(&l);
}

static struct row thing(struct value v[THING_COLUMNS], struct bytes id,
                        struct bytes note)
{
    for (unsigned i = 0; i < THING_COLUMNS; i++)
        v[i] = row_thing.columns[i].counter ? value_i64(0) : value_null();
    v[THING_ID] = value_text(id);
    v[THING_TEXT] = value_text(note);
    return (struct row){ .type = &row_thing, .ver = 7, .v = v };
}

/* Rows are copies; what is large is cut short. */
static void rows(struct tap *t)
{
    static uint8_t large[48 << 10];
    struct scan s = plain();
    struct value v[4][THING_COLUMNS];
    struct row row[4];
    const struct row *at[4];
    struct shown x;
    struct hits hits = { .n = 0 };
    struct lab l;

    s.fetch = &fetch_thing;
    s.n_fetch = 1;
    s.limit = 2;
    lab_open(&l, t);
    memset(large, 'x', sizeof(large));
    (void)shown(&x, "ia1 jb2 ic4 id6");
    for (unsigned i = 0; i < 4; i++) {
        row[i] = thing(v[i], x.hit[i].member, bytes_of(large, sizeof(large)));
        at[i] = &row[i];
        x.hit[i].rows = &at[i];
    }
    sight_put(&l.s, &s, 1, &x.hits, 8);
    v[0][THING_TEXT] = value_null();
    if (TAP_OK(t, sight_recall(&l.s, &s, 1, &l.arena, &hits)) && TAP_EQ(t, hits.n, 2)) {
        TAP_EQ(t, hits.hit[0].rows[0]->ver, 7);
        TAP_EQ(t, hits.hit[0].rows[0]->v[THING_TEXT].b.len, sizeof(large));
    }
    s.limit = 3;
    expect(&l, &s, 1, "?");
    at[1] = NULL; /* a member without its row */
    sight_put(&l.s, &s, 1, &x.hits, 8);
    s.limit = 1;
    expect(&l, &s, 1, "ia1");
    s.limit = 2;
    expect(&l, &s, 1, "?");
    lab_close(&l);
}

static void bounds(struct tap *t)
{
    struct scan s = plain();
    struct shown x;
    struct lab l;

    lab_open(&l, t);
    for (int i = 0; i <= SIGHTS_MAX; i++) {
        s.min_rank = -i;
        sight_put(&l.s, &s, 1, shown(&x, "ia1"), 8);
    }
    expect(&l, &s, 1, "ia1");
    s.min_rank = -1;
    expect(&l, &s, 1, "ia1");
    s.min_rank = 0; /* the first made room */
    expect(&l, &s, 1, "?");
    sights_clear(&l.s);
    s.min_rank = -1;
    expect(&l, &s, 1, "?");
    lab_close(&l);
}

static const struct tap_case cases[] = {
    { "a part of what was read", parts },
    { "what is behind the last one is not known", beginnings },
    { "a program's own changes", own_changes },
    { "an empty index is not picked from", empty_picks },
    { "S3: what was recalled in vain is not read ahead for a while", distrust },
    { "S4: those who pick do not share", rivals },
    { "those who look share", lookers },
    { "rows are kept with it", rows },
    { "older ones make room", bounds },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
