/* Handles: whether they hold, a memory of all that were ever granted, forged ones. */
#include "execs.h"

#include <stdlib.h>

static bool is_triple(const struct xrow *r, const struct xhandle *h)
{
    return r->id == h->execution && r->v[EXEC_LEASE + LEASE_FENCE] == h->fence &&
           (uint64_t)r->v[EXEC_LEASE + LEASE_TOKEN] == h->token &&
           (uint64_t)r->v[EXEC_LEASE + LEASE_ID] == h->lease;
}

bool xholds(const struct xstate *st, const struct xhandle *h)
{
    const struct xrow *r = xrow_at(st, h->execution);

    return r && xis_leased(r) && is_triple(r, h) && h->fence >> 40 == st->epoch &&
           h->attempt == r->v[EXEC_ATTEMPTS] - 1;
}

bool xwas_last(const struct xstate *st, const struct xhandle *h)
{
    const struct xrow *r = xrow_at(st, h->execution);

    return r && !xis_leased(r) && is_triple(r, h);
}

const char *xlost_reason(const struct xstate *st, const struct xhandle *h)
{
    const struct xrow *r = xrow_at(st, h->execution);

    if (!r)
        return "gone";
    if (xis_leased(r)) {
        bool known = (uint64_t)r->v[EXEC_LEASE + LEASE_TOKEN] == h->token &&
                     (uint64_t)r->v[EXEC_LEASE + LEASE_ID] == h->lease;
        bool old = r->v[EXEC_LEASE + LEASE_FENCE] >> 40 != st->epoch;
        return known && old ? "epoch" : "superseded";
    }
    if (xis_terminal(r))
        return "terminal";
    if (!is_triple(r, h))
        return "superseded";
    if (r->v[EXEC_OWNERSHIP] == BELAY_LEASE_REVOKED)
        return "revoked";
    return r->v[EXEC_OWNERSHIP] == BELAY_LEASE_EXPIRED_RECLAIMABLE ? "expired"
                                                                   : "released";
}

bool xhas_ended(const struct execs *w, const struct xhandle *h, enum xstep step)
{
    for (size_t i = 0; i < w->n_ended; i++) {
        const struct xended *e = &w->ended[i];
        if (e->execution == h->execution && e->fence == h->fence &&
            e->token == h->token && e->lease == h->lease && e->step == step)
            return true;
    }
    return false;
}

/* --- remembering --- */

static struct xhandle read_handle(struct execs *w, const struct belay_handle *from)
{
    struct exec_handle said = { .backend = 0 };
    struct belay_error err;
    struct bytes copy;

    if (!arena_copy(&w->arena, bytes_of(from->opaque, from->opaque_len), &copy))
        abort();
    struct xhandle h = { .h = *from };
    h.h.opaque = copy.ptr;
    if (handle_decode(&h.h, &said, &err))
        violation(w->s, "answer", "a handle cannot be read: %s", err.message);
    h.execution = xtext(said.execution);
    h.token = xtext(said.attempt_id);
    h.lease = xtext(said.lease_id);
    h.attempt = said.attempt;
    h.fence = said.fence;
    h.lease_ms = said.lease_ms;
    return h;
}

/* In its place, or for the time being in the last one. */
static struct xhandle *place(struct execs *w, struct xhandle h)
{
    struct xhandle *at = arena_zalloc(&w->arena, 1, sizeof(*at));

    if (!at)
        abort();
    *at = h;
    return at;
}

const struct xhandle *xhandle_keep(struct execs *w, const struct belay_handle *h)
{
    struct xhandle *kept = place(w, read_handle(w, h));

    if (w->n_handles < X_HANDLES)
        w->handle[w->n_handles++] = *kept;
    return kept;
}

/* As it comes back from its text. */
static const struct xhandle *disguise(struct execs *w, const struct xhandle *h)
{
    struct belay_handle parsed;
    const char *text = NULL;
    struct belay_error err;

    if (handle_text(&h->h, &w->arena, &text, &err) ||
        handle_parse(text, &w->arena, &parsed, &err)) {
        violation(w->s, "answer", "a handle and its text are not the same");
        return h;
    }
    return place(w, read_handle(w, &parsed));
}

const struct xhandle *xhandle_any(struct actor *a, unsigned draw)
{
    struct execs *w = a->sim->execs;
    size_t back = draw % 3 ? (draw >> 2) % 4 : (draw >> 2) % (w->n_handles + 1);

    if (w->n_handles == 0)
        return NULL;
    back = back < w->n_handles ? back : w->n_handles - 1;
    const struct xhandle *h = &w->handle[w->n_handles - 1 - back];
    return (draw >> 16) % 4 == 1 ? disguise(w, h) : h;
}

/* --- forging --- */

static struct bytes other_text(struct execs *w, struct bytes text)
{
    struct bytes copy;

    if (!arena_copy(&w->arena, text, &copy))
        abort();
    uint8_t *last = (uint8_t *)(uintptr_t)copy.ptr + copy.len - 1;
    *last = *last == '1' ? '2' : '1';
    return copy;
}

const struct xhandle *xhandle_forged(struct actor *a, const struct xhandle *h,
                                     unsigned how)
{
    struct execs *w = a->sim->execs;
    struct exec_handle said = { .backend = 0 };
    struct belay_handle forged;
    struct belay_error err;
    const char *other = xany(a, how >> 4);

    if (handle_decode(&h->h, &said, &err))
        abort();
    switch (how % 6) {
    case 0:
        said.lease_id = other_text(w, said.lease_id);
        break;
    case 1:
        said.attempt_id = other_text(w, said.attempt_id);
        break;
    case 2:
        said.fence++;
        break;
    case 3:
        said.fence = said.fence > 1 ? said.fence - 1 : 5;
        break;
    case 4: /* the same in all that is secret */
        said.attempt += said.attempt > 0 && (how & 8U) != 0 ? -1 : 1;
        break;
    default:
        if (other)
            said.execution = bytes_str(other);
        said.lease_id = other_text(w, said.lease_id);
        break;
    }
    if (handle_encode(&said, &w->arena, &forged, &err))
        abort();
    return place(w, read_handle(w, &forged));
}
