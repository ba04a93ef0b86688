/* Two processes on one store.  The program starts itself with a role and the store's URL;
 * a child tells on standard output what it was told, a line each, and fails by its exit
 * status.  Nobody forks with a handle open: a child begins anew. */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "children.h"

#define ROUNDS 40
#define BATCHES 60

/* --- the child --- */

void child_tell(const char *what, int64_t a, int64_t b)
{
    char line[64];
    int len = snprintf(line, sizeof(line), "%s %lld %lld\n", what, (long long)a,
                       (long long)b);

    if (write(STDOUT_FILENO, line, (size_t)len) != len)
        _exit(9);
}

static void race(struct world *w)
{
    for (int i = 0; i < ROUNDS; i++) {
        belay_rc rc = say(w, "s", i, text(w, "n%d.%lld", i, (long long)getpid()), NULL);
        if (rc == BELAY_OK)
            child_tell("won", i, w->committed.revision);
        else if (!RC(w, rc, BELAY_HEAD_REVISION_CONFLICT) || !OK(w, w->err.actual > i))
            return;
    }
}

static void work_off(struct world *w)
{
    const char *owner = text(w, "p%lld", (long long)getpid());

    while (strcmp(listed(w, "s"), "") != 0) {
        const struct belay_claim *c =
            ask(w, (struct ask){ .owner = owner, .max = 2, .wait = 20 });
        if (!c)
            continue;
        for (size_t i = 0; i < c->n_batches; i++)
            child_tell("took", c->batches[i].enqueue_seq, c->batches[i].fence);
        if (!RC(w, finish(w, "s", BELAY_ANY_REVISION, c), BELAY_OK))
            return;
    }
}

static void enqueue_later(struct world *w)
{
    world_pass(w, 50);
    post_many(w, "s", 1);
}

/* Until it is killed: a batch in, a claim, a commit that completes it. */
static void live(struct world *w)
{
    for (;;) {
        const struct belay_batch *b = post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
        if (!b)
            return;
        child_tell("in", b->enqueue_seq, 0);
        const struct belay_claim *c = ask(w, (struct ask){ .lease = AT_ONCE });
        if (!c)
            return;
        int64_t seq = c->batches[0].enqueue_seq;
        const char *json = node(w, text(w, "n%lld", (long long)seq), NULL);
        struct belay_checkpoint cp = { .tool_state = { .body = json,
                                                       .len = strlen(json) },
                                       .plugin_snapshot_revision = BELAY_NONE };
        struct belay_commit all = { .expected_revision = BELAY_ANY_REVISION,
                                    .turn_id = text(w, "t%lld", (long long)seq),
                                    .graph = BELAY_GRAPH_APPEND,
                                    .nodes = &json,
                                    .n_nodes = 1,
                                    .checkpoint = &cp,
                                    .completes = &c,
                                    .n_completes = 1 };
        if (!RC(w, commit(w, "s", all), BELAY_OK))
            return;
        child_tell("out", seq, w->committed.revision);
    }
}

int child_main(int argc, char **argv)
{
    static const struct {
        const char *role;
        void (*play)(struct world *w);
    } roles[] = { { "race", race },
                  { "work", work_off },
                  { "enqueue", enqueue_later },
                  { "live", live },
                  { "append", child_appends },
                  { "process", child_lives },
                  { "hold", child_holds } };
    struct tap t = { .name = "child" };
    struct world w;

    if (argc != 2 || !world_join(&w, &t, argv[1]))
        return 2;
    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        if (strcmp(roles[i].role, argv[0]) == 0)
            roles[i].play(&w);
    }
    world_part(&w);
    return t.failed > 0;
}

/* --- the parent --- */

