#include <belay/blob.h>

#include <stdlib.h>

#include "api/check.h"
#include "api/handle.h"
#include "work/checkpoint.h"
#include "work/gc.h"

_Static_assert(BELAY_SHA256_HEX == SHA256_HEX_LEN + 1, "a name and its NUL");

#define PIN_MAX 255

/* Whether a blob is compressed depends on its size, which nobody knows at the beginning:
 * so much is held back until it is clear. */
#define HELD_MAX 4096

struct belay_blob_writer {
    struct space *sp;
    int32_t kind, profile;
    struct blob_writer *writer; /* NULL: all of it is held */
    size_t n_held;
    bool has_expect, has_pin;
    char expect[BELAY_SHA256_HEX];
    char pin[PIN_MAX + 1];
    uint8_t held[HELD_MAX];
};

struct belay_blob_reader {
    struct blob_reader *reader;
};

static const struct sized options_type = { "belay_blob_options",
                                           sizeof(struct belay_blob_options),
                                           END_OF(struct belay_blob_options, pin) };
static const struct sized gc_type = { "belay_gc_options",
                                      sizeof(struct belay_gc_options),
                                      END_OF(struct belay_gc_options, cancel) };

/* --- in --- */

static belay_rc check_options(const struct belay_blob_options *o,
                              struct belay_error *err)
{
    if (o->reserved != 0)
        return err_set(err, BELAY_MISUSE,
                       "struct belay_blob_options: reserved is not 0");
    if (o->kind < 0 || o->kind > BELAY_BLOB_MODULE)
        return err_reason(err, BELAY_INVALID, "kind", "kind: there is no %d", o->kind);
    if (o->profile < 0 || o->profile > BELAY_COMPACT)
        return err_reason(err, BELAY_INVALID, "profile", "profile: there is no %d",
                          o->profile);
    if (o->expect && !blob_is_name(bytes_str(o->expect)))
        return err_reason(err, BELAY_INVALID, "sha256",
                          "expect: must be 64 lower-case hex digits");
    if (o->pin && !bytes_is_id(bytes_str(o->pin), PIN_MAX))
        return err_reason(err, BELAY_INVALID, "pin",
                          "pin: must be 1 to %d bytes of UTF-8 without control "
                          "characters",
                          PIN_MAX);
    return BELAY_OK;
}

belay_rc belay_blob_open(struct belay *b, const struct belay_blob_options *options,
                         struct belay_blob_writer **out, struct belay_error *err)
{
    struct belay_blob_options known = { .size = sizeof(known) };
    belay_rc rc = BELAY_OK;

    if (!b || !out)
        return null_given(err, __func__);
    if (options)
        rc = sized_read(&options_type, options, &known, err);
    if (rc == BELAY_OK)
        rc = check_options(&known, err);
    if (rc != BELAY_OK)
        return rc;
    struct belay_blob_writer *w = calloc(1, sizeof(*w));
    if (!w)
        return err_no_memory(err, "a blob writer");
    w->sp = b->space;
    w->kind = known.kind;
    w->profile = profile_resolve(b->space, known.profile);
    w->has_expect = known.expect;
    w->has_pin = known.pin;
    if (known.expect)
        memcpy(w->expect, known.expect, sizeof(w->expect));
    if (known.pin)
        memcpy(w->pin, known.pin, strlen(known.pin) + 1);
    *out = w;
    return BELAY_OK;
}

/* Passes on what was held, now that it is known whether to compress. */
static belay_rc begin(struct belay_blob_writer *w, size_t size, struct belay_error *err)
{
    bool compress = profile_compresses(w->profile, w->kind, size);
    belay_rc rc = blob_writer_open(&w->writer, w->sp, compress, NULL, err);

    if (rc == BELAY_OK && w->n_held > 0)
        rc = blob_write(w->writer, bytes_of(w->held, w->n_held), err);
    return rc;
}

belay_rc belay_blob_write(struct belay_blob_writer *w, const void *data, size_t len,
                          struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    if (!w || (!data && len > 0))
        return null_given(err, __func__);
    if (!w->writer && len <= HELD_MAX - w->n_held) {
        if (len > 0)
            memcpy(w->held + w->n_held, data, len);
        w->n_held += len;
        return BELAY_OK;
    }
    if (!w->writer)
        rc = begin(w, HELD_MAX + 1, err); /* there is more than any threshold */
    if (rc == BELAY_OK)
        rc = blob_write(w->writer, bytes_of(data, len), err);
    return rc;
}

