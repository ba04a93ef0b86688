/* What actors do with wake-ups, chunks, blobs and the housekeeping of a store. */
#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "store/blob.h"

/* --- wake-ups --- */

static const char *const topics[] = { "w0", "w1" };

static belay_rc signal_body(struct run *r)
{
    unsigned which = pick_of(r->op, 1, 2);
    struct value id = thing_id('w', which);
    const struct row *row = NULL;
    belay_rc rc = r_get(r, &row_thing, &id, &row);

    if (!rc)
        rc = r_wake(r, bytes_str(topics[which]));
    if (!rc)
        rc = set_thing(r, id, row, row ? row_i64(row, THING_N, 0) + 1 : 1);
    return rc;
}

void op_signal(struct actor *a)
{
    (void)run_call(a, op_space(a), signal_body, NULL, NULL);
}

static belay_rc look_body(struct run *r)
{
    struct value id = thing_id('w', pick_of(r->op, 1, 2));
    const struct row *row = NULL;
    belay_rc rc = r_get(r, &row_thing, &id, &row);

    if (!rc)
        *(int64_t *)r->arg = row ? row_i64(row, THING_N, 0) : 0;
    return rc;
}

/* A look that fails is no look: it is repeated, a few times. */
static bool look(struct actor *a, unsigned space, int64_t *n)
{
    a->wait_seq = a->sim->model.seq;
    for (unsigned i = 0; i < 20; i++) {
        if (!run_call(a, space, look_body, n, NULL))
            return true;
        if (a->sim->running->dead)
            return false;
        turn_sleep(a->sim, 1000);
    }
    return false;
}

void op_wait(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct sim *s = a->sim;
    struct coroutine *co = s->running;
    unsigned space = op_space(a), which = pick_of(a->op, 1, 2);
    struct bytes topic = bytes_str(topics[which]);
    struct value id = thing_id('w', which);
    struct listener *l = NULL;
    struct space *sp = NULL;
    struct belay_error err;
    int64_t first = 0, n = 0;

    if (store_space(co->front->store, space_bytes(space), &sp, &err) || co->dead ||
        space_listen(sp, &topic, 1, NULL, &arena, &l, &err))
        return;
    bool seen = look(a, space, &first);
    n = first;
    while (seen && n <= first) {
        a->wait_key = key_of(space_bytes(space), &row_thing, &id);
        a->wait_above = first;
        a->wait_topic = ns_of(space_bytes(space)) ^ name_of(topic).digest;
        if (!turn_wait(s, l))
            break;
        seen = look(a, space, &n);
    }
    listener_close(l);
}

/* --- chunks --- */

static belay_rc chunk_body(struct run *r)
{
    unsigned which = pick_of(r->op, 1, 2);
    struct value id = thing_id('u', which);
    struct bytes upload = id.b, got;
    int64_t index = pick_of(r->op, 2, 3);
    const struct row *row = NULL;
    bool found = false;
    belay_rc rc = r_get(r, &row_thing, &id, &row);

    if (!rc)
        rc = set_thing(r, id, row, index);
    if (!rc && pick_of(r->op, 3, 3) > 0)
        rc = r_chunk_put(r, upload, index, bytes_of(&r->op->r, 8));
    else if (!rc)
        rc = r_chunk_drop(r, upload, index);
    if (!rc)
        rc = r_chunk_get(r, upload, pick_of(r->op, 4, 3), &found, &got);
    return rc;
}

void op_chunk(struct actor *a)
{
    (void)run_call(a, op_space(a), chunk_body, NULL, NULL);
}

/* --- blobs --- */

#define BLOBS 3
static const size_t blob_sizes[BLOBS] = { 0, 40, 700 };

/* The content of a blob, and its name. */
static struct bytes blob_content(unsigned which, char name[SHA256_HEX_LEN + 1])
{
    static uint8_t content[BLOBS][1024];
    static char names[BLOBS][SHA256_HEX_LEN + 1];
    struct bytes b = bytes_of(content[which], blob_sizes[which]);
    uint8_t digest[SHA256_LEN];

    if (!names[which][0]) {
        for (size_t i = 0; i < b.len; i++)
            content[which][i] = (uint8_t)mix(which, i);
        if (sha256(b, digest, NULL))
            abort();
        hex_encode(bytes_of(digest, sizeof(digest)), names[which]);
    }
    memcpy(name, names[which], sizeof(names[which]));
    return b;
}

static bool is_store_trouble(const struct sim *s, belay_rc rc)
{
    return (rc == BELAY_UNAVAILABLE &&
            (s->swarm.rate[SIM_UNAVAILABLE] > 0 || s->swarm.rate[SIM_OUTAGE] > 0 ||
             s->swarm.loses_replies)) ||
           (rc == BELAY_UNKNOWN_OUTCOME && s->swarm.loses_replies) ||
           rc == BELAY_CONTENTION;
}

static void refuse(struct actor *a, const char *what, belay_rc rc)
{
    if (rc && !is_store_trouble(a->sim, rc))
        violation(a->sim, "answer", "%s answered %s", what,
                  belay_error_info((int)rc)->name);
}

