/* What actors do with sessions. */
#include "nouns.h"

#include <stdio.h>

/* --- what is to be committed --- */

static void choose_parts(struct actor *a, struct nturn *t)
{
    char name[SHA256_HEX_LEN + 1];

    t->has_checkpoint = pick_of(a->op, 50, 2);
    for (unsigned i = 0; i < 3 && t->has_checkpoint; i++) {
        t->part[i] = pick_of(a->op, 51 + i, CONTENTS + 1);
        t->named[i] = t->part[i] > 0 && pick_of(a->op, 54 + i, 3) == 0;
    }
    if (pick_of(a->op, 57, 6) == 0) {
        (void)content_of(pick_of(a->op, 58, CONTENTS), name);
        memcpy(t->frame, name, sizeof(t->frame));
    }
}

struct nturn *turn_make(struct actor *a, const char *session, bool stamped)
{
    struct nouns *w = a->sim->nouns;
    unsigned n = (unsigned)w->n_turns;

    if (n == N_TURNS || a->sim->running->dead)
        return NULL;
    struct nturn *t = &w->turn[w->n_turns++];
    *t = (struct nturn){ .session_id = str_of(session) };
    (void)snprintf(t->session, sizeof(t->session), "%s", session);
    (void)snprintf(t->node, sizeof(t->node), "n%u", n);
    (void)snprintf(t->config, sizeof(t->config), "{\"v\":%u}", n);
    if (stamped) {
        (void)snprintf(t->turn, sizeof(t->turn), "t%u", n);
        t->turn_id = str_of(t->turn);
    }
    t->append = pick_of(a->op, 59, 3) > 0;
    choose_parts(a, t);
    return t;
}

/* The commit that a turn is, each time the same. */
struct commit_text {
    struct belay_commit commit;
    struct belay_checkpoint checkpoint;
    char node[96], frames[160], names[3][SHA256_HEX_LEN + 1];
    const char *nodes[1];
};

static void write_commit(const struct nturn *t, struct commit_text *x)
{
    struct belay_part *const parts[] = { &x->checkpoint.tool_state,
                                         &x->checkpoint.plugin_snapshot,
                                         &x->checkpoint.execution_state };

    *x = (struct commit_text){ .nodes = { x->node } };
    (void)snprintf(x->node, sizeof(x->node),
                   "{\"kind\":\"event\",\"node_id\":\"%s\"%s%s%s}", t->node,
                   t->parent[0] ? ",\"parent_node_id\":\"" : "", t->parent,
                   t->parent[0] ? "\"" : "");
    (void)snprintf(x->frames, sizeof(x->frames),
                   "[{\"execution_state_ref\":\"%s\",\"frame_id\":\"f\"}]", t->frame);
    x->checkpoint.plugin_snapshot_revision = BELAY_NONE;
    for (unsigned i = 0; i < 3; i++) {
        if (t->part[i] == 0)
            continue;
        struct bytes body = content_of(t->part[i] - 1, x->names[i]);
        if (t->named[i])
            *parts[i] = (struct belay_part){ .ref = x->names[i] };
        else
            *parts[i] = (struct belay_part){ .body = body.ptr, .len = body.len };
    }
    x->commit = (struct belay_commit){
        .size = sizeof(x->commit),
        .graph = t->append ? BELAY_GRAPH_APPEND : BELAY_GRAPH_UNCHANGED,
        .turn_id = t->turn_id ? t->turn : NULL,
        .config = t->config,
        .agent_frames = t->frame[0] ? x->frames : NULL,
        .nodes = x->nodes,
        .n_nodes = t->append,
        .checkpoint = t->has_checkpoint ? &x->checkpoint : NULL,
        .completes = t->claim,
        .n_completes = t->n_claims,
    };
}

/* --- committing --- */

/* Whether a blob that the turn only names was missing at some moment of the call. */
static bool lacks_blob(const struct ncall *c)
{
    const struct nouns *w = c->actor->sim->nouns;
    const struct nturn *t = c->turn;
    char name[SHA256_HEX_LEN + 1];

    for (unsigned i = 0; i < 3; i++) {
        if (!t->named[i])
            continue;
        (void)content_of(t->part[i] - 1, name);
        if (!is_there_since(w, str_of(name), c->first_no))
            return true;
    }
    return t->frame[0] && !is_there_since(w, str_of(t->frame), c->first_no);
}

static bool holds_claims(const struct ncall *c)
{
    const struct nturn *t = c->turn;

    for (size_t i = 0; i < t->n_claims; i++) {
        if (!holds_all(c->actor->sim->nouns->cur, t->claim[i]))
            return false;
    }
    return true;
}

