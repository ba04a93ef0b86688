#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "fleet/cache_impl.h"

bool fleet_name_is_valid(const char *name)
{
    size_t len = 0;

    for (; name && name[len] != '\0'; len++) {
        char c = name[len];
        bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (len >= 63 || !(is_word || (len > 0 && (c == '-' || c == '_'))))
            return false;
    }
    return len > 0;
}

static const char *dir_of(const struct belay_fleet_options *options)
{
    return options->dir ? options->dir : "/dev/shm";
}

static void path_of(const char *dir, const char *name, char *out, size_t out_len)
{
    (void)snprintf(out, out_len, "%s/belay-%u-%s", dir, (unsigned)geteuid(), name);
}

uint64_t segment_boot(void)
{
    static const uint64_t key[2] = { 1, 2 };
    char boot[40];

    return boot_id_read(boot) ? fleet_hash(key, 0, boot, strlen(boot)) : 0;
}

static uint32_t or_default(int32_t n, uint32_t otherwise)
{
    return n == 0 ? otherwise : (uint32_t)n;
}

static belay_rc geometry_of_options(const struct belay_fleet_options *o,
                                    struct geometry *out, struct belay_error *err)
{
    struct geometry g = {
        .fleet_size = or_default(o->fleet_size, 64),
        .subjects = or_default(o->subjects, 4096),
        .holds = or_default(o->holds, 128),
        .words = or_default(o->words, 64),
        .log_capacity = or_default(o->log_capacity, 256),
        .is_virtual = (o->flags & BELAY_FLEET_VIRTUAL_CLOCK) != 0,
        .arena_len = o->arena_len == 0 ? 262144 : (uint64_t)o->arena_len,
    };

    if (o->fleet_size == BELAY_NONE)
        return err_reason(err, BELAY_INVALID, "empty_fleet", "a fleet of no members");
    if (g.fleet_size > FLEET_SIZE_MAX)
        return err_reason(err, BELAY_INVALID, "fleet_size",
                          "a fleet has 1 to %d members", FLEET_SIZE_MAX);
    if (g.arena_len <= (uint64_t)ARENA_LEN_MAX)
        g.arena_len = (g.arena_len + BLOCK_LEN - 1) / BLOCK_LEN * BLOCK_LEN;
    if (!geometry_fill(&g))
        return err_reason(err, BELAY_INVALID, "geometry",
                          "subjects, holds, words, log_capacity or arena_len is out of "
                          "range");
    *out = g;
    return BELAY_OK;
}

/* Of everything in the header but itself. */
static uint64_t header_sum(const struct segment_header *h)
{
    struct segment_header copy = *h;

    copy.sum = 0;
    return fleet_hash(h->key, 0, &copy, sizeof(copy));
}

/* The first content: zeros are entries that are GONE, nodes that are FREE, empty rings. */
static belay_rc fill(uint8_t *base, const struct geometry *g, const char *name,
                     uint64_t token_floor, struct segment_header *out,
                     struct belay_error *err)
{
    struct belay_random random = random_system();
    uint64_t chance[3];
    belay_rc rc = random_bytes(&random, chance, sizeof(chance), err);
    if (rc != BELAY_OK)
        return rc;

    struct segment_header h = {
        .magic = SEGMENT_MAGIC,
        .abi = SEGMENT_ABI,
        .header_len = sizeof(h),
        .abi_hash = abi_hash(),
        .total_len = g->total_len,
        .fleet_id = chance[0],
        .boot = segment_boot(),
        .time_space = namespace_of_self("time"),
        .clock_base_us = clock_coarse_us() - 1,
        .key = { chance[1], chance[2] },
        .fleet_size = g->fleet_size,
        .subjects = g->subjects,
        .holds = g->holds,
        .words = g->words,
        .log_capacity = g->log_capacity,
        .is_virtual = g->is_virtual,
        .arena_len = g->arena_len,
    };
    (void)snprintf(h.name, sizeof(h.name), "%s", name);

    /* K2: later segments begin above what any earlier one can have reached. */
    int64_t wall = clock_wall_ns();
    uint64_t token = wall > 0 ? (uint64_t)wall : 0;
    if (token < token_floor)
        token = token_floor;
    atomic_store_explicit((au64 *)(void *)(base + g->token_at), token,
                          memory_order_relaxed);
    atomic_store_explicit((au64 *)(void *)(base + g->epoch_at), 1,
                          memory_order_relaxed);
    h.sum = header_sum(&h);
    memcpy(base, &h, sizeof(h));
    *out = h;
    return BELAY_OK;
}

static belay_rc refuse_format(struct belay_error *err, const char *reason,
                              uint64_t want, uint64_t got)
{
    belay_rc rc = err_reason(err, BELAY_UNSUPPORTED_FORMAT, reason,
                             "the segment is of another kind or version (%s)", reason);

    err_numbers(err, (int64_t)want, (int64_t)got);
    return rc;
}

