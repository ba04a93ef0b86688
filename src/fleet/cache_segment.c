/* The cache's segment, a file beside the rings' that appears whole, as theirs do. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fleet/cache_impl.h"

static uint64_t place(uint64_t *end, uint64_t len)
{
    uint64_t at = (*end + 127) / 128 * 128;

    *end = at + len;
    return at;
}

/* Everything that follows from entries and chunks; false: out of bounds. */
static bool map_fill(struct cache_map *m)
{
    uint64_t end = HEADER_ROOM;

    if (m->entries < CACHE_WAYS || m->entries > CACHE_ENTRIES_MAX ||
        (m->entries & (m->entries - 1)) != 0 || m->chunks < 2 ||
        m->chunks > CACHE_ARENA_MAX / CHUNK_LEN)
        return false;
    m->sets = m->entries / CACHE_WAYS;
    m->shared_at = place(&end, sizeof(struct cache_shared));
    m->sets_at = place(&end, (uint64_t)m->sets * sizeof(struct cache_set));
    m->entries_at = place(&end, (uint64_t)m->entries * sizeof(struct cache_entry));
    m->words_at = place(&end, (uint64_t)m->chunks * sizeof(struct cache_chunk));
    m->chunks_at = place(&end, (uint64_t)m->chunks * CHUNK_LEN);
    m->total_len = (end + 4095) / 4096 * 4096;
    return true;
}

static uint64_t layout_hash(void)
{
    static const uint64_t facts[] = {
        SEGMENT_ABI,  sizeof(struct cache_header), sizeof(struct cache_shared),
        CACHE_WAYS,   sizeof(struct cache_set),    sizeof(struct cache_entry),
        CACHE_INLINE, sizeof(struct cache_chunk),  CHUNK_LEN,
    };
    static const uint64_t key[2] = { CACHE_MAGIC, 1 };

    return fleet_hash(key, 0, facts, sizeof(facts));
}

static uint64_t header_sum(const struct cache_header *h)
{
    static const uint64_t key[2] = { CACHE_MAGIC, 2 };
    struct cache_header copy = *h;

    copy.sum = 0;
    return fleet_hash(key, 0, &copy, sizeof(copy));
}

static void path_of(const struct space *space, char *out, size_t out_len)
{
    (void)snprintf(out, out_len, "%s/belay-%u-%s.%016llx.cache", space->dir,
                   (unsigned)geteuid(), space->name,
                   (unsigned long long)space->header.fleet_id);
}

static belay_rc create(struct belay_fleet *f, const char *path,
                       const struct belay_cache_options *options, struct cache_map *map,
                       struct belay_error *err)
{
    struct cache_map m = { 0 };
    int fd = -1;

    if (options->entries < 0 || options->arena_len < 0 ||
        options->arena_len > CACHE_ARENA_MAX)
        return err_reason(err, BELAY_INVALID, "geometry",
                          "entries or arena_len is out of range");
    m.entries = options->entries == 0 ? 4096 : (uint32_t)options->entries;
    m.chunks = options->arena_len == 0
                   ? (4 << 20) / CHUNK_LEN
                   : (uint32_t)((options->arena_len + CHUNK_LEN - 1) / CHUNK_LEN);
    if (!map_fill(&m))
        return err_reason(err, BELAY_INVALID, "geometry",
                          "entries or arena_len is out of range");
    belay_rc rc =
        file_make(f->space->dir, m.total_len, !f->space->is_shared, &fd, &m.base, err);
    if (rc != BELAY_OK)
        return rc;
    struct cache_header h = {
        .magic = CACHE_MAGIC,
        .abi = SEGMENT_ABI,
        .header_len = sizeof(h),
        .abi_hash = layout_hash(),
        .total_len = m.total_len,
        .fleet_id = f->space->header.fleet_id,
        .entries = m.entries,
        .chunks = m.chunks,
    };
    h.sum = header_sum(&h);
    memcpy(m.base, &h, sizeof(h));
    if (f->space->is_shared)
        rc = file_link(fd, path, err);
    file_close(&fd);
    fleet_step(f, STEP_KIND_LINKED);
    if (rc != BELAY_OK || f->space->is_shared)
        (void)munmap(m.base, m.total_len); /* attached by its name next */
    else
        *map = m;
    return rc;
}

