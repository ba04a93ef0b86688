/* One call steps in between another, at every moment of it.
 *
 * A call that works in several steps looks at the clock again and again; at the n-th look
 * it is held up until somebody else has done something, or a little while (it may hold
 * what the other one needs).  So n = 1, 2, 3 ... is every place where the two can meet. */
#include <pthread.h>
#include <time.h>

#include "nouns.h"

#define HOLD_MS 20
#define LOOKS_MAX 200
#define GRACE_MS 50
#define PAST_GRACE_MS ((int64_t)GRACE_MS + 5)
#define LARGE ((size_t)2 * 1024 * 1024)

struct meeting {
    belay_rc (*first)(struct world *w, const struct meeting *m);
    belay_rc (*second)(struct world *w, const struct meeting *m);
    const char *what; /* both are about */
    int at;           /* the look to step in at */
    belay_rc answers[2];

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread; /* of the first */
    bool running, go, done;
    int looks;
};

static void wait_a_little(struct meeting *m)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)HOLD_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!m->done && pthread_cond_timedwait(&m->changed, &m->mutex, &until) == 0)
        ;
}

static void on_clock(void *arg)
{
    struct meeting *m = arg;

    (void)pthread_mutex_lock(&m->mutex);
    if (m->running && pthread_equal(m->thread, pthread_self()) && ++m->looks == m->at) {
        m->go = true;
        (void)pthread_cond_broadcast(&m->changed);
        wait_a_little(m);
    }
    (void)pthread_mutex_unlock(&m->mutex);
}

/* Runs the first; at its end the second goes, if it has not yet. */
static void go_first(struct world *w, struct meeting *m)
{
    (void)pthread_mutex_lock(&m->mutex);
    m->thread = pthread_self();
    m->running = true;
    (void)pthread_mutex_unlock(&m->mutex);
    m->answers[0] = m->first(w, m);
    (void)pthread_mutex_lock(&m->mutex);
    m->running = false;
    m->go = true;
    (void)pthread_cond_broadcast(&m->changed);
    (void)pthread_mutex_unlock(&m->mutex);
}

static void go_second(struct world *w, struct meeting *m)
{
    (void)pthread_mutex_lock(&m->mutex);
    while (!m->go)
        (void)pthread_cond_wait(&m->changed, &m->mutex);
    (void)pthread_mutex_unlock(&m->mutex);
    m->answers[1] = m->second(w, m);
    (void)pthread_mutex_lock(&m->mutex);
    m->done = true;
    (void)pthread_cond_broadcast(&m->changed);
    (void)pthread_mutex_unlock(&m->mutex);
}

static void go(struct world *w, unsigned i, void *arg)
{
    if (i == 0)
        go_first(w, arg);
    else
        go_second(w, arg);
}

static void meet(struct world *w, struct meeting *m)
{
    (void)pthread_mutex_init(&m->mutex, NULL);
    (void)pthread_cond_init(&m->changed, NULL);
    w->on_clock = on_clock;
    w->on_clock_arg = m;
    world_crowd(w, 2, go, m);
    w->on_clock = NULL;
    (void)pthread_cond_destroy(&m->changed);
    (void)pthread_mutex_destroy(&m->mutex);
}

/* --- naming a blob while garbage is collected --- */

static belay_rc collect_beside(struct world *w, const struct meeting *m)
{
    struct belay_gc_options o = { .size = sizeof(o),
                                  .grace_ms = GRACE_MS,
                                  .budget_ms = MINUTE };

    (void)m;
    belay_rc rc = belay_gc(w->use, &o, &w->gc, &w->err);
    OK(w, w->gc.outcome == BELAY_GC_SWEPT || w->gc.outcome == BELAY_GC_NOTHING);
    return rc;
}

static belay_rc by_checkpoint(struct world *w, const struct meeting *m)
{
    struct belay_checkpoint cp = { .tool_state = { .ref = digest(w, m->what) },
                                   .plugin_snapshot_revision = BELAY_NONE };

    return commit(w, "s",
                  (struct belay_commit){ .expected_revision = BELAY_ANY_REVISION,
                                         .checkpoint = &cp });
}

static belay_rc by_body(struct world *w, const struct meeting *m)
{
    struct belay_checkpoint cp = { .tool_state = { .body = m->what,
                                                   .len = strlen(m->what) },
                                   .plugin_snapshot_revision = BELAY_NONE };

    return commit(w, "s",
                  (struct belay_commit){ .expected_revision = BELAY_ANY_REVISION,
                                         .checkpoint = &cp });
}

