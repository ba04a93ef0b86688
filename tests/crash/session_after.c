#include "session_after.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "rig.h"
#include "session_deeds.h"
#include "session_mortals.h"
#include "work/check.h"

#define PATIENCE_US ((int64_t)20 * 1000000)

/* --- check --- */

static void found(void *arg, const struct finding *f)
{
    struct laws *l = arg;

    law_broken(l, LAW_SOUND, "check: %s %.*s: %s", f->what, (int)f->entity.len,
               f->entity.ptr ? (const char *)f->entity.ptr : "", f->message);
}

static struct belay *open_and_check(struct laws *laws, const char *url)
{
    struct belay_options options = { .size = sizeof(options), .ns = "default" };
    struct check_counts counts = { .findings = 0 };
    struct belay_error err;
    struct belay *b = NULL;

    if (belay_open(url, &options, &b, &err)) {
        law_broken(laws, LAW_SOUND, "cannot be opened: %s", err.message);
        return NULL;
    }
    if (check_store(b->store, found, laws, &counts, &err))
        law_broken(laws, LAW_SOUND, "check: %s", err.message);
    if (counts.rows == 0)
        law_broken(laws, LAW_SOUND, "check saw nothing");
    return b;
}

/* --- S3 S4 S5 --- */

/* A pin is there unless somebody tried to remove it; it names what was put. */
static void pins(struct matter *m, struct hand *h)
{
    struct belay_error err;

    for (size_t i = 0; i < m->acts.n; i++) {
        const struct act *a = &m->acts.act[i];
        if (a->begin->deed != DEED_PUT || !a->done || a->done->rc)
            continue;
        const struct maker *thing = &a->begin->thing;
        bool unpinned = false;
        const struct truth_pin *pin = NULL;
        for (size_t j = 0; j < m->acts.n && !unpinned; j++) {
            const struct note *n = m->acts.act[j].begin;
            unpinned = n->deed == DEED_UNPIN && maker_is(&n->thing, thing);
        }
        for (size_t j = 0; j < m->truth->n_pins && !pin; j++) {
            if (m->truth->pin[j].known && maker_is(&m->truth->pin[j].thing, thing))
                pin = &m->truth->pin[j];
        }
        if (unpinned)
            continue;
        m->laws->looked[LAW_BLOBS]++;
        size_t len = body_make(thing, BODY_PUT, h->body[0]);
        if (!pin || strcmp(pin->sha256, a->done->ref) != 0)
            law_broken(m->laws, LAW_BLOBS, "pin w%u-%lld: is not there", thing->worker,
                       (long long)thing->n);
        const char *wrong = deed_read_blob(h, a->done->ref, h->body[0], len, &err);
        if (wrong)
            law_broken(m->laws, LAW_BLOBS, "pin w%u-%lld: %s: %s", thing->worker,
                       (long long)thing->n, wrong, err.message);
    }
}

/* The commit that brought the head's checkpoint: the last of those with one. */
static const struct note *checkpoint_of(const struct matter *m, int s)
{
    const struct truth_session *t = &m->truth->session[s];

    for (size_t i = t->n_commits; i-- > 0;) {
        for (size_t j = 0; j < m->acts.n; j++) {
            const struct note *n = m->acts.act[j].begin;
            if (n->deed == DEED_COMMIT && n->session == s &&
                n->flags & NOTE_CHECKPOINT && maker_is(&n->thing, &t->commit[i].turn))
                return n;
        }
    }
    return NULL;
}

static const char *read_parts(struct hand *h, const struct note *n,
                              const struct belay_checkpoint_info *info,
                              struct belay_error *err)
{
    size_t len[3];

    for (unsigned i = 0; i < 3; i++)
        len[i] = body_make(&n->thing, (enum body_part)i, h->body[i]);
    if (!info->tool_state_ref || !info->plugin_snapshot_ref ||
        !info->execution_state_ref)
        return "a part is missing";
    const char *wrong = deed_read_blob(h, info->tool_state_ref, h->body[BODY_TOOL],
                                       len[BODY_TOOL], err);
    if (!wrong)
        wrong = deed_read_blob(h, info->plugin_snapshot_ref, h->body[BODY_SHARED],
                               len[BODY_SHARED], err);
    if (wrong)
        return wrong;
    if (!(n->flags & NOTE_KEEPS_REF))
        return deed_read_blob(h, info->execution_state_ref, h->body[BODY_EXECUTION],
                              len[BODY_EXECUTION], err);
    if (strcmp(n->ref, info->execution_state_ref) != 0)
        return "another part than the one that was kept";
    return deed_read_blob(h, n->ref, NULL, 0, err);
}

