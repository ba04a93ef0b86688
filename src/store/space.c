/* Namespaces: their rows, their registry entry, their time. */
#include <stdlib.h>
#include <string.h>

#include "store/txn_impl.h"

/* The rows of every namespace. */
enum { WANT_FORMAT, WANT_EPOCH, WANT_FENCE_FLOOR, WANT_CLOCK, WANTS };
static const struct row_type *const space_rows[WANTS] = {
    [WANT_FORMAT] = &row_format,
    [WANT_EPOCH] = &row_epoch,
    [WANT_FENCE_FLOOR] = &row_fence_floor,
    [WANT_CLOCK] = &row_clock,
};

static belay_rc get_space_rows(struct txn *t, const struct row *rows[WANTS])
{
    struct row_want wants[WANTS];

    for (size_t i = 0; i < WANTS; i++)
        wants[i] = (struct row_want){ .type = space_rows[i] };
    return txn_get_many(t, wants, WANTS, rows);
}

/* Whether a program of this format may read (or write) what the namespace holds. */
static belay_rc check_format(struct txn *t, const struct row *format, unsigned minimum)
{
    int64_t found = format ? row_i64(format, FORMAT_FORMAT, 0) : SCHEMA_FORMAT;

    if (!format ||
        (row_i64(format, minimum, 0) <= SCHEMA_FORMAT && found >= SCHEMA_OLDEST))
        return BELAY_OK;
    belay_rc rc = txn_fail(t, BELAY_UNSUPPORTED_FORMAT,
                           minimum == FORMAT_MIN_READER ? "reader" : "writer",
                           "namespace: has format %lld, this program knows %d",
                           (long long)found, SCHEMA_FORMAT);
    err_numbers(txn_error(t), SCHEMA_FORMAT, found);
    return rc;
}

/* --- opening --- */

struct opening {
    bool exists;
    int64_t mark_ms;
};

static belay_rc open_body(struct txn *t, void *arg)
{
    struct opening *o = arg;
    const struct row *rows[WANTS];
    belay_rc rc = get_space_rows(t, rows);

    if (!rc)
        rc = check_format(t, rows[WANT_FORMAT], FORMAT_MIN_READER);
    if (rc)
        return rc;
    o->exists = rows[WANT_FORMAT] &&
                row_i64(rows[WANT_FORMAT], FORMAT_MIN_WRITER, 0) <= SCHEMA_FORMAT;
    o->mark_ms = rows[WANT_CLOCK] ? row_i64(rows[WANT_CLOCK], CLOCK_MARK_MS, 0) : 0;
    return BELAY_OK;
}

static void free_slots(struct slot *s)
{
    for (struct slot *next; s; s = next) {
        next = s->next;
        free(s);
    }
}

void space_close(struct space *sp)
{
    if (!sp)
        return;
    free_slots(sp->free_slots);
    recall_release(&sp->recall);
    sights_release(&sp->sights);
    pthread_mutex_destroy(&sp->mutex);
    free(sp);
}

static belay_rc space_open(struct store *s, struct bytes name, struct space **out,
                           struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct txn_options read_only = { .read_only = true };
    struct opening o = { .exists = false };
    struct space *sp = calloc(1, sizeof(*sp) + name.len);

    if (!sp)
        return err_no_memory(err, "a namespace");
    memcpy(sp + 1, name.ptr, name.len);
    sp->store = s;
    sp->name = bytes_of(sp + 1, name.len);
    sp->system = bytes_eq(name, bytes_str(SYSTEM_NAMESPACE));
    pthread_mutex_init(&sp->mutex, NULL);
    recall_init(&sp->recall);
    sights_init(&sp->sights);
    belay_rc rc = txn_run_founding(sp, open_body, &o, &read_only, &arena, err);
    if (rc) {
        space_close(sp);
        return rc;
    }
    store_clock_init(&sp->clock, o.mark_ms);
    atomic_store(&sp->ready, o.exists);
    *out = sp;
    return BELAY_OK;
}

/* --- the registry --- */

/* A namespace that is being deleted is neither read nor written, nor founded again. */
static belay_rc check_active(struct txn *t, const struct row *row, struct bytes name)
{
    if (!row ||
        !bytes_eq(row_bytes(row, NAMESPACE_STATE), bytes_str(NAMESPACE_DELETING)))
        return BELAY_OK;
    belay_rc rc =
        txn_fail(t, BELAY_WRONG_STATE, "deleting", "namespace %.*s: is being deleted",
                 (int)name.len, (const char *)name.ptr);
    err_entity(txn_error(t), name);
    return rc;
}

/* arg: the name. */
static belay_rc active_body(struct txn *t, void *arg)
{
    const struct bytes *name = arg;
    struct value key = value_text(*name);
    const struct row *row;
    belay_rc rc = txn_get(t, &row_namespace, &key, &row);

    return rc ? rc : check_active(t, row, *name);
}

