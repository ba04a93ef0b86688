#include "session_ledger.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rig.h"

/* Whole pages hold whole notes. */
_Static_assert(sizeof(struct note) <= 1024, "a note fits its place");
union place {
    struct note note;
    char bytes[1024];
};

void maker_name(const struct maker *m, char out[40])
{
    (void)snprintf(out, 40, "w%u-%lld", m->worker, (long long)m->n);
}

bool maker_parse(const char *text, struct maker *out)
{
    char *end = NULL;

    if (!text || text[0] != 'w')
        return false;
    unsigned long worker = strtoul(text + 1, &end, 10);
    if (end == text + 1 || *end != '-')
        return false;
    const char *digits = end + 1;
    long long n = strtoll(digits, &end, 10);
    if (end == digits || *end)
        return false;
    *out = (struct maker){ .worker = (uint32_t)worker, .n = n };
    return true;
}

bool maker_is(const struct maker *a, const struct maker *b)
{
    return a->worker == b->worker && a->n == b->n;
}

uint64_t batch_number(const char *batch_id)
{
    char digits[17] = "";

    if (!batch_id || strlen(batch_id) != 68 || strncmp(batch_id, "qwb:", 4) != 0)
        return 0;
    memcpy(digits, batch_id + 4, 16);
    return strtoull(digits, NULL, 16);
}

/* --- writing --- */

static void path_of(const char *dir, unsigned worker, char out[256])
{
    (void)snprintf(out, 256, "%.200s/ledger.%u", dir, worker);
}

int notes_open(const char *dir, unsigned worker)
{
    char path[256];

    path_of(dir, worker, path);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

void notes_append(int fd, struct note *n)
{
    union place place = { .bytes = { 0 } };

    n->at_us = now_us();
    n->wall_ms = wall_ms();
    place.note = *n;
    if (write(fd, &place, sizeof(place)) != sizeof(place))
        _exit(3);
}

/* --- reading --- */

static void *must(void *p)
{
    if (!p)
        abort();
    return p;
}

void notes_read(const char *dir, unsigned worker, struct notes *out)
{
    union place place;
    char path[256];
    struct stat st;

    path_of(dir, worker, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        st.st_size = 0;
    size_t most = (size_t)st.st_size / sizeof(place);
    out->note = must(calloc(most + 1, sizeof(*out->note)));
    out->n = 0;
    while (out->n < most && read(fd, &place, sizeof(place)) == sizeof(place))
        out->note[out->n++] = place.note;
    if (fd >= 0)
        (void)close(fd);
}

static int by_time(const void *a, const void *b)
{
    const struct note *x = a, *y = b;

    if (x->at_us != y->at_us)
        return x->at_us < y->at_us ? -1 : 1;
    if (x->worker != y->worker)
        return x->worker < y->worker ? -1 : 1;
    /* One worker's notes keep their order. */
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->said - y->said;
}

void notes_read_all(const char *dir, struct notes *out)
{
    *out = (struct notes){ .note = NULL };
    for (unsigned w = 0; w < NOTE_WORKERS; w++) {
        struct notes one;
        notes_read(dir, w, &one);
        out->note = must(realloc(out->note, (out->n + one.n + 1) * sizeof(*out->note)));
        if (one.n > 0)
            memcpy(out->note + out->n, one.note, one.n * sizeof(*one.note));
        out->n += one.n;
        notes_release(&one);
    }
    qsort(out->note, out->n, sizeof(*out->note), by_time);
}

void notes_release(struct notes *notes)
{
    free(notes->note);
    *notes = (struct notes){ .note = NULL };
}

void acts_of(const struct notes *notes, struct acts *out)
{
    size_t open[NOTE_WORKERS]; /* a worker does one thing at a time */

    memset(open, 0xff, sizeof(open));
    *out = (struct acts){ .act = must(calloc(notes->n + 1, sizeof(*out->act))) };
    for (size_t i = 0; i < notes->n; i++) {
        const struct note *n = &notes->note[i];
        if (n->worker >= NOTE_WORKERS)
            abort();
        if (n->said == SAID_BROKEN) {
            out->broken++;
        } else if (n->said == SAID_BEGIN) {
            open[n->worker] = out->n;
            out->act[out->n++].begin = n;
        } else if (open[n->worker] < out->n &&
                   out->act[open[n->worker]].begin->n == n->n) {
            out->act[open[n->worker]].done = n;
        } else {
            abort(); /* an answer to nothing: the ledger itself is broken */
        }
    }
}

void acts_release(struct acts *acts)
{
    free(acts->act);
    *acts = (struct acts){ .act = NULL };
}