static struct space *own_space(struct actor *a, struct store *store, unsigned space)
{
    struct space *sp = NULL;
    belay_rc rc = store_space(store, space_bytes(space), &sp, NULL);

    refuse(a, "opening a space", rc);
    return rc || a->sim->running->dead ? NULL : sp;
}

void op_blob_put(struct actor *a)
{
    struct sim *s = a->sim;
    struct coroutine *co = s->running;
    unsigned space = op_space(a), which = pick_of(a->op, 1, BLOBS);
    char name[SHA256_HEX_LEN + 1];
    struct bytes content = blob_content(which, name);
    struct space *sp = own_space(a, co->front->store, space);
    struct blob_writer *w = NULL;
    struct blob_info info;

    if (!sp || blob_writer_open(&w, sp, which % 2, NULL, NULL))
        return;
    belay_rc rc = blob_write(w, content, NULL);
    if (!rc)
        rc = blob_finish(w, bytes_of(NULL, 0), name, &info, NULL);
    blob_writer_close(w);
    if (co->dead)
        return;
    if (rc != BELAY_NOT_FOUND) /* swept while it was written */
        refuse(a, "putting a blob", rc);
    if (!rc) {
        s->blobs[space] |= 1U << which;
        if (strcmp(info.sha256, name) != 0)
            violation(s, "blob", "a blob has another name than its digest");
    }
}

/* Reads all of it; compares with what it must be. */
static belay_rc read_blob(struct sim *s, struct blob_reader *reader,
                          struct bytes content)
{
    size_t at = 0;

    for (;;) {
        struct bytes piece;
        belay_rc rc = blob_read(reader, &piece, NULL);
        if (rc)
            return rc;
        if (piece.len == 0)
            break;
        if (piece.len > content.len - at ||
            memcmp(content.ptr + at, piece.ptr, piece.len) != 0) {
            violation(s, "blob", "other bytes than were put");
            return BELAY_OK;
        }
        at += piece.len;
    }
    if (at != content.len)
        violation(s, "blob", "%zu bytes of %zu", at, content.len);
    return BELAY_OK;
}

void op_blob_get(struct actor *a)
{
    struct sim *s = a->sim;
    struct coroutine *co = s->running;
    unsigned space = op_space(a), which = pick_of(a->op, 1, BLOBS);
    char name[SHA256_HEX_LEN + 1];
    struct bytes content = blob_content(which, name);
    struct space *sp = own_space(a, co->front->store, space);
    bool must = (s->blobs[space] >> which) & 1;
    struct blob_reader *reader = NULL;

    if (!sp)
        return;
    belay_rc rc = blob_reader_open(&reader, sp, name, NULL, NULL);
    if (!rc) {
        rc = read_blob(s, reader, content);
        must = true;
        blob_reader_close(reader);
    }
    if (co->dead)
        return;
    if (rc != BELAY_NOT_FOUND || must)
        refuse(a, "reading a blob", rc);
}

void op_sweep(struct actor *a)
{
    struct coroutine *co = a->sim->running;
    struct space *sp = own_space(a, co->front->store, op_space(a));
    int64_t now_ms = 0;
    size_t swept = 0;

    if (!sp || space_now(sp, &now_ms, NULL) || co->dead)
        return;
    /* With and without grace: a writer then finds its upload swept, and says so. */
    int64_t before_ms = pick_of(a->op, 1, 2) ? now_ms - 3600000 : now_ms + 1;
    belay_rc rc = blob_sweep_uploads(sp, before_ms, 10, &swept, NULL);
    if (!co->dead)
        refuse(a, "sweeping uploads", rc);
}

/* --- slots --- */

/* Whether a lost reply waits to be resolved, or a commit to arrive. */
static bool is_unresolved(const struct sim *s)
{
    for (unsigned i = 0; i < s->n_actors; i++) {
        const struct actor *a = &s->actors[i];
        if (!a->done && a->co && a->unresolved)
            return true;
    }
    return s->n_late > 0;
}

static void prune(struct actor *a)
{
    struct coroutine *co = a->sim->running;
    struct space *sp = own_space(a, co->front->store, op_space(a));
    int64_t now_ms = 0;
    size_t pruned = 0;

    belay_rc rc = sp ? space_now(sp, &now_ms, NULL) : BELAY_UNAVAILABLE;
    if (!rc && !co->dead)
        rc = space_prune_slots(sp, now_ms - 3600000, 1 + pick_of(a->op, 2, 10), &pruned,
                               NULL);
    if (!co->dead && sp)
        refuse(a, "pruning slots", rc);
}

/* Prunes slots unused for an hour, at any time or (--prune 0) only while nobody waits to
 * learn what became of a commit. */
void op_prune(struct actor *a)
{
    struct sim *s = a->sim;
    struct coroutine *co = s->running;

    if (s->setup->prune == PRUNE_ANY_TIME) {
        prune(a);
        return;
    }
    if (s->alone || is_unresolved(s))
        return;
    s->alone = co;
    prune(a);
    if (!co->dead)
        s->alone = NULL;
}