static void checkpoints(struct matter *m, struct hand *h)
{
    struct belay_checkpoint_info info;
    struct belay_error err = { .message = "" };

    for (int s = 0; s < NOTE_SESSIONS; s++) {
        const struct note *n = checkpoint_of(m, s);
        if (!n)
            continue;
        const char *wrong = "cannot be read";
        belay_arena_reset(h->arena);
        if (!belay_session_checkpoint(h->session[s], h->arena, &info, &err))
            wrong = read_parts(h, n, &info, &err);
        m->laws->looked[LAW_BLOBS]++;
        if (wrong)
            law_broken(m->laws, LAW_BLOBS, "s%d: its checkpoint: %s: %s", s, wrong,
                       err.message);
    }
}

/* --- L11 --- */

/* Claims and completes until nothing is left; false when it does not get on. */
static bool drain_some(struct matter *m, struct hand *h, int s, int64_t wait_ms,
                       bool *left)
{
    struct belay_claimed out;
    struct belay_committed committed;
    struct belay_error err = { .message = "" };
    char id[16];

    session_name(s, id);
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = id,
                                           .owner_id = "last",
                                           .lease_ms = 60000,
                                           .max = 4,
                                           .wait_ms = wait_ms };
    belay_arena_reset(h->arena);
    belay_rc rc = belay_queue_claim(h->b, &request, h->arena, &out, &err);
    if (!rc && !out.claim) {
        *left = out.why != BELAY_NO_EMPTY;
        /* What is held or comes later may be waited for, once. */
        return !*left || (wait_ms == 0 && drain_some(m, h, s, 1000, left));
    }
    if (!rc) {
        for (size_t i = 0; i < out.claim->n_batches; i++) {
            const struct belay_batch *b = &out.claim->batches[i];
            const struct story *y = story_of(m, s, b->enqueue_seq);
            m->laws->looked[LAW_DRAINS]++;
            m->laws->tally[TALLY_DRAINED]++;
            if (!y || !y->here || b->fence != y->here->fence + 1)
                law_broken(m->laws, LAW_FENCES, "%s/%lld: fence %lld after %lld", id,
                           (long long)b->enqueue_seq, (long long)b->fence,
                           y && y->here ? (long long)y->here->fence : -1LL);
        }
        struct belay_commit commit = { .size = sizeof(commit),
                                       .expected_revision = BELAY_ANY_REVISION,
                                       .completes = &out.claim,
                                       .n_completes = 1 };
        rc = belay_session_commit(h->session[s], &commit, h->arena, &committed, &err);
    }
    if (rc)
        law_broken(m->laws, LAW_DRAINS, "%s: %s", id, err.message);
    return !rc;
}

static void drain(struct matter *m, struct hand *h)
{
    for (int s = 0; s < NOTE_SESSIONS; s++) {
        int64_t end = now_us() + PATIENCE_US;
        size_t before = m->truth->session[s].n_batches;
        uint64_t drained = m->laws->tally[TALLY_DRAINED];
        bool left = true, goes_on = true;
        while (left && goes_on && now_us() < end)
            goes_on = drain_some(m, h, s, 0, &left);
        drained = m->laws->tally[TALLY_DRAINED] - drained;
        if (left || drained != before)
            law_broken(m->laws, LAW_DRAINS, "s%d: %llu of %zu batches were granted", s,
                       (unsigned long long)drained, before);
    }
}

/* --- S7 --- */

/* Blobs, uploads and chunks that are left. */
struct remains {
    char (*blob)[72];
    size_t n_blobs, n_uploads;
};

static belay_rc see(void *arg, const struct item *item, struct belay_error *err)
{
    struct remains *r = arg;

    (void)err;
    if (item->kind != ITEM_ROW)
        return BELAY_OK;
    if (item->row->type == &row_upload)
        r->n_uploads++;
    if (item->row->type != &row_blob)
        return BELAY_OK;
    struct bytes name = row_bytes(item->row, BLOB_SHA256);
    r->blob = realloc(r->blob, (r->n_blobs + 1) * sizeof(*r->blob));
    if (!r->blob)
        abort();
    (void)snprintf(r->blob[r->n_blobs++], sizeof(*r->blob), "%.*s", (int)name.len,
                   (const char *)name.ptr);
    return BELAY_OK;
}

