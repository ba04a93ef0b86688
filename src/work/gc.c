#include "work/gc.h"

#include <stdlib.h>

#include "base/clock.h"
#include "work/gc_impl.h"

#define GRACE_MAX_MS ((int64_t)365 * 24 * 3600 * 1000)
#define COLLECT_PAGE 1024
#define COUNT_PAGE 8192
#define FIRST_ROOM 256
/* One transaction of the sweep: so many blobs, or so many bytes in their chunks. */
#define STEP_BLOBS 32
#define STEP_BYTES ((int64_t)4 << 20)
#define STEP_TRIES 4
#define UPLOADS_STEP 64

/* --- opening --- */

static belay_rc check_options(const struct belay_gc_options *o, struct belay_error *err)
{
    if (o->grace_ms < BELAY_NONE || o->grace_ms > GRACE_MAX_MS)
        return err_reason(err, BELAY_INVALID, "option",
                          "gc: a grace is 0 to 365 days, or none");
    if (o->budget_ms < 0 || o->budget_ms > GRACE_MAX_MS)
        return err_reason(err, BELAY_INVALID, "option",
                          "gc: a budget is 0 to 365 days");
    return BELAY_OK;
}

belay_rc gc_open(struct gc *g, struct space *sp, const struct belay_gc_options *options,
                 size_t page_max, struct belay_gc_report *report,
                 struct belay_error *err)
{
    static const struct belay_gc_options defaults = { .size = sizeof(defaults) };
    static const struct fetch fetch = { .type = &row_blob };
    const struct belay_gc_options *o = options ? options : &defaults;
    const struct belay_clock *clock = store_clock_hook(space_store(sp));
    int64_t now_ms = 0;

    *report = (struct belay_gc_report){ .outcome = BELAY_GC_NOTHING };
    *g = (struct gc){ .sp = sp, .dry_run = o->dry_run, .report = report };
    belay_rc rc = check_options(o, err);
    if (rc == BELAY_OK)
        rc = space_now(sp, &now_ms, err);
    if (rc)
        return rc;
    int64_t grace_ms = o->grace_ms == 0 ? BELAY_GC_GRACE_MS : o->grace_ms;
    g->cutoff_ms = grace_ms == BELAY_NONE ? now_ms : now_ms - grace_ms;
    g->writing.cancel = o->cancel;
    if (o->budget_ms > 0)
        g->writing.deadline_us = clock->mono_us(clock->arg) + o->budget_ms * 1000;
    g->reading = g->writing;
    g->reading.read_only = true;
    g->blobs = (struct gc_walk){
        .index = BLOB_INDEX, .max_rank = g->cutoff_ms, .fetch = &fetch, .n_fetch = 1
    };
    g->max_candidates = page_max;
    return random_bytes(store_random_hook(space_store(sp)), &g->secret,
                        sizeof(g->secret), err);
}

void gc_close(struct gc *g)
{
    free(g->candidates);
    free(g->slots);
    arena_release(&g->page);
    arena_release(&g->item);
    arena_release(&g->values);
}

belay_rc gc_goes_on(const struct gc *g, struct belay_error *err)
{
    const struct belay_clock *clock = store_clock_hook(space_store(g->sp));
    int64_t deadline_us = g->reading.deadline_us;

    if (cancel_is_set(g->reading.cancel))
        return err_set(err, BELAY_CANCELLED, "gc: cancelled by the caller");
    if (deadline_us > 0 && clock->mono_us(clock->arg) >= deadline_us)
        return err_set(err, BELAY_TIMEOUT, "gc: its budget is used up");
    return BELAY_OK;
}

/* --- candidates --- */

