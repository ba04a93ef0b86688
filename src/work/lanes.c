/* Lanes and routes in the store: their names, and how they are entered. */
#include "work/lanes.h"

belay_rc lane_check(const char *lane, struct belay_error *err)
{
    size_t n = lane ? strnlen(lane, LANE_NAME_MAX + 1) : 0;
    bool printable = n > 0 && n <= LANE_NAME_MAX;

    for (size_t i = 0; i < n && printable; i++)
        printable = lane[i] >= 0x20 && lane[i] <= 0x7e;
    if (printable)
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "lane",
                      "lane: must be 1 to %d bytes of printable ASCII", LANE_NAME_MAX);
}

/* Parts joined, in the arena. */
static bool name_join(const struct bytes *parts, size_t n, struct belay_arena *a,
                      struct bytes *out)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    uint8_t *name = arena_alloc(a, len);
    if (!name)
        return false;
    *out = bytes_of(name, len);
    for (size_t i = 0; i < n; i++) {
        memcpy(name, parts[i].ptr, parts[i].len);
        name += parts[i].len;
    }
    return true;
}

/* A route has no slash, so that no two pairs have one name. */
bool lane_index(struct bytes lane, struct bytes route, struct belay_arena *a,
                struct bytes *out)
{
    const struct bytes parts[] = { bytes_str(LANE_READY_INDEX), lane, bytes_str("/"),
                                   route };

    return name_join(parts, COUNT_OF(parts), a, out);
}

bool lane_topic(struct bytes lane, struct belay_arena *a, struct bytes *out)
{
    const struct bytes parts[] = { bytes_str("lane/"), lane };

    return name_join(parts, COUNT_OF(parts), a, out);
}

bool lane_roster(struct bytes lane, struct belay_arena *a, struct bytes *out)
{
    const struct bytes parts[] = { bytes_str(ROUTE_INDEX), lane };

    return name_join(parts, COUNT_OF(parts), a, out);
}

static belay_rc add_lane(struct txn *t, struct bytes lane, int64_t now_ms)
{
    const struct value v[LANE_COLUMNS] = { [LANE_LANE] = value_text(lane),
                                           [LANE_STATE] = value_str(LANE_ACTIVE),
                                           [LANE_CREATED_AT_MS] = value_i64(now_ms) };
    belay_rc rc = txn_insert(t, &row_lane, v);

    return rc ? rc : txn_rank_add(t, bytes_str(LANE_INDEX), 0, lane);
}

static belay_rc add_route(struct txn *t, const struct value key[2],
                          struct bytes requires)
{
    const struct value v[ROUTE_COLUMNS] = {
        [ROUTE_LANE] = key[0],
        [ROUTE_ROUTE] = key[1],
        [ROUTE_REQUIRES] = requires.len > 0 ? value_text(requires) : value_null(),
    };
    struct bytes roster;

    if (!lane_roster(key[0].b, txn_arena(t), &roster))
        return err_no_memory(txn_error(t), "a route");
    belay_rc rc = txn_insert(t, &row_route, v);
    return rc ? rc : txn_rank_add(t, roster, 0, key[1].b);
}

/* Two sets of one name would let a worker have what it cannot do. */
static belay_rc check_route(struct txn *t, const struct row *route,
                            struct bytes requires)
{
    if (bytes_eq(row_bytes(route, ROUTE_REQUIRES), requires))
        return BELAY_OK;
    struct bytes lane = row_bytes(route, ROUTE_LANE);
    belay_rc rc = txn_fail(t, BELAY_CORRUPT, "route",
                           "lane %.*s: a route of it is of other capabilities",
                           (int)lane.len, (const char *)lane.ptr);
    err_entity(txn_error(t), row_bytes(route, ROUTE_ROUTE));
    return rc;
}

belay_rc lane_enter(struct txn *t, struct bytes lane, struct bytes route,
                    struct bytes requires, int64_t now_ms)
{
    const struct value key[] = { value_text(lane), value_text(route) };
    const struct row_want wants[] = { { &row_lane, key }, { &row_route, key } };
    const struct row *rows[COUNT_OF(wants)];
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK && !rows[0])
        rc = add_lane(t, lane, now_ms);
    if (rc == BELAY_OK && !rows[1])
        rc = add_route(t, key, requires);
    else if (rc == BELAY_OK)
        rc = check_route(t, rows[1], requires);
    return rc;
}