/* Everything a stranger could have got wrong (F4). */
static belay_rc check(const struct belay_fleet *f, const struct cache_header *h,
                      uint64_t len, struct cache_map *out, struct belay_error *err)
{
    struct cache_map m = { .entries = h->entries, .chunks = h->chunks };

    if (h->magic != CACHE_MAGIC)
        return err_reason(err, BELAY_UNSUPPORTED_FORMAT, "magic", "that is no cache");
    if (h->abi != SEGMENT_ABI || h->header_len != sizeof(*h) ||
        h->abi_hash != layout_hash())
        return err_reason(err, BELAY_UNSUPPORTED_FORMAT, "abi",
                          "the cache is of another version");
    if (h->fleet_id != f->space->header.fleet_id)
        return err_reason(err, BELAY_CORRUPT, "name", "the cache is of another fleet");
    if (!map_fill(&m) || m.total_len != h->total_len || h->sum != header_sum(h))
        return err_reason(err, BELAY_CORRUPT, "geometry",
                          "the cache's numbers contradict each other");
    if (len != m.total_len)
        return err_reason(err, BELAY_CORRUPT, "truncated",
                          "the cache has another length than it says");
    *out = m;
    return BELAY_OK;
}

static belay_rc attach(struct belay_fleet *f, const char *path, struct cache_map *map,
                       struct belay_error *err)
{
    struct cache_header h = { 0 };
    struct cache_map m = { 0 };
    uint64_t len = 0;
    int fd = -1;

    if (!f->space->is_shared)
        return err_set(err, BELAY_NOT_FOUND, "nobody opened the cache");
    belay_rc rc = file_open(path, f->space->is_read_only, &fd, &len, err);
    if (rc != BELAY_OK)
        return rc;
    if (len < HEADER_ROOM || pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
        rc = err_reason(err, BELAY_UNSUPPORTED_FORMAT, "magic", "that is no cache");
    if (rc == BELAY_OK)
        rc = check(f, &h, len, &m, err);
    if (rc == BELAY_OK)
        rc = file_map(fd, len, f->space->is_read_only, &m.base, err);
    file_close(&fd);
    if (rc == BELAY_OK)
        *map = m;
    return rc;
}

/* With the space's mutex. */
static belay_rc map_new(struct belay_fleet *f,
                        const struct belay_cache_options *options,
                        struct belay_error *err)
{
    struct cache_map *map;
    char path[320];
    belay_rc rc = BELAY_NOT_FOUND;

    if (f->space->cache)
        return BELAY_OK;
    map = calloc(1, sizeof(*map));
    if (!map)
        return err_no_memory(err, "a cache");
    path_of(f->space, path, sizeof(path));
    for (int turn = 0; turn < 100; turn++) {
        rc = attach(f, path, map, err);
        if (rc != BELAY_NOT_FOUND || !options || f->is_observer)
            break;
        rc = create(f, path, options, map, err);
        if (map->base || (rc != BELAY_OK && rc != BELAY_REGISTRATION_CONFLICT))
            break;
        rc = BELAY_CONTENTION;
    }
    if (rc != BELAY_OK) {
        free(map);
        return rc;
    }
    f->space->cache = map;
    return BELAY_OK;
}

belay_rc cache_map_get(struct belay_fleet *f, const struct belay_cache_options *options,
                       struct cache_map **out, struct belay_error *err)
{
    (void)pthread_mutex_lock(&f->space->mutex);
    belay_rc rc = map_new(f, options, err);
    *out = f->space->cache;
    (void)pthread_mutex_unlock(&f->space->mutex);
    return rc;
}

struct cache_map *cache_map_find(struct belay_fleet *f)
{
    struct cache_map *map = NULL;

    return cache_map_get(f, NULL, &map, NULL) == BELAY_OK ? map : NULL;
}

void cache_map_free(struct cache_map *map)
{
    if (map)
        (void)munmap(map->base, map->total_len);
    free(map);
}

void cache_bind(struct belay_cache *c, struct belay_fleet *f,
                const struct cache_map *map)
{
    *c = (struct belay_cache){
        .f = f,
        .shared = (struct cache_shared *)(void *)(map->base + map->shared_at),
        .sets = (struct cache_set *)(void *)(map->base + map->sets_at),
        .entries = (struct cache_entry *)(void *)(map->base + map->entries_at),
        .words = (struct cache_chunk *)(void *)(map->base + map->words_at),
        .chunks = map->base + map->chunks_at,
        .n_sets = map->sets,
        .n_chunks = map->chunks,
    };
}
