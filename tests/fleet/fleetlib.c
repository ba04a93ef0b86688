#include "fleetlib.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool room_init(struct room *r)
{
    const char *tmp = getenv("TMPDIR");

    (void)snprintf(r->dir, sizeof(r->dir), "%.40s/fleet-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(r->dir) != NULL;
}

void room_release(struct room *r)
{
    DIR *dir = opendir(r->dir);
    struct dirent *entry;

    while (dir && (entry = readdir(dir)) != NULL) {
        char path[512];

        (void)snprintf(path, sizeof(path), "%s/%s", r->dir, entry->d_name);
        (void)unlink(path);
    }
    if (dir)
        (void)closedir(dir);
    (void)rmdir(r->dir);
}

struct belay_fleet_options room_options(const struct room *r, uint32_t flags)
{
    return (struct belay_fleet_options){
        .size = sizeof(struct belay_fleet_options),
        .flags = flags,
        .fleet_size = 16,
        .subjects = 64,
        .holds = 16,
        .log_capacity = 256,
        .dir = r->dir,
    };
}

struct belay_fleet *join_with(const char *name, const struct belay_fleet_options *o)
{
    struct belay_fleet *f = NULL;
    struct belay_error err;

    if (belay_fleet_join(name, o, &f, &err) != BELAY_OK) {
        printf("# join of %s: %s\n", name, err.message);
        return NULL;
    }
    return f;
}

struct belay_fleet *room_join(const struct room *r, const char *name, uint32_t flags)
{
    struct belay_fleet_options o = room_options(r, flags);

    return join_with(name, &o);
}

struct belay_contest_subject subject_of(uint8_t kind, const char *label)
{
    return (struct belay_contest_subject){ label, strlen(label), kind };
}

struct belay_contest_terms terms_of(const char *owner, int64_t ttl_ms)
{
    return (struct belay_contest_terms){ owner, strlen(owner), ttl_ms };
}

static bool told(belay_rc rc, const char *label, const struct belay_error *err,
                 struct belay_contest_claim *out)
{
    if (rc == BELAY_OK)
        return out->is_claimed;
    printf("# claim of %s: %s\n", label, err->message);
    memset(out, 0x5a, sizeof(*out));
    out->is_claimed = false;
    return false;
}

bool try_claim(struct belay_fleet *f, const char *label, const char *owner,
               int64_t ttl_ms, struct belay_contest_claim *out)
{
    struct belay_contest_subject subject = subject_of(1, label);
    struct belay_contest_terms terms = terms_of(owner, ttl_ms);
    struct belay_error err;

    return told(belay_contest_try(f, &subject, &terms, out, &err), label, &err, out);
}

bool try_claim_at(struct belay_fleet *f, const char *label, const char *owner,
                  int64_t ttl_ms, int64_t now, struct belay_contest_claim *out)
{
    struct belay_contest_subject subject = subject_of(1, label);
    struct belay_contest_terms terms = terms_of(owner, ttl_ms);
    struct belay_error err;

    return told(belay_contest_try_at(f, &subject, &terms, now, out, &err), label, &err,
                out);
}

bool release(struct belay_contest_guard *guard)
{
    struct belay_error err;

    return belay_contest_release(guard, NULL, &err) == BELAY_OK;
}

bool replay_open(struct replay *r, struct belay_fleet *f)
{
    struct belay_ring *log;
    struct belay_error err;

    *r = (struct replay){ .claims = calloc(REPLAY_MAX, sizeof(*r->claims)) };
    return r->claims && belay_contest_log(f, &log, &err) == BELAY_OK &&
           belay_ring_cursor_open(log, BELAY_RING_START, &r->cursor, &err) == BELAY_OK;
}

void replay_close(struct replay *r)
{
    belay_ring_cursor_close(r->cursor);
    free(r->claims);
}

static struct replayed *claim_of(struct replay *r, uint64_t id)
{
    for (size_t i = r->n; i > 0; i--) {
        if (r->claims[i - 1].claim_id == id)
            return &r->claims[i - 1];
    }
    if (r->n == REPLAY_MAX)
        return NULL;
    r->claims[r->n] = (struct replayed){ .claim_id = id };
    return &r->claims[r->n++];
}

static bool replay_frame(struct replay *r, const struct belay_ring_frame *frame)
{
    struct belay_contest_frame f;

    if (!belay_contest_decode(frame->kind, frame->data, frame->len, &f)) {
        r->broken++;
        return true;
    }
    bool is_claim = f.kind == BELAY_CONTEST_FRAME_CLAIM;
    struct replayed *c = claim_of(r, is_claim ? frame->id : f.claim_id);

    if (!c)
        return false;
    if (is_claim) {
        size_t cut =
            f.subject_len < sizeof(c->label) ? f.subject_len : sizeof(c->label) - 1;
        memcpy(c->label, f.subject, cut);
        c->label[cut] = '\0';
        c->is_open = !c->is_ended;
    } else {
        c->is_open = false;
        c->is_ended = true;
    }
    return true;
}

bool replay_read(struct replay *r)
{
    struct belay_ring_frame frames[64];
    static const size_t room = 32768;
    uint64_t *buf = malloc(room);
    struct belay_ring_poll poll = { .is_more = true };
    struct belay_error err;
    bool ok = buf != NULL;

    while (ok && (poll.is_more || poll.n_frames > 0)) {
        ok = belay_ring_poll(r->cursor, frames, 64, buf, room, &poll, &err) == BELAY_OK;
        if (!ok) {
            printf("# poll of the log: %s\n", err.message);
            break;
        }
        r->lost += poll.lost;
        for (size_t i = 0; poll.is_reset && i < r->n; i++) {
            r->claims[i].is_open = false; /* whatever the log has lost of it */
            r->claims[i].is_ended = true;
        }
        for (size_t i = 0; i < poll.n_frames && ok; i++)
            ok = replay_frame(r, &frames[i]);
    }
    free(buf);
    return ok;
}

uint64_t replay_holder(const struct replay *r, const char *label)
{
    uint64_t found = 0;

    for (size_t i = 0; i < r->n; i++) {
        if (r->claims[i].is_open && strcmp(r->claims[i].label, label) == 0)
            found = found ? UINT64_MAX : r->claims[i].claim_id;
    }
    return found;
}

static size_t open_claims(const struct replay *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        n += r->claims[i].is_open;
    return n;
}

bool replay_equals_table(struct replay *r, struct belay_fleet *f)
{
    struct belay_contest_entry entries[16];
    struct belay_error err;
    uint64_t cursor = 0;
    size_t held = 0, n;
    bool same = replay_read(r) && r->lost == 0 && r->broken == 0;

    if (!same)
        printf("# log: %llu lost, %u broken\n", (unsigned long long)r->lost, r->broken);
    do {
        if (belay_contest_list(f, &cursor, entries, 16, &n, &err) != BELAY_OK)
            return false;
        for (size_t i = 0; i < n; i++) {
            if (!entries[i].is_held)
                continue;
            entries[i].label[63] = '\0';
            held++;
            if (replay_holder(r, entries[i].label) != entries[i].holder.claim_id) {
                printf("# %s is held by %llx, and by %llx in the log\n",
                       entries[i].label, (unsigned long long)entries[i].holder.claim_id,
                       (unsigned long long)replay_holder(r, entries[i].label));
                same = false;
            }
        }
    } while (cursor != 0);
    if (held != open_claims(r)) {
        printf("# %zu subjects are held, and %zu in the log\n", held, open_claims(r));
        same = false;
    }
    return same;
}

int reap(pid_t child, int signal)
{
    int status = -1;

    if (signal != 0)
        (void)kill(child, signal);
    while (waitpid(child, &status, 0) != child)
        ;
    return status;
}

double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}
