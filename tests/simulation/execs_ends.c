/* What workers do to end an attempt: complete, fail, abort; delay, release. */
#include "execs.h"

/* --- complete, fail --- */

static void list_handles(struct xcall *c, const struct xhandle *const *h, size_t n)
{
    for (size_t i = 0; i < n && i < X_ITEMS; i++)
        c->handle[c->n_handles++] = h[i];
}

/* What is said of one item; `steps` are those that make it true. */
static void check_item(struct xcall *c, const struct xhandle *h,
                       const struct belay_ended *out, enum xstep one, enum xstep two)
{
    struct execs *w = c->actor->sim->execs;

    if (out->code != BELAY_OK) {
        (void)xrefused(c, h, out->code, &out->err);
        return;
    }
    if (!xhas_ended(w, h, one) && !xhas_ended(w, h, two))
        violation(w->s, "L4", "%s, and its bearer has not",
                  out->replayed ? "said to be done before" : "said to be done");
    else if (!out->replayed && c->steps[one] + c->steps[two] == 0)
        violation(w->s, "once", "said to be done now, and it was not");
}

void xdo_complete(struct actor *a, const struct xhandle *const *h, size_t n, bool next)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_completion items[X_ITEMS];
    struct belay_ended out[X_ITEMS] = { { .code = BELAY_OK } };
    struct belay_works works = { .n = 0 };
    struct xpolicy p;
    struct exec_site site;
    struct belay_error err;

    if (!xsite(a, &site))
        return;
    struct xcall *c = xcall_begin(a, X_COMPLETE);
    list_handles(c, h, n);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct belay_completion){
            .size = sizeof(items[i]),
            .handle = &h[i]->h,
            .result = pick_of(a->op, 80, 2) ? "[1]" : NULL,
            .result_len = pick_of(a->op, 80, 2) ? 3 : 0,
            .result_is_json = true,
        };
    if (next)
        xpolicy_make(a, 90, &p, c);
    belay_rc rc =
        exec_complete(&site, items, n, next ? &p.p : NULL, &arena, out, &works, &err);
    if (!xcall_end(c, rc))
        return;
    if (n == 1 && !next && rc != BELAY_OK) {
        (void)xrefused(c, h[0], rc, &err);
        return;
    }
    if (rc) {
        xcall_refuse(c, rc, &err);
        return;
    }
    for (size_t i = 0; i < n && !a->sim->rule; i++)
        check_item(c, h[i], &out[i], XS_COMPLETE, XS_COMPLETE);
    if (next && !a->sim->rule)
        xworks_take(c, works.work, works.n);
}

void xdo_fail(struct actor *a, const struct xhandle *const *h, size_t n, int class_no)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct belay_failure items[X_ITEMS];
    struct belay_ended out[X_ITEMS] = { { .code = BELAY_OK } };
    struct exec_site site;
    struct belay_error err;

    if (!xsite(a, &site))
        return;
    struct xcall *c = xcall_begin(a, X_FAIL);
    list_handles(c, h, n);
    c->failure_class = class_no;
    for (size_t i = 0; i < n; i++)
        items[i] = (struct belay_failure){ .size = sizeof(items[i]),
                                           .failure_class = class_no,
                                           .handle = &h[i]->h,
                                           .message = "it broke" };
    belay_rc rc = exec_fail(&site, items, n, &arena, out, &err);
    if (!xcall_end(c, rc))
        return;
    if (n == 1 && rc != BELAY_OK) {
        (void)xrefused(c, h[0], rc, &err);
        return;
    }
    if (rc)
        xcall_refuse(c, rc, &err);
    for (size_t i = 0; i < n && rc == BELAY_OK && !a->sim->rule; i++) {
        bool timeout =
            out[i].replayed && xhas_ended(a->sim->execs, h[i], XS_TIMEOUT_FAIL);
        bool again =
            out[i].replayed && xhas_ended(a->sim->execs, h[i], XS_TIMEOUT_RETRY);
        bool capped =
            out[i].replayed && (xhas_ended(a->sim->execs, h[i], XS_CAP) ||
                                xhas_ended(a->sim->execs, h[i], XS_REVOKE_CAP));
        /* Who fails what time has failed already finds it done. */
        if (!timeout && !again && !capped)
            check_item(c, h[i], &out[i], XS_FAIL, XS_RETRY);
    }
}

/* --- delay, release, abort --- */

/* Said to be done, and it was not done now: then it had been. */
static void check_repeated(struct xcall *c, const struct xhandle *h)
{
    static const enum xstep steps[X_CALL_KINDS] = {
        [X_DELAY] = XS_DELAY, [X_RELEASE] = XS_RELEASE, [X_ABORT] = XS_ABORT
    };
    struct execs *w = c->actor->sim->execs;
    enum xstep step = steps[c->kind];
    /* A time that has come is no time: delayed and released are the same then.  Who
     * aborts what was cancelled finds it done. */
    bool other = c->kind == X_ABORT
                     ? xhas_ended(w, h, XS_CANCEL)
                     : xhas_ended(w, h, XS_DELAY) || xhas_ended(w, h, XS_RELEASE);

    if (c->changed == 0 && !xhas_ended(w, h, step) && !other)
        violation(w->s, "L4", "said to be done, and its bearer has not");
}

void xdo_pause(struct actor *a, const struct xhandle *h, enum xcall_kind kind)
{
    struct execs *w = a->sim->execs;
    struct exec_site site;
    struct belay_error err;
    belay_rc rc;

    if (!xsite(a, &site))
        return;
    struct xcall *c = xcall_begin(a, kind);
    c->handle[c->n_handles++] = h;
    if (kind == X_DELAY) {
        c->until_ms = w->latest_ms + (int64_t)pick_of(a->op, 81, 4000) - 500;
        c->until_ms = c->until_ms > 0 ? c->until_ms : 0;
        rc = exec_delay(&site, &h->h, c->until_ms, &err);
    } else if (kind == X_RELEASE) {
        rc = exec_release(&site, &h->h, &err);
    } else {
        c->reason = xstr("enough");
        rc = exec_abort(&site, &h->h, "enough", &err);
    }
    if (xcall_end(c, rc) && !xrefused(c, h, rc, &err))
        check_repeated(c, h);
}
