/* Segments that are damaged, foreign, cut or old; and making and removing them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "fleet/impl.h"
#include "fleet/step.h"
#include "test_fleet.h"

static const char *path_of(const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof(path), "./belay-%u-%s", (unsigned)geteuid(), name);
    return path;
}

/* A fleet with some content and a dead member, without anybody in it. */
static void make(struct tap *t, const char *name)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = must_join(name, &o), *g = must_join(name, &o);

    TAP_OK(t, try_now(t, g, "left", "the dead", 1000000).is_claimed);
    TAP_OK(t, try_now(t, f, "free", "the living", 1000000).is_claimed);
    fleet_abandon(g);
    belay_fleet_leave(f);
}

static void drop(const char *name)
{
    (void)unlink(path_of(name));
}

static belay_rc join_code(const char *name, char reason[32])
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f = NULL;
    struct belay_error err = { 0 };
    belay_rc rc = belay_fleet_join(name, &o, &f, &err);

    memcpy(reason, err.reason, 32);
    if (rc == BELAY_OK)
        belay_fleet_leave(f);
    return rc;
}

static void poke(const char *name, off_t at, const void *data, size_t len)
{
    int fd = open(path_of(name), O_RDWR);

    if (fd < 0 || pwrite(fd, data, len, at) != (ssize_t)len)
        printf("Bail out! cannot write to the segment\n");
    (void)close(fd);
}

static void every_field_of_the_header_is_checked(struct tap *t)
{
    static const struct {
        const char *field;
        off_t at;
        uint64_t value;
        size_t len;
        belay_rc rc;
        const char *reason;
    } rows[] = {
#define FIELD(f) offsetof(struct segment_header, f)
        { "magic", FIELD(magic), 1, 8, BELAY_UNSUPPORTED_FORMAT, "magic" },
        { "magic 0", FIELD(magic), 0, 8, BELAY_UNSUPPORTED_FORMAT, "magic" },
        { "abi", FIELD(abi), 0, 4, BELAY_UNSUPPORTED_FORMAT, "abi" },
        { "abi newer", FIELD(abi), 2, 4, BELAY_UNSUPPORTED_FORMAT, "abi" },
        { "header_len", FIELD(header_len), 8, 4, BELAY_UNSUPPORTED_FORMAT, "abi" },
        { "abi_hash", FIELD(abi_hash), 8, 8, BELAY_UNSUPPORTED_FORMAT, "abi" },
        { "total_len", FIELD(total_len), 4096, 8, BELAY_CORRUPT, "geometry" },
        { "boot", FIELD(boot), 4, 8, BELAY_UNSUPPORTED_FORMAT, "boot" },
        { "time_space", FIELD(time_space), 4, 8, BELAY_INVALID, "time_namespace" },
        { "clock_base", FIELD(clock_base_us), INT64_MAX, 8, BELAY_CORRUPT, "clock" },
        { "clock_base < 0", FIELD(clock_base_us), UINT64_MAX, 8, BELAY_CORRUPT,
          "clock" },
        { "fleet_size", FIELD(fleet_size), 9, 4, BELAY_CORRUPT, "geometry" },
        { "fleet_size 0", FIELD(fleet_size), 0, 4, BELAY_CORRUPT, "geometry" },
        { "fleet_size ~0", FIELD(fleet_size), ~0U, 4, BELAY_CORRUPT, "geometry" },
        { "subjects", FIELD(subjects), 128, 4, BELAY_CORRUPT, "geometry" },
        { "subjects odd", FIELD(subjects), 63, 4, BELAY_CORRUPT, "geometry" },
        { "subjects ~0", FIELD(subjects), ~0U, 4, BELAY_CORRUPT, "geometry" },
        { "holds", FIELD(holds), 17, 4, BELAY_CORRUPT, "geometry" },
        { "holds ~0", FIELD(holds), ~0U, 4, BELAY_CORRUPT, "geometry" },
        { "words", FIELD(words), 65, 4, BELAY_CORRUPT, "geometry" },
        { "words 0", FIELD(words), 0, 4, BELAY_CORRUPT, "geometry" },
        { "log_capacity", FIELD(log_capacity), 65, 4, BELAY_CORRUPT, "geometry" },
        { "is_virtual", FIELD(is_virtual), 2, 4, BELAY_CORRUPT, "geometry" },
        { "arena_len", FIELD(arena_len), 1, 8, BELAY_CORRUPT, "geometry" },
        { "arena_len ~0", FIELD(arena_len), UINT64_MAX, 8, BELAY_CORRUPT, "geometry" },
        { "name", FIELD(name), 'x', 1, BELAY_CORRUPT, "name" },
    };
    char reason[32];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        make(t, "header");
        poke("header", rows[i].at, &rows[i].value, rows[i].len);
        if (!TAP_EQ(t, join_code("header", reason), rows[i].rc) ||
            !TAP_STR(t, reason, rows[i].reason))
            printf("# field %s\n", rows[i].field);
        drop("header");
    }
}

