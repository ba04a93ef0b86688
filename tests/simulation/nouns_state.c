/* What a walk of the namespace shows, as plain arrays. */
#include "nouns.h"

#include <stdlib.h>
#include <zlib.h>

#include "work/queue_rows.h"

static uint64_t column(const struct row *r, unsigned i)
{
    return text_of(row_bytes(r, i));
}

/* --- rows --- */

struct reading {
    struct nouns *w;
    struct nstate *st;
};

static struct nlease lease_in(const struct row *r)
{
    return (struct nlease){
        .claim = column(r, BATCH_CLAIM_ID),
        .owner = column(r, BATCH_LEASE + LEASE_OWNER),
        .token = column(r, BATCH_LEASE + LEASE_TOKEN),
        .id = column(r, BATCH_LEASE + LEASE_ID),
        .who = member_in(r, BATCH_LEASE),
        .size = row_i64(r, BATCH_CLAIM_SIZE, -1),
        .fence = row_i64(r, BATCH_LEASE + LEASE_FENCE, 0),
        .claimed_ms = row_i64(r, BATCH_LEASE + LEASE_CLAIMED_AT_MS, -1),
        .expires_ms = row_i64(r, BATCH_LEASE + LEASE_EXPIRES_AT_MS, -1),
    };
}

static void read_batch(struct reading *g, const struct row *r)
{
    struct nstate *st = g->st;

    if (st->n_batches == N_BATCHES) {
        st->fault = "model: too many batches";
        return;
    }
    st->batch[st->n_batches++] = (struct nbatch){
        .session = column(r, BATCH_SESSION),
        .seq = row_i64(r, BATCH_SEQ, 0),
        .ver = r->ver,
        .id = column(r, BATCH_ID),
        .source = column(r, BATCH_SOURCE_KEY),
        .delivery = column(r, BATCH_DELIVERY),
        .slot = column(r, BATCH_SLOT),
        .merge = column(r, BATCH_MERGE_KEY),
        .available_ms = row_i64(r, BATCH_AVAILABLE_AT_MS, 0),
        .enqueued_ms = row_i64(r, BATCH_ENQUEUED_AT_MS, -1),
        .due_ms = row_i64(r, BATCH_DUE_AT_MS, -1),
        .lease = lease_in(r),
        .payloads = column(r, BATCH_ITEMS) != 0,
        .payload = column(r, BATCH_ITEMS),
    };
}

static struct nbatch *own_batch(struct reading *g, uint64_t session, int64_t seq)
{
    struct nbatch *b = (struct nbatch *)batch_at(g->st, session, seq);

    if (!b)
        g->st->fault = "Q2: something of a batch is there that is not";
    return b;
}

static void read_name(struct reading *g, const struct row *r)
{
    struct nbatch *b =
        own_batch(g, column(r, BATCH_NAME_SESSION), row_i64(r, BATCH_NAME_SEQ, 0));

    if (b)
        b->names += column(r, BATCH_NAME_ID) == b->id ? 1 : 100;
}

static void read_payload(struct reading *g, const struct row *r)
{
    struct nbatch *b =
        own_batch(g, column(r, PAYLOAD_SESSION), row_i64(r, PAYLOAD_SEQ, 0));

    if (!b)
        return;
    b->payloads++;
    b->payload = column(r, PAYLOAD_ITEMS);
}

static void read_source(struct reading *g, const struct row *r)
{
    struct nbatch *b =
        own_batch(g, column(r, BATCH_SOURCE_SESSION), row_i64(r, BATCH_SOURCE_SEQ, 0));

    if (b)
        b->sources += column(r, BATCH_SOURCE_NAME) == b->source ? 1 : 100;
}

/* The two rows of an inbox come in any order; NULL: there are too many. */
static struct ninbox *own_inbox(struct reading *g, uint64_t session)
{
    struct nstate *st = g->st;
    struct ninbox *in = (struct ninbox *)inbox_at(st, session);

    if (in)
        return in;
    if (st->n_inboxes == N_SESSIONS) {
        st->fault = "model: too many inboxes";
        return NULL;
    }
    in = &st->inbox[st->n_inboxes++];
    *in = (struct ninbox){ .session = session };
    return in;
}

static void read_inbox(struct reading *g, const struct row *r)
{
    struct ninbox *in = own_inbox(g, column(r, INBOX_SESSION));

    if (!in)
        return;
    in->ver = r->ver;
    in->last_seq = inbox_last_seq(r);
    in->batches += in->last_seq;
    in->closed = column(r, INBOX_STATE) != 0;
}

static void read_inbox_front(struct reading *g, const struct row *r)
{
    struct ninbox *in = own_inbox(g, column(r, INBOX_FRONT_SESSION));

    if (!in)
        return;
    in->front_ver = r->ver;
    in->first_seq = row_i64(r, INBOX_FRONT_FIRST_SEQ, 1);
    in->batches -= row_i64(r, INBOX_FRONT_GONE, 0);
    in->changes = row_i64(r, INBOX_FRONT_CHANGES, 0);
    in->front_closed = column(r, INBOX_FRONT_STATE) != 0;
}

