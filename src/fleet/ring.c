/* Kinds: the directory is their registry.  A kind's segment carries its spec and appears by a
 * link, so whoever comes first has said what the kind is, and nobody can see half of it (R4). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fleet/impl.h"

void ring_bind(struct belay_ring *r, struct belay_fleet *f, struct ring_map *map)
{
    const struct ring_geometry *g = &map->geo;

    *r = (struct belay_ring){
        .f = f,
        .map = map,
        .lanes = (struct lane *)(void *)(map->base + g->lanes_at),
        .shared = (struct ring_shared *)(void *)(map->base + HEADER_ROOM),
        .slots = map->base + g->slots_at,
        .large = map->base + g->large_at,
        .capacity_mask = g->capacity - 1,
        .large_mask = g->large_len > 0 ? g->large_len - 1 : 0,
        .lane_len = (uint64_t)g->capacity * g->stride,
        .stride = g->stride,
        .payload_max = g->payload_max,
        .lane = f->node,
        .id_base = belay_netid_make((uint8_t)g->kind, (uint16_t)f->node, 0),
        .word = { .slot = UINT32_MAX },
        .room = { .slot = UINT32_MAX },
        .consumers = g->reliable ? map->base + g->consumers_at : NULL,
    };
    if (g->order_capacity > 0) {
        r->order = (au64 *)(void *)(map->base + g->order_at);
        r->order_mask = g->order_capacity - 1;
        r->order_shift = (uint64_t)__builtin_ctz(g->order_capacity);
    }
    if (f->node < g->lanes) {
        r->next = lane_head(r, f->node);
        r->large_next =
            (atomic_load_explicit(&r->lanes[f->node].large, memory_order_acquire) + 7) /
            8 * 8;
    }
}

void ring_adopt(struct belay_ring *r)
{
    struct lane *lane = &r->lanes[r->lane];

    /* Frames of the node's last member that it did not live to count. */
    if (r->next != atomic_load_explicit(&lane->head, memory_order_relaxed))
        atomic_store_explicit(&lane->head, r->next, memory_order_release);
    lane_forget_batch(r);
}

static belay_rc geometry_of_spec(const struct belay_fleet *f,
                                 const struct belay_ring_spec *spec,
                                 struct ring_geometry *out, struct belay_error *err)
{
    struct ring_geometry g = {
        .kind = spec->kind,
        .topology = spec->topology == 0 ? BELAY_RING_LANES : spec->topology,
        .notify = spec->notify,
        .reliable = spec->reliable,
        .capacity = spec->capacity == 0 ? 1024 : (uint32_t)spec->capacity,
        .payload_max = spec->payload_max == 0 ? 256 : (uint32_t)spec->payload_max,
        .lanes = f->fleet_size,
        .order_capacity = (uint32_t)spec->order_capacity,
        .large_len = (uint64_t)spec->large_len,
    };

    if (g.topology == BELAY_RING_ORDERED && g.order_capacity == 0)
        g.order_capacity = 4 * g.capacity;
    if (!ring_geometry_fill(&g))
        return err_reason(err, BELAY_INVALID, "geometry",
                          "a number of the ring's spec is out of range");
    if (!spec->name || spec->name[0] == '\0' || strlen(spec->name) > 63)
        return err_reason(err, BELAY_INVALID, "name",
                          "a ring's name has 1 to 63 bytes");
    *out = g;
    return BELAY_OK;
}

static void path_of(const struct space *space, uint8_t kind, char *out, size_t out_len)
{
    (void)snprintf(out, out_len, "%s/belay-%u-%s.%016llx.%u", space->dir,
                   (unsigned)geteuid(), space->name,
                   (unsigned long long)space->header.fleet_id, kind);
}

