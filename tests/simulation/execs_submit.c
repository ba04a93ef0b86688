/* What submitters do. */
#include "execs.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const capabilities[] = { "a", "b" };
static const char *const keys[] = { "key0", "key1", "key2" };
static const char *const sessions[] = { "s0", "s1" };

/* One submission, and the room for what it points to. */
struct drafting {
    struct belay_submission s;
    struct belay_retry_policy retry;
    struct belay_tag tags[X_TAGS];
    const char *requires[3], *retryable[1];
    char kind[32], value[X_TAGS][4];
};

static const char *const tag_keys[X_TAGS] = { "k0", "k1" };

static void draft_retry(const struct op *op, unsigned n, struct drafting *d,
                        struct xwant *w)
{
    static const int64_t delays_ms[] = { 1, 40, 700 };
    unsigned how = pick_of(op, n, 4);

    if (how == 0)
        return;
    w->max_retries = 1 + pick_of(op, n + 1, 2);
    w->retry_ms = delays_ms[pick_of(op, n + 2, COUNT_OF(delays_ms))];
    w->fixed = how == 1;
    w->jitter = how == 2;
    w->retry_longest_ms = 1000;
    w->transient_only = pick_of(op, n + 3, 4) == 0;
    d->retryable[0] = "transient";
    d->retry = (struct belay_retry_policy){
        .size = sizeof(d->retry),
        .backoff = w->fixed ? BELAY_BACKOFF_FIXED : BELAY_BACKOFF_EXPONENTIAL,
        .max_retries = w->max_retries,
        .delay_ms = w->retry_ms,
        .max_delay_ms = w->fixed ? 0 : w->retry_longest_ms,
        .multiplier = w->fixed ? 0 : 3,
        .no_jitter = how == 3,
        .retryable = w->transient_only ? d->retryable : NULL,
        .n_retryable = w->transient_only,
    };
    d->s.retry = &d->retry;
}

static void draft_needs(const struct op *op, unsigned n, struct drafting *d,
                        struct xwant *w)
{
    static const unsigned needs[] = { 0, 0, 0, 1, 2, 3 };

    w->needs = needs[pick_of(op, n, COUNT_OF(needs))];
    w->requires = xrequires(w->needs);
    const char **next = d->requires;
    for (unsigned i = 2; i-- > 0;) { /* in any order, and one twice */
        if ((w->needs >> i & 1U) != 0)
            *next++ = capabilities[i];
    }
    if (next == d->requires + 2)
        *next++ = capabilities[0];
    d->s.n_requires = (size_t)(next - d->requires);
    d->s.requires = d->s.n_requires > 0 ? d->requires : NULL;
}

static void draft_tags(const struct op *op, unsigned n, struct drafting *d,
                       struct xwant *w)
{
    for (unsigned k = 0; k < X_TAGS; k++) {
        w->tag[k] = pick_of(op, n + k, 2) ? 1 + pick_of(op, n + 4 + k, 3) : 0;
        if (w->tag[k] == 0)
            continue;
        (void)snprintf(d->value[k], sizeof(d->value[k]), "v%u", w->tag[k] % 10);
        d->tags[d->s.n_tags++] = (struct belay_tag){ tag_keys[k], d->value[k] };
    }
    d->s.tags = d->s.n_tags > 0 ? d->tags : NULL;
}

static void draft_times(const struct op *op, unsigned n, struct drafting *d,
                        struct xwant *w)
{
    static const int64_t delays_ms[] = { 0, 0, 0, 0, 0, 20, 500, 5000, 60000 };
    static const int64_t deadlines_ms[] = {
        0, 0, 0, 0, 0, 0, 0, 0, 1, 200, 3000, 60000
    };
    static const int64_t timeouts_ms[] = { 0, 0, 0, 0, 1, 100, 2000, 30000 };
    static const int64_t retentions_ms[] = { 0, 0, 50, 5000, 3600000 };
    static const int64_t reclaims[] = { 0, 0, -1, 1, 2 };

    w->delay_ms = delays_ms[pick_of(op, n, COUNT_OF(delays_ms))];
    w->deadline_ms = deadlines_ms[pick_of(op, n + 1, COUNT_OF(deadlines_ms))];
    w->timeout_ms = timeouts_ms[pick_of(op, n + 2, COUNT_OF(timeouts_ms))];
    d->s.delay_ms = w->delay_ms;
    d->s.deadline_ms = w->deadline_ms;
    d->s.attempt_timeout_ms = w->timeout_ms;
    d->s.retention_ms = retentions_ms[pick_of(op, n + 3, COUNT_OF(retentions_ms))];
    d->s.max_reclaims = reclaims[pick_of(op, n + 4, COUNT_OF(reclaims))];
    w->retention_ms = d->s.retention_ms > 0 ? d->s.retention_ms : BELAY_RETENTION_MS;
    w->max_reclaims = d->s.max_reclaims < 0    ? 0
                      : d->s.max_reclaims == 0 ? BELAY_MAX_RECLAIMS
                                               : d->s.max_reclaims;
}