/* Everything a stranger could have got wrong (F4). */
static belay_rc check_header(const struct segment_header *h, uint64_t file_len,
                             const char *name, struct geometry *out,
                             struct belay_error *err)
{
    if (h->magic != SEGMENT_MAGIC)
        return refuse_format(err, "magic", SEGMENT_MAGIC, h->magic);
    if (h->abi != SEGMENT_ABI || h->header_len != sizeof(*h) ||
        h->abi_hash != abi_hash())
        return refuse_format(err, "abi", SEGMENT_ABI, h->abi);
    struct geometry g = {
        .fleet_size = h->fleet_size,
        .subjects = h->subjects,
        .holds = h->holds,
        .words = h->words,
        .log_capacity = h->log_capacity,
        .is_virtual = h->is_virtual != 0,
        .arena_len = h->arena_len,
    };
    if (h->is_virtual > 1 || !geometry_fill(&g) || g.total_len != h->total_len)
        return err_reason(err, BELAY_CORRUPT, "geometry",
                          "the segment's numbers contradict each other");
    if (file_len != h->total_len) {
        (void)err_reason(err, BELAY_CORRUPT, "truncated",
                         "the segment has another length than it says");
        err_numbers(err, (int64_t)h->total_len, (int64_t)file_len);
        return BELAY_CORRUPT;
    }
    if (strncmp(h->name, name, sizeof(h->name)) != 0)
        return err_reason(err, BELAY_CORRUPT, "name",
                          "the segment was made under another name");
    if (h->boot != segment_boot())
        return err_reason(err, BELAY_UNSUPPORTED_FORMAT, "boot",
                          "the segment is of an earlier boot");
    if (h->time_space != namespace_of_self("time"))
        return err_reason(err, BELAY_INVALID, "time_namespace",
                          "the fleet lives in another time namespace");
    if (h->clock_base_us < 0 || h->clock_base_us > clock_coarse_us())
        return err_reason(err, BELAY_CORRUPT, "clock",
                          "the segment is from the future");
    if (h->sum != header_sum(h))
        return err_reason(err, BELAY_CORRUPT, "geometry",
                          "the segment's header is damaged");
    *out = g;
    return BELAY_OK;
}

bool segment_header_is_whole(const struct segment_header *h, struct geometry *out)
{
    struct geometry g = {
        .fleet_size = h->fleet_size,
        .subjects = h->subjects,
        .holds = h->holds,
        .words = h->words,
        .log_capacity = h->log_capacity,
        .arena_len = h->arena_len,
    };

    if (h->magic != SEGMENT_MAGIC || h->abi != SEGMENT_ABI ||
        h->header_len != sizeof(*h) || h->abi_hash != abi_hash() ||
        h->sum != header_sum(h) || !geometry_fill(&g))
        return false;
    *out = g;
    return true;
}

static belay_rc attach(const char *path, const char *name, bool is_read_only,
                       struct space *space, int *out_fd, struct belay_error *err)
{
    struct segment_header h = { 0 };
    uint64_t len = 0;
    int fd = -1;
    belay_rc rc = file_open(path, is_read_only, &fd, &len, err);
    if (rc != BELAY_OK)
        return rc;

    if (len < HEADER_ROOM || pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
        rc = refuse_format(err, "magic", HEADER_ROOM, len);
    if (rc == BELAY_OK)
        rc = check_header(&h, len, name, &space->geo, err);
    if (rc == BELAY_OK)
        rc = file_map(fd, len, is_read_only, &space->base, err);
    if (rc != BELAY_OK) {
        file_close(&fd);
        return rc;
    }
    space->header = h;
    *out_fd = fd;
    return BELAY_OK;
}

/* Makes the segment.  One with a path is not mapped: it is attached by its name as by anybody
 * else, which is also how the kernel calls the mapping then (sigbus.c). */
static belay_rc create(const char *path, const char *name,
                       const struct belay_fleet_options *options,
                       struct belay_fleet *stepper, struct space *space, int *out_fd,
                       struct belay_error *err)
{
    struct geometry g = { 0 };
    int fd = -1;
    belay_rc rc = geometry_of_options(options, &g, err);
    if (rc != BELAY_OK)
        return rc;
    rc = file_make(dir_of(options), g.total_len, !path, &fd, &space->base, err);
    if (rc != BELAY_OK)
        return rc;

