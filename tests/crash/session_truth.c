#include "session_truth.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session_deeds.h"

/* What is being read. */
struct look {
    struct truth *t;
    struct belay *b;
    struct belay_session *s;
    struct belay_arena *a;
    const char *id;
    struct truth_session *out;
    struct belay_error err;
};

static void failed(struct look *l, const char *what)
{
    if (!*l->t->wrong)
        (void)snprintf(l->t->wrong, sizeof(l->t->wrong), "%s of %s: %.200s", what,
                       l->id, l->err.message);
}

/* Room for `more` members behind n, zeroed. */
static void *grow(void *array, size_t n, size_t more, size_t size)
{
    char *p = realloc(array, (n + more + 1) * size);

    if (!p)
        abort();
    memset(p + n * size, 0, (more + 1) * size);
    return p;
}

/* --- the inbox --- */

static void take_batch(struct truth_session *s, const struct belay_batch *b)
{
    struct truth_batch *to = &s->batch[s->n_batches++];
    char name[40];

    to->seq = b->enqueue_seq;
    to->fence = b->fence;
    to->id = batch_number(b->batch_id);
    to->expires_at_ms = b->expires_at_ms;
    (void)snprintf(to->claim_id, sizeof(to->claim_id), "%s",
                   b->claim_id ? b->claim_id : "");
    to->known = b->n_items == 1 &&
                sscanf(b->items[0].payload, "{\"item\":\"%38[^\"]\"}", name) == 1 &&
                maker_parse(name, &to->item);
}

static void read_inbox(struct look *l)
{
    struct belay_queue_page page = { .size = sizeof(page) };
    struct belay_batches list;

    do {
        belay_arena_reset(l->a);
        if (belay_queue_list(l->b, l->id, &page, l->a, &list, &l->err)) {
            failed(l, "the inbox");
            return;
        }
        l->out->batch =
            grow(l->out->batch, l->out->n_batches, list.n, sizeof(*l->out->batch));
        for (size_t i = 0; i < list.n; i++)
            take_batch(l->out, &list.batches[i]);
        page.after_seq = list.next_after_seq;
    } while (page.after_seq > 0);
}

/* --- the log --- */

/* The batches that an entry says it completed. */
static void take_completed(struct look *l, struct truth_commit *to, const char *text)
{
    json_t *entry = json_loads(text, 0, NULL);
    const json_t *ids = json_object_get(entry, "completed");

    if (!json_is_array(ids) || json_array_size(ids) > NOTE_BATCHES) {
        (void)snprintf(l->err.message, sizeof(l->err.message), "%.200s", text);
        failed(l, "an entry of the log");
    } else {
        for (size_t i = 0; i < json_array_size(ids); i++)
            to->done[to->n_done++] =
                batch_number(json_string_value(json_array_get(ids, i)));
    }
    json_decref(entry);
}

static void read_log(struct look *l)
{
    struct belay_commit_log log = { .next_after = 0 };
    int64_t after = 0;

    do {
        belay_arena_reset(l->a);
        belay_rc rc = belay_session_log(l->s, after, 0, l->a, &log, &l->err);
        if (rc == BELAY_NOT_FOUND && after == 0)
            return; /* it begins with its first commit */
        if (rc) {
            failed(l, "the log");
            return;
        }
        l->out->commit =
            grow(l->out->commit, l->out->n_commits, log.n, sizeof(*l->out->commit));
        for (size_t i = 0; i < log.n; i++) {
            struct truth_commit *to = &l->out->commit[l->out->n_commits++];
            to->revision = log.entries[i].revision;
            to->known = maker_parse(log.entries[i].turn_id, &to->turn);
            take_completed(l, to, log.entries[i].json);
        }
        after = log.next_after;
    } while (after > 0);
}

/* --- the rest --- */

static void read_nodes(struct look *l)
{
    struct belay_nodes nodes;
    int64_t after = 0;

    do {
        belay_arena_reset(l->a);
        if (belay_session_nodes(l->s, after, 0, l->a, &nodes, &l->err)) {
            failed(l, "the nodes");
            return;
        }
        l->out->node =
            grow(l->out->node, l->out->n_nodes, nodes.n, sizeof(*l->out->node));
        for (size_t i = 0; i < nodes.n; i++)
            (void)maker_parse(nodes.nodes[i].node_id, &l->out->node[l->out->n_nodes++]);
        after = nodes.next_after_seq;
    } while (after > 0);
}

static void read_head(struct look *l)
{
    const struct belay_usage *usage = NULL;
    struct belay_head head;
    size_t n = 0;

    belay_arena_reset(l->a);
    if (belay_session_head(l->s, l->a, &head, &l->err)) {
        failed(l, "the head");
        return;
    }
    l->out->revision = head.revision;
    l->out->node_count = head.node_count;
    (void)snprintf(l->out->checkpoint_ref, sizeof(l->out->checkpoint_ref), "%s",
                   head.checkpoint_ref ? head.checkpoint_ref : "");
    if (belay_session_usage(l->s, l->a, &usage, &n, &l->err))
        failed(l, "the usage");
    else if (n > 0)
        l->out->input_tokens = usage[0].input_tokens;
}

static void read_session(struct look *l, int i)
{
    char id[16];

    session_name(i, id);
    l->id = id;
    l->out = &l->t->session[i];
    if (belay_session_open(l->b, id, NULL, &l->s, &l->err)) {
        failed(l, "the handle");
        return;
    }
    read_inbox(l);
    read_log(l);
    if (l->out->n_commits > 0) {
        read_nodes(l);
        read_head(l);
    }
    belay_session_close(l->s);
}

static void read_pins(struct look *l)
{
    char cursor[300] = "";
    struct belay_pins pins;

    l->id = "everybody";
    do {
        belay_arena_reset(l->a);
        if (belay_blob_pins(l->b, *cursor ? cursor : NULL, 0, l->a, &pins, &l->err)) {
            failed(l, "the pins");
            return;
        }
        l->t->pin = grow(l->t->pin, l->t->n_pins, pins.n, sizeof(*l->t->pin));
        for (size_t i = 0; i < pins.n; i++) {
            struct truth_pin *to = &l->t->pin[l->t->n_pins++];
            to->known = maker_parse(pins.pins[i].name, &to->thing);
            (void)snprintf(to->sha256, sizeof(to->sha256), "%s", pins.pins[i].sha256);
        }
        (void)snprintf(cursor, sizeof(cursor), "%s",
                       pins.next_cursor ? pins.next_cursor : "");
    } while (*cursor);
}

void truth_read(struct belay *b, struct truth *out)
{
    struct look l = { .t = out, .b = b };

    *out = (struct truth){ .pin = NULL };
    if (belay_arena_new(&l.a, &l.err))
        abort();
    for (int i = 0; i < NOTE_SESSIONS; i++)
        read_session(&l, i);
    read_pins(&l);
    belay_arena_free(l.a);
}

void truth_release(struct truth *t)
{
    for (int i = 0; i < NOTE_SESSIONS; i++) {
        free(t->session[i].batch);
        free(t->session[i].commit);
        free(t->session[i].node);
    }
    free(t->pin);
}
