#include "session_mortals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define LIFE_US 250000

enum mortal { MORTAL_ENQUEUE, MORTAL_COMMIT, MORTAL_DELETE };

static void mortal_name(int64_t number, char out[32])
{
    (void)snprintf(out, 32, "m%lld", (long long)number);
}

/* --- a worker's part --- */

static belay_rc mortal_enqueue(struct hand *h, const char *id, struct belay_error *err)
{
    const char *payloads[] = { "{}" };
    struct belay_draft draft = { .size = sizeof(draft),
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_JOIN,
                                 .session_id = id,
                                 .payloads = payloads,
                                 .n_payloads = 1 };
    struct belay_enqueued out;

    return belay_queue_enqueue(h->b, &draft, h->arena, &out, err);
}

static belay_rc mortal_commit(struct hand *h, struct belay_session *s,
                              const struct note *n, struct belay_error *err)
{
    size_t len = body_make(&n->thing, BODY_SHARED, h->body[0]);
    struct belay_checkpoint checkpoint = {
        .tool_state = { .body = h->body[0], .len = len },
        .plugin_snapshot_revision = BELAY_NONE,
    };
    char turn[40], node[80];
    const char *nodes[] = { node };
    struct belay_committed out;

    maker_name(&n->thing, turn);
    (void)snprintf(node, sizeof(node), "{\"node_id\":\"%s\",\"kind\":\"plugin\"}",
                   turn);
    struct belay_commit commit = { .size = sizeof(commit),
                                   .graph = BELAY_GRAPH_APPEND,
                                   .expected_revision = BELAY_ANY_REVISION,
                                   .turn_id = turn,
                                   .nodes = nodes,
                                   .n_nodes = 1,
                                   .checkpoint = &checkpoint };
    return belay_session_commit(s, &commit, h->arena, &out, err);
}

void deed_mortal(struct hand *h)
{
    static const enum mortal what[] = { MORTAL_ENQUEUE, MORTAL_ENQUEUE, MORTAL_COMMIT,
                                        MORTAL_COMMIT, MORTAL_DELETE };
    struct note n = deed_begin(h, DEED_MORTAL, -1);
    struct belay_session *s = NULL;
    struct belay_error err;
    bool deleted = false;
    char id[32];

    n.expected = (int64_t)what[rng_below(&h->rng, COUNT_OF(what))];
    n.revision = now_us() / LIFE_US;
    mortal_name(n.revision, id);
    deed_note(h, &n);
    belay_rc rc = belay_session_open(h->b, id, NULL, &s, &err);
    if (!rc && n.expected == MORTAL_ENQUEUE)
        rc = mortal_enqueue(h, id, &err);
    else if (!rc && n.expected == MORTAL_COMMIT)
        rc = mortal_commit(h, s, &n, &err);
    else if (!rc)
        rc = belay_session_delete(s, &deleted, &err);
    n.flags |= deleted ? NOTE_FOUND : 0;
    deed_done(h, &n, rc, &err);
    belay_session_close(s);
}

/* --- the law --- */

/* What was said about one of them. */
struct fate {
    int64_t number;
    int64_t deleted_us; /* a delete that found it was answered first; 0: none was */
    bool delete_tried;
    int64_t entered, perhaps; /* batches: answered for, without an answer */
    int64_t commits;          /* answered for */
};

static void note_fate(struct fate *f, const struct act *a)
{
    bool ok = act_ok(a);

    if (a->begin->expected == MORTAL_DELETE) {
        f->delete_tried = true;
        /* What never was cannot be deleted, and may begin afterwards. */
        if (ok && a->done->flags & NOTE_FOUND && !f->deleted_us)
            f->deleted_us = a->done->at_us;
    } else if (a->begin->expected == MORTAL_ENQUEUE) {
        f->entered += ok;
        f->perhaps += !a->done;
    } else {
        f->commits += ok;
    }
}