static uint8_t nibble(uint8_t c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void digest_of(struct bytes name, uint8_t out[SHA256_LEN])
{
    for (size_t i = 0; i < SHA256_LEN; i++)
        out[i] = (uint8_t)(nibble(name.ptr[2 * i]) << 4 | nibble(name.ptr[2 * i + 1]));
}

/* The slot where the digest stands, or the empty one where it would. */
static size_t slot_of(const struct gc *g, const uint8_t digest[SHA256_LEN])
{
    uint64_t h;

    memcpy(&h, digest, sizeof(h));
    h = (h ^ g->secret) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 32;
    h *= g->secret | 1;
    h ^= h >> 29;
    size_t i = (size_t)h & (g->n_slots - 1);
    while (g->slots[i] > 0 &&
           memcmp(g->candidates[g->slots[i] - 1].digest, digest, SHA256_LEN) != 0)
        i = (i + 1) & (g->n_slots - 1);
    return i;
}

struct gc_candidate *gc_find(const struct gc *g, struct bytes name)
{
    uint8_t digest[SHA256_LEN];

    if (g->n_candidates == 0)
        return NULL;
    digest_of(name, digest);
    uint32_t number = g->slots[slot_of(g, digest)];
    return number > 0 ? &g->candidates[number - 1] : NULL;
}

/* Room for one more: the table is small until there is much to put into it. */
static belay_rc make_room(struct gc *g, struct belay_error *err)
{
    if (g->n_candidates < g->room)
        return BELAY_OK;
    size_t room = g->room > 0 ? 2 * g->room : FIRST_ROOM;
    uint32_t *slots = calloc(2 * room, sizeof(*slots));
    struct gc_candidate *all =
        slots ? realloc(g->candidates, room * sizeof(*all)) : NULL;
    if (!all) {
        free(slots);
        return err_no_memory(err, "the candidates of a collection");
    }
    free(g->slots);
    g->candidates = all;
    g->slots = slots;
    g->room = room;
    g->n_slots = 2 * room;
    for (size_t i = 0; i < g->n_candidates; i++)
        g->slots[slot_of(g, all[i].digest)] = (uint32_t)(i + 1);
    return BELAY_OK;
}

static int64_t bytes_of_blob(const struct row *row)
{
    int64_t size = row_i64(row, BLOB_STORED_SIZE, row_i64(row, BLOB_SIZE, 0));

    return size > 0 && size <= BLOB_SIZE_MAX ? size : 0;
}

/* What is not as it should be is no candidate: it stays, for a check to find. */
static belay_rc add_candidate(struct gc *g, const struct hit *hit,
                              struct belay_error *err)
{
    const struct row *row = hit->rows[0];

    if (!row || !blob_is_name(hit->member) ||
        row_i64(row, BLOB_TOUCHED_AT_MS, -1) != hit->rank)
        return BELAY_OK;
    belay_rc rc = make_room(g, err);
    if (rc)
        return rc;
    struct gc_candidate *c = &g->candidates[g->n_candidates];
    digest_of(hit->member, c->digest);
    size_t slot = slot_of(g, c->digest);
    if (g->slots[slot] > 0) /* touched since, and met again: the sweep will spare it */
        return BELAY_OK;
    c->ver = row->ver;
    c->bytes = bytes_of_blob(row);
    c->marked = false;
    g->slots[slot] = (uint32_t)++g->n_candidates;
    return BELAY_OK;
}

belay_rc gc_collect(struct gc *g, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    g->n_candidates = 0;
    if (g->slots)
        memset(g->slots, 0, g->n_slots * sizeof(*g->slots));
    while (rc == BELAY_OK && !g->blobs.done && g->n_candidates < g->max_candidates) {
        size_t room = g->max_candidates - g->n_candidates;
        g->blobs.limit = room < COLLECT_PAGE ? room : COLLECT_PAGE;
        rc = gc_next(g, &g->blobs, err);
        for (size_t i = 0; i < g->blobs.hits.n && rc == BELAY_OK; i++)
            rc = add_candidate(g, &g->blobs.hits.hit[i], err);
    }
    g->seen += (int64_t)g->n_candidates;
    return rc;
}

/* --- the sweep --- */

struct step {
    const struct gc_candidate *blob[STEP_BLOBS];
    char name[STEP_BLOBS][SHA256_HEX_LEN + 1];
    size_t n;
    int64_t deleted, bytes, spared;
};

/* S6: what was touched since the candidates were collected has another version. */
static belay_rc step_body(struct txn *t, void *arg)
{
    struct step *s = arg;
    struct row_want wants[STEP_BLOBS];
    struct value keys[STEP_BLOBS];
    const struct row *rows[STEP_BLOBS];

    s->deleted = s->bytes = s->spared = 0;
    for (size_t i = 0; i < s->n; i++) {
        keys[i] = value_str(s->name[i]);
        wants[i] = (struct row_want){ &row_blob, &keys[i] };
    }
    belay_rc rc = txn_get_many(t, wants, s->n, rows);
    for (size_t i = 0; i < s->n && rc == BELAY_OK; i++) {
        if (!rows[i])
            continue; /* gone, by another collection */
        if (rows[i]->ver != s->blob[i]->ver) {
            s->spared++;
            continue;
        }
        s->deleted++;
        s->bytes += s->blob[i]->bytes;
        rc = blob_remove_in(t, rows[i]);
    }
    return rc;
}

static belay_rc run_step(struct gc *g, struct step *s, struct belay_error *err)
{
    belay_rc rc = BELAY_CONTENTION;

    if (s->n == 0)
        return BELAY_OK;
    for (int i = 0; i < STEP_TRIES && rc == BELAY_CONTENTION; i++) {
        arena_reset(&g->item);
        rc = txn_run(g->sp, step_body, s, &g->writing, &g->item, err);
    }
    if (rc)
        return rc;
    g->report->deleted_blobs += s->deleted;
    g->report->deleted_bytes += s->bytes;
    g->report->spared_blobs += s->spared;
    g->report->steps += s->deleted > 0;
    return BELAY_OK;
}

belay_rc gc_sweep(struct gc *g, struct belay_error *err)
{
    struct step s = { .n = 0 };
    int64_t bytes = 0;
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < g->n_candidates && rc == BELAY_OK; i++) {
        const struct gc_candidate *c = &g->candidates[i];
        if (c->marked)
            continue;
        if (g->dry_run) {
            g->report->deleted_blobs++;
            g->report->deleted_bytes += c->bytes;
            continue;
        }
        s.blob[s.n] = c;
        hex_encode(bytes_of(c->digest, SHA256_LEN), s.name[s.n++]);
        bytes += c->bytes;
        if (s.n == STEP_BLOBS || bytes >= STEP_BYTES) {
            rc = run_step(g, &s, err);
            s.n = 0;
            bytes = 0;
        }
    }
    return rc ? rc : run_step(g, &s, err);
}

