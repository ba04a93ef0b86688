/* agent.c - an agent that survives its own death.
 *
 *     cc agent.c $(pkg-config --cflags --libs belay) -o agent
 *     ./agent sqlite:app.db chat &
 *     belay --store sqlite:app.db queue enqueue chat --delivery earliest_safe_boundary \
 *         --slot exclusive --payload '{"type":"turn_input","text":"hello"}'
 *
 * One loop: claim what is next in the session's inbox, work on it, commit what came out
 * together with the claim's completion.  Kill it wherever you like (AGENT_DIE=claimed,
 * worked or committed does it for you) and start it again: nothing is lost and nothing is
 * answered twice.
 *
 *   - killed after the claim: the claim runs out, the batch is claimed again, with a
 *     greater fence;
 *   - killed after the work: likewise, and the work is done again;
 *   - killed after the commit, before it could tell anybody: the batch is gone, the
 *     turn is there.
 *
 * And if it was only slow, and somebody else took the batch over, its commit is refused
 * with lease_lost: a stale agent cannot write.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <belay/belay.h>

#define LEASE_MS 2000 /* renew in time when your work takes longer */
#define WAIT_MS 30000

static bool failed(const char *what, const struct belay_error *err)
{
    (void)fprintf(stderr, "agent: %s: %s: %s\n", what,
                  belay_error_info(err->code)->name, err->message);
    return false;
}

/* Where a crash would hurt. */
static void die_here(const char *place)
{
    const char *wanted = getenv("AGENT_DIE");

    if (wanted && strcmp(wanted, place) == 0)
        (void)kill(getpid(), SIGKILL);
}

/* What the agent knows: the path of its session, from the root to the leaf. */
static bool remember(struct belay_session *session, struct belay_arena *arena)
{
    struct belay_nodes path;
    struct belay_error err;
    belay_rc rc = belay_session_path(session, NULL, arena, &path, &err);

    if (rc == BELAY_NOT_FOUND) {
        printf("a new session\n");
        return true;
    }
    if (rc)
        return failed("path", &err);
    printf("%zu nodes remembered\n", path.n);
    for (size_t i = 0; i < path.n; i++)
        printf("  %s\n", path.nodes[i].json);
    return true;
}

/* The work.  A real agent would call a model here; renew the claim when that takes
 * longer than the lease. */
static void work(const struct belay_claim *claim, char *body, size_t size)
{
    const struct belay_batch *batch = &claim->batches[0];
    const char *input = batch->n_items > 0 ? batch->items[0].payload : "null";

    (void)snprintf(body, size, "{\"heard\":%s,\"fence\":%lld}", input,
                   (long long)claim->fence);
}

/* What came out, as a node behind the leaf. */
static void make_node(char *out, size_t size, const struct belay_claim *claim,
                      const char *parent, const char *body)
{
    (void)snprintf(out, size,
                   "{\"node_id\":\"answer:%s\",\"parent_node_id\":%s,"
                   "\"kind\":\"plugin\",\"plugin_type\":\"echo\",\"body\":%s}",
                   claim->batches[0].batch_id, parent, body);
}

/* One turn: the node, the leaf's move and the completion happen together or not at
 * all.  The turn's id comes from the batch, so that a turn is the same turn however
 * often it is tried. */
static belay_rc commit(struct belay_session *session, const struct belay_claim *claim,
                       const char *node, int64_t revision, struct belay_arena *arena,
                       struct belay_committed *out, struct belay_error *err)
{
    struct belay_commit change = {
        .size = sizeof(change),
        .graph = BELAY_GRAPH_APPEND,
        .expected_revision = revision,
        .turn_id = claim->batches[0].batch_id,
        .nodes = &node,
        .n_nodes = 1,
        .completes = &claim,
        .n_completes = 1,
    };

    return belay_session_commit(session, &change, arena, out, err);
}

/* Revision and leaf the next commit builds on. */
static belay_rc look(struct belay_session *session, struct belay_arena *arena,
                     int64_t *revision, char *parent, size_t size,
                     struct belay_error *err)
{
    struct belay_head head;
    belay_rc rc = belay_session_head(session, arena, &head, err);

    *revision = 0;
    (void)snprintf(parent, size, "null");
    if (rc == BELAY_NOT_FOUND)
        return BELAY_OK;
    if (rc)
        return rc;
    *revision = head.revision;
    if (head.leaf)
        (void)snprintf(parent, size, "\"%s\"", head.leaf);
    return BELAY_OK;
}

static bool turn(struct belay_session *session, const struct belay_claim *claim,
                 struct belay_arena *arena)
{
    static char body[1 << 21], node[1 << 22];
    struct belay_committed done;
    struct belay_error err;
    char parent[600];
    int64_t revision;
    belay_rc rc;

    work(claim, body, sizeof(body));
    die_here("worked");
    do {
        rc = look(session, arena, &revision, parent, sizeof(parent), &err);
        if (rc)
            return failed("head", &err);
        make_node(node, sizeof(node), claim, parent, body);
        rc = commit(session, claim, node, revision, arena, &done, &err);
    } while (rc == BELAY_HEAD_REVISION_CONFLICT); /* somebody else committed: again */
    die_here("committed");
    if (rc == BELAY_LEASE_LOST) {
        printf("too late, somebody else has it: %s\n", err.message);
        return true;
    }
    if (rc)
        return failed("commit", &err);
    printf("revision %lld%s: %s\n", (long long)done.revision,
           done.replayed ? " (again)" : "", claim->batches[0].batch_id);
    return true;
}

/* Claims what is next and does it; false when that went wrong. */
static bool serve_one(struct belay *b, struct belay_session *session,
                      struct belay_arena *arena, int64_t wait_ms, bool *idle)
{
    char owner[64];
    struct belay_claim_request request = {
        .size = sizeof(request),
        .session_id = belay_session_id(session),
        .owner_id = owner,
        .lease_ms = LEASE_MS,
        .max = 1,
        .wait_ms = wait_ms,
    };
    struct belay_claimed claimed;
    struct belay_error err;

    (void)snprintf(owner, sizeof(owner), "agent-%ld", (long)getpid());
    if (belay_queue_claim(b, &request, arena, &claimed, &err))
        return failed("claim", &err);
    *idle = !claimed.claim;
    if (*idle)
        return true;
    printf("claimed %s with fence %lld\n", claimed.claim->claim_id,
           (long long)claimed.claim->fence);
    die_here("claimed");
    return turn(session, claimed.claim, arena);
}

int main(int argc, char **argv)
{
    struct belay_session *session = NULL;
    struct belay_arena *arena = NULL;
    struct belay_error err;
    struct belay *b = NULL;
    bool drain = argc > 3 && strcmp(argv[3], "--drain") == 0, idle = false;

    if (argc < 3) {
        (void)fprintf(stderr, "usage: agent STORE_URL SESSION [--drain]\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    bool ok = !belay_open(argv[1], NULL, &b, &err) && !belay_arena_new(&arena, &err) &&
              !belay_session_open(b, argv[2], NULL, &session, &err);
    if (!ok)
        (void)failed("open", &err);
    ok = ok && remember(session, arena);
    while (ok && !(drain && idle)) {
        belay_arena_reset(arena);
        ok = serve_one(b, session, arena, drain ? 2 * LEASE_MS : WAIT_MS, &idle);
    }
    belay_session_close(session);
    belay_arena_free(arena);
    belay_close(b);
    return ok ? 0 : 1;
}