/* Whoever comes after the delete was answered is refused; nobody is before one began. */
static void refusals(struct matter *m, const struct fate *f)
{
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct act *a = &m->acts.act[i];
        if (a->begin->deed != DEED_MORTAL || a->begin->revision != f->number ||
            a->begin->expected == MORTAL_DELETE || !a->done)
            continue;
        bool late = f->deleted_us && f->deleted_us < a->begin->at_us;
        m->laws->looked[LAW_DELETED]++;
        m->laws->tally[TALLY_REFUSED] += a->done->rc != BELAY_OK;
        if (late != (a->done->rc != BELAY_OK) && (late || !f->delete_tried))
            law_broken(m->laws, LAW_DELETED, "m%lld: %s after its end",
                       (long long)f->number, late ? "it was used" : "refused without");
    }
}

/* --- what is there --- */

static void is_alive(struct matter *m, struct hand *h, struct belay_session *s,
                     const char *id, const struct fate *f)
{
    struct belay_queue_page page = { .size = sizeof(page), .limit = 1000 };
    struct belay_batches list = { .n = 0 };
    struct belay_head head = { .revision = 0 };
    struct belay_error err;
    belay_rc rc = belay_queue_list(h->b, id, &page, h->arena, &list, &err);

    if (!rc && f->commits > 0)
        rc = belay_session_head(s, h->arena, &head, &err);
    if (rc || (int64_t)list.n < f->entered ||
        (int64_t)list.n > f->entered + f->perhaps || head.revision < f->commits)
        law_broken(m->laws, LAW_DELETED, "%s: %zu batches, revision %lld: %s", id,
                   list.n, (long long)head.revision,
                   rc ? err.message : "not what entered");
}

/* Gone for good: nothing can be read, nothing enters. */
static void is_gone(struct matter *m, struct hand *h, struct belay_session *s,
                    const char *id)
{
    struct note n = { .thing = { .worker = 99, .n = 1 } };
    struct belay_head head;
    struct belay_error err = { .reason = "" };

    belay_rc head_rc = belay_session_head(s, h->arena, &head, &err);
    bool gone = head_rc == BELAY_NOT_FOUND && strcmp(err.reason, "deleted") == 0;
    gone &= mortal_enqueue(h, id, &err) == BELAY_WRONG_STATE;
    gone &= mortal_commit(h, s, &n, &err) == BELAY_WRONG_STATE;
    if (!gone)
        law_broken(m->laws, LAW_DELETED, "%s: is not gone: %s", id, err.message);
}

static void look_at(struct matter *m, struct hand *h, const struct fate *f)
{
    struct belay_session *s = NULL;
    struct belay_error err;
    bool deleted;
    char id[32];

    mortal_name(f->number, id);
    belay_arena_reset(h->arena);
    if (belay_session_open(h->b, id, NULL, &s, &err)) {
        law_broken(m->laws, LAW_DELETED, "%s: %s", id, err.message);
        return;
    }
    m->laws->tally[TALLY_DELETED] += f->deleted_us > 0;
    if (f->deleted_us)
        is_gone(m, h, s, id);
    else if (!f->delete_tried)
        is_alive(m, h, s, id, f);
    /* A delete that was cut short goes on. */
    if (belay_session_delete(s, &deleted, &err))
        law_broken(m->laws, LAW_DELETED, "%s: delete: %s", id, err.message);
    if (f->deleted_us || f->entered + f->commits > 0)
        is_gone(m, h, s, id);
    belay_session_close(s);
}

void mortals_after(struct matter *m, struct hand *h)
{
    struct fate *fates = calloc(m->acts.n + 1, sizeof(*fates));
    size_t n = 0;

    if (!fates)
        abort();
    for (size_t i = 0; i < m->acts.n; i++) {
        const struct act *a = &m->acts.act[i];
        size_t j = 0;
        if (a->begin->deed != DEED_MORTAL)
            continue;
        while (j < n && fates[j].number != a->begin->revision)
            j++;
        fates[j].number = a->begin->revision;
        n += j == n;
        note_fate(&fates[j], a);
    }
    for (size_t i = 0; i < n; i++) {
        refusals(m, &fates[i]);
        look_at(m, h, &fates[i]);
    }
    free(fates);
}
