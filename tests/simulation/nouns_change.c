/* What a commit of a call may do to sessions, turns, blobs, pins and the epoch. */
#include "nouns.h"

/* --- sessions --- */

static bool is_session_same(const struct nsession *o, const struct nsession *n)
{
    return o->there == n->there && o->ver == n->ver && o->nodes == n->nodes &&
           o->turns == n->turns && o->logs == n->logs &&
           o->ref[N_FRAME] == n->ref[N_FRAME];
}

/* What a part of a checkpoint must be called afterwards. */
static uint64_t part_ref(const struct nturn *t, unsigned part)
{
    char name[SHA256_HEX_LEN + 1];

    if (t->part[part] == 0)
        return 0;
    (void)content_of(t->part[part] - 1, name);
    return str_of(name);
}

static const char *refs_changed(const struct nturn *t, const struct nsession *o,
                                const struct nsession *n)
{
    for (unsigned i = 0; i < 3; i++) {
        if (n->ref[N_TOOL + i] !=
            (t->has_checkpoint ? part_ref(t, i) : o->ref[N_TOOL + i]))
            return "S3: the head names other parts than the commit";
    }
    if (!t->has_checkpoint && n->ref[N_MANIFEST] != o->ref[N_MANIFEST])
        return "S3: another checkpoint although the commit has none";
    if (t->has_checkpoint && !n->ref[N_MANIFEST])
        return "S3: no checkpoint although the commit has one";
    if (t->frame[0] && n->ref[N_FRAME] != str_of(t->frame))
        return "S3: another frame than the commit's";
    return NULL;
}

static const char *turn_changed(struct nouns *w, const struct nturn *t,
                                const struct nsession *n)
{
    const struct nturn_row *row = turn_at(w->cur, n->id, t->turn_id);

    if (!t->turn_id)
        return NULL;
    if (turn_at(w->old, n->id, t->turn_id))
        return "E4: a turn was committed twice";
    return row && row->revision == n->revision
               ? NULL
               : "E4: a turn was committed without its stamp";
}

static const char *committed(struct nouns *w, struct ncall *c, const struct nsession *o,
                             const struct nsession *n)
{
    struct nturn *t = c->turn;
    const char *fault;

    if (o->there && !o->active)
        return "N3: a session that was deleted has changed";
    if (c->expected != BELAY_ANY_REVISION && c->expected != o->revision)
        return "S1: committed although another revision was expected";
    if (n->revision != o->revision + 1)
        return "S2: the next revision is not the one after the last";
    if (n->node_count != o->node_count + t->append || n->nodes != o->nodes + t->append)
        return "N2: another number of nodes than was committed";
    if (n->leaf != (t->append ? str_of(t->node) : o->leaf))
        return "N2: another leaf than was committed";
    fault = refs_changed(t, o, n);
    if (!fault)
        fault = turn_changed(w, t, n);
    if (fault)
        return fault;
    t->applied = true;
    t->applied_no = w->no;
    t->revision = n->revision;
    t->node_count = n->node_count;
    t->leaf = n->leaf;
    t->manifest = n->ref[N_MANIFEST];
    return NULL;
}

static const char *session_changed(struct nouns *w, struct ncall *c,
                                   const struct nsession *o, const struct nsession *n)
{
    static const struct nsession none;

    o = o ? o : &none;
    if (!c || (c->kind != N_COMMIT && c->kind != N_DELETE) || c->session != n->id)
        return "S2: a session changed by somebody else";
    if (c->kind == N_COMMIT)
        return committed(w, c, o, n);
    return n->active ? "N3: deleting changed a session that goes on" : NULL;
}

/* S6: who names a blob that it did not name before touches it. */
static const char *named_anew(const struct nouns *w, const struct nsession *o,
                              const struct nsession *n)
{
    for (unsigned i = 0; i < N_REFS && n->active; i++) {
        const struct nblob *before = blob_at(w->old, n->ref[i]);
        const struct nblob *after = blob_at(w->cur, n->ref[i]);
        bool known = false;
        for (unsigned k = 0; k < N_REFS && o; k++)
            known |= o->ref[k] == n->ref[i];
        if (n->ref[i] && !known && before && after && before->ver == after->ver)
            return "S6: a blob is newly named and was not touched";
    }
    return NULL;
}

static const char *sessions_changed(struct nouns *w, struct ncall *c, bool *changed)
{
    const char *fault = NULL;

    for (size_t i = 0; i < w->cur->n_sessions && !fault; i++) {
        const struct nsession *n = &w->cur->session[i];
        const struct nsession *o = session_at(w->old, n->id);
        if (o && is_session_same(o, n))
            continue;
        *changed = true;
        fault = session_changed(w, c, o, n);
        if (!fault)
            fault = named_anew(w, o, n);
    }
    for (size_t i = 0; i < w->old->n_sessions && !fault; i++) {
        const struct nsession *o = &w->old->session[i];
        if (o->there && !session_at(w->cur, o->id))
            fault = "N3: a session is gone without a trace";
    }
    return fault;
}