    fleet_step(stepper, STEP_CREATE_MADE);
    rc = fill(space->base, &g, name, options->token_floor, &space->header, err);
    fleet_step(stepper, STEP_CREATE_FILLED);
    if (rc == BELAY_OK && path)
        rc = file_link(fd, path, err);
    fleet_step(stepper, STEP_CREATE_LINKED);
    if (rc != BELAY_OK || path) {
        (void)munmap(space->base, g.total_len);
        space->base = NULL;
        file_close(&fd);
        return rc;
    }
    space->geo = g;
    *out_fd = fd;
    return BELAY_OK;
}

/* The log is a ring without a file of its own. */
static belay_rc add_log(struct space *space, struct belay_error *err)
{
    struct ring_map *map = calloc(1, sizeof(*map));
    if (!map)
        return err_no_memory(err, "a fleet");

    map->geo = space->geo.log;
    map->base = space->base + space->geo.log_at;
    (void)snprintf(map->name, sizeof(map->name), "contest");
    space->maps[BELAY_CONTEST_RING_KIND] = map;
    return BELAY_OK;
}

static belay_rc open_or_create(const char *path, const char *name,
                               const struct belay_fleet_options *options,
                               struct belay_fleet *stepper, struct space *space,
                               int *out_fd, struct belay_error *err)
{
    bool may_create =
        (options->flags & BELAY_FLEET_MUST_EXIST) == 0 && !space->is_read_only;
    struct belay_fleet_options o = *options;
    struct belay_error local = { .code = 0 };

    /* Ends: each turn lost is somebody else's creation or removal. */
    for (int turn = 0; turn < 1000; turn++) {
        struct belay_error *why = err ? err : &local;
        belay_rc rc = attach(path, name, space->is_read_only, space, out_fd, why);
        if (rc == BELAY_UNSUPPORTED_FORMAT && may_create &&
            strcmp(why->reason, "boot") == 0 &&
            segment_discard_old(o.dir ? o.dir : "/dev/shm", name, &o.token_floor))
            continue;
        if (rc != BELAY_NOT_FOUND || !may_create)
            return rc;
        rc = create(path, name, &o, stepper, space, out_fd, err);
        if (rc != BELAY_OK && rc != BELAY_REGISTRATION_CONFLICT)
            return rc;
    }
    return err_set(err, BELAY_CONTENTION, "%s comes and goes", path);
}

belay_rc segment_open(const char *name, const struct belay_fleet_options *options,
                      bool is_read_only, struct belay_fleet *stepper,
                      struct space **out, int *out_fd, struct belay_error *err)
{
    bool is_private = (options->flags & BELAY_FLEET_PRIVATE) != 0;
    char path[320];
    int fd = -1;
    struct space *space = calloc(1, sizeof(*space));
    if (!space)
        return err_no_memory(err, "a fleet");

    atomic_store(&space->refs, 1);
    space->fd = -1;
    space->is_shared = !is_private;
    space->is_read_only = is_read_only;
    (void)pthread_mutex_init(&space->mutex, NULL);
    (void)snprintf(space->name, sizeof(space->name), "%s", name);
    belay_rc rc = BELAY_OK;
    if (strlen(dir_of(options)) >= sizeof(space->dir))
        rc = err_reason(err, BELAY_INVALID, "name", "the directory's name is too long");
    if (rc == BELAY_OK) {
        (void)snprintf(space->dir, sizeof(space->dir), "%s", dir_of(options));
        path_of(space->dir, name, path, sizeof(path));
        rc = is_private ? create(NULL, name, options, stepper, space, &fd, err)
                        : open_or_create(path, name, options, stepper, space, &fd, err);
    }
    if (rc == BELAY_OK)
        rc = add_log(space, err);
    if (rc != BELAY_OK) {
        file_close(&fd);
        space_release(space);
        return rc;
    }
    *out = space;
    *out_fd = fd;
    return BELAY_OK;
}

belay_rc segment_reopen(const struct space *space, int *out_fd, struct belay_error *err)
{
    char path[320];
    struct stat st;
    int fd;

    if (space->is_shared)
        path_of(space->dir, space->name, path, sizeof(path));
    else
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", space->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return io_error(err, "open the segment again");
    /* Under the same name there may be another fleet by now. */
    struct segment_header h;
    if (fstat(fd, &st) != 0 || pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) ||
        h.fleet_id != space->header.fleet_id) {
        file_close(&fd);
        return err_set(err, BELAY_NOT_FOUND, "the fleet %s was removed", space->name);
    }
    *out_fd = fd;
    return BELAY_OK;
}

belay_rc segment_check_size(int fd, uint64_t len, struct belay_error *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return io_error(err, "look at the segment");
    if ((uint64_t)st.st_size < len)
        return err_reason(err, BELAY_CORRUPT, "truncated",
                          "the segment was cut while it was in use");
    return BELAY_OK;
}

void space_release(struct space *space)
{
    if (!space || atomic_fetch_sub(&space->refs, 1) != 1)
        return;
    for (size_t i = 0; i < COUNT_OF(space->maps); i++) {
        struct ring_map *map = space->maps[i];
        if (map && map->is_mapped)
            (void)munmap(map->base, map->geo.total_len);
        free(map);
    }
    cache_map_free(space->cache);
    if (space->base)
        (void)munmap(space->base, space->geo.total_len);
    file_close(&space->fd);
    (void)pthread_mutex_destroy(&space->mutex);
    free(space);
}
