#include <stdlib.h>
#include <sys/mman.h>

#include "fleet/cache_impl.h"

void fleet_refuse(const struct belay_fleet *f, struct belay_error *err)
{
    if (f && f->magic == 0)
        (void)err_reason(err, BELAY_MISUSE, "forked",
                         "the handle is the parent's; join in the child");
    else
        (void)err_reason(err, BELAY_MISUSE, "handle", "that is no handle of a fleet");
}

void fleet_refuse_observer(struct belay_error *err)
{
    (void)err_reason(err, BELAY_MISUSE, "observer", "an observer changes nothing");
}

void fleet_set_step(struct belay_fleet *f, fleet_step_fn step, void *arg)
{
    f->step = step;
    f->step_arg = arg;
}

static void bind_segment(struct belay_fleet *f, struct space *space)
{
    const struct geometry *g = &space->geo;
    uint8_t *base = space->base;

    f->space = space;
    f->token = (au64 *)(void *)(base + g->token_at);
    f->epoch = (au64 *)(void *)(base + g->epoch_at);
    f->words = (struct notify_word *)(void *)(base + g->words_at);
    f->members = (struct member *)(void *)(base + g->members_at);
    f->buckets = (au64 *)(void *)(base + g->buckets_at);
    f->entries = (struct entry *)(void *)(base + g->entries_at);
    f->records = (struct record *)(void *)(base + g->records_at);
    f->blocks = (au64 *)(void *)(base + g->blocks_at);
    f->arena = base + g->arena_at;
    f->fleet_size = g->fleet_size;
    f->subjects = g->subjects;
    f->holds = g->holds;
    f->n_words = g->words;
    f->key[0] = space->header.key[0];
    f->key[1] = space->header.key[1];
    f->clock_base_us = space->header.clock_base_us;
    f->is_virtual = g->is_virtual;
}

belay_rc handle_new(struct space *space, struct belay_fleet **out,
                    struct belay_error *err)
{
    struct belay_fleet *f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (f == MAP_FAILED)
        return err_no_memory(err, "a fleet's handle");
    if (madvise(f, sizeof(*f), MADV_WIPEONFORK) != 0) {
        belay_rc rc = io_error(err, "memory that fork wipes");
        (void)munmap(f, sizeof(*f));
        return rc;
    }
    f->magic = FLEET_MAGIC;
    atomic_store(&f->leans_to, lock_can_lean() ? 0 : LEANS_TO_NOBODY);
    f->fd = -1;
    f->node = UINT32_MAX;
    f->clock = clock_system();
    if (space) {
        bind_segment(f, space);
        f->free_recs = calloc(f->holds, sizeof(*f->free_recs));
        f->rec_words = calloc(f->holds, sizeof(*f->rec_words));
        f->rec_entries = calloc(f->holds, sizeof(*f->rec_entries));
        if (!f->free_recs || !f->rec_words || !f->rec_entries) {
            f->space = NULL; /* the caller's still */
            handle_free(f);
            return err_no_memory(err, "a fleet's handle");
        }
        for (uint32_t i = 0; i < f->holds; i++)
            f->free_recs[i] = (uint16_t)(f->holds - 1 - i);
        f->n_free_recs = f->holds;
    }
    *out = f;
    return BELAY_OK;
}

void handle_free(struct belay_fleet *f)
{
    for (size_t i = 0; i < COUNT_OF(f->rings); i++)
        free(f->rings[i]);
    while (f->caches)
        belay_cache_close(f->caches);
    free(f->free_recs);
    free(f->rec_words);
    free(f->rec_entries);
    file_close(&f->fd);
    space_release(f->space);
    (void)munmap(f, sizeof(*f));
}

uint64_t fleet_log_ms(struct belay_fleet *f, uint64_t now)
{
    if (f->is_virtual)
        return now;
    int64_t mono_us = (int64_t)now + f->clock_base_us;
    /* The wall clock is for display: once a second is often enough. */
    if (f->wall_checked_us == 0 || mono_us - f->wall_checked_us > 1000000) {
        f->wall_offset_ms = f->clock.wall_ms(f->clock.arg) - mono_us / 1000;
        f->wall_checked_us = mono_us;
    }
    int64_t wall = f->wall_offset_ms + mono_us / 1000;
    return wall > 0 ? (uint64_t)wall : 0;
}