static void a_segment_of_another_length_is_refused(struct tap *t)
{
    static const struct {
        off_t change;
        belay_rc rc;
    } rows[] = { { -1, BELAY_CORRUPT },
                 { -4096, BELAY_CORRUPT },
                 { 1, BELAY_CORRUPT } };
    char reason[32];
    struct stat st;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        make(t, "cut");
        TAP_EQ(t, stat(path_of("cut"), &st), 0);
        TAP_EQ(t, truncate(path_of("cut"), st.st_size + rows[i].change), 0);
        TAP_EQ(t, join_code("cut", reason), rows[i].rc);
        TAP_STR(t, reason, "truncated");
        drop("cut");
    }
    for (off_t len = 0; len < 300; len += 23) {
        make(t, "cut");
        TAP_EQ(t, truncate(path_of("cut"), len), 0);
        belay_rc rc = join_code("cut", reason);
        TAP_OK(t, rc == BELAY_UNSUPPORTED_FORMAT || rc == BELAY_CORRUPT);
        drop("cut");
    }
}

static void what_is_not_ours_is_refused(struct tap *t)
{
    char reason[32];

    make(t, "foreign");
    TAP_EQ(t, chmod(path_of("foreign"), 0640), 0);
    TAP_EQ(t, join_code("foreign", reason), BELAY_DENIED);
    TAP_STR(t, reason, "mode");
    drop("foreign");
    TAP_EQ(t, symlink("elsewhere", path_of("foreign")), 0);
    TAP_EQ(t, join_code("foreign", reason), BELAY_DENIED);
    drop("foreign");
    TAP_EQ(t, mkfifo(path_of("foreign"), 0600), 0);
    TAP_EQ(t, join_code("foreign", reason), BELAY_UNSUPPORTED_FORMAT);
    drop("foreign");
    if (geteuid() == 0) {
        make(t, "foreign");
        TAP_EQ(t, chown(path_of("foreign"), 12345, 12345), 0);
        TAP_EQ(t, join_code("foreign", reason), BELAY_DENIED);
        TAP_STR(t, reason, "owner");
        drop("foreign");
    }
}