static void check_committed(struct ncall *c, const struct belay_committed *out)
{
    struct sim *s = c->actor->sim;
    const struct nturn *t = c->turn;

    if (!t->applied ||
        (out->replayed ? c->changed > 0 || !t->turn_id : c->changed != 1))
        violation(s, "E4", "a commit was acknowledged and is not there");
    else if (out->revision != t->revision || out->node_count != t->node_count ||
             str_of(out->leaf) != t->leaf ||
             (t->has_checkpoint && str_of(out->checkpoint_ref) != t->manifest))
        violation(s, "E4", "a commit's answer is not what it did (revision %lld, %lld)",
                  (long long)out->revision, (long long)t->revision);
    else if (out->n_node_ids != t->append ||
             (t->append && strcmp(out->node_ids[0], t->node) != 0))
        violation(s, "E4", "a commit answers with other nodes than it brought");
}

/* Whether the turn was committed with other content. */
static bool has_twin(const struct ncall *c)
{
    const struct nouns *w = c->actor->sim->nouns;

    for (size_t i = 0; i < w->n_turns; i++) {
        const struct nturn *t = &w->turn[i];
        if (t != c->turn && t->applied && t->session_id == c->session &&
            t->turn_id == c->turn->turn_id)
            return true;
    }
    return false;
}

/* A refusal must be true; what it may be depends on the order of the checks. */
static void check_refused(struct ncall *c, belay_rc rc, const struct belay_error *err,
                          int64_t revision, bool stale)
{
    struct sim *s = c->actor->sim;
    const struct nturn *t = c->turn;
    const struct nsession *n = session_at(s->nouns->cur, c->session);
    int64_t now = n && n->there && !n->active ? INT64_MAX : n ? n->revision : 0;

    if (t->turn_id && t->applied && t->applied_no <= c->first_no &&
        rc != BELAY_WRONG_STATE && !is_trouble(c, rc))
        violation(s, "E4", "a turn that was committed was refused: %s", err->message);
    else if (rc == BELAY_HEAD_REVISION_CONFLICT &&
             (err->actual == c->expected || err->actual < revision ||
              err->actual > now || c->expected == BELAY_ANY_REVISION ||
              err->expected != c->expected))
        violation(s, "S1", "refused: expected %lld, actual %lld",
                  (long long)err->expected, (long long)err->actual);
    else if (rc == BELAY_TURN_CONFLICT && !has_twin(c))
        violation(s, "E4", "a turn is said to have other content: %s", err->message);
    else if (rc == BELAY_LEASE_LOST && holds_claims(c))
        violation(s, "L5", "a claim that holds was not completed: %s", err->reason);
    else if (rc == BELAY_INVALID && stale && strcmp(err->reason, "unknown_ref") == 0)
        violation(s, "L4", "a claim that does not hold was passed over");
    else if (rc == BELAY_INVALID && strcmp(err->reason, "unknown_ref") == 0 &&
             !lacks_blob(c))
        violation(s, "S6", "a blob is said to be unknown that was always there");
    else if (rc == BELAY_INVALID && strcmp(err->reason, "unknown_ref") != 0 &&
             strcmp(err->reason, "duplicate_batch") != 0)
        violation(s, "answer", "commit is invalid: %s", err->message);
}

belay_rc do_commit(struct actor *a, struct nturn *turn, int64_t expected,
                   int64_t *actual)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct nouns *w = a->sim->nouns;
    struct space *sp = noun_space(a);
    const struct nsession *n = session_at(w->cur, turn->session_id);
    int64_t revision = n ? n->revision : 0;
    struct session s = { sp, turn->session,
                         pick_of(a->op, 60, 2) ? BELAY_COMPACT : BELAY_LOW_LATENCY };
    struct belay_committed out;
    struct belay_error err = { .code = 0 };
    struct commit_text x;

    if (!sp)
        return BELAY_UNAVAILABLE;
    turn->tried = true;
    write_commit(turn, &x);
    x.commit.expected_revision = expected;
    struct ncall *c = call_begin(a, N_COMMIT, turn->session);
    c->turn = turn;
    c->expected = expected;
    bool stale = !holds_claims(c);
    belay_rc rc = session_commit(&s, &x.commit, &arena, &out, &err);
    if (!call_end(c, rc))
        return BELAY_UNAVAILABLE;
    if (rc == BELAY_OK)
        check_committed(c, &out);
    else
        check_refused(c, rc, &err, revision, stale);
    if (rc == BELAY_WRONG_STATE)
        session_gone(c, turn->session);
    else if (rc && rc != BELAY_HEAD_REVISION_CONFLICT && rc != BELAY_LEASE_LOST &&
             rc != BELAY_INVALID && rc != BELAY_TURN_CONFLICT)
        call_refuse(c, rc);
    *actual = err.actual;
    return rc;
}

void op_commit(struct actor *a)
{
    const char *session = session_name(a);
    struct nturn *turn = turn_make(a, session, pick_of(a->op, 3, 2));
    int64_t revision = BELAY_ANY_REVISION, actual = 0;
    belay_rc rc = BELAY_OK;

    if (!turn)
        return;
    if (pick_of(a->op, 4, 3))
        rc = do_head(a, session, &revision, turn->parent);
    if (a->sim->running->dead || (rc && rc != BELAY_NOT_FOUND))
        return;
    if (pick_of(a->op, 5, 8) == 0 && revision > 0)
        revision--;
    (void)do_commit(a, turn, revision, &actual);
}