/* --- blobs --- */

/* Which head names the manifest that cannot be read, and since when. */
static void note_spoiled(struct nouns *w)
{
    const struct nblob *b = blob_at(w->cur, w->spoiled);
    const struct nsession *n = session_at(w->cur, w->spoiled_session);

    if (b && !b->sound && n && n->active && n->ref[N_MANIFEST] == w->spoiled)
        return;
    w->spoiled_session = 0;
    for (size_t i = 0; i < w->cur->n_sessions && b && !b->sound; i++) {
        n = &w->cur->session[i];
        if (!n->active || n->ref[N_MANIFEST] != w->spoiled)
            continue;
        w->spoiled_session = n->id;
        w->spoiled_no = w->no;
        return;
    }
}

static const char *blob_removed(const struct nouns *w, const struct ncall *c,
                                const struct nblob *o)
{
    int64_t grace_ms = c->grace_ms == BELAY_NONE ? 0 : c->grace_ms;

    if (c->kind != N_COLLECT)
        return "S5: a blob was removed by somebody who does not collect";
    if (is_named(w->old, o->sha))
        return "S5: a blob was collected that is named";
    if (o->touched_ms > c->begun_ms - grace_ms)
        return "S5: a blob was collected within its grace";
    if (w->spoiled_session && w->spoiled_no <= c->first_no)
        return "S5: a blob was collected although a manifest cannot be read";
    return NULL;
}

static const char *blobs_changed(struct nouns *w, struct ncall *c, bool *changed)
{
    for (size_t i = 0; i < w->old->n_blobs; i++) {
        const struct nblob *o = &w->old->blob[i];
        if (blob_at(w->cur, o->sha))
            continue;
        *changed = true;
        const char *fault = c ? blob_removed(w, c, o) : "S5: a blob is gone";
        if (fault)
            return fault;
        c->collected++;
    }
    for (size_t i = 0; i < w->cur->n_blobs; i++) {
        const struct nblob *n = &w->cur->blob[i], *o = blob_at(w->old, n->sha);
        if (o && o->ver == n->ver && o->sound == n->sound)
            continue;
        *changed = true;
        if (!c || (c->kind != N_COMMIT && c->kind != N_PUT && c->kind != N_PIN &&
                   c->kind != N_SPOIL))
            return "S7: a blob was put or touched by somebody else";
        if (o && o->upload != n->upload)
            return "S4: a blob has other bytes than before";
    }
    return NULL;
}

/* Since which change a blob is there. */
static void note_blobs(struct nouns *w)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n_since; i++) {
        if (blob_at(w->cur, w->blob_sha[i])) {
            w->blob_sha[n] = w->blob_sha[i];
            w->blob_since[n++] = w->blob_since[i];
        }
    }
    for (size_t i = 0; i < w->cur->n_blobs; i++) {
        if (blob_at(w->old, w->cur->blob[i].sha))
            continue;
        w->blob_sha[n] = w->cur->blob[i].sha;
        w->blob_since[n++] = w->no;
    }
    w->n_since = n;
}

/* --- pins, epoch, uploads --- */

static const char *pins_changed(const struct nouns *w, const struct ncall *c,
                                bool *changed)
{
    const struct nstate *old = w->old, *cur = w->cur;
    bool same = old->n_pins == cur->n_pins;

    for (size_t i = 0; i < old->n_pins && same; i++)
        same =
            old->pin[i].name == cur->pin[i].name && old->pin[i].sha == cur->pin[i].sha;
    if (same)
        return NULL;
    *changed = true;
    if (!c || (c->kind != N_PIN && c->kind != N_UNPIN))
        return "S5: a pin changed by somebody else";
    bool there = false;
    for (size_t i = 0; i < cur->n_pins; i++)
        there |= cur->pin[i].name == c->pin &&
                 (cur->pin[i].sha == c->sha || c->kind == N_UNPIN);
    if (there != (c->kind == N_PIN))
        return "S5: a pin was not put, or not removed";
    const struct nblob *o = blob_at(old, c->sha), *n = blob_at(cur, c->sha);
    if (c->kind == N_PIN && o && n && o->ver == n->ver)
        return "S6: a blob is newly named and was not touched";
    return NULL;
}

static const char *epoch_changed(const struct nouns *w, const struct ncall *c,
                                 bool *changed)
{
    if (w->old->epoch == w->cur->epoch)
        return NULL;
    *changed = true;
    return c && c->kind == N_RAISE && w->cur->epoch == w->old->epoch + 1
               ? NULL
               : "L2: the epoch changed by itself";
}

bool other_changes(struct nouns *w, struct ncall *c)
{
    bool changed = false;
    const char *fault = sessions_changed(w, c, &changed);

    if (!fault)
        fault = blobs_changed(w, c, &changed);
    if (!fault)
        fault = pins_changed(w, c, &changed);
    if (!fault)
        fault = epoch_changed(w, c, &changed);
    noun_complain(w, fault);
    note_blobs(w);
    note_spoiled(w);
    return changed;
}