/* Everything that can be called, whatever it answers. */
static void use_everything(struct belay_fleet *f)
{
    struct belay_fleet_status status = { .size = sizeof(status) };
    struct belay_fleet_member members[8];
    struct belay_contest_entry entries[8];
    struct belay_contest_claim claim;
    struct belay_contest_subject s = subject_of(1, "left"),
                                 free = subject_of(1, "free");
    struct belay_contest_terms terms = terms_of("me", 1000);
    struct belay_ring *log;
    struct belay_ring_cursor *c;
    struct belay_ring_frame frames[16];
    struct belay_ring_poll poll;
    struct belay_notify word;
    uint8_t buf[4096];
    uint64_t cursor = 0;
    size_t n;
    char label[32];
    int bad = 0;

    bad += belay_fleet_status(f, &status, NULL) != BELAY_OK;
    bad += belay_fleet_members(f, members, 8, &n, NULL) != BELAY_OK;
    for (int i = 0; i < 20; i++)
        bad += belay_contest_list(f, &cursor, entries, 8, &n, NULL) != BELAY_OK;
    if (belay_contest_try(f, &s, &terms, &claim, NULL) == BELAY_OK &&
        claim.is_claimed) {
        bad += belay_contest_renew(&claim.guard, 2000, NULL) != BELAY_OK;
        bad += belay_contest_release(&claim.guard, NULL, NULL) != BELAY_OK;
    }
    for (int i = 0; i < 70; i++) {
        (void)snprintf(label, sizeof(label), "label %d", i);
        struct belay_contest_subject one = subject_of(2, label);
        if (belay_contest_try(f, &one, &terms, &claim, NULL) == BELAY_OK &&
            claim.is_claimed)
            bad += belay_contest_release(&claim.guard, NULL, NULL) != BELAY_OK;
    }
    bad += belay_contest_claim(f, &free, &terms, 5, NULL, &claim, NULL) != BELAY_OK;
    bad += belay_contest_log(f, &log, NULL) != BELAY_OK;
    if (belay_ring_cursor_open(log, BELAY_RING_START, &c, NULL) == BELAY_OK) {
        for (int i = 0; i < 20; i++)
            bad += belay_ring_poll(c, frames, 16, buf, sizeof(buf), &poll, NULL) !=
                   BELAY_OK;
        belay_ring_cursor_close(c);
    }
    if (belay_notify_open(f, "word", &word, NULL) == BELAY_OK)
        bad += belay_notify_post(f, word, NULL) != BELAY_OK;
    bad += belay_fleet_sweep(f, &n, NULL) != BELAY_OK;
    bad += belay_fleet_reset(f, NULL) != BELAY_OK;
    (void)bad; /* answers do not matter, coming back does */
}

/* In a child: whether it came back from a segment with one damage. */
static bool survives(const char *name)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        struct belay_fleet_options o = small_fleet(0);
        struct belay_fleet *f;
        (void)alarm(20);
        if (belay_fleet_observe(name, &o, &f, NULL) == BELAY_OK) {
            struct belay_contest_holder holder;
            struct belay_contest_subject s = subject_of(1, "left");
            belay_rc rc = belay_contest_holder(f, &s, &holder, NULL);
            (void)rc;
            belay_fleet_leave(f);
        }
        if (belay_fleet_join(name, &o, &f, NULL) == BELAY_OK) {
            use_everything(f);
            belay_fleet_leave(f);
        }
        _exit(0);
    }
    (void)waitpid(pid, &status, 0);
    if (status != 0)
        printf("# child ended with status %d\n", status);
    return status == 0;
}

