/* How a database file and what stands beside it are doing, in words. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "store/drivers/sqlite/impl.h"

#define MIB ((int64_t)1 << 20)

/* A log above the first is restarted as soon as readers let it, above the second
 * writers wait (wal.c). */
#define WAL_WARN (64 * MIB)
#define WAL_BAD (256 * MIB)

/* Room for a log at its largest, twice; and for hardly anything. */
#define DISK_WARN (512 * MIB)
#define DISK_BAD (64 * MIB)

/* Since this version a checkpoint and a commit that meet lose nothing. */
#define WAL_RESET_FIXED 3051003

struct doctor {
    struct sqlite_store *s;
    finding_report *report;
    void *arg;
};

static void PRINTF_LIKE(4, 5) say(struct doctor *d, enum finding_level level,
                                  const char *what, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    d->report(d->arg,
              &(struct finding){ .level = level, .what = what, .message = text });
}

/* --- the library --- */

static void tell_library(struct doctor *d)
{
    bool safe = !d->s->path || sqlite3_libversion_number() >= WAL_RESET_FIXED;

    say(d, FINDING_OK, "sqlite",
        safe ? "SQLite %s"
             : "SQLite %s: before 3.51.3 a checkpoint that meets a commit can lose "
               "committed pages (WAL reset); the lock file keeps Belay's own from "
               "meeting, so nothing else may write to this file",
        sqlite3_libversion());
    if (!sqlite3_threadsafe())
        say(d, FINDING_BAD, "sqlite_threads",
            "this SQLite was built for one thread only");
}

/* --- what the file says about itself --- */

/* The first column of a pragma's answer as text; "?" when it has none. */
static void ask(struct conn *c, const char *pragma, char *out, size_t size)
{
    sqlite3_stmt *st = NULL;
    const char *text = NULL;

    if (sqlite3_prepare_v2(c->db, pragma, -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        text = (const char *)sqlite3_column_text(st, 0);
    (void)snprintf(out, size, "%s", text ? text : "?");
    (void)sqlite3_finalize(st);
}

static void tell_durability(struct doctor *d, struct conn *c)
{
    char journal[32], sync[32];

    ask(c, "PRAGMA journal_mode", journal, sizeof(journal));
    ask(c, "PRAGMA synchronous", sync, sizeof(sync));
    bool durable = strcmp(journal, "wal") == 0 && strcmp(sync, "2") == 0;
    say(d, durable ? FINDING_OK : FINDING_BAD, "durability",
        "%s: journal_mode is %s, synchronous is %s%s", durable ? "durable" : "relaxed",
        journal, strcmp(sync, "2") == 0 ? "FULL" : sync,
        durable ? ", as read back" : "; Belay needs wal and FULL");
}

static void tell_pages(struct doctor *d, struct conn *c)
{
    char size[32], count[32], unused[32];

    ask(c, "PRAGMA page_size", size, sizeof(size));
    ask(c, "PRAGMA page_count", count, sizeof(count));
    ask(c, "PRAGMA freelist_count", unused, sizeof(unused));
    say(d, FINDING_OK, "pages", "%s pages of %s bytes, %s of them unused", count, size,
        unused);
}

/* --- files --- */

/* The size of PATH`suffix`, or -1. */
static int64_t size_of(const struct sqlite_store *s, const char *suffix,
                       struct stat *out)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof(path), "%s%s", s->path, suffix);

    if (len < 0 || (size_t)len >= sizeof(path) || stat(path, out))
        return -1;
    return (int64_t)out->st_size;
}

static void tell_file(struct doctor *d)
{
    struct stat st;
    int64_t size = size_of(d->s, "", &st);

    if (size < 0) {
        say(d, FINDING_BAD, "file", "the database file is gone: %s", strerror(errno));
        return;
    }
    say(d, FINDING_OK, "file", "%" PRId64 " bytes", size);
    if (st.st_mode & (S_IROTH | S_IWOTH))
        say(d, FINDING_WARN, "file_mode",
            "mode %04o: everybody on this machine may %s it; chmod 600 is enough",
            (unsigned)(st.st_mode & 07777), st.st_mode & S_IWOTH ? "write" : "read");
    if (st.st_uid != geteuid())
        say(d, FINDING_WARN, "file_owner",
            "belongs to user %u, this process runs as user %u: files made beside it "
            "may keep the owner out",
            (unsigned)st.st_uid, (unsigned)geteuid());
}