bool child_start(struct world *w, struct child *c, const char *role)
{
    char self[] = "/proc/self/exe", flag[] = "--child", role_arg[32];
    char *argv[] = { self, flag, role_arg, w->url, NULL };
    posix_spawn_file_actions_t actions;
    int ends[2];

    (void)snprintf(role_arg, sizeof(role_arg), "%s", role);
    *c = (struct child){ 0 };
    if (!OK(w, pipe2(ends, O_CLOEXEC) == 0))
        return false;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int failed = posix_spawn(&c->pid, self, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    c->says = fdopen(ends[0], "r");
    return OK(w, failed == 0) && OK(w, c->says != NULL);
}

/* "what a b": false when it is something else. */
static bool parse(const char *line, char what[16], long long *a, long long *b)
{
    size_t len = strcspn(line, " ");
    char *rest = NULL;

    if (line[0] == '#' || line[len] != ' ' || len >= 16)
        return false;
    memcpy(what, line, len);
    what[len] = 0;
    *a = strtoll(line + len, &rest, 10);
    if (rest == line + len || *rest != ' ')
        return false;
    *b = strtoll(rest, &rest, 10);
    return *rest == '\n';
}

bool child_hear(struct child *c, char what[16], long long *a, long long *b)
{
    char line[512];

    while (fgets(line, sizeof(line), c->says)) {
        if (parse(line, what, a, b))
            return true;
        printf("# child: %s", line);
    }
    return false;
}

void child_end(struct world *w, struct child *c, bool killed)
{
    int status = 0;

    if (c->says)
        (void)fclose(c->says);
    if (c->pid <= 0)
        return;
    (void)waitpid(c->pid, &status, 0);
    if (!killed)
        OK(w, WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void one_winner_of_two(struct world *w)
{
    struct child c[2];
    int wins[ROUNDS] = { 0 };
    char what[16];
    long long round = 0, rev = 0;

    bool ok = child_start(w, &c[0], "race") && child_start(w, &c[1], "race");
    for (int i = 0; ok && i < 2; i++) {
        while (child_hear(&c[i], what, &round, &rev)) {
            EQ(w, rev, round + 1);
            wins[round >= 0 && round < ROUNDS ? round : 0]++;
        }
    }
    child_end(w, &c[0], false);
    child_end(w, &c[1], false);
    for (int i = 0; i < ROUNDS; i++)
        EQ(w, wins[i], 1);
    EQ(w, revision(w, "s"), ROUNDS);
}

static void claims_do_not_overlap(struct world *w)
{
    struct child c[2];
    int taken[BATCHES + 1] = { 0 };
    char what[16];
    long long seq = 0, fence = 0;

    post_many(w, "s", BATCHES);
    bool ok = child_start(w, &c[0], "work") && child_start(w, &c[1], "work");
    for (int i = 0; ok && i < 2; i++) {
        while (child_hear(&c[i], what, &seq, &fence)) {
            EQ(w, fence, 1); /* nobody else was granted it */
            taken[seq >= 1 && seq <= BATCHES ? seq : 0]++;
        }
    }
    child_end(w, &c[0], false);
    child_end(w, &c[1], false);
    for (int i = 1; i <= BATCHES; i++)
        EQ(w, taken[i], 1);
    EQ(w, taken[0], 0);
    STR(w, listed(w, "s"), "");
}

int64_t mono_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The other one ends as soon as it has enqueued. */
static void woken_by_another_process(struct world *w)
{
    struct child c;
    int64_t begun = mono_ms();

    if (!child_start(w, &c, "enqueue"))
        return;
    STR(w, seqs(w, ask(w, (struct ask){ .wait = 20000 })), "1");
    /* It was woken, and did not just look again after a while. */
    OK(w, mono_ms() - begun < 4000);
    child_end(w, &c, false);
}

/* What was told must be there; what was not may be, but only whole. */
static void judge(struct world *w, long long in, long long out, long long rev)
{
    struct belay_commit_log log = { 0 };
    struct belay_checkpoint_info info = { 0 };

    OK(w, revision(w, "s") >= rev);
    if (w->head.revision == 0)
        return;
    RC(w, belay_session_log(session(w, "s"), 0, 1000, w->arena, &log, &w->err),
       BELAY_OK);
    for (size_t i = 0; i < log.n; i++)
        EQ(w, log.entries[i].revision, (int64_t)i + 1);
    if (log.next_after == 0)
        EQ(w, log.n, w->head.revision);
    EQ(w, w->head.node_count, w->head.revision);
    RC(w, belay_session_checkpoint(session(w, "s"), w->arena, &info, &w->err),
       BELAY_OK);
    const struct belay_batch *gone = batch_now(w, "s", out);
    OK(w, out == 0 || !gone);
    const struct belay_batch *b = post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
    if (b) {
        OK(w, b->enqueue_seq > in);
        OK(w, cancelled(w, "s", b->batch_id) != NULL);
    }
}

/* 5.2, 12, as far as it shows: killed anywhere, again and again, on one store. */
static void killed_anywhere(struct world *w)
{
    long long in = 0, out = 0, rev = 0, a = 0, b = 0;

    for (int round = 0; round < 6; round++) {
        struct child c;
        char what[16];
        int heard = 0;

        if (!child_start(w, &c, "live"))
            return;
        while (child_hear(&c, what, &a, &b)) {
            if (strcmp(what, "in") == 0)
                in = a;
            else
                out = a, rev = b;
            if (++heard == 5 + round * 3)
                (void)kill(c.pid, SIGKILL);
        }
        child_end(w, &c, true);
        w->use = round % 2 ? w->b : w->a;
        judge(w, in, out, rev);
    }
    collect(w);
    OK(w, w->gc.outcome == BELAY_GC_SWEPT || w->gc.outcome == BELAY_GC_NOTHING);
    EQ(w, w->gc.retained_blobs, 2);
}

static const struct noun_case cases[] = {
    { "two processes: of two commits that name a revision one wins", one_winner_of_two,
      CASE_SHARED | CASE_REAL_TIME },
    { "two processes: claims never overlap", claims_do_not_overlap,
      CASE_SHARED | CASE_REAL_TIME },
    { "two processes: a waiting claim is woken by the other's enqueue",
      woken_by_another_process, CASE_SHARED | CASE_REAL_TIME },
    { "kill -9 anywhere: what was acknowledged is there, and nothing by halves",
      killed_anywhere, CASE_SHARED | CASE_REAL_TIME },
};

const struct topic topic_processes = { cases, COUNT_OF(cases) };