static uint64_t next_chance(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Where words that are followed are: everything up to the records, and the log's. */
static void damage_anywhere_never_ends_the_process(struct tap *t)
{
    static const uint64_t bad[] = { 0, UINT64_MAX, UINT64_C(0x8000000000000000), 1 };
    uint64_t chance = 42;
    struct stat st;

    for (int round = 0; round < 150; round++) {
        make(t, "damage");
        TAP_EQ(t, stat(path_of("damage"), &st), 0);
        for (int n = 0; n < 1 + round % 40; n++) {
            uint64_t r = next_chance(&chance);
            /* Half of them where the words are dense. */
            uint64_t span = r % 2 == 0 ? 48000 : (uint64_t)st.st_size;
            off_t at = (off_t)(256 + (r >> 8) % (span - 264) / 8 * 8);
            uint64_t value =
                (r >> 1) % 4 == 0 ? next_chance(&chance) : bad[(r >> 3) % 4];
            poke("damage", at, &value, 8);
        }
        if (!TAP_OK(t, survives("damage"))) {
            printf("# round %d\n", round);
            drop("damage");
            return;
        }
        drop("damage");
    }
}

static void one_bit_of_every_header_word_never_ends_the_process(struct tap *t)
{
    for (off_t at = 0; at < 256; at += 8) {
        uint64_t word = 0;
        make(t, "bits");
        int fd = open(path_of("bits"), O_RDONLY);
        TAP_EQ(t, pread(fd, &word, 8, at), 8);
        (void)close(fd);
        word ^= UINT64_C(1) << (at % 61);
        poke("bits", at, &word, 8);
        if (!TAP_OK(t, survives("bits")))
            printf("# word at %ld\n", (long)at);
        drop("bits");
    }
}

/* As if the machine had been started since. */
static void age(struct tap *t, const char *name)
{
    struct segment_header h;
    int fd = open(path_of(name), O_RDWR);

    TAP_EQ(t, pread(fd, &h, sizeof(h), 0), sizeof(h));
    h.boot ^= 1;
    h.sum = 0;
    h.sum = fleet_hash(h.key, 0, &h, sizeof(h));
    TAP_EQ(t, pwrite(fd, &h, sizeof(h), 0), sizeof(h));
    (void)close(fd);
}

static void a_segment_of_an_earlier_boot_is_replaced(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet_status s = { .size = sizeof(s) };
    struct belay_fleet *f = must_join("old", &o), *g = NULL;
    struct belay_ring_spec spec = { .size = sizeof(spec), .kind = 3, .name = "ring" };
    struct belay_ring *ring;
    struct belay_error err;
    char kind[128];
    struct stat st;

    atomic_store(f->token, UINT64_C(1) << 61); /* far ahead of the clock */
    TAP_EQ(t, belay_ring_open(f, &spec, &ring, NULL), BELAY_OK);
    TAP_EQ(t, belay_fleet_status(f, &s, NULL), BELAY_OK);
    (void)snprintf(kind, sizeof(kind), "./belay-%u-old.%016llx.3", (unsigned)geteuid(),
                   (unsigned long long)s.fleet_id);
    TAP_EQ(t, stat(kind, &st), 0);

    /* Somebody is in it: it is left alone. */
    age(t, "old");
    TAP_EQ(t, belay_fleet_join("old", &o, &g, &err), BELAY_UNSUPPORTED_FORMAT);
    TAP_OK(t, strcmp(err.reason, "boot") == 0);
    TAP_EQ(t, belay_fleet_remove("old", &o, &err), BELAY_UNSUPPORTED_FORMAT);
    age(t, "old");
    belay_fleet_leave(f);

    /* Nobody is; a new one takes its name, and goes on with its tokens. */
    age(t, "old");
    o.flags = BELAY_FLEET_MUST_EXIST;
    TAP_EQ(t, belay_fleet_join("old", &o, &g, &err), BELAY_UNSUPPORTED_FORMAT);
    o.flags = 0;
    f = must_join("old", &o);
    g = must_join("old", &o);
    struct belay_contest_claim c = try_now(t, f, "subject", "owner", 1000);
    TAP_OK(t, c.is_claimed && c.guard.token > UINT64_C(1) << 61);
    TAP_OK(t, stat(kind, &st) != 0);
    belay_fleet_leave(g);
    belay_fleet_leave(f);

    /* One that is damaged besides is refused as before; an old one can be removed. */
    age(t, "old");
    TAP_EQ(t, belay_fleet_remove("old", &o, &err), BELAY_OK);
    TAP_OK(t, stat(path_of("old"), &st) != 0);
}

/* Those who come at the same moment find one fleet. */
static void many_replace_an_old_segment_at_once(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);

    for (int round = 0; round < 40; round++) {
        pid_t pids[4];
        int told[2], holders = 0;
        belay_fleet_leave(must_join("old", &o));
        age(t, "old");
        TAP_EQ(t, pipe(told), 0);
        for (int i = 0; i < 4; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                struct belay_fleet *f = must_join("old", &o);
                struct belay_contest_subject s = subject_of(1, "subject");
                struct belay_contest_terms terms = terms_of("one", 3600000);
                struct belay_contest_claim c = { 0 };
                belay_rc rc = belay_contest_try(f, &s, &terms, &c, NULL);
                char said = 0;
                if (rc != BELAY_OK)
                    said = 100;
                else if (c.is_claimed)
                    said = 1;
                if (write(told[1], &said, 1) == 1)
                    (void)pause(); /* until all have said it */
                _exit(3);
            }
        }
        for (int i = 0; i < 4; i++) {
            char heard = 100;
            TAP_EQ(t, read(told[0], &heard, 1), 1);
            holders += heard;
        }
        for (int i = 0; i < 4; i++) {
            (void)kill(pids[i], SIGKILL);
            TAP_EQ(t, waitpid(pids[i], NULL, 0), pids[i]);
        }
        (void)close(told[0]);
        (void)close(told[1]);
        TAP_EQ(t, holders, 1);
        TAP_EQ(t, belay_fleet_remove("old", &o, NULL), BELAY_OK);
    }
}

