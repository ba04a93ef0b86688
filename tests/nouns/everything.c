/* All that can be read, as one text. */
#include <stdlib.h>

#include "nouns.h"

static const char *const names[] = { "s", "t", "u" };

static const char *or_none(const char *s)
{
    return s ? s : "-";
}

static const char *batch_text(struct world *w, const struct belay_batch *b)
{
    const char *out = text(
        w,
        "%s %s %lld key %s %d/%d/%d group %s at %lld since %lld claim %s by %s "
        "fence %lld from %lld to %lld:",
        b->session_id, b->batch_id, (long long)b->enqueue_seq, or_none(b->source_key),
        b->delivery, b->slot, b->merge, or_none(b->merge_group),
        (long long)b->available_at_ms, (long long)b->enqueued_at_ms,
        or_none(b->claim_id), or_none(b->owner_id), (long long)b->fence,
        (long long)b->claimed_at_ms, (long long)b->expires_at_ms);

    for (size_t i = 0; i < b->n_items; i++)
        out = text(w, "%s %s=%s", out, b->items[i].item_id, b->items[i].payload);
    return out;
}

static const char *inbox_text(struct world *w, const char *id, const char *out)
{
    struct belay_queue_page page = { .size = sizeof(page), .limit = 1000 };
    struct belay_batches all = { 0 };
    belay_rc rc = belay_queue_list(w->use, id, &page, w->arena, &all, &w->err);

    out = text(w, "%s\ninbox %s: %s", out, id, belay_error_info((int)rc)->name);
    for (size_t i = 0; i < all.n; i++)
        out = text(w, "%s\n  %s", out, batch_text(w, &all.batches[i]));
    return text(w, "%s\n  pending %s", out, pending(w, id));
}

static const char *head_text(struct world *w, const char *id, const char *out)
{
    struct belay_head h = { 0 };
    belay_rc rc = belay_session_head(session(w, id), w->arena, &h, &w->err);

    out = text(w, "%s\nhead %s: %s", out, id, belay_error_info((int)rc)->name);
    if (rc)
        return out;
    return text(w,
                "%s %lld config %s frames %s frame %s checkpoint %s leaf %s count "
                "%lld %lld %lld",
                out, (long long)h.revision, h.config, h.agent_frames,
                or_none(h.current_frame), or_none(h.checkpoint_ref), or_none(h.leaf),
                (long long)h.node_count, (long long)h.created_at_ms,
                (long long)h.updated_at_ms);
}

static const char *graph_text(struct world *w, const char *id, const char *out)
{
    struct belay_nodes all = { 0 };
    struct belay_commit_log log = { 0 };
    struct belay_session *s = session(w, id);

    if (belay_session_nodes(s, 0, 0, w->arena, &all, &w->err) == BELAY_OK) {
        for (size_t i = 0; i < all.n; i++)
            out = text(w, "%s\n  node %lld %s", out, (long long)all.nodes[i].seq,
                       all.nodes[i].json);
    }
    if (belay_session_log(s, 0, 0, w->arena, &log, &w->err) == BELAY_OK) {
        for (size_t i = 0; i < log.n; i++)
            out = text(w, "%s\n  commit %lld %lld %s %s", out,
                       (long long)log.entries[i].revision,
                       (long long)log.entries[i].at_ms, or_none(log.entries[i].turn_id),
                       log.entries[i].json);
    }
    return text(w, "%s\n  path %s\n  usage %s\n  intents %s", out, path(w, id, NULL),
                usage(w, id), uncommitted(w, id, INT64_MAX));
}

static const char *meta_text(struct world *w, const char *id, const char *out)
{
    struct belay_session_meta m = { .size = sizeof(m) };
    struct belay_checkpoint_info c = { 0 };
    struct belay_session *s = session(w, id);
    belay_rc rc = belay_session_meta_load(s, w->arena, &m, &w->err);

    if (!rc)
        out = text(w, "%s\n  meta %s %s %s %s %s %s", out, m.name, m.created_at,
                   m.model, or_none(m.cwd), or_none(m.parent), or_none(m.caused_by));
    rc = belay_session_checkpoint(s, w->arena, &c, &w->err);
    if (!rc)
        out = text(w, "%s\n  checkpoint %s %s", out, c.ref, c.manifest);
    return out;
}

static const char *space_text(struct world *w, const char *out)
{
    struct belay_gc_options o = { .size = sizeof(o),
                                  .grace_ms = BELAY_NONE,
                                  .dry_run = true };
    struct belay_gc_report gc = { 0 };
    struct belay_sessions all = { 0 };
    struct belay_pins pins = { 0 };

    (void)RC(w, belay_session_list(w->use, NULL, NULL, 0, w->arena, &all, &w->err),
             BELAY_OK);
    for (size_t i = 0; i < all.n; i++)
        out = text(w, "%s\nsession %s %lld", out, all.heads[i].session_id,
                   (long long)all.heads[i].revision);
    (void)RC(w, belay_blob_pins(w->use, NULL, 0, w->arena, &pins, &w->err), BELAY_OK);
    for (size_t i = 0; i < pins.n; i++)
        out = text(w, "%s\npin %s %s", out, pins.pins[i].name, pins.pins[i].sha256);
    (void)RC(w, belay_gc(w->use, &o, &gc, &w->err), BELAY_OK);
    return text(w, "%s\nblobs %lld + %lld, %lld bytes, %lld roots", out,
                (long long)gc.retained_blobs, (long long)gc.deleted_blobs,
                (long long)gc.deleted_bytes, (long long)gc.roots);
}

const char *everything(struct world *w)
{
    struct belay_error before = w->err;
    const char *out = "";

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        out = inbox_text(w, names[i], out);
        out = head_text(w, names[i], out);
        out = graph_text(w, names[i], out);
        out = meta_text(w, names[i], out);
    }
    out = space_text(w, out);
    w->err = before;
    return out;
}
