#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/drivers/sqlite/wakefile.h"
#include "tap.h"

#define TOPIC(name) (&(const struct bytes){ (const uint8_t *)(name), sizeof(name) - 1 })
#define PAGE 4096
#define MAGIC UINT32_C(0x424c5702)
#define BUCKETS 512
#define LONG_US 20000000 /* far more than any wake-up takes */

/* A case's folder, and what its processes share. */
struct place {
    char dir[128];
    char db[192];
    char wake[256];
    struct belay_clock clock;
    enum wake_way way, other_way; /* of this process, of those it starts */
    struct shared {
        _Atomic int go, ready;
        _Atomic int64_t count;
    } * shared;
};

/* One opened wake-up file with its hub, as a driver has them. */
struct party {
    struct place *place;
    struct wake_hub *hub;
    struct wakefile *file;
    struct belay_arena arena;
};

static bool place_open(struct tap *t, struct place *p)
{
    const char *base = getenv("TMPDIR");

    *p = (struct place){ .clock = clock_system(),
                         .way = WAKE_BY_WATCHER,
                         .other_way = WAKE_BY_WATCHER };
    (void)snprintf(p->dir, sizeof(p->dir), "%s/belay-XXXXXX",
                   base && *base ? base : "/tmp");
    if (!TAP_OK(t, mkdtemp(p->dir)))
        return false;
    (void)snprintf(p->db, sizeof(p->db), "%s/a.db", p->dir);
    (void)snprintf(p->wake, sizeof(p->wake), "%s-wake", p->db);
    p->shared = mmap(NULL, sizeof(*p->shared), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return TAP_OK(t, p->shared != MAP_FAILED);
}

static void place_close(struct place *p)
{
    munmap(p->shared, sizeof(*p->shared));
    (void)unlink(p->wake);
    (void)rmdir(p->dir);
}

static void pause_us(struct place *p, int64_t us)
{
    p->clock.sleep_us(p->clock.arg, us);
}

static void await(struct place *p, _Atomic int *flag, int least)
{
    for (int i = 0; i < 20000 && atomic_load(flag) < least; i++)
        pause_us(p, 1000);
}

static bool party_open(struct party *y, struct place *p)
{
    *y = (struct party){ .place = p };
    return wake_hub_open(&y->hub, NULL) == BELAY_OK &&
           wakefile_open(&y->file, p->db, y->hub, p->way, NULL) == BELAY_OK;
}

static void party_close(struct party *y)
{
    wakefile_close(y->file);
    wake_hub_close(y->hub);
    arena_release(&y->arena);
}

static struct listener *listen_to(struct party *y, const struct bytes *topic)
{
    struct wake_topics wanted = { .ns = bytes_str("ns"), .topic = topic, .n = 1 };
    struct listener *l = NULL;

    return wake_listen(y->hub, &wanted, &y->place->clock, NULL, &y->arena, &l, NULL)
               ? NULL
               : l;
}

static belay_rc wait_for(struct party *y, struct listener *l)
{
    struct belay_clock *clock = &y->place->clock;

    return listener_wait(l, clock->mono_us(clock->arg) + LONG_US, NULL);
}

/* What a driver does after a commit: here, then elsewhere. */
static void post(struct party *y, const char *topic)
{
    wake_post(y->hub, bytes_str("ns"), bytes_str(topic));
    wakefile_post(y->file, bytes_str("ns"), bytes_str(topic));
}

/* Forks a process that runs fn and ends with what it returns.  Only while this one has
 * no threads. */
static pid_t spawn(struct place *p, int (*fn)(struct place *p))
{
    pid_t pid = fork();

    if (pid == 0) {
        p->way = p->other_way;
        _exit(fn(p));
    }
    return pid;
}

/* The two ways to sleep, and both on one file. */
static const enum wake_way ways[][2] = {
    { WAKE_ON_BUCKETS, WAKE_ON_BUCKETS },
    { WAKE_BY_WATCHER, WAKE_BY_WATCHER },
    { WAKE_ON_BUCKETS, WAKE_BY_WATCHER },
    { WAKE_BY_WATCHER, WAKE_ON_BUCKETS },
};

static bool place_open_way(struct tap *t, struct place *p, size_t i)
{
    bool ok = place_open(t, p);

    p->way = ways[i][0];
    p->other_way = ways[i][1];
    return ok;
}

static void reap(struct tap *t, pid_t pid)
{
    int status = -1;

    TAP_EQ(t, waitpid(pid, &status, 0), pid);
    TAP_EQ(t, status, 0);
}

static unsigned bucket_of(const char *topic)
{
    return wake_bucket(bytes_str("ns"), bytes_str(topic), BUCKETS);
}

static int post_one(struct place *p)
{
    struct party y;

    if (!party_open(&y, p))
        return 1;
    await(p, &p->shared->go, 1);
    atomic_store(&p->shared->count, 1);
    post(&y, "topic");
    party_close(&y);
    return 0;
}

static void another_process_wakes_way(struct tap *t, size_t way)
{
    struct place p;
    struct party y;

    if (!place_open_way(t, &p, way))
        return;
    pid_t pid = spawn(&p, post_one);
    if (TAP_OK(t, party_open(&y, &p))) {
        TAP_OK(t, bucket_of("topic") != bucket_of("foreign"));
        struct listener *l = listen_to(&y, TOPIC("topic"));
        struct listener *foreign = listen_to(&y, TOPIC("foreign"));
        atomic_store(&p.shared->go, 1);
        TAP_EQ(t, wait_for(&y, l), BELAY_OK);
        TAP_EQ(t, p.shared->count, 1); /* not before it was posted */
        reap(t, pid);
        TAP_OK(t, !listener_poll(foreign));
        TAP_EQ(t, wake_hub_counts(y.hub).delivered, 1);
        TAP_EQ(t, wake_hub_counts(y.hub).posted, 0);
        listener_close(l);
        listener_close(foreign);
    }
    party_close(&y);
    place_close(&p);
}

static void another_process_wakes(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(ways); i++)
        another_process_wakes_way(t, i);
}