static belay_rc create(struct belay_fleet *f, const char *path,
                       const struct ring_geometry *g,
                       const struct belay_ring_spec *spec, struct ring_map *map,
                       struct belay_error *err)
{
    struct ring_header h = {
        .magic = RING_MAGIC,
        .abi = SEGMENT_ABI,
        .header_len = sizeof(h),
        .abi_hash = abi_hash(),
        .total_len = g->total_len,
        .fleet_id = f->space->header.fleet_id,
        .schema = spec->schema,
        .kind = g->kind,
        .topology = g->topology,
        .notify = g->notify,
        .reliable = g->reliable,
        .capacity = g->capacity,
        .payload_max = g->payload_max,
        .lanes = g->lanes,
        .order_capacity = g->order_capacity,
        .stride = g->stride,
        .large_len = g->large_len,
    };
    int fd;
    belay_rc rc = file_make(f->space->dir, g->total_len, !f->space->is_shared, &fd,
                            &map->base, err);
    if (rc != BELAY_OK)
        return rc;

    (void)snprintf(h.name, sizeof(h.name), "%s", spec->name);
    memcpy(map->base, &h, sizeof(h));
    if (f->space->is_shared)
        rc = file_link(fd, path, err);
    file_close(&fd);
    fleet_step(f, STEP_KIND_LINKED);
    if (rc != BELAY_OK || f->space->is_shared) {
        (void)munmap(map->base, g->total_len);
        map->base = NULL;
        return rc; /* attached by its name next, as by anybody else */
    }
    map->geo = *g;
    map->schema = spec->schema;
    memcpy(map->name, h.name, sizeof(map->name));
    map->is_mapped = true;
    return BELAY_OK;
}

static belay_rc check(const struct belay_fleet *f, const struct ring_header *h,
                      uint64_t len, uint8_t kind, struct ring_geometry *out,
                      struct belay_error *err)
{
    struct ring_geometry g = {
        .kind = h->kind,
        .topology = h->topology,
        .notify = h->notify,
        .reliable = h->reliable,
        .capacity = h->capacity,
        .payload_max = h->payload_max,
        .lanes = h->lanes,
        .order_capacity = h->order_capacity,
        .large_len = h->large_len,
    };

    if (h->magic != RING_MAGIC)
        return err_reason(err, BELAY_UNSUPPORTED_FORMAT, "magic", "that is no ring");
    if (h->abi != SEGMENT_ABI || h->header_len != sizeof(*h) ||
        h->abi_hash != abi_hash())
        return err_reason(err, BELAY_UNSUPPORTED_FORMAT, "abi",
                          "the ring is of another version");
    if (h->fleet_id != f->space->header.fleet_id)
        return err_reason(err, BELAY_CORRUPT, "name", "the ring is of another fleet");
    if (!ring_geometry_fill(&g) || g.kind != kind || g.lanes != f->fleet_size ||
        g.stride != h->stride || g.total_len != h->total_len || h->name[63] != '\0')
        return err_reason(err, BELAY_CORRUPT, "geometry",
                          "the ring's numbers contradict each other");
    if (len != g.total_len)
        return err_reason(err, BELAY_CORRUPT, "truncated",
                          "the ring has another length than it says");
    *out = g;
    return BELAY_OK;
}

static belay_rc attach(struct belay_fleet *f, const char *path, uint8_t kind,
                       struct ring_map *map, struct belay_error *err)
{
    struct ring_header h = { 0 };
    uint64_t len = 0;
    int fd = -1;

    if (!f->space->is_shared)
        return err_set(err, BELAY_NOT_FOUND, "nobody opened kind %u", kind);
    belay_rc rc = file_open(path, f->space->is_read_only, &fd, &len, err);
    if (rc != BELAY_OK)
        return rc;
    if (len < HEADER_ROOM || pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h))
        rc = err_reason(err, BELAY_UNSUPPORTED_FORMAT, "magic", "that is no ring");
    if (rc == BELAY_OK)
        rc = check(f, &h, len, kind, &map->geo, err);
    if (rc == BELAY_OK)
        rc = file_map(fd, len, f->space->is_read_only, &map->base, err);
    file_close(&fd);
    if (rc != BELAY_OK)
        return rc;
    map->schema = h.schema;
    memcpy(map->name, h.name, sizeof(map->name));
    map->is_mapped = true;
    return BELAY_OK;
}

