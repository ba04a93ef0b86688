/* Commits of the workers of test_sessions, and reading what they left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"
#include "session_deeds.h"

/* --- making a commit from its note alone, so that a later life can make it again --- */

struct content {
    char turn[40], node[160], parent[40], session[16];
    const char *nodes[1];
    struct belay_checkpoint checkpoint;
    struct belay_usage usage;
    const struct belay_claim *claim;
    const struct belay_claim *completes[1];
    struct belay_commit commit;
};

static struct belay_part part_of(struct hand *h, const struct note *n,
                                 enum body_part part)
{
    size_t len = body_make(&n->thing, part, h->body[part]);

    return (struct belay_part){ .body = h->body[part], .len = len };
}

static void fill_checkpoint(struct hand *h, const struct note *n, struct content *c)
{
    c->checkpoint = (struct belay_checkpoint){
        .turn_state = "{\"turn\":1}",
        .tool_state = part_of(h, n, BODY_TOOL),
        .plugin_snapshot = part_of(h, n, BODY_SHARED),
        .execution_state = part_of(h, n, BODY_EXECUTION),
        .plugin_snapshot_revision = n->thing.n % 5,
    };
    if (n->flags & NOTE_KEEPS_REF)
        c->checkpoint.execution_state = (struct belay_part){ .ref = n->ref };
    c->commit.checkpoint = &c->checkpoint;
}

static void fill_node(const struct note *n, struct content *c)
{
    char parent[64] = "";

    if (n->flags & NOTE_PARENT) {
        maker_name(&n->parent, c->parent);
        (void)snprintf(parent, sizeof(parent), "\"parent_node_id\":\"%s\",", c->parent);
    }
    (void)snprintf(c->node, sizeof(c->node),
                   "{\"node_id\":\"%s\",%s\"kind\":\"plugin\",\"plugin_type\":\"t\","
                   "\"body\":%lld}",
                   c->turn, parent, (long long)n->thing.n);
    c->nodes[0] = c->node;
}

static belay_rc fill(struct hand *h, const struct note *n, struct content *c,
                     struct belay_error *err)
{
    *c = (struct content){ .claim = NULL };
    maker_name(&n->thing, c->turn);
    fill_node(n, c);
    c->usage = (struct belay_usage){
        .source = "turn", .model = "m", .input_tokens = 1, .output_tokens = n->worker
    };
    c->commit = (struct belay_commit){
        .size = sizeof(c->commit),
        .graph = BELAY_GRAPH_APPEND,
        .expected_revision = n->expected,
        .turn_id = c->turn,
        .config = n->flags & NOTE_OTHER ? "{\"other\":true}" : "{\"other\":false}",
        .nodes = c->nodes,
        .n_nodes = 1,
        .usage = &c->usage,
        .n_usage = 1,
    };
    if (n->flags & NOTE_CHECKPOINT)
        fill_checkpoint(h, n, c);
    if (n->n_batches == 0)
        return BELAY_OK;
    c->commit.completes = c->completes;
    c->commit.n_completes = 1;
    belay_rc rc = belay_claim_parse(n->text, h->arena, &c->claim, err);
    c->completes[0] = c->claim;
    return rc;
}

static belay_rc run(struct hand *h, struct note *n)
{
    struct belay_committed out;
    struct belay_error err;
    struct content c;

    deed_note(h, n);
    if (fill(h, n, &c, &err)) {
        deed_broken(h, "claim text", &err);
        return BELAY_BAD_HANDLE;
    }
    belay_rc rc =
        belay_session_commit(h->session[n->session], &c.commit, h->arena, &out, &err);
    if (!rc) {
        n->revision = out.revision;
        n->flags |= out.replayed ? NOTE_REPLAYED : 0;
        if (out.n_node_ids != 1 || strcmp(out.node_ids[0], c.turn) != 0)
            deed_broken(h, "a commit appended other nodes than its own", NULL);
    } else if (rc == BELAY_HEAD_REVISION_CONFLICT) {
        n->revision = err.actual;
        if (err.expected != n->expected)
            deed_broken(h, "a conflict about another revision", &err);
    }
    deed_done(h, n, rc, &err);
    if (!rc)
        h->turn = *n;
    return rc;
}

/* --- deeds --- */

/* The head as it is; revision 0 when there is none. */
static bool look_at_head(struct hand *h, int session, struct note *out,
                         struct belay_head *head)
{
    struct note n = deed_begin(h, DEED_HEAD, session);
    struct belay_error err;