/* Two processes answer each other: one wake-up lost and both wait in vain. */
#define ROUNDS 10000

static int volley(struct place *p, const struct bytes *mine, const char *other, int odd)
{
    struct party y;
    struct shared *s = p->shared;
    int rc = party_open(&y, p) ? 0 : 1;
    struct listener *l = rc ? NULL : listen_to(&y, mine);

    atomic_fetch_add(&s->ready, 1);
    await(p, &s->ready, 2);
    while (!rc && atomic_load(&s->count) < ROUNDS) {
        if (atomic_load(&s->count) % 2 == odd) {
            atomic_fetch_add(&s->count, 1);
            post(&y, other);
        } else if (wait_for(&y, l)) {
            rc = 2;
        }
    }
    listener_close(l);
    party_close(&y);
    return rc;
}

static int volley_odd(struct place *p)
{
    return volley(p, TOPIC("odd"), "even", 1);
}

static void two_processes_answer_each_other(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        struct place p;
        if (!place_open_way(t, &p, i))
            return;
        pid_t pid = spawn(&p, volley_odd);
        TAP_EQ(t, volley(&p, TOPIC("even"), "odd", 0), 0);
        reap(t, pid);
        TAP_EQ(t, p.shared->count, ROUNDS);
        place_close(&p);
    }
}

/* Several processes raise a counter, this one among them; a listener follows it. */
#define PRODUCERS 3
#define EACH 3000

static int produce(struct place *p)
{
    struct party y;

    if (!party_open(&y, p))
        return 1;
    await(p, &p->shared->go, 1);
    for (int i = 0; i < EACH; i++) {
        atomic_fetch_add(&p->shared->count, 1);
        post(&y, "stream");
    }
    party_close(&y);
    return 0;
}

static void *produce_here(void *arg)
{
    struct party *y = arg;

    for (int i = 0; i < EACH; i++) {
        atomic_fetch_add(&y->place->shared->count, 1);
        post(y, "stream");
        if (i % 64 == 0)
            pause_us(y->place, 50); /* so that the watcher goes to sleep in between */
    }
    return NULL;
}