static void a_segment_appears_whole(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct stat st;

    struct belay_fleet *f = must_join("whole", &o);
    struct belay_fleet_status status = { .size = sizeof(status) };
    TAP_EQ(t, belay_fleet_status(f, &status, NULL), BELAY_OK);
    TAP_EQ(t, stat(path_of("whole"), &st), 0);
    TAP_EQ(t, st.st_size, status.segment_len);
    TAP_EQ(t, st.st_mode & 0777, 0600);
    TAP_OK(t, st.st_blocks * 512 >= st.st_size); /* no page is missing */
    TAP_EQ(t, belay_fleet_remove("whole", &o, NULL), BELAY_LEASE_HELD);
    belay_fleet_leave(f);
    TAP_EQ(t, belay_fleet_remove("whole", &o, NULL), BELAY_OK);
    TAP_OK(t, stat(path_of("whole"), &st) != 0 && errno == ENOENT);
    TAP_EQ(t, belay_fleet_remove("whole", &o, NULL), BELAY_NOT_FOUND);
    o.flags = BELAY_FLEET_MUST_EXIST;
    TAP_EQ(t, belay_fleet_join("whole", &o, &f, NULL), BELAY_NOT_FOUND);
}

static void a_full_file_system_is_an_error(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f;
    struct belay_error err;

    o.arena_len = 1 << 28;
    o.fleet_size = 1024;
    o.holds = 1023;
    o.dir = "/dev/full"; /* no directory */
    TAP_EQ(t, belay_fleet_join("full", &o, &f, &err), BELAY_UNAVAILABLE);
    TAP_STR(t, err.reason, "io");
    /* A limit on files is as good as a full disk. */
    pid_t pid = fork();
    if (pid == 0) {
        struct belay_fleet_options small = small_fleet(0);
        (void)signal(SIGXFSZ, SIG_IGN);
        const struct rlimit limit = { 65536, 65536 };
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(9);
        belay_rc rc = belay_fleet_join("full", &small, &f, &err);
        _exit(rc == BELAY_NO_MEMORY && strcmp(err.reason, "shm_full") == 0 ? 0 : 1);
    }
    int status = -1;
    (void)waitpid(pid, &status, 0);
    TAP_EQ(t, status, 0);
    struct stat st;
    TAP_OK(t, stat(path_of("full"), &st) != 0); /* nothing is left behind */
}

static void names_and_numbers_out_of_range_are_refused(struct tap *t)
{
    char long_name[65] = "";
    const char *const names[] = { "",    "A",   "a b", "-a",       "_a",
                                  "a/b", "a.b", "a\n", "\xc3\xa4", long_name };
    struct belay_fleet *f;
    struct belay_error err;
    struct belay_fleet_options o;

    memset(long_name, 'a', sizeof(long_name) - 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        o = small_fleet(0);
        TAP_EQ(t, belay_fleet_join(names[i], &o, &f, &err), BELAY_INVALID);
        TAP_STR(t, err.reason, "name");
    }
    o = small_fleet(0);
    o.fleet_size = BELAY_NONE;
    TAP_EQ(t, belay_fleet_join("a", &o, &f, &err), BELAY_INVALID);
    TAP_STR(t, err.reason, "empty_fleet");
    o.fleet_size = 1025;
    TAP_EQ(t, belay_fleet_join("a", &o, &f, &err), BELAY_INVALID);
    TAP_STR(t, err.reason, "fleet_size");
    o = small_fleet(0);
    o.subjects = 63;
    TAP_EQ(t, belay_fleet_join("a", &o, &f, &err), BELAY_INVALID);
    o = small_fleet(BELAY_FLEET_NODE);
    o.node = 8;
    TAP_EQ(t, belay_fleet_join("a", &o, &f, &err), BELAY_INVALID);
    TAP_STR(t, err.reason, "node_range");
    o = small_fleet(0);
    o.size = 4;
    TAP_EQ(t, belay_fleet_join("a", &o, &f, &err), BELAY_MISUSE);
    drop("a");
}

