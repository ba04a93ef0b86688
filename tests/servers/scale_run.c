#include "scale_run.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define KILLS 16
#define ALL_AT_KILL 2 /* then all four die */
#define PATIENCE_US ((int64_t)60 * 1000000)

extern char **environ;

static int64_t mono_us(void)
{
    struct belay_clock clock = clock_system();

    return clock.mono_us(clock.arg);
}

static void give_up(struct scale_run *r, const char *what)
{
    printf("Bail out! %s: %s\n", what, r->err.message);
    exit(1);
}

/* --- the store --- */

static void make_store(struct scale_run *r)
{
    struct belay_options options = { .size = sizeof(options) };

    if (!temp_dir_make(r->dir, sizeof(r->dir)))
        give_up(r, "no directory");
    (void)snprintf(r->notes, sizeof(r->notes), "%s/notes", r->dir);
    int fd = open(r->notes, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || close(fd))
        give_up(r, "no file for notes");
    url_store_name(&r->store, r->kind, r->dir);
    if (belay_open(r->store.url, &options, &r->b, &r->err) ||
        belay_arena_new(&r->arena, &r->err))
        give_up(r, "open");
}

void scale_run_release(struct scale_run *r)
{
    belay_arena_free(r->arena);
    belay_close(r->b);
    free(r->grant);
    temp_dir_remove(r->dir);
    url_store_drop(&r->store);
}

/* One of eight: every eighth inbox. */
static void fill(void *arg, unsigned i)
{
    static const char *const payload[] = { "{}" };
    struct scale_run *r = arg;
    struct belay_arena *arena = NULL;
    struct belay_enqueued out;
    struct belay_error err;
    char name[16];
    struct belay_draft draft = { .size = sizeof(draft),
                                 .session_id = name,
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_JOIN,
                                 .payloads = payload,
                                 .n_payloads = 1 };

    if (belay_arena_new(&arena, &err))
        abort();
    for (int32_t s = (int32_t)i; s < SCALE_SESSIONS; s += 8) {
        scale_session_name(s, name);
        for (int seq = 1; seq <= SCALE_PER_SESSION; seq++) {
            belay_arena_reset(arena);
            if (belay_queue_enqueue(r->b, &draft, arena, &out, &err) ||
                out.batch->enqueue_seq != seq)
                abort();
            (void)snprintf(r->id[s][seq], SCALE_ID_MAX, "%s", out.batch->batch_id);
        }
    }
    belay_arena_free(arena);
}

int64_t scale_listed(struct scale_run *r, int32_t session, bool pending,
                     int64_t *out_granted)
{
    struct belay_queue_page page = { .size = sizeof(page), .pending = pending };
    struct belay_batches out = { .n = 0 };
    char name[16];

    scale_session_name(session, name);
    belay_arena_reset(r->arena);
    if (belay_queue_list(r->b, name, &page, r->arena, &out, &r->err))
        give_up(r, "list");
    for (size_t i = 0; i < out.n; i++)
        *out_granted += out.batches[i].fence > 0;
    return (int64_t)out.n;
}

/* --- the processes --- */

static void start(struct scale_run *r, int32_t i)
{
    char name[] = "test_scale_out", word[] = "--worker", number[16], life[16];
    char *argv[] = { name, word, r->store.watched_url, r->notes, number, life, NULL };

    r->life[i]++;
    (void)snprintf(number, sizeof(number), "%d", (int)i);
    (void)snprintf(life, sizeof(life), "%d", (int)r->life[i]);
    if (posix_spawn(&r->pid[i], "/proc/self/exe", NULL, NULL, argv, environ))
        give_up(r, "no process can be started");
}

/* It has ended, by our hand or since it had nothing left to do. */
static void bury(struct scale_run *r, int32_t i, int status)
{
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

    r->kills += killed;
    r->wrong_ends += !killed && (!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    r->pid[i] = 0;
}

static void kill_one(struct scale_run *r, int32_t i)
{
    int status = 0;

    if (!r->pid[i])
        return;
    (void)kill(r->pid[i], SIGKILL);
    if (waitpid(r->pid[i], &status, 0) == r->pid[i])
        bury(r, i, status);
}

/* All die; when their leases have ended nothing is held. */
static void kill_all(struct scale_run *r)
{
    int64_t ignored = 0;

    for (int32_t i = 0; i < SCALE_PROCESSES; i++)
        kill_one(r, i);
    if (!url_store_settle(&r->store))
        give_up(r, "somebody is still there");
    (void)usleep((useconds_t)(SCALE_LEASE_MS + 50) * 1000);
    for (int32_t s = 0; s < SCALE_SESSIONS; s++)
        r->held +=
            scale_listed(r, s, false, &r->orphans) - scale_listed(r, s, true, &ignored);
}

static void kill_some(struct scale_run *r)
{
    for (unsigned i = 0; i < KILLS; i++) {
        (void)usleep((useconds_t)(20000 + rng_below(&r->rng, 180000)));
        if (i == ALL_AT_KILL)
            kill_all(r);
        else
            kill_one(r, (int32_t)rng_below(&r->rng, SCALE_PROCESSES));
        for (int32_t j = 0; j < SCALE_PROCESSES; j++) {
            if (!r->pid[j])
                start(r, j);
        }
    }
}

/* Those who live now finish. */
static void wait_for_all(struct scale_run *r)
{
    int64_t end_us = mono_us() + PATIENCE_US;
    int status = 0;

    for (int32_t i = 0; i < SCALE_PROCESSES; i++) {
        while (r->pid[i] && waitpid(r->pid[i], &status, WNOHANG) == 0 &&
               mono_us() < end_us)
            (void)usleep(5000);
        if (mono_us() < end_us)
            bury(r, i, status);
        r->wrong_ends += r->pid[i] != 0;
        kill_one(r, i);
    }
}

static void read_notes(struct scale_run *r)
{
    FILE *f = fopen(r->notes, "r");
    size_t room = 0;

    while (f) {
        if (r->n_grants == room) {
            room = room ? 2 * room : SCALE_BATCHES;
            r->grant = realloc(r->grant, room * sizeof(*r->grant));
            if (!r->grant)
                abort();
        }
        if (fread(&r->grant[r->n_grants], sizeof(*r->grant), 1, f) != 1)
            break;
        r->n_grants++;
    }
    if (!f || fclose(f))
        give_up(r, "the notes cannot be read");
}

void scale_run(struct scale_run *r, struct tap *t)
{
    r->ran = true;
    rng_init(&r->rng, 1);
    make_store(r);
    crew_run(t, 8, fill, r);
    int64_t begun_us = mono_us();
    for (int32_t i = 0; i < SCALE_PROCESSES; i++)
        start(r, i);
    kill_some(r);
    wait_for_all(r);
    read_notes(r);
    printf("# %u kills, %zu grants of %zu batches, %lld ms\n", r->kills, r->n_grants,
           SCALE_BATCHES, (long long)(mono_us() - begun_us) / 1000);
}