static belay_rc ask_registry(struct store *s, struct bytes name,
                             struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct txn_options read_only = { .read_only = true };
    struct space *system = NULL;
    belay_rc rc = store_system_space(s, &system, err);

    return rc ? rc : txn_run(system, active_body, &name, &read_only, &arena, err);
}

static struct space *find_space(struct store *s, struct bytes name)
{
    struct space *sp = s->spaces;

    while (sp && !bytes_eq(sp->name, name))
        sp = sp->next;
    return sp;
}

static belay_rc need_space(struct store *s, struct bytes name, struct space **out,
                           struct belay_error *err)
{
    struct space *opened = NULL;
    belay_rc rc = store_enter(s, err);
    if (rc)
        return rc;

    pthread_mutex_lock(&s->mutex);
    struct space *sp = find_space(s, name);
    pthread_mutex_unlock(&s->mutex);
    if (!sp) {
        /* Opening talks to the store, so not under the mutex; two threads may open the
         * same one, then the first to get here wins. */
        if (!bytes_eq(name, bytes_str(SYSTEM_NAMESPACE)))
            rc = ask_registry(s, name, err);
        if (!rc)
            rc = space_open(s, name, &opened, err);
        if (rc)
            return rc;
        pthread_mutex_lock(&s->mutex);
        sp = find_space(s, name);
        if (!sp) {
            opened->next = s->spaces;
            s->spaces = sp = opened;
            opened = NULL;
        }
        pthread_mutex_unlock(&s->mutex);
        space_close(opened);
    }
    *out = sp;
    return BELAY_OK;
}

belay_rc store_space(struct store *s, struct bytes ns, struct space **out,
                     struct belay_error *err)
{
    if (!namespace_is_valid(ns, false))
        return err_reason(err, BELAY_INVALID, "namespace",
                          "namespace: must match [a-z0-9][a-z0-9_-]{0,62}");
    return need_space(s, ns, out, err);
}

belay_rc store_system_space(struct store *s, struct space **out,
                            struct belay_error *err)
{
    return need_space(s, bytes_str(SYSTEM_NAMESPACE), out, err);
}

void store_forget_space(struct store *s, struct bytes ns)
{
    struct slot *slots = NULL;

    pthread_mutex_lock(&s->mutex);
    struct space *sp = find_space(s, ns);
    if (sp) {
        pthread_mutex_lock(&sp->mutex);
        slots = sp->free_slots;
        sp->free_slots = NULL;
        atomic_store(&sp->ready, false);
        pthread_mutex_unlock(&sp->mutex);
        recall_clear(&sp->recall);
        sights_clear(&sp->sights);
    }
    pthread_mutex_unlock(&s->mutex);
    free_slots(slots);
}

/* --- founding --- */

/* Enters a namespace in the registry.  arg: its name. */
static belay_rc register_body(struct txn *t, void *arg)
{
    const struct bytes *name = arg;
    const struct row *row;
    struct value v[NAMESPACE_COLUMNS] = { [NAMESPACE_NAME] = value_text(*name) };
    int64_t now_ms = 0;
    belay_rc rc = txn_get(t, &row_namespace, v, &row);

    if (rc || row)
        return rc ? rc : check_active(t, row, *name);
    rc = txn_now(t, &now_ms);
    if (rc)
        return rc;
    v[NAMESPACE_CREATED_AT_MS] = value_i64(now_ms);
    v[NAMESPACE_STATE] = value_str(NAMESPACE_ACTIVE);
    rc = txn_insert(t, &row_namespace, v);
    return rc ? rc : txn_rank_add(t, bytes_str(NAMESPACE_INDEX), 0, *name);
}

/* Adds those of the namespace's rows that are missing. */
static belay_rc found_body(struct txn *t, void *arg)
{
    const struct row *rows[WANTS];
    struct lineage lineage;
    int64_t now_ms = 0;
    belay_rc rc = get_space_rows(t, rows);

    (void)arg;
    if (!rc)
        rc = check_format(t, rows[WANT_FORMAT], FORMAT_MIN_WRITER);
    if (!rc)
        rc = txn_now(t, &now_ms);
    if (!rc)
        rc = txn_lineage(t, bytes_of(NULL, 0), &lineage);
    if (rc)
        return rc;

    const struct value format[FORMAT_COLUMNS] = {
        [FORMAT_FORMAT] = value_i64(SCHEMA_FORMAT),
        [FORMAT_MIN_READER] = value_i64(SCHEMA_MIN_READER),
        [FORMAT_MIN_WRITER] = value_i64(SCHEMA_MIN_WRITER),
    };
    const struct value epoch[EPOCH_COLUMNS] = {
        [EPOCH_EPOCH] = value_i64(0),
        [EPOCH_LIFE] = lineage.life[0] ? value_str(lineage.life) : value_null(),
    };
    const struct value floor[FENCE_FLOOR_COLUMNS] = { value_i64(0) };
    const struct value clock[CLOCK_COLUMNS] = { value_i64(now_ms) };
    const struct value *const values[WANTS] = { [WANT_FORMAT] = format,
                                                [WANT_EPOCH] = epoch,
                                                [WANT_FENCE_FLOOR] = floor,
                                                [WANT_CLOCK] = clock };
    for (size_t i = 0; i < WANTS && !rc; i++) {
        if (!rows[i])
            rc = txn_insert(t, space_rows[i], values[i]);
    }
    return rc;
}