static void tell_disk(struct doctor *d)
{
    struct statvfs fs;

    if (statvfs(d->s->path, &fs)) {
        say(d, FINDING_WARN, "disk", "cannot be asked: %s", strerror(errno));
        return;
    }
    uint64_t bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    enum finding_level level = bytes < DISK_BAD    ? FINDING_BAD
                               : bytes < DISK_WARN ? FINDING_WARN
                                                   : FINDING_OK;
    say(d, level, "disk", "%" PRIu64 " MiB free%s", bytes / (uint64_t)MIB,
        level == FINDING_OK ? "" : ": the log alone may need 256 MiB");
}

/* --- the log, and who keeps it from being restarted --- */

/* Readers hold a shared lock on one of these bytes of PATH-shm while they read. */
#define READ_MARKS_FIRST 123
#define READ_MARKS_LAST 127

/* Whether a line of /proc/locks is a reader's; its process in *pid. */
static bool is_reader(const char *line, unsigned long inode, long *pid)
{
    unsigned long at;
    unsigned long long first;
    char end[24];

    if (!strstr(line, "POSIX") || !strstr(line, "READ"))
        return false;
    /* NOLINTNEXTLINE(cert-err34-c): a number that overflows is no reader of ours */
    if (sscanf(line, "%*s %*s %*s %*s %ld %*x:%*x:%lu %llu %23s", pid, &at, &first,
               end) != 4 ||
        at != inode)
        return false;
    unsigned long long last =
        strcmp(end, "EOF") == 0 ? ULLONG_MAX : strtoull(end, NULL, 10);
    return first <= READ_MARKS_LAST && last >= READ_MARKS_FIRST;
}

/* Appends "pid 1, pid 2" for every process that reads now. */
static void find_readers(const struct sqlite_store *s, struct buf *out)
{
    FILE *locks = fopen("/proc/locks", "re");
    struct stat shm;
    char line[256];
    long pid;

    if (!locks)
        return;
    while (size_of(s, "-shm", &shm) >= 0 && fgets(line, sizeof(line), locks)) {
        if (!is_reader(line, shm.st_ino, &pid))
            continue;
        buf_append_str(out, out->len > 0 ? ", " : "");
        if (pid > 0)
            buf_printf(out, "pid %ld", pid);
        else
            buf_append_str(out, "a process of another container");
    }
    (void)fclose(locks);
}

/* How many pages of the log no checkpoint may copy, since somebody still reads what was
 * before them; -1: that cannot be told.  With a lock of its own: the store's belongs to
 * the group's leader. */