static void no_wake_up_is_lost_way(struct tap *t, size_t way)
{
    struct place p;
    struct party y;
    pid_t pids[PRODUCERS];
    pthread_t here;

    if (!place_open_way(t, &p, way))
        return;
    for (int i = 0; i < PRODUCERS; i++)
        pids[i] = spawn(&p, produce);
    if (TAP_OK(t, party_open(&y, &p))) {
        struct listener *l = listen_to(&y, TOPIC("stream"));
        atomic_store(&p.shared->go, 1);
        TAP_EQ(t, pthread_create(&here, NULL, produce_here, &y), 0);
        while (atomic_load(&p.shared->count) < (int64_t)(PRODUCERS + 1) * EACH) {
            if (!TAP_EQ(t, wait_for(&y, l), BELAY_OK))
                break;
        }
        pthread_join(here, NULL);
        listener_close(l);
    }
    for (int i = 0; i < PRODUCERS; i++)
        reap(t, pids[i]);
    party_close(&y);
    place_close(&p);
}

static void no_wake_up_is_lost(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(ways); i++)
        no_wake_up_is_lost_way(t, i);
}

static uint32_t word_of(struct place *p, unsigned i)
{
    uint32_t word = 0;
    int fd = open(p->wake, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!pread(fd, &word, sizeof(word), (off_t)(i * sizeof(word)));
        close(fd);
    }
    return word;
}

/* Until n watchers sleep, or have been woken and not yet run. */
static bool asleep(struct place *p, uint32_t n)
{
    for (int i = 0; i < 20000; i++) {
        if (word_of(p, 2) == n)
            return true;
        pause_us(p, 1000);
    }
    return false;
}

static void own_posts_do_not_come_back(struct tap *t)
{
    struct place p;
    struct party y, other;

    if (!place_open(t, &p))
        return;
    if (TAP_OK(t, party_open(&y, &p)) && TAP_OK(t, party_open(&other, &p))) {
        struct listener *l = listen_to(&y, TOPIC("topic"));
        TAP_OK(t, asleep(&p, 1));
        for (int i = 0; i < 1000; i++)
            wakefile_post(y.file, bytes_str("ns"), bytes_str("topic"));
        TAP_EQ(t, word_of(&p, 1), 1000);
        TAP_OK(t, !listener_poll(l));

        /* The same while others sleep too: the watcher runs, and knows whose it was. */
        struct listener *theirs = listen_to(&other, TOPIC("topic"));
        TAP_OK(t, asleep(&p, 2));
        for (int i = 0; i < 50; i++) {
            wakefile_post(y.file, bytes_str("ns"), bytes_str("topic"));
            TAP_EQ(t, wait_for(&other, theirs), BELAY_OK);
            TAP_OK(t, asleep(&p, 2));
        }
        TAP_OK(t,
               wake_hub_counts(y.hub).delivered < 5); /* looked in the same instant */
        (void)!listener_poll(l);

        /* And a post of others among ours is never taken for one of ours. */
        wakefile_post(y.file, bytes_str("ns"), bytes_str("topic"));
        wakefile_post(other.file, bytes_str("ns"), bytes_str("topic"));
        wakefile_post(y.file, bytes_str("ns"), bytes_str("topic"));
        TAP_EQ(t, wait_for(&y, l), BELAY_OK);
        listener_close(l);
        listener_close(theirs);
    }
    party_close(&y);
    party_close(&other);
    place_close(&p);
}

/* --- listeners that sleep on their buckets --- */

#define BUCKETS_AT 16 /* words */

static bool somebody_sleeps_on(struct place *p, const char *topic)
{
    for (int i = 0; i < 20000; i++) {
        if ((word_of(p, BUCKETS_AT + bucket_of(topic)) & 1) != 0)
            return true;
        pause_us(p, 1000);
    }
    return false;
}

static int threads(void);

static void *wait_once(void *arg)
{
    struct belay_clock clock = clock_system();

    return listener_wait(arg, clock.mono_us(clock.arg) + LONG_US, NULL) ? arg : NULL;
}

