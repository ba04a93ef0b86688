#include "program.h"

#include <stdlib.h>

#include "program_impl.h"
#include "store/dump.h"

static const char *const spaces[PROGRAM_SPACES] = { "a", "a-b", "z_9" };

static unsigned below(struct machine *m, unsigned n)
{
    return (unsigned)rng_below(&m->rng, n);
}

static void draw_call(struct machine *m)
{
    m->in = below(m, PROGRAM_SPACES);
    m->n_ops = 1 + below(m, OPS_MAX);
    for (size_t i = 0; i < m->n_ops; i++) {
        m->ops[i] = (struct op){ .kind = (enum op_kind)below(m, OP_KINDS),
                                 .id = below(m, PROGRAM_IDS),
                                 .other = below(m, PROGRAM_IDS),
                                 .number = below(m, 12),
                                 .flags = below(m, 64),
                                 .stubborn = below(m, 4) == 0 };
        if (m->ops[i].kind == OP_FAIL && below(m, 3) != 0)
            m->ops[i].kind = OP_INSERT;
    }
}

/* What the transaction as a whole answered. */
static void say_answer(struct machine *m, belay_rc rc, const struct belay_error *err,
                       struct buf *out)
{
    buf_printf(out, "%s", spaces[m->in]);
    buf_append(out, buf_view(&m->line));
    buf_printf(out, " => %s", belay_error_info((int)rc)->name);
    if (rc)
        buf_printf(out, " %s/%s", err->reason, rc == BELAY_CORRUPT ? "" : err->entity);
    for (size_t i = 0; i < m->n_ops && !rc; i++) {
        struct positions *p = &m->feeds[m->in][m->ops[i].id];
        if (m->sums[i].known)
            buf_printf(out, " sum=%lld", (long long)m->sums[i].value);
        if (!m->pos[i].known)
            continue;
        p->pos[p->n++] = m->pos[i].pos;
        buf_printf(out, " pos=%lld", (long long)program_ordinal(p, m->pos[i].pos));
    }
    buf_append_char(out, '\n');
}

static bool play(struct machine *m, struct store *store, struct transcript *out)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_error err = { .code = BELAY_OK };
    unsigned calls = 1 + below(m, PROGRAM_CALLS_MAX);

    for (unsigned i = 0; i < calls; i++) {
        draw_call(m);
        fake_advance_us(&m->h.clock, 1 + 400000 * (int64_t)below(m, 4));
        struct space **sp = &m->space[m->in];
        if (!*sp && store_space(store, bytes_str(spaces[m->in]), sp, &err))
            return false;
        memset(&err, 0, sizeof(err));
        out->lines[out->n_lines++] = out->text.len;
        belay_rc rc = txn_run(*sp, program_body, m, NULL, &arena, &err);
        say_answer(m, rc, &err, &out->text);
        arena_reset(&arena);
    }
    out->lines[out->n_lines++] = out->text.len;
    for (size_t i = 0; i <= PROGRAM_SPACES; i++) {
        const char *ns = i < PROGRAM_SPACES ? spaces[i] : SYSTEM_NAMESPACE;
        buf_printf(&out->text, "dump %s\n", ns);
        if (dump_namespace(m->driver, bytes_str(ns), &out->text, &err))
            return false;
    }
    return !out->text.failed;
}

/* Driver and store with clocks and chance that depend on the seed alone. */
static belay_rc open_machine(struct machine *m, uint64_t seed,
                             const struct test_driver *driver, const char *dir,
                             const struct shim_options *shim, struct store **store)
{
    struct harness *h = &m->h;
    struct driver *outer = NULL;

    rng_init(&m->rng, seed);
    atomic_store(&h->clock.wall_ms, 1750000000000);
    atomic_store(&h->clock.mono_us, 1000000);
    atomic_store(&h->random.state, seed);
    atomic_store(&h->driver_random.state, seed + 1);
    struct driver_config config = { .schema = &schema_things,
                                    .clock = fake_clock_hook(&h->clock),
                                    .random = fake_random_hook(&h->driver_random) };
    struct store_options options = { .schema = &schema_things,
                                     .clock = config.clock,
                                     .random = fake_random_hook(&h->random) };
    belay_rc rc = driver->open(&config, dir, &m->driver, NULL);
    if (!rc && (shim->drop >= 0 || m->driver->ops->now_ms)) {
        rc = shim_wrap(&outer, m->driver, shim, NULL);
        m->driver = rc ? m->driver : outer;
    }
    return rc ? rc : store_open(store, m->driver, &options, NULL);
}

bool program_run(uint64_t seed, const struct test_driver *driver, bool lose_replies,
                 int drop, unsigned drop_nth, struct transcript *out, const char **why)
{
    struct machine *m = calloc(1, sizeof(*m));
    struct store *store = NULL;
    char dir[TEMP_DIR_MAX];
    bool ok = false;

    *out = (struct transcript){ .n_lines = 0 };
    out->lines = calloc(PROGRAM_CALLS_MAX + 2, sizeof(*out->lines));
    if (!m || !out->lines || !temp_dir_make(dir, sizeof(dir)))
        abort();
    struct shim_options shim = { .clock = &m->h.clock,
                                 .drop = drop,
                                 .drop_nth = drop_nth };
    *why = "the driver could not be opened";
    if (!open_machine(m, seed, driver, dir, &shim, &store)) {
        if (lose_replies)
            m->driver->caps |= DRIVER_LOSES_REPLIES;
        *why = "a namespace could not be opened or dumped";
        ok = play(m, store, out);
    }
    store_close(store);
    driver_close(m->driver);
    buf_release(&m->line);
    if (driver->forget)
        driver->forget(dir);
    temp_dir_remove(dir);
    free(m);
    return ok;
}

void transcript_release(struct transcript *t)
{
    buf_release(&t->text);
    free(t->lines);
}