static void an_observer_changes_nothing(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(0);
    struct belay_fleet *f, *g;
    struct belay_contest_subject s = subject_of(1, "s");
    struct belay_contest_terms terms = terms_of("x", 10);
    struct belay_contest_holder holder;
    struct belay_contest_claim claim;
    struct belay_fleet_member members[8];
    struct belay_error err;
    size_t n;

    TAP_EQ(t, belay_fleet_observe("seen", &o, &g, &err), BELAY_NOT_FOUND);
    f = must_join("seen", &o);
    TAP_OK(t, try_now(t, f, "s", "holder", 100000).is_claimed);
    TAP_EQ(t, belay_fleet_observe("seen", &o, &g, &err), BELAY_OK);
    TAP_EQ(t, belay_contest_holder(g, &s, &holder, &err), BELAY_OK);
    TAP_STR(t, holder.owner, "holder");
    TAP_EQ(t, belay_fleet_members(g, members, 8, &n, &err), BELAY_OK);
    TAP_EQ(t, n, 1);
    TAP_EQ(t, members[0].life, BELAY_LIFE_ALIVE);
    TAP_EQ(t, members[0].holds, 1);
    TAP_EQ(t, belay_contest_try(g, &s, &terms, &claim, &err), BELAY_MISUSE);
    TAP_STR(t, err.reason, "observer");
    TAP_EQ(t, belay_contest_force_release(g, &holder, &err), BELAY_MISUSE);
    TAP_EQ(t, belay_fleet_reset(g, &err), BELAY_MISUSE);
    TAP_EQ(t, belay_fleet_sweep(g, NULL, &err), BELAY_MISUSE);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
    drop("seen");
}

/* A child that touches a segment which was cut under it. */
static int touch_cut(uint32_t flags)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        struct belay_fleet_options o = small_fleet(flags);
        struct belay_fleet *f = must_join("bus", &o);
        struct belay_fleet_status s = { .size = sizeof(s) };
        struct belay_error err;
        if (truncate(path_of("bus"), 4096) != 0)
            _exit(9);
        use_everything(f);
        _exit(belay_fleet_status(f, &s, &err) == BELAY_CORRUPT &&
                      strcmp(err.reason, "truncated") == 0
                  ? 0
                  : 8);
    }
    (void)waitpid(pid, &status, 0);
    drop("bus");
    return status;
}

static void a_segment_cut_while_mapped_can_be_survived(struct tap *t)
{
    TAP_EQ(t, touch_cut(BELAY_FLEET_GUARD_SIGBUS), 0);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "a segment appears whole, for its owner alone", a_segment_appears_whole },
        { "every field of the header is checked",
          every_field_of_the_header_is_checked },
        { "a segment of another length is refused",
          a_segment_of_another_length_is_refused },
        { "what is not ours is refused", what_is_not_ours_is_refused },
        { "one bit of every header word never ends the process",
          one_bit_of_every_header_word_never_ends_the_process },
        { "a segment of an earlier boot is replaced",
          a_segment_of_an_earlier_boot_is_replaced },
        { "many replace an old segment at once", many_replace_an_old_segment_at_once },
        { "damage anywhere never ends the process",
          damage_anywhere_never_ends_the_process },
        { "a full file system is an error", a_full_file_system_is_an_error },
        { "names and numbers out of range are refused",
          names_and_numbers_out_of_range_are_refused },
        { "an observer changes nothing", an_observer_changes_nothing },
        { "a segment cut while mapped can be survived",
          a_segment_cut_while_mapped_can_be_survived },
    };

    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