static int pinned_pages(struct doctor *d, struct conn *c, int *frames)
{
    struct file_lock lock;
    int copied = 0;

    if (file_lock_open(&lock, d->s->path, &d->s->config.clock, NULL))
        return -1;
    int rc = SQLITE_BUSY;
    if (file_lock_take(&lock, NULL) == BELAY_OK) {
        rc = sqlite3_wal_checkpoint_v2(c->db, NULL, SQLITE_CHECKPOINT_PASSIVE, frames,
                                       &copied);
        file_lock_release(&lock);
    }
    file_lock_close(&lock);
    if ((rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_FULL)
        atomic_store(&d->s->poisoned, true); /* X5 */
    return rc == SQLITE_OK && *frames >= 0 ? *frames - copied : -1;
}

static void tell_log(struct doctor *d, struct conn *c)
{
    CLEANUP(buf_release) struct buf readers = { .ptr = NULL };
    struct stat st;
    int frames = 0;
    int64_t size = size_of(d->s, "-wal", &st);
    int pinned = pinned_pages(d, c, &frames);
    enum finding_level level = size >= WAL_BAD    ? FINDING_BAD
                               : size >= WAL_WARN ? FINDING_WARN
                                                  : FINDING_OK;

    say(d, level, "wal", "%" PRId64 " bytes%s", size < 0 ? 0 : size,
        level == FINDING_BAD    ? ": writers wait until its readers are done"
        : level == FINDING_WARN ? ": it is restarted as soon as its readers are done"
                                : "");
    find_readers(d->s, &readers);
    buf_append_char(&readers, '\0');
    const char *who = readers.failed || readers.len <= 1 ? "nobody that can be seen"
                                                         : (const char *)readers.ptr;
    if (pinned < 0)
        say(d, FINDING_WARN, "wal_readers", "no checkpoint could be tried; reading: %s",
            who);
    else if (pinned > 0)
        say(d, FINDING_WARN, "wal_readers",
            "%d of %d pages cannot be copied into the file, an older snapshot is being "
            "read; reading: %s",
            pinned, frames, who);
    else
        say(d, FINDING_OK, "wal_readers", "nobody keeps it from being copied");
}

/* --- the lock --- */

struct waiting {
    struct driver_job job;
    struct sqlite_store *s;
    int64_t longest_us;
};

static void waiting_run(struct driver_job *job)
{
    struct waiting *w = (struct waiting *)job;

    w->longest_us = w->s->lock.longest_wait_us;
}

static belay_rc tell_lock(struct doctor *d, struct belay_error *err)
{
    struct waiting w = { .job = { .run = waiting_run, .deadline_us = DEADLINE_NONE },
                         .s = d->s };
    char holder[64] = "";
    bool held = file_lock_holder(&d->s->lock, holder, sizeof(holder));
    belay_rc rc = group_submit(&d->s->d, &w.job, err);

    if (!rc)
        say(d, FINDING_OK, "lock",
            "%s%s; the longest wait of this process was %" PRId64 " ms",
            held ? "held by " : "free", holder, w.longest_us / 1000);
    return rc;
}

/* --- all of it --- */

static belay_rc examine(struct doctor *d, struct belay_error *err)
{
    struct conn *c = NULL;

    if (atomic_load(&d->s->poisoned)) {
        say(d, FINDING_BAD, "poisoned",
            "the disk has failed a write; close the store and open it again");
        return BELAY_OK;
    }
    /* One of its own: those of the pool may not ask for settings. */
    belay_rc rc = conn_open(d->s, false, &c, err);
    if (rc)
        return rc;
    tell_durability(d, c);
    tell_pages(d, c);
    tell_file(d);
    tell_log(d, c);
    conn_close(c);
    tell_disk(d);
    return tell_lock(d, err);
}

belay_rc sqlite_doctor(struct driver *driver, finding_report *report, void *arg,
                       struct belay_error *err)
{
    struct doctor d = { .s = (struct sqlite_store *)driver,
                        .report = report,
                        .arg = arg };

    tell_library(&d);
    if (d.s->path)
        return examine(&d, err);
    say(&d, FINDING_WARN, "durability", "inline: everything is gone with this process");
    return BELAY_OK;
}

/* --- before it is opened --- */

#define LOOK_EVERY_US 5000
#define LOOKS 1000

belay_rc sqlite_look(const char *path, const struct belay_clock *clock,
                     struct belay_error *err)
{
    char real[PATH_MAX], beside[PATH_MAX], holder[64] = "";
    struct file_lock lock;
    struct stat st;

    if (strcmp(path, ":memory:") == 0 || !realpath(path, real))
        return BELAY_OK;
    int len = snprintf(beside, sizeof(beside), "%s-belay", real);
    if (len < 0 || (size_t)len >= sizeof(beside) || stat(beside, &st) ||
        file_lock_open(&lock, real, clock, NULL))
        return BELAY_OK; /* what is wrong is said when it is opened */
    bool held = true;
    for (int i = 0; i < LOOKS && held; i++) {
        if (i > 0)
            clock->sleep_us(clock->arg, LOOK_EVERY_US);
        held = file_lock_holder(&lock, holder, sizeof(holder));
    }
    file_lock_close(&lock);
    if (!held)
        return BELAY_OK;
    return err_reason(err, BELAY_UNAVAILABLE, "locked",
                      "sqlite: the lock file is held by %s and was not free once in "
                      "%d seconds",
                      holder, LOOKS * LOOK_EVERY_US / 1000000);
}