static belay_rc by_frame(struct world *w, const struct meeting *m)
{
    return commit(w, "s",
                  (struct belay_commit){
                      .expected_revision = BELAY_ANY_REVISION,
                      .agent_frames = text(w, "[{\"execution_state_ref\":\"%s\"}]",
                                           digest(w, m->what)) });
}

static belay_rc by_pin(struct world *w, const struct meeting *m)
{
    return belay_blob_pin(w->use, "pin", digest(w, m->what), &w->err);
}

static belay_rc by_putting(struct world *w, const struct meeting *m)
{
    return blob_try(w, m->what, strlen(m->what), NULL);
}

/* Nothing is named any more, nothing is left. */
static void let_go(struct world *w)
{
    struct belay_checkpoint none = { .plugin_snapshot_revision = BELAY_NONE };

    RC(w,
       commit(w, "s",
              (struct belay_commit){ .expected_revision = BELAY_ANY_REVISION,
                                     .agent_frames = "[]",
                                     .checkpoint = &none }),
       BELAY_OK);
    RC(w, belay_blob_unpin(w->use, "pin", NULL, &w->err), BELAY_OK);
    collect(w);
    EQ(w, w->gc.retained_blobs, 1); /* the manifest */
}

/* It was gone already, which is told, or it is named and there. */
static void named_at_any_moment(struct world *w)
{
    static const struct {
        belay_rc (*name)(struct world *w, const struct meeting *m);
        belay_rc refusal;
    } ways[] = {
        { by_checkpoint, BELAY_INVALID }, { by_body, BELAY_OK },
        { by_frame, BELAY_INVALID },      { by_pin, BELAY_NOT_FOUND },
        { by_putting, BELAY_OK },
    };

    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        int looks = 1;
        for (int at = 1; at <= looks + 1 && at < LOOKS_MAX && !w->t->failed; at++) {
            struct meeting m = { .first = collect_beside,
                                 .second = ways[i].name,
                                 .at = at,
                                 .what = text(w, "content %zu.%d", i, at) };
            const char *ref = blob(w, m.what);
            world_pass(w, PAST_GRACE_MS);
            meet(w, &m);
            looks = m.looks;
            EQ(w, m.answers[0], BELAY_OK);
            if (m.answers[1] == BELAY_OK)
                STR(w, content(w, ref), m.what);
            else
                EQ(w, m.answers[1], ways[i].refusal);
            let_go(w);
        }
        OK(w, looks > 1); /* else nothing was tried */
    }
}

/* --- collecting without grace while others are at work --- */

static belay_rc collect_all(struct world *w, const struct meeting *m)
{
    (void)m;
    collect(w);
    OK(w, w->gc.outcome == BELAY_GC_SWEPT || w->gc.outcome == BELAY_GC_NOTHING);
    return BELAY_OK;
}

/* A body of several chunks is written before the commit that names it.  Without any grace
 * it may be swept in between: then the commit is told so, and the head stays. */
static void large_bodies_at_any_moment(struct world *w)
{
    char *body = bytes_of(w, 'x', LARGE);
    int looks = 1;

    for (int at = 1; at <= looks + 1 && at < LOOKS_MAX && !w->t->failed; at++) {
        struct meeting m = {
            .first = by_body, .second = collect_all, .at = at, .what = body
        };
        body[0] = (char)('a' + at % 26); /* another one each time */
        body[1] = (char)('a' + at / 26);
        int64_t before = revision(w, "s");
        meet(w, &m);
        looks = m.looks;
        EQ(w, revision(w, "s"), before + (m.answers[0] == BELAY_OK));
        if (m.answers[0] == BELAY_OK)
            STR(w, content(w, digest(w, body)), body);
        else
            OK(w, m.answers[0] == BELAY_INVALID || m.answers[0] == BELAY_NOT_FOUND);
        let_go(w);
    }
    OK(w, looks > 1);
}

