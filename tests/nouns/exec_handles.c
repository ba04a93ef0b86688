/* Handles: what they prove, what they do not, and how they travel. */
#include "exec.h"

static belay_rc renew_by(struct world *w, const struct belay_handle *h)
{
    return belay_execution_renew(w->use, h, HOUR, NULL, &w->err);
}

/* --- handles that were never given out --- */

static bool same_proof(struct world *w, const struct belay_handle *a,
                       const struct belay_handle *b)
{
    struct belay_handle_info x = { 0 }, y = { 0 };

    if (belay_handle_read(a, w->arena, &x, &w->err) ||
        belay_handle_read(b, w->arena, &y, &w->err))
        return false;
    return strcmp(x.ns, y.ns) == 0 && strcmp(x.execution_id, y.execution_id) == 0 &&
           strcmp(x.attempt_id, y.attempt_id) == 0 &&
           strcmp(x.lease_id, y.lease_id) == 0 && x.fence == y.fence;
}

static void changed_anywhere(struct world *w, const struct belay_handle *h)
{
    uint8_t bytes[1024];

    if (!OK(w, h->opaque_len <= sizeof(bytes)))
        return;
    for (size_t i = 0; i < h->opaque_len; i++) {
        memcpy(bytes, h->opaque, h->opaque_len);
        bytes[i] ^= 1;
        struct belay_handle forged = *h;
        forged.opaque = bytes;
        if (same_proof(w, h, &forged))
            continue; /* its lane, its worker: they prove nothing */
        belay_rc rc = renew_by(w, &forged);
        if (!OK(w, rc == BELAY_BAD_HANDLE || rc == BELAY_LEASE_LOST ||
                       rc == BELAY_NOT_FOUND))
            printf("# byte %zu: %s\n", i, belay_error_info((int)rc)->name);
    }
    for (size_t len = 0; len < h->opaque_len; len++) {
        struct belay_handle cut = *h;
        cut.opaque_len = len;
        RC(w, renew_by(w, &cut), BELAY_BAD_HANDLE);
    }
}

/* As one of a suspended attempt is: in its bytes, too. */
static bool suspend(struct world *w, struct belay_handle *h, uint8_t *bytes,
                    size_t size)
{
    struct belay_handle_info info;

    h->kind = BELAY_HANDLE_SUSPENDED;
    for (size_t i = 0; i < 8 && h->opaque_len <= size; i++) {
        struct belay_handle changed = *h;
        memcpy(bytes, h->opaque, h->opaque_len);
        bytes[i] = BELAY_HANDLE_SUSPENDED;
        changed.opaque = bytes;
        if (belay_handle_read(&changed, w->arena, &info, &w->err) == BELAY_OK) {
            *h = changed;
            return true;
        }
    }
    return OK(w, false);
}

/* One that a store of another kind gave out. */
static bool of_another(struct world *w, struct belay_handle *out)
{
    bool memory = strcmp(w->store->name, "memory") == 0;
    struct belay *b = NULL, *use = w->use;

    if (!RC(w, belay_open(memory ? "sqlite::memory:" : "memory:", NULL, &b, &w->err),
            BELAY_OK))
        return false;
    w->use = b;
    const struct belay_work *held =
        submit(w, (struct belay_submission){ 0 }) ? work_on(w, "l") : NULL;
    w->use = use;
    if (held)
        *out = held->handle; /* in the arena */
    belay_close(b);
    return OK(w, held != NULL);
}

static void forged_handles_change_nothing(struct world *w)
{
    struct cell c = { .lane = "l" };
    struct belay *other = world_handle(w, "other");

    if (!other || !cells_make(w, condition_named("active"), &c, 1))
        return;
    const struct belay_handle *h = &c.held->handle;
    uint8_t bytes[1024];
    struct belay_handle suspended = *h, renamed = *h, elsewhere = { 0 };
    renamed.backend ^= 1;
    if (!suspend(w, &suspended, bytes, sizeof(bytes)) || !of_another(w, &elsewhere))
        return;
    const char *before = all_work(w);

    changed_anywhere(w, h);
    for (size_t i = 0; i < n_holder_deeds; i++) {
        unsigned failed = w->t->failed;
        WHY(w, holder_deeds[i].run(w, &renamed), BELAY_BAD_HANDLE, "backend_tag");
        WHY(w, holder_deeds[i].run(w, &elsewhere), BELAY_BAD_HANDLE, "other_backend");
        WHY(w, holder_deeds[i].run(w, &suspended), BELAY_WRONG_STATE, "handle_kind");
        w->use = other;
        WHY(w, holder_deeds[i].run(w, h), BELAY_BAD_HANDLE, "other_namespace");
        w->use = w->a;
        if (w->t->failed > failed)
            printf("# by %s\n", holder_deeds[i].name);
    }
    STR(w, all_work(w), before);
    world_handle_close(w, other);
    RC(w, complete(w, h, NULL, NULL), BELAY_OK);
}

/* A handle is a text and back, and holds all the same. */
static void handles_travel_as_text(struct world *w)
{
    struct cell c = { .lane = "l" };
    struct belay_handle back = { 0 };
    struct belay_handle_info info = { 0 };
    const char *said = NULL;

    if (!cells_make(w, condition_named("active"), &c, 1) ||
        !RC(w, belay_handle_text(&c.held->handle, w->arena, &said, &w->err), BELAY_OK))
        return;
    OK(w, strncmp(said, "blh1_", 5) == 0);
    RC(w, belay_handle_parse(said, w->arena, &back, &w->err), BELAY_OK);
    RC(w, belay_handle_read(&back, w->arena, &info, &w->err), BELAY_OK);
    STR(w, info.execution_id, c.id);
    STR(w, info.ns, "default");
    STR(w, info.lane, "l");
    STR(w, info.worker, "w");
    EQ(w, info.fence, 1);
    EQ(w, info.attempt, 0);
    EQ(w, info.lease_ms, MINUTE);
    w->use = w->b;
    RC(w, complete(w, &back, NULL, NULL), BELAY_OK);
    EQ(w, state_of(w, c.id), BELAY_STATE_COMPLETED);
    WHY(w, belay_handle_parse("blh1_", w->arena, &back, &w->err), BELAY_BAD_HANDLE,
        "truncated");
    WHY(w, belay_handle_parse("hello", w->arena, &back, &w->err), BELAY_BAD_HANDLE,
        "text");
}

static const struct noun_case cases[] = {
    { "L4: a handle that was never given out holds nothing",
      forged_handles_change_nothing, 0 },
    { "a handle is a text, and back", handles_travel_as_text, 0 },
};

const struct topic topic_exec_handles = { cases, COUNT_OF(cases) };
