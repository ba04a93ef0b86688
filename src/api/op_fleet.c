/* Fleets as administrators see them: who is there, what it holds, and a new beginning. */
#include "api/op_fleet.h"

#include <stdio.h>

#include "base/clock.h"
#include "fleet/names.h"

#define CONTESTS_PAGE 64

void op_fleet_leavep(struct belay_fleet **f)
{
    belay_fleet_leave(*f);
}

belay_rc op_fleet_observe(const struct op_call *call, const char *arg,
                          struct belay_fleet **out, struct belay_error *err)
{
    const struct belay_fleet_options options = { .size = sizeof(options),
                                                 .dir = call->fleet_dir };

    return belay_fleet_observe(op_str(call, arg), &options, out, err);
}

belay_rc op_fleet_join(const struct op_call *call, const char *arg, uint32_t flags,
                       struct belay_fleet **out, struct belay_error *err)
{
    const struct belay_fleet_options options = {
        .size = sizeof(options),
        .flags = flags,
        .dir = call->fleet_dir,
        .label = "belay",
    };

    return belay_fleet_join(op_str(call, arg), &options, out, err);
}

int op_set_u64(json_t *object, const char *name, uint64_t n)
{
    return json_object_set_new(object, name,
                               json_sprintf("%llu", (unsigned long long)n));
}

int op_set_netid(json_t *object, const char *name, uint64_t id)
{
    char text[BELAY_NETID_TEXT_MAX];

    belay_netid_print(id, text);
    return op_set_text(object, name, text);
}

belay_rc op_fleet_pause(const struct op_call *call, struct belay_error *err)
{
    const struct belay_clock clock = clock_system();

    clock.sleep_us(clock.arg, FLEET_LOOK_US);
    if (call->cancel && belay_cancel_triggered(call->cancel))
        return err_set(err, BELAY_CANCELLED, "told to stop");
    return BELAY_OK;
}

/* --- one fleet --- */

static json_t *json_member(const struct belay_fleet_member *m)
{
    static const char *const lives[] = {
        [BELAY_LIFE_UNKNOWN] = "unknown",
        [BELAY_LIFE_ALIVE] = "alive",
        [BELAY_LIFE_DEAD] = "dead",
    };
    json_t *row = json_object();
    int failed = 0;

    failed |= op_set_i64(row, "node", m->node);
    failed |= json_object_set_new(row, "label", op_text(bytes_str(m->label)));
    failed |= op_set_i64(row, "pid", m->pid);
    failed |= op_set_text(row, "life", lives[m->life]);
    failed |= op_set_time(row, "beat_age_ms", m->heartbeat_age_ms);
    failed |= op_set_i64(row, "holds", (int64_t)m->holds);
    failed |= op_set_i64(row, "incarnation", (int64_t)m->incarnation);
    return op_whole(row, failed);
}

static belay_rc add_members(struct belay_fleet *f, const struct belay_fleet_status *s,
                            json_t *answer, struct belay_error *err)
{
    struct belay_arena arena CLEANUP(arena_release) = { 0 };
    json_t *rows = json_array();
    size_t n = 0, max = (size_t)s->fleet_size;
    struct belay_fleet_member *list = arena_zalloc(&arena, max, sizeof(*list));
    int failed = json_object_set_new(answer, "members", rows);

    if (failed || !list)
        return err_no_memory(err, "the members");
    belay_rc rc = belay_fleet_members(f, list, max, &n, err);
    for (size_t i = 0; rc == BELAY_OK && i < n; i++)
        failed |= json_array_append_new(rows, json_member(&list[i]));
    return failed ? err_no_memory(err, "the members") : rc;
}

static json_t *json_ring(const struct belay_ring *ring, int32_t fleet_size)
{
    struct belay_ring_spec spec;
    json_t *row = json_object();
    uint64_t published = 0;
    int failed = 0;

    belay_ring_spec_get(ring, &spec);
    bool is_ordered = spec.topology == BELAY_RING_ORDERED;
    for (int32_t i = 0; i < (is_ordered ? 1 : fleet_size); i++)
        published += belay_ring_head(ring, i);
    failed |= op_set_i64(row, "kind", spec.kind);
    failed |= json_object_set_new(row, "name", op_text(bytes_str(spec.name)));
    failed |= op_set_text(row, "topology", is_ordered ? "ordered" : "lanes");
    failed |= op_set_i64(row, "capacity", spec.capacity);
    failed |= op_set_i64(row, "payload_max", spec.payload_max);
    failed |= op_set_i64(row, "published", (int64_t)published);
    return op_whole(row, failed);
}

static belay_rc add_rings(struct belay_fleet *f, const struct belay_fleet_status *s,
                          json_t *answer, struct belay_error *err)
{
    json_t *rows = json_array();
    int failed = json_object_set_new(answer, "rings", rows);

    for (unsigned kind = 0; !failed && kind < 256; kind++) {
        struct belay_ring *ring;
        belay_rc rc = belay_ring_attach(f, (uint8_t)kind, &ring, err);
        if (rc != BELAY_OK && rc != BELAY_NOT_FOUND)
            return rc;
        if (rc == BELAY_OK)
            failed = json_array_append_new(rows, json_ring(ring, s->fleet_size));
    }
    return failed ? err_no_memory(err, "the rings") : BELAY_OK;
}

static belay_rc add_contests(struct belay_fleet *f, json_t *answer,
                             struct belay_error *err)
{
    struct belay_contest_entry entries[CONTESTS_PAGE];
    json_t *rows = json_array();
    int failed = json_object_set_new(answer, "contests", rows);
    uint64_t cursor = 0;
    belay_rc rc = BELAY_OK;