/* Things of a session come before and after its row. */
static struct nsession *own_session(struct reading *g, uint64_t id)
{
    struct nsession *n = (struct nsession *)session_at(g->st, id);

    if (n)
        return n;
    if (g->st->n_sessions == N_SESSIONS) {
        g->st->fault = "model: too many sessions";
        return &g->st->session[0];
    }
    n = &g->st->session[g->st->n_sessions++];
    *n = (struct nsession){ .id = id };
    return n;
}

static void read_session(struct reading *g, const struct row *r)
{
    static const unsigned refs[] = { SESSION_CHECKPOINT, SESSION_TOOL_REF,
                                     SESSION_PLUGIN_REF, SESSION_EXECUTION_REF };
    struct nsession *n = own_session(g, column(r, SESSION_ID));

    n->there = true;
    n->active = bytes_eq(row_bytes(r, SESSION_STATE), bytes_str(SESSION_ACTIVE));
    n->ver = r->ver;
    n->revision = row_i64(r, SESSION_REVISION, -1);
    n->node_count = row_i64(r, SESSION_NODE_COUNT, -1);
    n->leaf = column(r, SESSION_LEAF);
    for (unsigned i = 0; i < COUNT_OF(refs); i++)
        n->ref[i] = column(r, refs[i]);
}

/* The hex digits behind a key in a JSON text. */
static uint64_t ref_in(struct bytes text, const char *key)
{
    const char *at = memmem(text.ptr, text.len, key, strlen(key));
    size_t from = at ? (size_t)(at - (const char *)text.ptr) + strlen(key) : text.len;

    return from + SHA256_HEX_LEN <= text.len
               ? text_of(bytes_of(text.ptr + from, SHA256_HEX_LEN))
               : 0;
}

static void read_frames(struct reading *g, const struct row *r)
{
    own_session(g, column(r, FRAMES_SESSION))->ref[N_FRAME] =
        ref_in(row_bytes(r, FRAMES_FRAMES), "\"execution_state_ref\":\"");
}

static void read_node(struct reading *g, const struct row *r)
{
    own_session(g, column(r, NODE_SESSION))->nodes++;
}

static void read_node_name(struct reading *g, const struct row *r)
{
    own_session(g, column(r, NODE_NAME_SESSION))->node_names++;
}

static void read_turn(struct reading *g, const struct row *r)
{
    struct nstate *st = g->st;

    own_session(g, column(r, TURN_SESSION))->turns++;
    if (st->n_turns == N_TURNS) {
        st->fault = "model: too many turns";
        return;
    }
    st->turn[st->n_turns++] =
        (struct nturn_row){ .session = column(r, TURN_SESSION),
                            .turn = column(r, TURN_ID),
                            .hash = column(r, TURN_HASH),
                            .revision = row_i64(r, TURN_REVISION, 0) };
}

static void read_blob(struct reading *g, const struct row *r)
{
    struct nstate *st = g->st;

    if (st->n_blobs == N_BLOBS) {
        st->fault = "model: too many blobs";
        return;
    }
    st->blob[st->n_blobs++] =
        (struct nblob){ .sha = column(r, BLOB_SHA256),
                        .upload = column(r, BLOB_UPLOAD),
                        .ver = r->ver,
                        .touched_ms = row_i64(r, BLOB_TOUCHED_AT_MS, -1),
                        .chunks = row_i64(r, BLOB_CHUNKS, -1),
                        .packed = column(r, BLOB_COMPRESSION) != 0 };
}

static void read_upload(struct reading *g, const struct row *r)
{
    if (g->st->n_uploads < N_UPLOADS)
        g->st->upload[g->st->n_uploads++] = column(r, UPLOAD_ID);
}

static void read_pin(struct reading *g, const struct row *r)
{
    if (g->st->n_pins < N_PINS)
        g->st->pin[g->st->n_pins++] =
            (struct npin){ column(r, PIN_NAME), column(r, PIN_SHA256) };
}

static void read_epoch(struct reading *g, const struct row *r)
{
    g->st->epoch = row_i64(r, EPOCH_EPOCH, 0);
}

static const struct {
    const struct row_type *type;
    void (*read)(struct reading *g, const struct row *r);
} readers[] = {
    { &row_batch, read_batch },
    { &row_batch_name, read_name },
    { &row_batch_payload, read_payload },
    { &row_batch_source, read_source },
    { &row_inbox, read_inbox },
    { &row_inbox_front, read_inbox_front },
    { &row_session, read_session },
    { &row_session_frames, read_frames },
    { &row_node, read_node },
    { &row_node_name, read_node_name },
    { &row_turn, read_turn },
    { &row_blob, read_blob },
    { &row_upload, read_upload },
    { &row_pin, read_pin },
    { &row_epoch, read_epoch },
};