belay_rc gc_sweep_uploads(struct gc *g, struct belay_error *err)
{
    /* First what is left of large blobs: that was counted with them. */
    const int64_t before_ms[] = { 1, g->cutoff_ms + 1 };
    belay_rc rc = BELAY_OK;

    if (g->dry_run)
        return BELAY_OK;
    for (size_t i = 0; i < COUNT_OF(before_ms); i++) {
        size_t swept = UPLOADS_STEP;
        while (rc == BELAY_OK && swept == UPLOADS_STEP) {
            rc = gc_goes_on(g, err);
            if (rc == BELAY_OK)
                rc = blob_sweep_uploads(g->sp, before_ms[i], UPLOADS_STEP, &swept, err);
            if (rc == BELAY_OK && i > 0)
                g->report->deleted_uploads += (int64_t)swept;
        }
    }
    return rc;
}

void gc_count(struct gc *g)
{
    struct gc_walk w = { .index = BLOB_INDEX,
                         .max_rank = RANK_MAX,
                         .limit = COUNT_PAGE };
    int64_t n = g->dry_run ? -g->report->deleted_blobs : 0;
    struct belay_error ignored;
    belay_rc rc = BELAY_OK;

    while (rc == BELAY_OK && !w.done) {
        rc = gc_next(g, &w, &ignored);
        n += (int64_t)w.hits.n;
    }
    g->report->retained_blobs = rc ? g->seen - g->report->deleted_blobs : n;
}

/* --- all of it --- */

static belay_rc collect_all(struct gc *g, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    while (rc == BELAY_OK && !g->blobs.done) {
        rc = gc_collect(g, err);
        if (rc == BELAY_OK && g->n_candidates > 0)
            rc = gc_trace(g, err);
        if (rc == BELAY_OK)
            rc = gc_sweep(g, err);
    }
    return rc ? rc : gc_sweep_uploads(g, err);
}

/* What an error means for the collection. */
static int32_t outcome_of(const struct gc *g, belay_rc rc)
{
    const struct belay_gc_report *r = g->report;

    if (rc == BELAY_OK)
        return r->deleted_blobs + r->deleted_uploads > 0 ? BELAY_GC_SWEPT
                                                         : BELAY_GC_NOTHING;
    if (g->refused)
        return BELAY_GC_REFUSED;
    bool stopped =
        rc == BELAY_TIMEOUT || rc == BELAY_CANCELLED || rc == BELAY_CONTENTION;
    return stopped ? BELAY_GC_INCOMPLETE : BELAY_GC_FAILED;
}

static void conclude(struct gc *g, belay_rc rc, const struct belay_error *e)
{
    struct belay_gc_report *r = g->report;

    r->outcome = outcome_of(g, rc);
    if (rc == BELAY_OK)
        return;
    if (r->outcome != BELAY_GC_INCOMPLETE)
        r->code = (int32_t)rc;
    memcpy(r->reason, e->reason, sizeof(r->reason));
    memcpy(r->entity, e->entity, sizeof(r->entity));
    memcpy(r->message, e->message, sizeof(r->message));
}

belay_rc gc_run(struct space *sp, const struct belay_gc_options *options,
                struct belay_gc_report *out, struct belay_error *err)
{
    struct belay_error e = { .size = sizeof(e) };
    struct gc g;
    belay_rc rc = gc_open(&g, sp, options, GC_PAGE, out, &e);
    bool wrong = rc == BELAY_INVALID;

    if (rc == BELAY_OK)
        rc = collect_all(&g, &e);
    wrong |= rc == BELAY_MISUSE;
    conclude(&g, rc, &e);
    if (!wrong)
        gc_count(&g);
    gc_close(&g);
    if (wrong && err)
        *err = e;
    return wrong ? rc : BELAY_OK;
}