/* Two collections at once: everything goes once. */
static void collections_at_any_moment(struct world *w)
{
    int looks = 1;

    let_go(w);
    for (int at = 1; at <= looks + 1 && at < LOOKS_MAX && !w->t->failed; at++) {
        struct meeting m = { .first = collect_beside, .second = collect_all, .at = at };
        for (int i = 0; i < 40; i++)
            (void)blob(w, text(w, "blob %d.%d", at, i));
        world_pass(w, PAST_GRACE_MS);
        meet(w, &m);
        looks = m.looks;
        collect(w);
        EQ(w, w->gc.outcome, BELAY_GC_NOTHING);
        EQ(w, w->gc.retained_blobs, 1);
    }
    OK(w, looks > 1);
}

/* --- doing something to a session while it is deleted --- */

static belay_rc delete_it(struct world *w, const struct meeting *m)
{
    return belay_session_delete(session(w, m->what), NULL, &w->err);
}

static belay_rc enqueue_there(struct world *w, const struct meeting *m)
{
    return post_try(w, (struct post){ .session = m->what, .key = "late" });
}

static belay_rc commit_there(struct world *w, const struct meeting *m)
{
    return say(w, m->what, BELAY_ANY_REVISION, "late", NULL);
}

static belay_rc describe_there(struct world *w, const struct meeting *m)
{
    struct belay_session_meta meta = { .size = sizeof(meta), .parent = "p" };

    return belay_session_meta_save(session(w, m->what), &meta, false, &w->err);
}

static belay_rc announce_there(struct world *w, const struct meeting *m)
{
    return belay_attachment_intent(session(w, m->what), "late", "u", NULL, &w->err);
}

static belay_rc hide_there(struct world *w, const struct meeting *m)
{
    static const char *const ids[] = { "n1" };

    return belay_session_tombstone(session(w, m->what), ids, 1, NULL, &w->err);
}

static void furnish(struct world *w, const char *id)
{
    RC(w, say(w, id, 0, "n1", NULL), BELAY_OK);
    RC(w, say(w, id, 1, "n2", "n1"), BELAY_OK);
    RC(w, belay_attachment_intent(session(w, id), "a", "u", NULL, &w->err), BELAY_OK);
    post_many(w, id, 2);
}

static void nothing_is_left(struct world *w, const char *id)
{
    struct belay_sessions all = { 0 };
    struct belay_session_meta meta = { .size = sizeof(meta) };

    STR(w, listed(w, id), "");
    WHY(w, belay_session_head(session(w, id), w->arena, &w->head, &w->err),
        BELAY_NOT_FOUND, "deleted");
    RC(w, belay_session_meta_load(session(w, id), w->arena, &meta, &w->err),
       BELAY_NOT_FOUND);
    RC(w, belay_session_list(w->use, NULL, NULL, 0, w->arena, &all, &w->err), BELAY_OK);
    EQ(w, all.n, 0);
    RC(w, belay_session_list(w->use, "p", NULL, 0, w->arena, &all, &w->err), BELAY_OK);
    EQ(w, all.n, 0);
    WHY(w, say(w, id, 0, "n", NULL), BELAY_WRONG_STATE, "deleted");
}

static void deleted_at_any_moment(struct world *w)
{
    static belay_rc (*const ways[])(struct world *, const struct meeting *) = {
        enqueue_there, commit_there, describe_there, announce_there, hide_there,
    };

    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        int looks = 1;
        for (int at = 1; at <= looks + 1 && at < LOOKS_MAX && !w->t->failed; at++) {
            struct meeting m = { .first = delete_it,
                                 .second = ways[i],
                                 .at = at,
                                 .what = text(w, "session %zu.%d", i, at) };
            furnish(w, m.what);
            meet(w, &m);
            looks = m.looks;
            EQ(w, m.answers[0], BELAY_OK);
            OK(w, m.answers[1] == BELAY_OK || m.answers[1] == BELAY_WRONG_STATE ||
                      m.answers[1] == BELAY_NOT_FOUND);
            nothing_is_left(w, m.what);
        }
        OK(w, looks > 1); /* else nothing was tried */
    }
}

static const struct noun_case cases[] = {
    { "threads: S5, S6: a blob that is named at any moment of a collection is spared",
      named_at_any_moment, 0 },
    { "threads: S3: a large body that is collected before it is named",
      large_bodies_at_any_moment, 0 },
    { "threads: two collections at once", collections_at_any_moment, 0 },
    { "threads: whatever is done while a session is deleted, nothing of it is left",
      deleted_at_any_moment, 0 },
};

const struct topic topic_interleave = { cases, COUNT_OF(cases) };