/* What a key is used for: one of two contents, the same whoever submits it. */
static struct op op_of_key(unsigned key, unsigned body)
{
    return (struct op){ .r = mix(key + 1, body + 77) };
}

static void draft_make(struct actor *a, unsigned i, struct drafting *d, struct xwant *w)
{
    static const int64_t windows_ms[] = { 0, 100, 10000 };
    static const int priorities[] = { 0, 0, 1, 5, BELAY_PRIORITY_MAX };
    const struct op *op = a->op;
    unsigned n = 100 * (i + 1), key = pick_of(op, n, 7);
    bool keyed = key < COUNT_OF(keys);
    w->body = pick_of(op, n + 1, 8) == 0;
    struct op own = { .r = mix(op->r, n) }, fixed = op_of_key(key, w->body);

    op = keyed ? &fixed : &own;
    d->s = (struct belay_submission){ .size = sizeof(d->s) };
    unsigned lane = pick_of(op, 2, a->sim->swarm.n_keys);
    unsigned session = pick_of(op, 3, 4);
    w->priority = d->s.priority = priorities[pick_of(op, 4, 5)];
    d->s.lane = xlane(lane);
    w->lane = xstr(d->s.lane);
    (void)snprintf(d->kind, sizeof(d->kind), "w%zu.%u", a->sim->execs->n_calls, i);
    d->s.kind = keyed ? "keyed" : d->kind;
    w->kind = xstr(d->s.kind);
    d->s.session = session < 2 ? sessions[session] : NULL;
    w->session = xstr(d->s.session);
    d->s.payload = "{\"n\": 1}";
    d->s.payload_len = 8;
    d->s.payload_is_json = w->body == 0;
    draft_times(op, 10, d, w);
    draft_retry(op, 20, d, w);
    draft_needs(op, 30, d, w);
    draft_tags(op, 40, d, w);
    if (!keyed && pick_of(op, 50, 8) == 0)
        d->s.run_at_ms = w->run_at_ms =
            a->sim->execs->latest_ms + pick_of(op, 51, 3000);
    if (!keyed)
        return;
    d->s.key = keys[key];
    w->key = xstr(d->s.key);
    d->s.key_window_ms = windows_ms[pick_of(a->op, n + 5, COUNT_OF(windows_ms))];
    w->window_ms = d->s.key_window_ms > 0 ? d->s.key_window_ms : BELAY_KEY_WINDOW_MS;
}

/* --- answers --- */

static void check_one(struct xcall *c, size_t i, const struct belay_submitted *out)
{
    struct execs *w = c->actor->sim->execs;
    uint64_t id = xstr(out->execution_id);
    const struct xseen *seen = xseen_at(w, id);

    if (!seen)
        violation(w->s, "L9", "submit answered with an execution that never was");
    else if (!out->duplicate && c->created[i] != id)
        violation(w->s, "L9", "submit was acknowledged and it is not there");
    else if (out->duplicate &&
             (c->created[i] || !seen->spec.key || seen->spec.key != c->want[i].key ||
              seen->spec.body != c->want[i].body))
        violation(w->s, "keys", "answered with an execution of another submission");
}

/* Whether a key of the call stands for something else. */
static bool conflicts(const struct xcall *c)
{
    struct execs *w = c->actor->sim->execs;

    for (size_t i = 0; i < c->n_want; i++) {
        const struct xkey *k = xkey_at(w->cur, c->want[i].key);
        const struct xseen *seen = k ? xseen_at(w, k->execution) : NULL;
        if (seen && k->until_ms > c->now_ms && seen->spec.body != c->want[i].body)
            return true;
        for (size_t j = 0; j < i; j++) {
            if (c->want[i].key && c->want[j].key == c->want[i].key &&
                c->want[j].body != c->want[i].body)
                return true;
        }
    }
    return false;
}

void op_xsubmit(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct exec_site site;
    struct drafting d[X_ITEMS] = { { .s = { .size = 0 } } };
    struct belay_submission items[X_ITEMS];
    struct belay_submitted out[X_ITEMS];
    struct belay_error err;

    if (!xsite(a, &site) || a->sim->execs->cur->n_rows + X_ITEMS > X_ROWS - 8 ||
        a->sim->execs->n_seen + X_ITEMS > X_SEEN)
        return;
    struct xcall *c = xcall_begin(a, X_SUBMIT);
    c->n_want = pick_of(a->op, 1, 3) ? 1 : 1 + pick_of(a->op, 2, X_ITEMS);
    for (unsigned i = 0; i < c->n_want; i++) {
        draft_make(a, i, &d[i], &c->want[i]);
        items[i] = d[i].s;
    }
    belay_rc rc = exec_submit(&site, items, c->n_want, &arena, out, &err);
    if (!xcall_end(c, rc))
        return;
    if (rc == BELAY_KEY_CONFLICT) {
        if (xis_calm(c) && !conflicts(c))
            violation(a->sim, "keys", "a conflict although no key is used otherwise");
    } else if (rc) {
        xcall_refuse(c, rc, &err);
    }
    for (size_t i = 0; i < c->n_want && rc == BELAY_OK; i++)
        check_one(c, i, &out[i]);
}