belay_rc space_found(struct space *sp, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    belay_rc rc = BELAY_OK;

    if (!sp->system) {
        struct space *system = NULL;
        rc = store_system_space(sp->store, &system, err);
        if (!rc && !atomic_load(&system->ready))
            rc = space_found(system, err);
        /* The registry first: a namespace that holds anything is listed. */
        if (!rc)
            rc = txn_run(system, register_body, &sp->name, NULL, &arena, err);
    }
    arena_reset(&arena);
    if (!rc)
        rc = txn_run_founding(sp, found_body, NULL, NULL, &arena, err);
    if (!rc) {
        pthread_mutex_lock(&sp->mutex);
        sp->clock.persisted_ms = sp->clock.high_ms; /* the new rows hold it */
        pthread_mutex_unlock(&sp->mutex);
        atomic_store(&sp->ready, true);
    }
    return rc;
}

/* --- time, ids, listening --- */

int64_t space_tell_time(struct space *sp, int64_t wall_ms)
{
    const struct belay_clock *clock = &sp->store->options.clock;

    pthread_mutex_lock(&sp->mutex);
    int64_t now_ms = store_clock_now(&sp->clock, wall_ms, clock->mono_us(clock->arg));
    pthread_mutex_unlock(&sp->mutex);
    return now_ms;
}

static belay_rc now_body(struct txn *t, void *arg)
{
    return txn_now(t, arg);
}

belay_rc space_now(struct space *sp, int64_t *out_ms, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct txn_options read_only = { .read_only = true };
    int64_t now_ms = 0;
    belay_rc rc = txn_run(sp, now_body, &now_ms, &read_only, &arena, err);

    if (!rc)
        *out_ms = now_ms;
    return rc;
}

bool space_clock_doubted(struct space *sp, int64_t *out_step_ms)
{
    pthread_mutex_lock(&sp->mutex);
    bool doubted = sp->clock.doubted;
    if (doubted && out_step_ms)
        *out_step_ms = sp->clock.doubted_step_ms;
    pthread_mutex_unlock(&sp->mutex);
    return doubted;
}

void space_clock_accept(struct space *sp)
{
    pthread_mutex_lock(&sp->mutex);
    store_clock_accept(&sp->clock);
    pthread_mutex_unlock(&sp->mutex);
}

void space_clock_restart(struct space *sp, int64_t mark_ms)
{
    pthread_mutex_lock(&sp->mutex);
    store_clock_init(&sp->clock, mark_ms);
    pthread_mutex_unlock(&sp->mutex);
}

belay_rc txn_wall(struct txn *t, int64_t *out_ms)
{
    belay_rc rc =
        driver_now_ms(t->driver, t->attempt, &t->store->options.clock, out_ms, &t->err);

    return rc ? txn_broken(t, rc) : BELAY_OK;
}

belay_rc txn_lineage(struct txn *t, struct bytes known, struct lineage *out)
{
    belay_rc rc = driver_lineage(t->driver, t->attempt, known, out, &t->err);

    return rc ? txn_broken(t, rc) : BELAY_OK;
}

belay_rc space_mint(struct space *sp, const char *prefix, char out[ID_MAX],
                    struct belay_error *err)
{
    int64_t now_ms = 0;
    belay_rc rc = space_now(sp, &now_ms, err);

    return rc ? rc : space_mint_at(sp, prefix, now_ms, out, err);
}

belay_rc space_mint_at(struct space *sp, const char *prefix, int64_t now_ms,
                       char out[ID_MAX], struct belay_error *err)
{
    return id_mint_next(&sp->store->mint, prefix, now_ms, &sp->store->options.random,
                        out, err);
}

belay_rc space_listen(struct space *sp, const struct bytes *topics, size_t n_topics,
                      struct belay_cancel *cancel, struct belay_arena *a,
                      struct listener **out, struct belay_error *err)
{
    struct wake_topics wanted = { .ns = sp->name, .topic = topics, .n = n_topics };
    belay_rc rc = store_enter(sp->store, err);

    return rc ? rc
              : wake_listen(sp->store->driver->hub, &wanted, &sp->store->options.clock,
                            cancel, a, out, err);
}

struct bytes space_name(const struct space *sp)
{
    return sp->name;
}

struct store *space_store(const struct space *sp)
{
    return sp->store;
}