static void posts_to_others_leave_a_listener_asleep(struct tap *t)
{
    struct place p;
    struct party y, other;
    pthread_t thread;
    void *failed = t;

    if (!place_open_way(t, &p, 0) || !TAP_OK(t, park_words_work()))
        return;
    if (TAP_OK(t, party_open(&y, &p)) && TAP_OK(t, party_open(&other, &p))) {
        int before = threads();
        struct listener *l = listen_to(&y, TOPIC("topic"));
        TAP_EQ(t, threads(), before); /* nobody watches for it */
        TAP_EQ(t, pthread_create(&thread, NULL, wait_once, l), 0);
        TAP_OK(t, somebody_sleeps_on(&p, "topic"));
        for (int i = 0; i < 100; i++)
            post(&other, "foreign");
        pause_us(&p, 50000);
        TAP_EQ(t, wake_hub_counts(y.hub).delivered, 0);
        TAP_EQ(t, wake_hub_counts(y.hub).waits, 0);
        TAP_EQ(t, word_of(&p, BUCKETS_AT + bucket_of("topic")), 1);
        post(&other, "topic");
        pthread_join(thread, &failed);
        TAP_OK(t, !failed);
        TAP_EQ(t, wake_hub_counts(y.hub).delivered, 1);
        listener_close(l);
    }
    party_close(&y);
    party_close(&other);
    place_close(&p);
}

/* Of two listeners of a process one sees the bucket first; the other is told by it. */
static void listeners_of_a_process_tell_each_other(struct tap *t)
{
    struct place p;
    struct party y, other;
    pthread_t thread;
    void *failed = t;

    if (!place_open_way(t, &p, 0))
        return;
    if (TAP_OK(t, party_open(&y, &p)) && TAP_OK(t, party_open(&other, &p))) {
        struct listener *a = listen_to(&y, TOPIC("topic"));
        struct listener *b = listen_to(&y, TOPIC("topic"));
        post(&other, "topic");
        TAP_OK(t, listener_poll(a));
        TAP_OK(t, listener_poll(b));
        TAP_OK(t, !listener_poll(a));
        TAP_EQ(t, pthread_create(&thread, NULL, wait_once, a), 0);
        TAP_OK(t, somebody_sleeps_on(&p, "topic"));
        post(&other, "topic");
        TAP_EQ(t, wait_for(&y, b), BELAY_OK);
        pthread_join(thread, &failed);
        TAP_OK(t, !failed);

        /* Who comes later was told by what it finds in the store. */
        post(&other, "topic");
        struct listener *c = listen_to(&y, TOPIC("topic"));
        TAP_OK(t, !listener_poll(c));
        TAP_OK(t, listener_poll(a));

        /* What this process posts does not come back by the page. */
        (void)!listener_poll(b);
        wakefile_post(y.file, bytes_str("ns"), bytes_str("topic"));
        TAP_OK(t, !listener_poll(a) && !listener_poll(b) && !listener_poll(c));
        listener_close(a);
        listener_close(b);
        listener_close(c);
    }
    party_close(&y);
    party_close(&other);
    place_close(&p);
}

static void too_many_topics_have_a_watcher(struct tap *t)
{
    struct place p;
    struct party y, other;
    struct bytes topics[PARK_WORDS_MAX + 1];
    char names[PARK_WORDS_MAX + 1][24];
    struct wake_topics wanted = { .ns = bytes_str("ns"), .topic = topics };
    struct listener *l;

    if (!place_open_way(t, &p, 0))
        return;
    for (int i = 0; i <= PARK_WORDS_MAX; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "topic-%d", i);
        topics[i] = bytes_str(names[i]);
    }
    if (TAP_OK(t, party_open(&y, &p)) && TAP_OK(t, party_open(&other, &p))) {
        int before = threads();
        for (wanted.n = PARK_WORDS_MAX; wanted.n <= PARK_WORDS_MAX + 1; wanted.n++) {
            TAP_EQ(t, wake_listen(y.hub, &wanted, &p.clock, NULL, &y.arena, &l, NULL),
                   BELAY_OK);
            TAP_EQ(t, threads(), before + (wanted.n > PARK_WORDS_MAX));
            post(&other, names[wanted.n - 1]);
            TAP_EQ(t, wait_for(&y, l), BELAY_OK);
            listener_close(l);
        }
    }
    party_close(&y);
    party_close(&other);
    place_close(&p);
}

static int listen_for_ever(struct place *p);

