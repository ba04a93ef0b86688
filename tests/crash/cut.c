#include "cut.h"

#include <stdlib.h>
#include <string.h>

struct piece {
    bool truncates; /* to `offset` */
    size_t offset, len;
    uint8_t data[DISK_SECTOR];
};

static void copy(struct disk_bytes *to, const struct disk_bytes *from)
{
    to->len = 0;
    disk_bytes_write(to, 0, from->ptr, from->len);
    to->exists = from->exists;
}

void cut_init(struct cut *c, const struct disk_image *start, bool powersafe)
{
    memset(c, 0, sizeof(*c));
    c->powersafe = powersafe;
    for (unsigned i = 0; i < DISK_FILES; i++) {
        copy(&c->files[i].safe, &start->files[i]);
        c->files[i].exists = start->files[i].exists;
    }
}

void cut_release(struct cut *c)
{
    for (unsigned i = 0; i < DISK_FILES; i++) {
        free(c->files[i].safe.ptr);
        free(c->files[i].old.ptr);
        free(c->files[i].pieces);
    }
    memset(c, 0, sizeof(*c));
}

static struct piece *add_piece(struct cut_file *f)
{
    if (f->n_pieces == f->cap_pieces) {
        f->cap_pieces = f->cap_pieces ? 2 * f->cap_pieces : 64;
        f->pieces = realloc(f->pieces, f->cap_pieces * sizeof(*f->pieces));
        if (!f->pieces)
            abort();
    }
    return &f->pieces[f->n_pieces++];
}

static void add_write(struct cut_file *f, const struct disk_event *e)
{
    size_t done = 0;

    while (done < e->len) {
        size_t at = e->offset + done;
        size_t len = DISK_SECTOR - at % DISK_SECTOR;
        if (len > e->len - done)
            len = e->len - done;
        struct piece *p = add_piece(f);
        p->truncates = false;
        p->offset = at;
        p->len = len;
        memcpy(p->data, e->data + done, len);
        done += len;
    }
}

static void put_piece(struct disk_bytes *b, const struct piece *p)
{
    if (p->truncates)
        disk_bytes_resize(b, p->offset);
    else
        disk_bytes_write(b, p->offset, p->data, p->len);
}

/* Names as they are now are safe. */
static void sync_folder(struct cut *c)
{
    for (unsigned i = 0; i < DISK_FILES; i++) {
        c->files[i].safe.exists = c->files[i].exists;
        c->files[i].old.exists = false;
    }
}

void cut_follow(struct cut *c, const struct disk_event *e)
{
    struct cut_file *f = &c->files[e->file];

    switch (e->kind) {
    case DISK_CREATE:
        f->exists = true;
        break;
    case DISK_WRITE:
        add_write(f, e);
        break;
    case DISK_TRUNCATE:
        *add_piece(f) = (struct piece){ .truncates = true, .offset = e->offset };
        break;
    case DISK_SYNC:
        for (size_t i = 0; i < f->n_pieces; i++)
            put_piece(&f->safe, &f->pieces[i]);
        f->n_pieces = 0;
        break;
    case DISK_DELETE:
        f->exists = false;
        copy(&f->old, &f->safe); /* which is on disk under that name, if it ever was */
        f->safe.len = 0;
        f->safe.exists = false;
        f->n_pieces = 0;
        break;
    case DISK_LOSE:
        f->n_pieces = 0;
        break;
    case DISK_SYNC_FOLDER:
    case DISK_MARK:
        break;
    }
    if (e->whole)
        sync_folder(c);
}

bool cut_is_open(const struct cut *c)
{
    for (unsigned i = 0; i < DISK_FILES; i++) {
        if (c->files[i].n_pieces > 0 || c->files[i].old.exists ||
            c->files[i].exists != c->files[i].safe.exists)
            return true;
    }
    return false;
}

/* A sector, or the part of it that was being written, is neither old nor new. */
static void tear(struct disk_bytes *b, const struct piece *p, bool powersafe,
                 struct rng *rng)
{
    size_t from = powersafe ? p->offset : p->offset - p->offset % DISK_SECTOR;
    size_t to = powersafe ? p->offset + p->len : from + DISK_SECTOR;

    if (p->truncates)
        return;
    if (to > b->len)
        to = b->len;
    for (size_t i = from; i < to; i++)
        b->ptr[i] = (uint8_t)rng_next(rng);
}

static bool arrives(enum cut_how how, size_t i, size_t chosen, struct rng *rng)
{
    switch (how) {
    case CUT_NONE:
        return false;
    case CUT_ALL:
    case CUT_NO_DATA:
    case CUT_HOWS:
        return true;
    case CUT_PREFIX:
        return i < chosen;
    case CUT_HOLE:
        return i != chosen;
    case CUT_RANDOM:
    case CUT_TORN:
        return i == chosen || rng_below(rng, 2) == 0;
    }
    return true;
}

static void file_after(const struct cut *c, const struct cut_file *f, enum cut_how how,
                       struct rng *rng, struct disk_bytes *out)
{
    size_t chosen = f->n_pieces ? (size_t)rng_below(rng, f->n_pieces) : 0;

    copy(out, &f->safe);
    for (size_t i = 0; i < f->n_pieces; i++) {
        if (arrives(how, i, chosen, rng))
            put_piece(out, &f->pieces[i]);
    }
    if (how == CUT_TORN && f->n_pieces > 0)
        tear(out, &f->pieces[chosen], c->powersafe, rng);
    if (how == CUT_NO_DATA && out->len > f->safe.len)
        memset(out->ptr + f->safe.len, 0, out->len - f->safe.len);
}

void cut_image(const struct cut *c, enum cut_how how, struct rng *rng,
               struct disk_image *out)
{
    for (unsigned i = 0; i < DISK_FILES; i++) {
        const struct cut_file *f = &c->files[i];
        struct disk_bytes *b = &out->files[i];
        bool renewed = how == CUT_ALL || (how != CUT_NONE && rng_below(rng, 2));

        file_after(c, f, how, rng, b);
        b->exists = renewed ? f->exists : f->safe.exists;
        if (!f->exists && f->old.exists && !renewed)
            copy(b, &f->old);
        if (!b->exists)
            b->len = 0;
    }
}
