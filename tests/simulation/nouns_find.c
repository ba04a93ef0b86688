/* Finding something in a state. */
#include "nouns.h"

uint64_t text_of(struct bytes b)
{
    return b.len == 0 ? 0 : model_digest(5, b.ptr, b.len) | 1;
}

uint64_t str_of(const char *text)
{
    return text ? text_of(bytes_str(text)) : 0;
}

const struct nbatch *batch_at(const struct nstate *st, uint64_t session, int64_t seq)
{
    for (size_t i = 0; i < st->n_batches; i++) {
        if (st->batch[i].session == session && st->batch[i].seq == seq)
            return &st->batch[i];
    }
    return NULL;
}

const struct nbatch *batch_by_id(const struct nstate *st, uint64_t session, uint64_t id)
{
    for (size_t i = 0; i < st->n_batches; i++) {
        if (st->batch[i].session == session && st->batch[i].id == id)
            return &st->batch[i];
    }
    return NULL;
}

const struct ninbox *inbox_at(const struct nstate *st, uint64_t session)
{
    for (size_t i = 0; i < st->n_inboxes; i++) {
        if (st->inbox[i].session == session)
            return &st->inbox[i];
    }
    return NULL;
}

const struct nsession *session_at(const struct nstate *st, uint64_t id)
{
    for (size_t i = 0; i < st->n_sessions; i++) {
        if (st->session[i].id == id)
            return &st->session[i];
    }
    return NULL;
}

const struct nturn_row *turn_at(const struct nstate *st, uint64_t session,
                                uint64_t turn)
{
    for (size_t i = 0; i < st->n_turns; i++) {
        if (st->turn[i].session == session && st->turn[i].turn == turn)
            return &st->turn[i];
    }
    return NULL;
}

const struct nblob *blob_at(const struct nstate *st, uint64_t sha)
{
    for (size_t i = 0; i < st->n_blobs; i++) {
        if (st->blob[i].sha == sha)
            return &st->blob[i];
    }
    return NULL;
}

bool is_named(const struct nstate *st, uint64_t sha)
{
    for (size_t i = 0; i < st->n_pins; i++) {
        if (st->pin[i].sha == sha)
            return true;
    }
    for (size_t i = 0; i < st->n_sessions; i++) {
        for (unsigned k = 0; k < N_REFS && st->session[i].active; k++) {
            if (st->session[i].ref[k] == sha)
                return true;
        }
    }
    return false;
}

bool is_there_since(const struct nouns *w, uint64_t sha, uint64_t no)
{
    for (size_t i = 0; i < w->n_since; i++) {
        if (w->blob_sha[i] == sha)
            return w->blob_since[i] <= no;
    }
    return false;
}