static void a_killed_listener_costs_one_call(struct tap *t)
{
    struct place p;
    struct party y;

    if (!place_open_way(t, &p, 0))
        return;
    pid_t sleeper = spawn(&p, listen_for_ever);
    TAP_OK(t, somebody_sleeps_on(&p, "topic"));
    kill(sleeper, SIGKILL);
    TAP_EQ(t, waitpid(sleeper, NULL, 0), sleeper);
    pid_t poster = spawn(&p, post_one);
    if (TAP_OK(t, party_open(&y, &p))) {
        struct listener *l = listen_to(&y, TOPIC("topic"));
        atomic_store(&p.shared->go, 1);
        TAP_EQ(t, wait_for(&y, l), BELAY_OK); /* another one goes on */
        reap(t, poster);
        post(&y, "topic");
        TAP_EQ(t, word_of(&p, BUCKETS_AT + bucket_of("topic")) & 1, 0);
        listener_close(l);
    }
    party_close(&y);
    place_close(&p);
}

static void *wait_a_while(void *arg)
{
    struct belay_clock clock = clock_system();

    (void)!listener_wait(arg, clock.mono_us(clock.arg) + 400000, NULL);
    return NULL;
}

static void nothing_runs_while_nothing_is_posted(struct tap *t)
{
    struct place p;
    struct party y, other;
    pthread_t thread;

    if (!place_open(t, &p))
        return;
    if (TAP_OK(t, party_open(&y, &p)) && TAP_OK(t, party_open(&other, &p))) {
        struct listener *l = listen_to(&y, TOPIC("topic"));
        TAP_EQ(t, pthread_create(&thread, NULL, wait_a_while, l), 0);
        TAP_OK(t, asleep(&p, 1));
        pause_us(&p, 200000);
        TAP_EQ(t, word_of(&p, 2), 1);
        TAP_EQ(t, word_of(&p, 1), 0);
        TAP_EQ(t, wake_hub_counts(y.hub).waits, 0);
        TAP_EQ(t, wake_hub_counts(y.hub).delivered, 0);
        pthread_join(thread, NULL);
        listener_close(l);
    }
    party_close(&y);
    party_close(&other);
    place_close(&p);
}