    do {
        size_t n = 0;
        rc = belay_contest_list(f, &cursor, entries, CONTESTS_PAGE, &n, err);
        for (size_t i = 0; rc == BELAY_OK && i < n; i++) {
            if (entries[i].is_held)
                failed |= json_array_append_new(rows, op_json_contest(&entries[i]));
        }
    } while (rc == BELAY_OK && !failed && cursor != 0);
    return failed ? err_no_memory(err, "the contests") : rc;
}

/* What is said of a fleet, alone or among others. */
static json_t *json_fleet(const char *name, const struct belay_fleet_status *s)
{
    json_t *row = json_object();
    int failed = 0;

    failed |= op_set_text(row, "name", name);
    failed |= json_object_set_new(
        row, "fleet_id", json_sprintf("%016llx", (unsigned long long)s->fleet_id));
    failed |= op_set_i64(row, "epoch", s->epoch);
    failed |= op_set_u64(row, "token", s->token);
    failed |= op_set_i64(row, "alive", s->members);
    failed |= op_set_i64(row, "fleet_size", s->fleet_size);
    failed |= op_set_i64(row, "subjects_used", s->subjects_used);
    failed |= op_set_i64(row, "subjects", s->subjects);
    failed |= op_set_bool(row, "virtual_clock", s->is_virtual_clock);
    failed |= op_set_i64(row, "segment_bytes", (int64_t)s->segment_len);
    return op_whole(row, failed);
}

static belay_rc show_fleet(const struct op_call *call, json_t **out,
                           struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    json_t *answer CLEANUP(json_decrefp) = NULL;
    struct belay_fleet_status s = { .size = sizeof(s) };
    belay_rc rc = op_fleet_observe(call, "name", &f, err);

    if (rc == BELAY_OK)
        rc = belay_fleet_status(f, &s, err);
    if (rc != BELAY_OK)
        return rc;
    answer = json_fleet(op_str(call, "name"), &s);
    if (!answer)
        return err_no_memory(err, "the answer");
    rc = add_members(f, &s, answer, err);
    if (rc == BELAY_OK)
        rc = add_rings(f, &s, answer, err);
    if (rc == BELAY_OK)
        rc = add_contests(f, answer, err);
    if (rc == BELAY_OK)
        *out = json_incref(answer);
    return rc;
}

/* --- all of them --- */

struct fleets {
    const char *dir;
    json_t *rows;
};

static belay_rc add_fleet(void *arg, const char *name, struct belay_error *err)
{
    const struct fleets *all = arg;
    const struct belay_fleet_options options = { .size = sizeof(options),
                                                 .dir = all->dir };
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    struct belay_fleet_status s = { .size = sizeof(s) };
    struct belay_error why;
    json_t *row = NULL;
    belay_rc rc = belay_fleet_observe(name, &options, &f, &why);

    if (rc == BELAY_OK)
        rc = belay_fleet_status(f, &s, &why);
    if (rc == BELAY_NOT_FOUND)
        return BELAY_OK; /* removed meanwhile */
    if (rc == BELAY_OK) {
        row = json_fleet(name, &s);
    } else {
        /* One that is damaged or of another version hides none of the others. */
        row = json_object();
        int failed = op_set_text(row, "name", name) |
                     op_set_text(row, "error", belay_error_info((int)rc)->name);
        row = op_whole(row, failed);
    }
    return json_array_append_new(all->rows, row) ? err_no_memory(err, "the fleets")
                                                 : BELAY_OK;
}

belay_rc op_fleet_status(const struct op_call *call, json_t **out,
                         struct belay_error *err)
{
    if (op_get(call, "name"))
        return show_fleet(call, out, err);
    json_t *rows = json_array(), *answer = json_object();
    int failed = json_object_set_new(answer, "fleets", rows);
    struct fleets all = { .dir = call->fleet_dir, .rows = rows };
    belay_rc rc = failed ? BELAY_OK : fleet_names(all.dir, add_fleet, &all, err);

    if (rc == BELAY_OK)
        return op_finish(answer, failed, out, err);
    json_decref(answer);
    return rc;
}

/* --- changes --- */

belay_rc op_fleet_reset(const struct op_call *call, json_t **out,
                        struct belay_error *err)
{
    struct belay_fleet *f CLEANUP(op_fleet_leavep) = NULL;
    struct belay_fleet_status s = { .size = sizeof(s) };
    belay_rc rc = op_fleet_join(call, "name", BELAY_FLEET_MUST_EXIST, &f, err);

    if (rc == BELAY_OK)
        rc = belay_fleet_reset(f, err);
    if (rc == BELAY_OK)
        rc = belay_fleet_status(f, &s, err);
    if (rc != BELAY_OK)
        return rc;
    json_t *answer = json_object();
    int failed = op_set_text(answer, "name", op_str(call, "name"));
    failed |= op_set_i64(answer, "epoch", s.epoch);
    return op_finish(answer, failed, out, err);
}

belay_rc op_fleet_rm(const struct op_call *call, json_t **out, struct belay_error *err)
{
    const struct belay_fleet_options options = { .size = sizeof(options),
                                                 .dir = call->fleet_dir };
    const char *name = op_str(call, "name");
    belay_rc rc = belay_fleet_remove(name, &options, err);

    if (rc != BELAY_OK)
        return rc;
    json_t *answer = json_object();
    int failed = op_set_text(answer, "name", name);
    failed |= op_set_bool(answer, "removed", true);
    return op_finish(answer, failed, out, err);
}
