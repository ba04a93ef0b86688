/* The other half of record.c: logs, feeds, chunks, wake-ups, time. */
#include "sim.h"

/* --- logs --- */

belay_rc r_log_append(struct run *r, struct bytes stream, int64_t seq,
                      struct bytes data)
{
    belay_rc rc = txn_log_append(r->t, stream, seq, data);

    if (rc)
        return rc;
    struct record_op *o = record_note(r, REC_LOG_APPEND);
    o->name = name_of(stream);
    o->number = seq;
    o->digest = data_of(data);
    return BELAY_OK;
}

belay_rc r_log_trim(struct run *r, struct bytes stream, int64_t upto)
{
    belay_rc rc = txn_log_trim(r->t, stream, upto);

    if (rc)
        return rc;
    struct record_op *o = record_note(r, REC_LOG_TRIM);
    o->name = name_of(stream);
    o->number = upto;
    return BELAY_OK;
}

/* What the body should see: the stored entries, then its own.  Where somebody else was
 * faster a sequence is there twice; such a body conflicts. */
static size_t foresee_log(const struct run *r, const struct mname *name, int64_t after,
                          size_t limit, struct mentry *out)
{
    size_t n = 0;

    for (size_t i = 0; i < r->rec->n_ops; i++) {
        const struct record_op *o = &r->rec->ops[i];
        if (o->kind == REC_LOG_TRIM && model_same(&o->name, name) && o->number > after)
            after = o->number;
    }
    int64_t at = after;
    const struct mentry *e;
    while (n < limit &&
           (e = model_next(&r->s->model, r->rec->ns, M_LOG, name, at)) != NULL) {
        out[n++] = *e;
        at = e->number;
    }
    for (size_t i = 0; i < r->rec->n_ops && n < limit; i++) {
        const struct record_op *o = &r->rec->ops[i];
        if (o->kind == REC_LOG_APPEND && model_same(&o->name, name) &&
            o->number > after)
            out[n++] = (struct mentry){ .number = o->number, .digest = o->digest };
    }
    return n;
}

belay_rc r_log_read(struct run *r, struct bytes stream, int64_t after, size_t limit,
                    struct log_entries *out)
{
    struct mentry want[8];
    struct mname name = name_of(stream);

    if (limit > COUNT_OF(want))
        limit = COUNT_OF(want);
    belay_rc rc = txn_log_read(r->t, stream, after, limit, out);
    if (rc)
        return rc;
    /* Nobody else ran since the driver answered, so the model is as it was then. */
    size_t n = foresee_log(r, &name, after, limit, want);
    bool same = n == out->n;
    for (size_t i = 0; i < n && same; i++)
        same = out->entry[i].seq == want[i].number &&
               data_of(out->entry[i].data) == want[i].digest;
    if (!same)
        violation(r->s, "own-writes",
                  "a log does not show the store's entries with what the body changed");
    return BELAY_OK;
}

/* --- feeds --- */

belay_rc r_feed_append(struct run *r, struct bytes feed, struct bytes data,
                       struct txn_pos *out)
{
    belay_rc rc = txn_feed_append(r->t, feed, data, out);

    if (rc)
        return rc;
    struct record_op *o = record_note(r, REC_FEED_APPEND);
    o->name = name_of(feed);
    o->digest = data_of(data);
    o->pos = out;
    return BELAY_OK;
}

belay_rc r_feed_read(struct run *r, struct bytes feed, struct feed_pos after,
                     size_t limit, struct feed_entries *out)
{
    belay_rc rc = txn_feed_read(r->t, feed, after, limit, out);

    for (size_t i = 0; i < out->n && !rc; i++) {
        if (feed_pos_cmp(out->entry[i].pos, i ? out->entry[i - 1].pos : after) <= 0)
            violation(r->s, "feed", "entries are not in order, or before the cursor");
    }
    return rc;
}

belay_rc r_feed_trim(struct run *r, struct bytes feed, struct feed_pos upto)
{
    belay_rc rc = txn_feed_trim(r->t, feed, upto);

    if (rc)
        return rc;
    struct record_op *o = record_note(r, REC_FEED_TRIM);
    o->name = name_of(feed);
    o->number = upto.major;
    return BELAY_OK;
}

/* --- chunks --- */

belay_rc r_chunk_put(struct run *r, struct bytes upload, int64_t index,
                     struct bytes data)
{
    belay_rc rc = txn_chunk_put(r->t, upload, index, data);

    if (rc)
        return rc;
    struct record_op *o = record_note(r, REC_CHUNK_PUT);
    o->name = name_of(upload);
    o->number = index;
    o->digest = data_of(data);
    return BELAY_OK;
}

belay_rc r_chunk_drop(struct run *r, struct bytes upload, int64_t index)
{
    belay_rc rc = txn_chunk_drop(r->t, upload, index);

    if (rc)
        return rc;
    struct record_op *o = record_note(r, REC_CHUNK_DROP);
    o->name = name_of(upload);
    o->number = index;
    return BELAY_OK;
}

belay_rc r_chunk_get(struct run *r, struct bytes upload, int64_t index, bool *found,
                     struct bytes *out)
{
    belay_rc rc = txn_chunk_get(r->t, upload, index, found, out);
    struct mname name = name_of(upload);

    if (rc)
        return rc;
    const struct mentry *e =
        model_next(&r->s->model, r->rec->ns, M_CHUNK, &name, index - 1);
    bool there = e && e->number == index;
    uint64_t digest = there ? e->digest : 0;
    for (size_t i = 0; i < r->rec->n_ops; i++) {
        const struct record_op *o = &r->rec->ops[i];
        if ((o->kind != REC_CHUNK_PUT && o->kind != REC_CHUNK_DROP) ||
            o->number != index || !model_same(&o->name, &name))
            continue;
        there = o->kind == REC_CHUNK_PUT;
        digest = o->digest;
    }
    if (there != *found || (there && data_of(*out) != digest))
        violation(r->s, "own-writes", "a chunk does not show what the body put");
    return BELAY_OK;
}

/* --- wake-ups and time --- */

belay_rc r_wake(struct run *r, struct bytes topic)
{
    r->rec->topic = r->rec->ns ^ name_of(topic).digest;
    return txn_wake(r->t, topic);
}

belay_rc r_now(struct run *r, int64_t *out_ms)
{
    struct front *f = r->s->running->front;
    belay_rc rc = txn_now(r->t, out_ms);
    unsigned i = 0;

    if (rc || r->rec->asked_time) /* the same for the whole run */
        return rc;
    r->rec->asked_time = true;
    while (f->time[i].ns && f->time[i].ns != r->rec->ns)
        i++;
    if (f->time[i].ns && *out_ms < f->time[i].last_ms)
        violation(r->s, "time", "the store's time went back by %lld ms",
                  (long long)(f->time[i].last_ms - *out_ms));
    f->time[i].ns = r->rec->ns;
    f->time[i].last_ms = *out_ms;
    return BELAY_OK;
}