/* --- indexes, logs, chunks --- */

/* What follows the prefix in a name; false: it has another one. */
static bool is_of(struct bytes name, const char *prefix, uint64_t *rest)
{
    size_t len = strlen(prefix);

    if (name.len <= len || memcmp(name.ptr, prefix, len) != 0)
        return false;
    *rest = text_of(bytes_of(name.ptr + len, name.len - len));
    return true;
}

static void read_rank(struct reading *g, const struct item *item)
{
    uint64_t session;
    int64_t seq = 0;
    bool ready = is_of(item->name, READY_INDEX, &session);

    if (ready || is_of(item->name, DUE_INDEX, &session)) {
        (void)(bytes_to_i64(item->member, &seq) || (seq = 0));
        struct nbatch *b = own_batch(g, session, seq);
        if (!b)
            return;
        *(ready ? &b->ready : &b->due) += 1;
        *(ready ? &b->ready_rank : &b->due_rank) = item->number;
    } else if (bytes_eq(item->name, bytes_str(BLOB_INDEX))) {
        struct nblob *b = (struct nblob *)blob_at(g->st, text_of(item->member));
        if (!b) {
            g->st->fault = "S7: a blob is listed that is not there";
            return;
        }
        b->ranks++;
        b->rank = item->number;
    }
}

static void read_log(struct reading *g, const struct item *item)
{
    uint64_t session;

    if (!is_of(item->name, COMMIT_STREAM, &session))
        return;
    struct nsession *n = own_session(g, session);
    n->logs++;
    n->last_log = item->number;
}

/* Whether bytes have that name, and what they name; remembered, since hashing all of
 * them after every commit would be slow. */
static const struct nbytes *judge(struct nouns *w, const struct nblob *b,
                                  struct bytes data)
{
    static uint8_t plain[8192];
    uint64_t digest = text_of(data) ^ b->packed;
    uint8_t hash[SHA256_LEN];
    char hex[SHA256_HEX_LEN + 1];

    for (size_t i = 0; i < w->n_bytes; i++) {
        if (w->bytes[i].sha == b->sha && w->bytes[i].data == digest)
            return &w->bytes[i];
    }
    uLongf len = sizeof(plain);
    if (b->packed && uncompress(plain, &len, data.ptr, data.len) == Z_OK)
        data = bytes_of(plain, len);
    if (w->n_bytes == COUNT_OF(w->bytes) || sha256(data, hash, NULL))
        abort();
    hex_encode(bytes_of(hash, sizeof(hash)), hex);
    struct nbytes *known = &w->bytes[w->n_bytes++];
    *known = (struct nbytes){ .sha = b->sha, .data = digest };
    known->sound = str_of(hex) == b->sha;
    known->ref[N_TOOL] = ref_in(data, "\"tool_state_ref\":\"");
    known->ref[N_PLUGIN] = ref_in(data, "\"plugin_snapshot_ref\":\"");
    known->ref[N_EXECUTION] = ref_in(data, "\"execution_state_ref\":\"");
    return known;
}

static void read_chunk(struct reading *g, const struct item *item)
{
    uint64_t upload = text_of(item->name);

    for (size_t i = 0; i < g->st->n_blobs; i++) {
        struct nblob *b = &g->st->blob[i];
        if (b->upload != upload)
            continue;
        const struct nbytes *known = judge(g->w, b, item->data);
        b->found++;
        b->sound = known->sound;
        memcpy(b->ref, known->ref, sizeof(b->ref));
        return;
    }
    for (size_t i = 0; i < g->st->n_uploads; i++) {
        if (g->st->upload[i] == upload)
            return;
    }
    g->st->strays++;
}

static belay_rc read_item(void *arg, const struct item *item, struct belay_error *err)
{
    struct reading *g = arg;

    (void)err;
    switch (item->kind) {
    case ITEM_ROW:
        for (size_t i = 0; i < COUNT_OF(readers); i++) {
            if (readers[i].type == item->row->type)
                readers[i].read(g, item->row);
        }
        break;
    case ITEM_RANK:
        read_rank(g, item);
        break;
    case ITEM_LOG:
        read_log(g, item);
        break;
    case ITEM_CHUNK:
        read_chunk(g, item);
        break;
    case ITEM_FEED:
        break;
    }
    return BELAY_OK;
}

void state_clear(struct nstate *st)
{
    st->epoch = 0;
    st->n_batches = st->n_inboxes = st->n_sessions = st->n_turns = 0;
    st->n_blobs = st->n_pins = st->n_uploads = st->strays = 0;
    st->fault = NULL;
}

void state_read(struct nouns *w, struct nstate *st)
{
    struct reading g = { .w = w, .st = st };
    struct belay_error err;

    state_clear(st);
    if (driver_walk(w->s->memory, nouns_space(), read_item, &g, &err))
        st->fault = "answer: a walk failed";
}