/* The space's map of the kind; spec NULL: as it is.  With the space's mutex. */
static belay_rc map_kind(struct belay_fleet *f, uint8_t kind,
                         const struct ring_geometry *g,
                         const struct belay_ring_spec *spec, struct belay_error *err)
{
    struct ring_map *map;
    char path[320];
    belay_rc rc = BELAY_NOT_FOUND;

    if (f->space->maps[kind])
        return BELAY_OK;
    map = calloc(1, sizeof(*map));
    if (!map)
        return err_no_memory(err, "a ring");
    path_of(f->space, kind, path, sizeof(path));
    for (int turn = 0; turn < 100; turn++) {
        rc = attach(f, path, kind, map, err);
        if (rc != BELAY_NOT_FOUND || !spec || !g || f->is_observer)
            break;
        rc = create(f, path, g, spec, map, err);
        if (map->base || (rc != BELAY_OK && rc != BELAY_REGISTRATION_CONFLICT))
            break;
        rc = BELAY_CONTENTION;
    }
    if (rc != BELAY_OK) {
        free(map);
        return rc;
    }
    f->space->maps[kind] = map;
    return BELAY_OK;
}

static bool is_as(const struct ring_map *map, const struct ring_geometry *g,
                  const struct belay_ring_spec *spec)
{
    const struct ring_geometry *is = &map->geo;

    return is->topology == g->topology && is->notify == g->notify &&
           is->reliable == g->reliable && is->capacity == g->capacity &&
           is->payload_max == g->payload_max &&
           is->order_capacity == g->order_capacity && is->large_len == g->large_len &&
           map->schema == spec->schema && strcmp(map->name, spec->name) == 0;
}

/* The words that wake whoever waits for a frame, or for room. */
static belay_rc open_words(struct belay_ring *ring, struct belay_error *err)
{
    const struct ring_geometry *g = &ring->map->geo;
    char name[RING_WORD_MAX];
    belay_rc rc = BELAY_OK;

    if (g->notify && ring->word.slot == UINT32_MAX) {
        ring_word_name(g->kind, name);
        rc = belay_notify_open(ring->f, name, &ring->word, err);
    }
    if (rc == BELAY_OK && g->reliable && ring->room.slot == UINT32_MAX) {
        (void)snprintf(name, sizeof(name), "room %u", g->kind);
        rc = belay_notify_open(ring->f, name, &ring->room, err);
    }
    return rc;
}

/* With the space's mutex. */
static belay_rc open_mapped(struct belay_fleet *f, uint8_t kind,
                            const struct ring_geometry *g,
                            const struct belay_ring_spec *spec, struct belay_ring **out,
                            struct belay_error *err)
{
    belay_rc rc = map_kind(f, kind, g, spec, err);
    if (rc != BELAY_OK)
        return rc;
    struct ring_map *map = f->space->maps[kind];
    if (spec && !is_as(map, g, spec))
        return err_reason(err, BELAY_INVALID, "schema",
                          "kind %u is %s, and not as this spec says", kind, map->name);
    if (!f->rings[kind]) {
        struct belay_ring *ring = calloc(1, sizeof(*ring));
        if (!ring)
            return err_no_memory(err, "a ring");
        ring_bind(ring, f, map);
        if (f->me)
            ring_adopt(ring);
        f->rings[kind] = ring;
    }
    rc = open_words(f->rings[kind], err);
    if (rc == BELAY_OK)
        *out = f->rings[kind];
    return rc;
}

static belay_rc open_kind(struct belay_fleet *f, uint8_t kind,
                          const struct ring_geometry *g,
                          const struct belay_ring_spec *spec, struct belay_ring **out,
                          struct belay_error *err)
{
    (void)pthread_mutex_lock(&f->space->mutex);
    belay_rc rc = open_mapped(f, kind, g, spec, out, err);
    (void)pthread_mutex_unlock(&f->space->mutex);
    return rc;
}

