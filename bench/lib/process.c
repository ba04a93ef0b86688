#include "process.h"

#include "api/handle.h"
#include "base/json.h"
#include "work/process_event.h"

#define BULK 1000
#define PAYLOAD                                                                       \
    "{\"line\":\"a line of output of some length, as a build or a test writes it on " \
    "its "                                                                            \
    "way to its end\",\"n\":1}"

static const char *const types =
    "[{\"name\":\"note\",\"payload_schema\":{\"schema\":{\"type\":\"object\","
    "\"properties\":{\"line\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"}},"
    "\"required\":[\"line\"]}}}]";

bool bench_process(struct belay *b, const char *id)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    const struct belay_registration r = { .size = sizeof(r),
                                          .process_id = id,
                                          .event_types = types };
    struct belay_registered out;
    struct belay_error err;

    return !belay_process_register(b, &r, &arena, &out, &err) ||
           bench_failed("register", &err);
}

bool bench_note(struct belay *b, const char *id, struct belay_arena *arena)
{
    const struct belay_event_draft draft = { .size = sizeof(draft),
                                             .process_id = id,
                                             .event_type = "note",
                                             .payload = PAYLOAD };
    struct belay_appended out;
    struct belay_error err;

    return !belay_process_append(b, &draft, arena, &out, &err) ||
           bench_failed("append", &err);
}

/* --- many --- */

struct fill {
    const struct proc_draft *draft;
    unsigned n;
};

static belay_rc fill_body(struct txn *t, void *arg)
{
    const struct fill *f = arg;
    struct proc_applied applied;
    belay_rc rc = BELAY_OK;

    for (unsigned i = 0; i < f->n && !rc; i++)
        rc = append_in(t, f->draft, &applied);
    return rc;
}

bool bench_notes(struct belay *b, const char *id, unsigned n)
{
    CLEANUP(arena_release) struct belay_arena kept = { .first = NULL };
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    CLEANUP(proc_reg_dropp) const struct proc_reg *reg = NULL;
    CLEANUP(json_decrefp) json_t *payload = NULL;
    struct proc_draft d = { .process = bytes_str(id),
                            .type = bytes_str("note"),
                            .payload_text = bytes_str(PAYLOAD) };
    struct belay_error err;

    if (proc_reg_get(&b->processes, d.process, false, &reg, &err) ||
        json_read(d.payload_text, sizeof(PAYLOAD), &payload, &err))
        return bench_failed("fill", &err);
    d.reg = reg;
    d.payload = payload;
    if (draft_judge(&d, &kept, &err))
        return bench_failed("fill", &err);
    for (unsigned done = 0; done < n; done += BULK) {
        struct fill fill = { &d, n - done < BULK ? n - done : BULK };
        if (txn_run(b->space, fill_body, &fill, NULL, &arena, &err))
            return bench_failed("fill", &err);
        arena_reset(&arena);
    }
    return true;
}