belay_rc belay_blob_finish(struct belay_blob_writer *w, struct belay_blob_info *out,
                           struct belay_error *err)
{
    struct blob_info info;
    belay_rc rc = BELAY_OK;

    if (!w || !out)
        return null_given(err, __func__);
    if (!w->writer)
        rc = begin(w, w->n_held, err);
    if (rc == BELAY_OK)
        rc = blob_finish(w->writer, blob_kind_descriptor(w->kind),
                         w->has_expect ? w->expect : NULL, &info, err);
    /* Between the two the blob is within its grace: finishing has touched it (S6). */
    if (rc == BELAY_OK && w->has_pin)
        rc = pin_put(w->sp, w->pin, info.sha256, err);
    if (rc != BELAY_OK)
        return rc;
    *out = (struct belay_blob_info){
        .size = info.size,
        .stored_size = info.stored_size,
        .existed = info.existed,
    };
    memcpy(out->sha256, info.sha256, sizeof(out->sha256));
    return BELAY_OK;
}

void belay_blob_close(struct belay_blob_writer *w)
{
    if (!w)
        return;
    blob_writer_close(w->writer);
    free(w);
}

/* --- out --- */

belay_rc belay_blob_read_open(struct belay *b, const char *sha256,
                              struct belay_blob_reader **out, struct belay_error *err)
{
    if (!b || !sha256 || !out)
        return null_given(err, __func__);
    struct belay_blob_reader *r = calloc(1, sizeof(*r));
    if (!r)
        return err_no_memory(err, "a blob reader");
    belay_rc rc = blob_reader_open(&r->reader, b->space, sha256, NULL, err);
    if (rc != BELAY_OK) {
        free(r);
        return rc;
    }
    *out = r;
    return BELAY_OK;
}

int64_t belay_blob_read_size(const struct belay_blob_reader *r)
{
    return blob_reader_size(r->reader);
}

belay_rc belay_blob_read(struct belay_blob_reader *r, const void **data, size_t *len,
                         struct belay_error *err)
{
    struct bytes piece;

    if (!r || !data || !len)
        return null_given(err, __func__);
    belay_rc rc = blob_read(r->reader, &piece, err);
    if (rc != BELAY_OK)
        return rc;
    *data = piece.ptr;
    *len = piece.len;
    return BELAY_OK;
}

void belay_blob_read_close(struct belay_blob_reader *r)
{
    if (!r)
        return;
    blob_reader_close(r->reader);
    free(r);
}

/* --- pins --- */

belay_rc belay_blob_pin(struct belay *b, const char *name, const char *sha256,
                        struct belay_error *err)
{
    if (!b || !name || !sha256)
        return null_given(err, __func__);
    return pin_put(b->space, name, sha256, err);
}

belay_rc belay_blob_unpin(struct belay *b, const char *name, bool *out_removed,
                          struct belay_error *err)
{
    bool removed = false;

    if (!b || !name)
        return null_given(err, __func__);
    belay_rc rc = pin_remove(b->space, name, &removed, err);
    if (rc == BELAY_OK && out_removed)
        *out_removed = removed;
    return rc;
}

belay_rc belay_blob_pins(struct belay *b, const char *cursor, size_t limit,
                         struct belay_arena *arena, struct belay_pins *out,
                         struct belay_error *err)
{
    struct belay_pins found = { 0 };

    if (!b || !arena || !out)
        return null_given(err, __func__);
    belay_rc rc = pin_list(b->space, cursor, limit, arena, &found, err);
    if (rc == BELAY_OK)
        *out = found;
    return rc;
}

/* --- garbage --- */

const char *belay_gc_outcome_name(int outcome)
{
    static const char *const names[] = {
        [BELAY_GC_SWEPT] = "swept",           [BELAY_GC_NOTHING] = "nothing",
        [BELAY_GC_INCOMPLETE] = "incomplete", [BELAY_GC_REFUSED] = "refused",
        [BELAY_GC_FAILED] = "failed",
    };

    if (outcome < 0 || (size_t)outcome >= COUNT_OF(names))
        return "unknown";
    return names[outcome];
}

belay_rc belay_gc(struct belay *b, const struct belay_gc_options *options,
                  struct belay_gc_report *out, struct belay_error *err)
{
    struct belay_gc_options known = { .size = sizeof(known) };
    struct belay_gc_report report = { 0 };
    belay_rc rc = BELAY_OK;

    if (!b || !out)
        return null_given(err, __func__);
    if (options)
        rc = sized_read(&gc_type, options, &known, err);
    if (rc == BELAY_OK)
        rc = gc_run(b->space, &known, &report, err);
    if (rc == BELAY_OK)
        *out = report;
    return rc;
}
