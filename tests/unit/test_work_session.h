/* test_work_session.h - sessions, nodes and claims for the tests of sessions. */
#ifndef TESTS_WORK_SESSION_H
#define TESTS_WORK_SESSION_H

#include "base/json.h"
#include "test_work.h"
#include "work/check.h"
#include "work/checkpoint.h"
#include "work/queue.h"
#include "work/session.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__ })

static inline struct session session_in(struct space *sp, const char *id)
{
    return (struct session){ .sp = sp, .id = id };
}

static inline struct session session_s(struct work *w)
{
    return session_in(w->space, "s");
}

/* A message node; a few of them live at a time. */
static inline const char *node(const char *id, const char *parent)
{
    static char texts[64][512];
    static unsigned next;
    char *text = texts[next++ % COUNT_OF(texts)];
    char link[300] = "";

    if (parent)
        (void)snprintf(link, sizeof(link), "\"parent_node_id\":\"%s\",", parent);
    (void)snprintf(
        text, sizeof(texts[0]),
        "{\"node_id\":\"%s\",%s\"kind\":\"event\",\"event\":{\"Conversation\":"
        "{\"id\":\"%s\",\"role\":\"user\",\"parts\":[]}},"
        "\"timestamp\":\"t-%s\"}",
        id, link, id, id);
    return text;
}

/* A node that is no message. */
static inline const char *plugin_node(const char *id, const char *parent)
{
    static char texts[8][512];
    static unsigned next;
    char *text = texts[next++ % COUNT_OF(texts)];

    (void)snprintf(text, sizeof(texts[0]),
                   "{\"node_id\":\"%s\",\"parent_node_id\":%s%s%s,\"kind\":\"plugin\","
                   "\"plugin_type\":\"note\",\"body\":{}}",
                   id, parent ? "\"" : "", parent ? parent : "null",
                   parent ? "\"" : "");
    return text;
}

/* An append that expects nothing, of up to one node. */
static inline struct belay_commit commit_of(const char *const *nodes, size_t n)
{
    return (struct belay_commit){ .size = sizeof(struct belay_commit),
                                  .graph = BELAY_GRAPH_APPEND,
                                  .expected_revision = BELAY_ANY_REVISION,
                                  .nodes = nodes,
                                  .n_nodes = n };
}

static inline struct belay_commit commit_nothing(void)
{
    return (struct belay_commit){ .size = sizeof(struct belay_commit),
                                  .expected_revision = BELAY_ANY_REVISION };
}

/* Commits to a session; out may be NULL. */
static inline belay_rc commit_to(struct work *w, const char *id,
                                 const struct belay_commit *c,
                                 struct belay_committed *out)
{
    struct session s = session_in(w->space, id);
    struct belay_committed ignored;

    return session_commit(&s, c, &w->arena, out ? out : &ignored, &w->err);
}

static inline belay_rc append_to(struct work *w, const char *id,
                                 const char *const *nodes, size_t n)
{
    struct belay_commit c = commit_of(nodes, n);

    return commit_to(w, id, &c, NULL);
}

static inline struct belay_head head_of(struct work *w, const char *id)
{
    struct session s = session_in(w->space, id);
    struct belay_head head = { .revision = -1 };

    WORK_RC(w, session_head(&s, &w->arena, &head, &w->err), BELAY_OK);
    return head;
}

/* Ids of nodes with commas between them, "..." in front of a truncated path. */
static inline const char *ids_of(const struct belay_nodes *nodes)
{
    static char text[4][1024];
    static unsigned next;
    char *said = text[next++ % COUNT_OF(text)];
    size_t len = 0;

    said[0] = '\0';
    if (nodes->truncated)
        len += (size_t)snprintf(said, sizeof(text[0]), "...");
    for (size_t i = 0; i < nodes->n && len < 900; i++)
        len += (size_t)snprintf(said + len, sizeof(text[0]) - len, "%s%s",
                                i > 0 ? "," : "", nodes->nodes[i].node_id);
    return said;
}

static inline const char *all_nodes(struct work *w, const char *id)
{
    struct session s = session_in(w->space, id);
    struct belay_nodes nodes = { .n = 0 };

    WORK_RC(w, session_nodes(&s, 0, 0, &w->arena, &nodes, &w->err), BELAY_OK);
    TAP_EQ(w->t, nodes.next_after_seq, 0);
    return ids_of(&nodes);
}

static inline const char *path_of(struct work *w, const char *id, const char *leaf)
{
    struct session s = session_in(w->space, id);
    struct belay_nodes nodes = { .n = 0 };

    WORK_RC(w, session_path(&s, leaf, &w->arena, &nodes, &w->err), BELAY_OK);
    return ids_of(&nodes);
}

/* The JSON of a revision's log entry, or NULL. */
static inline const char *entry_of(struct work *w, const char *id, int64_t revision)
{
    struct session s = session_in(w->space, id);
    struct belay_commit_log log = { .n = 0 };

    WORK_RC(w, session_log(&s, revision - 1, 1, &w->arena, &log, &w->err), BELAY_OK);
    return log.n == 1 && log.entries[0].revision == revision ? log.entries[0].json
                                                             : NULL;
}

static inline void enqueue_to(struct work *w, const char *id, const char *key)
{
    struct belay_draft draft = { .size = sizeof(draft),
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_JOIN,
                                 .session_id = id,
                                 .source_key = key,
                                 .payloads = LIST("{\"type\":\"turn_input\"}"),
                                 .n_payloads = 1 };
    struct belay_enqueued out;

    WORK_RC(w, queue_enqueue(w->space, &draft, &w->arena, &out, &w->err), BELAY_OK);
}

static inline const struct belay_claim *claim_from(struct work *w, const char *id,
                                                   size_t max, int64_t lease_ms)
{
    struct belay_claim_request request = { .size = sizeof(request),
                                           .session_id = id,
                                           .owner_id = "owner",
                                           .lease_ms = lease_ms,
                                           .max = max };
    struct belay_claimed out = { .claim = NULL };

    WORK_RC(w,
            queue_claim(&(struct queue_site){ .space = w->space }, &request, &w->arena,
                        &out, &w->err),
            BELAY_OK);
    TAP_OK(w->t, out.claim != NULL);
    return out.claim;
}

static inline size_t batches_in(struct work *w, const char *id)
{
    struct belay_queue_page page = { .size = sizeof(page) };
    struct belay_batches out = { .n = 0 };

    WORK_RC(w, queue_list(w->space, id, &page, &w->arena, &out, &w->err), BELAY_OK);
    return out.n;
}

static inline bool dump_is(struct work *w, const struct buf *before)
{
    CLEANUP(buf_release) struct buf now = work_dump(w, "default");

    return bytes_eq(buf_view(&now), buf_view(before));
}

static inline void print_finding(void *arg, const struct finding *f)
{
    (void)arg;
    printf("# check: %s %.*s: %s\n", f->what, (int)f->entity.len,
           (const char *)f->entity.ptr, f->message);
}

/* Nothing in the store contradicts anything else. */
static inline void check_all(struct work *w)
{
    struct check_counts counts = { .findings = -1 };

    WORK_RC(w, check_store(w->store, print_finding, NULL, &counts, &w->err), BELAY_OK);
    TAP_EQ(w->t, counts.findings, 0);
}

#endif /* TESTS_WORK_SESSION_H */