static int threads(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static void the_watcher_lives_from_the_first_listener_to_close(struct tap *t)
{
    struct place p;
    struct party y, other;
    int before = threads();

    if (!place_open(t, &p))
        return;
    if (TAP_OK(t, party_open(&y, &p)) && TAP_OK(t, party_open(&other, &p))) {
        post(&y, "topic");
        post(&other, "topic");
        TAP_EQ(t, threads(), before); /* who only posts has none */
        struct listener *a = listen_to(&y, TOPIC("topic"));
        struct listener *b = listen_to(&y, TOPIC("topic"));
        TAP_EQ(t, threads(), before + 1);
        TAP_OK(t, asleep(&p, 1));
        TAP_OK(t, !listener_poll(a)); /* those were before its time */
        TAP_EQ(t, wake_hub_counts(y.hub).delivered, 0);
        listener_close(a);
        listener_close(b);
        TAP_EQ(t, threads(), before + 1);
    }
    party_close(&y);
    party_close(&other);
    for (int i = 0; i < 5000 && threads() != before; i++)
        pause_us(&p, 1000); /* the kernel takes the name away a little later */
    TAP_EQ(t, threads(), before);
    TAP_EQ(t, word_of(&p, 2), 0);
    wakefile_close(NULL);
    place_close(&p);
}

/* Two handles of one process hear each other, so the file is in order. */
static void file_works(struct tap *t, struct place *p)
{
    struct party a, b;
    struct stat st = { .st_size = 0 };

    if (TAP_OK(t, party_open(&a, p)) && TAP_OK(t, party_open(&b, p))) {
        TAP_EQ(t, stat(p->wake, &st), 0);
        TAP_OK(t, st.st_size >= PAGE);
        TAP_EQ(t, word_of(p, 0), MAGIC);
        struct listener *la = listen_to(&a, TOPIC("a"));
        struct listener *lb = listen_to(&b, TOPIC("b"));
        post(&a, "b");
        TAP_EQ(t, wait_for(&b, lb), BELAY_OK);
        post(&b, "a");
        TAP_EQ(t, wait_for(&a, la), BELAY_OK);
        TAP_OK(t, asleep(p, 2));
        post(&b, "a");
        TAP_EQ(t, wait_for(&a, la), BELAY_OK);
        TAP_OK(t, !listener_poll(lb));
        listener_close(la);
        listener_close(lb);
    }
    party_close(&a);
    party_close(&b);
}

static void file_write(struct tap *t, struct place *p, const void *bytes, size_t len)
{
    int fd = open(p->wake, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    TAP_EQ(t, write(fd, bytes, len), len);
    close(fd);
}

static void a_file_that_is_not_ours_is_put_in_order(struct tap *t)
{
    const uint32_t newer[] = { MAGIC + 1, 7, UINT32_MAX, 9 };
    uint8_t noise[2 * PAGE];
    struct place p;
    struct party y;

    if (!place_open(t, &p))
        return;
    memset(noise, 0xff, sizeof(noise));
    file_works(t, &p);
    file_works(t, &p);
    file_write(t, &p, "", 0);
    file_works(t, &p);
    file_write(t, &p, "not a wake-up file\n", 19);
    file_works(t, &p);
    file_write(t, &p, newer, sizeof(newer));
    file_works(t, &p);
    file_write(t, &p, noise, PAGE);
    file_works(t, &p);
    file_write(t, &p, noise, sizeof(noise));
    file_works(t, &p);

    /* While somebody uses it, only what is wrong for sure is changed. */
    if (TAP_OK(t, party_open(&y, &p))) {
        int fd = open(p.wake, O_WRONLY | O_CLOEXEC);
        TAP_EQ(t, pwrite(fd, newer, 8, 0), 8);
        close(fd);
        file_works(t, &p);
        TAP_OK(t, word_of(&p, 1) > 7);
    }
    party_close(&y);
    place_close(&p);
}

static int listen_for_ever(struct place *p)
{
    struct party y;

    if (!party_open(&y, p))
        return 1;
    struct listener *l = listen_to(&y, TOPIC("topic"));
    for (;;)
        (void)!listener_wait(l, DEADLINE_NONE, NULL);
}

static void a_killed_listener_disturbs_nobody(struct tap *t)
{
    struct place p;
    struct party y, other;

    if (!place_open(t, &p))
        return;
    pid_t poster = spawn(&p, post_one), sleeper = spawn(&p, listen_for_ever);
    if (TAP_OK(t, party_open(&y, &p)) && TAP_OK(t, party_open(&other, &p))) {
        struct listener *l = listen_to(&y, TOPIC("topic"));
        TAP_OK(t, asleep(&p, 2));
        kill(sleeper, SIGKILL);
        TAP_EQ(t, waitpid(sleeper, NULL, 0), sleeper);
        TAP_EQ(t, word_of(&p, 2), 2); /* nobody took it out */
        atomic_store(&p.shared->go, 1);
        TAP_EQ(t, wait_for(&y, l), BELAY_OK);
        reap(t, poster);
        post(&other, "topic");
        TAP_EQ(t, wait_for(&y, l), BELAY_OK);
        listener_close(l);
    }
    party_close(&y);
    party_close(&other);
    TAP_EQ(t, word_of(&p, 2), 1);
    file_works(t,
               &p); /* waits for exactly two sleepers: the next one alone cleared it */
    place_close(&p);
}

static void a_child_after_fork_can_close_it(struct tap *t)
{
    struct place p;
    struct party y, other;

    if (!place_open(t, &p))
        return;
    if (TAP_OK(t, party_open(&y, &p)) && TAP_OK(t, party_open(&other, &p))) {
        struct listener *l = listen_to(&y, TOPIC("topic"));
        TAP_OK(t, asleep(&p, 1));
        pid_t pid = fork();
        if (pid == 0) {
            wakefile_close(y.file);
            _exit(0);
        }
        reap(t, pid);
        post(&other, "topic");
        TAP_EQ(t, wait_for(&y, l), BELAY_OK);
        listener_close(l);
    }
    party_close(&y);
    party_close(&other);
    place_close(&p);
}

static void what_cannot_be_opened_says_why(struct tap *t)
{
    struct place p;
    struct belay_error err = { .message = "" };
    struct wake_hub *hub = NULL;
    struct wakefile *w = NULL;
    char path[256];
    struct stat st = { .st_mode = 0 };

    if (!place_open(t, &p) || !TAP_EQ(t, wake_hub_open(&hub, NULL), BELAY_OK))
        return;
    (void)snprintf(path, sizeof(path), "%s/none/a.db", p.dir);
    TAP_EQ(t, wakefile_open(&w, path, hub, WAKE_ON_BUCKETS, &err), BELAY_UNAVAILABLE);
    TAP_OK(t, strstr(err.message, "none/a.db-wake: no such folder"));
    TAP_EQ(t, symlink("elsewhere", p.wake), 0);
    TAP_EQ(t, wakefile_open(&w, p.db, hub, WAKE_ON_BUCKETS, &err), BELAY_UNAVAILABLE);
    TAP_OK(t, strstr(err.message, "a.db-wake: is a symbolic link"));
    TAP_OK(t, !w);
    (void)unlink(p.wake);
    TAP_EQ(t, wakefile_open(&w, p.db, hub, WAKE_ON_BUCKETS, &err), BELAY_OK);
    TAP_EQ(t, stat(p.wake, &st), 0);
    TAP_EQ(t, st.st_mode & 07777, 0600);
    wakefile_close(w);
    wake_hub_close(hub);
    place_close(&p);
}

static void a_bucket_wakes_all_its_topics(struct tap *t)
{
    static const unsigned divisions[] = { 1, 7, 64, 100, BUCKETS };
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    struct belay_clock clock = clock_system();
    struct belay_arena arena = { .first = NULL };
    struct listener *l[COUNT_OF(names)] = { NULL };
    struct wake_hub *hub;

    if (!TAP_EQ(t, wake_hub_open(&hub, NULL), BELAY_OK))
        return;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct bytes topic = bytes_str(names[i]);
        struct wake_topics wanted = { .ns = bytes_str("ns"), .topic = &topic, .n = 1 };
        TAP_EQ(t, wake_listen(hub, &wanted, &clock, NULL, &arena, &l[i], NULL),
               BELAY_OK);
    }
    for (size_t d = 0; d < COUNT_OF(divisions); d++) {
        for (unsigned b = 0; b < divisions[d]; b++) {
            wake_post_bucket(hub, b, divisions[d]);
            for (size_t i = 0; i < COUNT_OF(names); i++) {
                unsigned home =
                    wake_bucket(bytes_str("ns"), bytes_str(names[i]), divisions[d]);
                TAP_EQ(t, listener_poll(l[i]), home == b);
            }
        }
    }
    TAP_EQ(t, wake_hub_counts(hub).delivered, COUNT_OF(names) * COUNT_OF(divisions));
    TAP_EQ(t, wake_hub_counts(hub).posted, 0);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        listener_close(l[i]);
    arena_release(&arena);
    wake_hub_close(hub);
}

static const struct tap_case cases[] = {
    { "a bucket wakes all its topics and no others", a_bucket_wakes_all_its_topics },
    { "another process wakes, and only who listens", another_process_wakes },
    { "two processes answer each other", two_processes_answer_each_other },
    { "no wake-up is lost", no_wake_up_is_lost },
    { "own posts do not come back, others' always come", own_posts_do_not_come_back },
    { "posts to others leave a listener asleep",
      posts_to_others_leave_a_listener_asleep },
    { "listeners of a process tell each other",
      listeners_of_a_process_tell_each_other },
    { "too many topics have a watcher", too_many_topics_have_a_watcher },
    { "a killed listener costs one call", a_killed_listener_costs_one_call },
    { "nothing runs while nothing is posted", nothing_runs_while_nothing_is_posted },
    { "the watcher lives from the first listener to close",
      the_watcher_lives_from_the_first_listener_to_close },
    { "a file that is not ours is put in order",
      a_file_that_is_not_ours_is_put_in_order },
    { "a killed listener disturbs nobody", a_killed_listener_disturbs_nobody },
    { "a child after fork can close it", a_child_after_fork_can_close_it },
    { "what cannot be opened says why", what_cannot_be_opened_says_why },
};

int main(int argc, char **argv)
{
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