/* Takes one out; false when it is not among them. */
static bool take_out(struct remains *r, const char *ref)
{
    for (size_t i = 0; i < r->n_blobs; i++) {
        if (strcmp(r->blob[i], ref) != 0)
            continue;
        memmove(r->blob[i], r->blob[--r->n_blobs], sizeof(*r->blob));
        return true;
    }
    return false;
}

/* What the heads and the pins name; each once. */
static void take_named(struct matter *m, struct hand *h, struct remains *r,
                       size_t *out_named)
{
    struct belay_checkpoint_info info;
    struct belay_error err;

    for (int s = 0; s < NOTE_SESSIONS; s++) {
        belay_arena_reset(h->arena);
        if (belay_session_checkpoint(h->session[s], h->arena, &info, &err))
            continue;
        const char *refs[] = { info.ref, info.tool_state_ref, info.plugin_snapshot_ref,
                               info.execution_state_ref };
        for (size_t i = 0; i < COUNT_OF(refs); i++)
            *out_named += refs[i] && take_out(r, refs[i]);
    }
    for (size_t i = 0; i < m->truth->n_pins; i++)
        *out_named += take_out(r, m->truth->pin[i].sha256);
}

static void garbage(struct matter *m, struct hand *h)
{
    struct belay_gc_options options = { .size = sizeof(options),
                                        .grace_ms = BELAY_NONE };
    struct belay_gc_report report;
    struct remains r = { .blob = NULL };
    struct belay_error err;
    size_t named = 0;

    if (belay_gc(h->b, &options, &report, &err) || report.outcome > BELAY_GC_NOTHING)
        law_broken(m->laws, LAW_GARBAGE, "gc: %s %s %s",
                   belay_gc_outcome_name(report.outcome), report.reason,
                   report.message);
    if (driver_walk(h->b->driver, bytes_str("default"), see, &r, &err))
        law_broken(m->laws, LAW_GARBAGE, "walk: %s", err.message);
    take_named(m, h, &r, &named);
    m->laws->looked[LAW_GARBAGE] += named;
    if (r.n_blobs > 0 || r.n_uploads > 0)
        law_broken(m->laws, LAW_GARBAGE, "%zu blobs and %zu uploads that nothing names",
                   r.n_blobs, r.n_uploads);
    free(r.blob);
    /* And what is named has stayed. */
    checkpoints(m, h);
    pins(m, h);
}

/* --- all --- */

static bool take_in_hand(struct hand *h, struct belay *b, struct laws *laws)
{
    struct belay_error err;
    char id[16];

    h->b = b;
    belay_rc rc = belay_arena_new(&h->arena, &err);
    for (int s = 0; s < NOTE_SESSIONS && !rc; s++) {
        session_name(s, id);
        rc = belay_session_open(b, id, NULL, &h->session[s], &err);
    }
    if (rc)
        law_broken(laws, LAW_SOUND, "%s", err.message);
    return !rc;
}

static void look(struct laws *laws, const char *dir, struct belay *b, struct hand *h)
{
    struct notes notes;
    struct truth truth;
    struct matter m;

    notes_read_all(dir, &notes);
    truth_read(b, &truth);
    matter_make(&m, laws, &notes, &truth);
    if (*truth.wrong)
        law_broken(laws, LAW_SOUND, "%s", truth.wrong);
    laws_of_inboxes(&m);
    laws_of_commits(&m);
    if (take_in_hand(h, b, laws)) {
        checkpoints(&m, h);
        pins(&m, h);
        drain(&m, h);
        mortals_after(&m, h);
        garbage(&m, h);
    }
    matter_release(&m);
    truth_release(&truth);
    notes_release(&notes);
}

void look_after(struct laws *laws, const char *dir, const char *url)
{
    struct belay *b = open_and_check(laws, url);
    struct hand *h = calloc(1, sizeof(*h));

    if (!h)
        abort();
    if (b)
        look(laws, dir, b, h);
    for (int s = 0; s < NOTE_SESSIONS; s++)
        belay_session_close(h->session[s]);
    belay_arena_free(h->arena);
    free(h);
    belay_close(b);
    if (b)
        belay_close(open_and_check(laws, url)); /* X3 */
}