belay_rc belay_ring_open(struct belay_fleet *f, const struct belay_ring_spec *spec,
                         struct belay_ring **out, struct belay_error *err)
{
    struct ring_geometry g = { 0 };
    belay_rc rc = fleet_check(f, err);
    if (rc != BELAY_OK)
        return rc;
    if (!spec || spec->size < sizeof(*spec))
        return err_reason(err, BELAY_MISUSE, "size", "a spec of another size");
    rc = geometry_of_spec(f, spec, &g, err);
    if (rc != BELAY_OK)
        return rc;
    if (spec->kind == BELAY_CONTEST_RING_KIND)
        return err_reason(err, BELAY_INVALID, "schema",
                          "kind %u is the contest's; belay_contest_log opens it",
                          spec->kind);
    return open_kind(f, spec->kind, &g, spec, out, err);
}

belay_rc belay_ring_attach(struct belay_fleet *f, uint8_t kind, struct belay_ring **out,
                           struct belay_error *err)
{
    belay_rc rc = fleet_check(f, err);

    if (rc == BELAY_OK && kind == BELAY_CONTEST_RING_KIND)
        return belay_contest_log(f, out, err);
    return rc == BELAY_OK ? open_kind(f, kind, NULL, NULL, out, err) : rc;
}

belay_rc belay_contest_log(struct belay_fleet *f, struct belay_ring **out,
                           struct belay_error *err)
{
    belay_rc rc = fleet_check(f, err);

    if (rc == BELAY_OK)
        *out = &f->log;
    return rc;
}

void belay_ring_spec_get(const struct belay_ring *ring, struct belay_ring_spec *out)
{
    const struct ring_geometry *g = &ring->map->geo;

    *out = (struct belay_ring_spec){
        .size = sizeof(*out),
        .kind = (uint8_t)g->kind,
        .topology = (uint8_t)g->topology,
        .notify = (uint8_t)g->notify,
        .reliable = (uint8_t)g->reliable,
        .capacity = (int32_t)g->capacity,
        .payload_max = (int32_t)g->payload_max,
        .large_len = (int64_t)g->large_len,
        .order_capacity = (int32_t)g->order_capacity,
        .schema = ring->map->schema,
        .name = ring->map->name,
    };
}

uint64_t belay_ring_head(const struct belay_ring *ring, int32_t node)
{
    if (ring->order)
        return atomic_load_explicit(&ring->shared->order_head, memory_order_acquire);
    if (node < 0 || (uint32_t)node >= ring->map->geo.lanes)
        return 0;
    return lane_head(ring, (uint32_t)node);
}

belay_rc belay_ring_read(struct belay_ring *ring, int32_t node, uint64_t seq, void *buf,
                         size_t buf_len, struct belay_ring_frame *out,
                         struct belay_error *err)
{
    struct belay_ring_frame frame;
    belay_rc rc = fleet_check(ring->f, err);

    if (rc != BELAY_OK)
        return rc;
    if (node < 0 || (uint32_t)node >= ring->map->geo.lanes)
        return err_reason(err, BELAY_INVALID, "node_range", "node %d of %u", node,
                          ring->map->geo.lanes);
    if (seq < atomic_load_explicit(&ring->lanes[node].floor, memory_order_acquire))
        return err_set(err, BELAY_NOT_FOUND, "the frame is of before a reset");
    if (seq >= lane_head(ring, (uint32_t)node))
        return err_set(err, BELAY_NOT_FOUND, "there is no frame %llu of node %d yet",
                       (unsigned long long)seq, node);
    switch (lane_read(ring, (uint32_t)node, seq, buf, buf_len, &frame)) {
    case READ_OK:
        *out = frame;
        return BELAY_OK;
    case READ_TOO_SMALL:
        (void)err_set(err, BELAY_OUT_OF_RANGE, "the frame has %u bytes", frame.len);
        err_numbers(err, frame.len, (int64_t)buf_len);
        return BELAY_OUT_OF_RANGE;
    case READ_LOST:
    case READ_NOT_YET:
    default:
        return err_set(err, BELAY_NOT_FOUND, "there is no frame %llu of node %d",
                       (unsigned long long)seq, node);
    }
}