    deed_note(h, &n);
    *head = (struct belay_head){ .revision = 0 };
    belay_rc rc = belay_session_head(h->session[session], h->arena, head, &err);
    if (rc == BELAY_NOT_FOUND)
        rc = BELAY_OK;
    n.revision = head->revision;
    deed_done(h, &n, rc, &err);
    *out = n;
    return !rc;
}

/* What the head's checkpoint calls its execution state, to keep it by name. */
static void keep_ref(struct hand *h, struct note *n, const struct belay_head *head)
{
    struct belay_checkpoint_info info;
    struct belay_error err;

    if (!head->checkpoint_ref ||
        belay_session_checkpoint(h->session[n->session], h->arena, &info, &err) ||
        !info.execution_state_ref || strcmp(info.ref, head->checkpoint_ref) != 0)
        return; /* it has moved on meanwhile */
    n->flags |= NOTE_KEEPS_REF;
    (void)snprintf(n->ref, sizeof(n->ref), "%s", info.execution_state_ref);
}

void deed_commit(struct hand *h, int session, struct note *claim)
{
    struct belay_head head;
    struct note seen;

    if (!look_at_head(h, session, &seen, &head))
        return;
    /* The head's strings are in the arena, which the next deed empties. */
    struct maker leaf;
    bool has_leaf = maker_parse(head.leaf, &leaf);
    struct note n = { .session = session };
    if (rng_below(&h->rng, 2))
        n.flags |= NOTE_CHECKPOINT;
    if (n.flags & NOTE_CHECKPOINT && rng_below(&h->rng, 2))
        keep_ref(h, &n, &head);
    struct note fresh = deed_begin(h, DEED_COMMIT, session);
    fresh.flags = n.flags | (has_leaf ? NOTE_PARENT : 0);
    fresh.parent = leaf;
    memcpy(fresh.ref, n.ref, sizeof(fresh.ref));
    fresh.expected = seen.revision;
    if (rng_below(&h->rng, 12) == 0 && !(fresh.flags & NOTE_KEEPS_REF))
        fresh.expected = BELAY_ANY_REVISION;
    if (claim) {
        fresh.n_batches = claim->n_batches;
        memcpy(fresh.batch, claim->batch, sizeof(fresh.batch));
        memcpy(fresh.text, claim->text, sizeof(fresh.text));
        fresh.expires_at_ms = claim->expires_at_ms;
    }
    belay_rc rc = run(h, &fresh);
    if (claim && rc != BELAY_HEAD_REVISION_CONFLICT)
        claim->said = SAID_BROKEN; /* spent */
}

void deed_commit_again(struct hand *h, const struct note *again, uint32_t flags)
{
    struct note n = deed_begin(h, DEED_COMMIT, again->session);
    int64_t number = n.n;

    n = *again;
    n.n = number;
    n.life = h->life;
    n.flags = (again->flags & ~(uint32_t)NOTE_REPLAYED) | flags;
    n.revision = 0;
    (void)run(h, &n);
}

/* A head's checkpoint can be read as long as it is the head's (S3, S5). */
void deed_read_checkpoint(struct hand *h)
{
    int session = (int)rng_below(&h->rng, NOTE_SESSIONS);
    struct note n = deed_begin(h, DEED_READ, session);
    struct belay_session *s = h->session[session];
    struct belay_checkpoint_info info;
    struct belay_head before, after;
    const char *wrong = NULL;
    struct belay_error err, late;

    if (belay_session_head(s, h->arena, &before, &err) || !before.checkpoint_ref)
        return;
    deed_note(h, &n);
    belay_rc rc = belay_session_checkpoint(s, h->arena, &info, &err);
    if (rc)
        wrong = "a head's checkpoint";
    else if (!info.tool_state_ref || !info.plugin_snapshot_ref ||
             !info.execution_state_ref)
        deed_broken(h, "a checkpoint without its parts", NULL);
    else {
        wrong = deed_read_blob(h, info.tool_state_ref, NULL, 0, &err);
        wrong =
            wrong ? wrong : deed_read_blob(h, info.plugin_snapshot_ref, NULL, 0, &err);
        wrong =
            wrong ? wrong : deed_read_blob(h, info.execution_state_ref, NULL, 0, &err);
    }
    /* Without a grace what only an older head named may go under a reader. */
    if (wrong && (belay_session_head(s, h->arena, &after, &late) ||
                  after.revision == before.revision))
        deed_broken(h, wrong, &err);
    n.flags |= wrong ? 0 : NOTE_FOUND;
    (void)snprintf(n.text, sizeof(n.text), "%s", wrong ? err.message : "");
    deed_done(h, &n, BELAY_OK, &err);
}