/* Commits something again that was tried before, whatever came of it; at times with
 * other content under the same name. */
void op_retry_turn(struct actor *a)
{
    struct nouns *w = a->sim->nouns;
    size_t back = pick_of(a->op, 3, 4);
    int64_t actual = 0, revision = BELAY_ANY_REVISION;

    if (w->n_turns == 0)
        return;
    struct nturn *turn = &w->turn[w->n_turns - 1 - (back < w->n_turns ? back : 0)];
    if (!turn->turn_id || !turn->tried)
        return;
    if (pick_of(a->op, 4, 2))
        revision = pick_of(a->op, 5, 4);
    if (pick_of(a->op, 6, 5) == 0 && w->n_turns < N_TURNS) {
        struct nturn *twin = &w->turn[w->n_turns++];
        *twin = *turn;
        twin->applied = false;
        (void)snprintf(twin->config, sizeof(twin->config), "{\"v\":%zu}", w->n_turns);
        turn = twin;
    }
    (void)do_commit(a, turn, revision, &actual);
}

/* --- reading, deleting --- */

belay_rc do_head(struct actor *a, const char *session, int64_t *revision, char leaf[24])
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct nouns *w = a->sim->nouns;
    struct space *sp = noun_space(a);
    const struct nsession *n = session_at(w->cur, str_of(session));
    int64_t before = n ? n->revision : 0;
    struct session s = { sp, session, BELAY_PROFILE_DEFAULT };
    struct belay_head head;
    struct belay_error err = { .code = 0 };

    *revision = 0;
    leaf[0] = 0;
    if (!sp)
        return BELAY_UNAVAILABLE;
    struct ncall *c = call_begin(a, N_LOOK, session);
    belay_rc rc = session_head(&s, &arena, &head, &err);
    if (!call_end(c, rc))
        return BELAY_UNAVAILABLE;
    n = session_at(w->cur, c->session);
    if (rc == BELAY_NOT_FOUND && before > 0 && n && n->active)
        violation(w->s, "S2", "a session that is there was not found");
    if (rc && rc != BELAY_NOT_FOUND)
        call_refuse(c, rc);
    if (rc)
        return rc;
    if (head.revision < before || !n || (n->active && head.revision > n->revision))
        violation(w->s, "S2", "the head is read at revision %lld, it went from %lld",
                  (long long)head.revision, (long long)before);
    *revision = head.revision;
    if (head.leaf)
        (void)snprintf(leaf, 24, "%s", head.leaf);
    return BELAY_OK;
}

static void check_log(struct actor *a, const char *session)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct space *sp = noun_space(a);
    struct session s = { sp, session, BELAY_PROFILE_DEFAULT };
    struct belay_commit_log log = { .n = 0 };
    struct belay_error err;

    if (!sp)
        return;
    struct ncall *c = call_begin(a, N_LOOK, session);
    belay_rc rc = session_log(&s, 0, 1000, &arena, &log, &err);
    if (!call_end(c, rc))
        return;
    if (rc && rc != BELAY_NOT_FOUND)
        call_refuse(c, rc);
    for (size_t i = 0; i < log.n && !rc; i++) {
        uint64_t turn = str_of(log.entries[i].turn_id);
        const struct nturn_row *row = turn_at(a->sim->nouns->cur, c->session, turn);
        if (log.entries[i].revision != (int64_t)i + 1)
            violation(a->sim, "N1", "entry %zu of the log is another revision", i + 1);
        if (turn && row && row->revision != log.entries[i].revision)
            violation(a->sim, "N1", "the log has a turn at another revision");
    }
}

void op_head(struct actor *a)
{
    const char *session = session_name(a);
    int64_t revision;
    char leaf[24];

    if (pick_of(a->op, 3, 2))
        (void)do_head(a, session, &revision, leaf);
    else
        check_log(a, session);
}

void do_delete(struct actor *a, const char *session)
{
    struct nouns *w = a->sim->nouns;
    struct space *sp = noun_space(a);
    struct session s = { sp, session, BELAY_PROFILE_DEFAULT };
    struct belay_error err;
    bool deleted = false;

    if (!sp)
        return;
    struct ncall *c = call_begin(a, N_DELETE, session);
    belay_rc rc = session_delete(&s, &deleted, &err);
    if (!call_end(c, rc))
        return;
    if (rc) {
        call_refuse(c, rc);
        return;
    }
    for (size_t i = 0; i < w->cur->n_batches && deleted; i++) {
        if (w->cur->batch[i].session == c->session)
            violation(w->s, "N3", "a session was deleted and its inbox has a batch");
    }
    if (deleted)
        session_gone(c, session);
}

void op_delete(struct actor *a)
{
    if (pick_of(a->op, 3, 2))
        do_delete(a, session_name(a));
}
