/* Blobs, pins and collections of the workers of test_sessions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "session_deeds.h"

const char *deed_read_blob(struct hand *h, const char *ref, const uint8_t *want,
                           size_t len, struct belay_error *err)
{
    struct belay_blob_reader *r = NULL;
    const void *data = NULL;
    size_t piece = 0, at = 0;

    if (belay_blob_read_open(h->b, ref, &r, err))
        return "a blob cannot be opened";
    const char *wrong = NULL;
    do {
        if (belay_blob_read(r, &data, &piece, err)) {
            wrong = "a blob cannot be read";
            break;
        }
        if (want && piece > 0 &&
            (piece > len - at || memcmp(want + at, data, piece) != 0)) {
            (void)snprintf(err->message, sizeof(err->message), "%s", ref);
            wrong = "a blob has other content";
            break;
        }
        at += piece;
    } while (piece > 0);
    if (!wrong && want && at != len)
        wrong = "a blob is too short";
    belay_blob_read_close(r);
    return wrong;
}

void deed_put(struct hand *h, const struct note *again)
{
    struct note n = deed_begin(h, DEED_PUT, -1);
    struct belay_blob_writer *w = NULL;
    struct belay_blob_info info;
    struct belay_error err;
    char pin[40];

    if (again)
        n.thing = again->thing;
    n.flags = again ? NOTE_RETRY : 0;
    maker_name(&n.thing, pin);
    size_t len = body_make(&n.thing, BODY_PUT, h->body[0]);
    struct belay_blob_options options = { .size = sizeof(options),
                                          .kind = BELAY_BLOB_TOOL_STATE,
                                          .pin = pin };
    deed_note(h, &n);
    belay_rc rc = belay_blob_open(h->b, &options, &w, &err);
    for (size_t at = 0; at < len && !rc; at += 20000)
        rc = belay_blob_write(w, h->body[0] + at, len - at < 20000 ? len - at : 20000,
                              &err);
    rc = rc ? rc : belay_blob_finish(w, &info, &err);
    if (!rc)
        (void)snprintf(n.ref, sizeof(n.ref), "%s", info.sha256);
    deed_done(h, &n, rc, &err);
    belay_blob_close(w);
    if (!rc && h->n_pins < DEEDS_PINS)
        h->pins[h->n_pins++] = n.thing;
}

void deed_unpin(struct hand *h)
{
    struct note n = deed_begin(h, DEED_UNPIN, -1);
    struct belay_error err;
    bool removed = false;
    char pin[40];

    if (h->n_pins == 0)
        return;
    unsigned i = (unsigned)rng_below(&h->rng, h->n_pins);
    n.thing = h->pins[i];
    h->pins[i] = h->pins[--h->n_pins];
    maker_name(&n.thing, pin);
    deed_note(h, &n);
    belay_rc rc = belay_blob_unpin(h->b, pin, &removed, &err);
    n.flags |= removed ? NOTE_FOUND : 0;
    deed_done(h, &n, rc, &err);
}

/* What was pinned is there until it is unpinned (S5). */
void deed_read_pin(struct hand *h)
{
    struct note n = deed_begin(h, DEED_READ, -1);
    uint8_t digest[SHA256_LEN];
    char ref[SHA256_HEX_LEN + 1];
    struct belay_error err;

    if (h->n_pins == 0)
        return;
    n.thing = h->pins[rng_below(&h->rng, h->n_pins)];
    size_t len = body_make(&n.thing, BODY_PUT, h->body[0]);
    if (sha256(bytes_of(h->body[0], len), digest, &err))
        abort();
    hex_encode(bytes_of(digest, sizeof(digest)), ref);
    deed_note(h, &n);
    const char *wrong = deed_read_blob(h, ref, h->body[0], len, &err);
    if (wrong)
        deed_broken(h, wrong, &err);
    deed_done(h, &n, BELAY_OK, &err);
}

void deed_gc(struct hand *h)
{
    struct note n = deed_begin(h, DEED_GC, -1);
    bool no_grace = rng_below(&h->rng, 3) > 0, dawdles = rng_below(&h->rng, 2);
    struct belay_gc_options options = {
        .size = sizeof(options),
        .grace_ms = no_grace ? BELAY_NONE : 20,
        .budget_ms = dawdles                      ? 10000
                     : rng_below(&h->rng, 3) == 0 ? 3
                                                  : 0,
    };
    struct belay_gc_report report = { .outcome = BELAY_GC_FAILED };
    struct belay_error err;

    n.flags = no_grace ? NOTE_NO_GRACE : 0;
    deed_note(h, &n);
    /* Between looking and sweeping others have time to name again what was garbage. */
    h->dawdles = dawdles;
    belay_rc rc = belay_gc(h->b, &options, &report, &err);
    h->dawdles = false;
    n.most = report.deleted_blobs;
    n.revision = report.spared_blobs;
    if (!rc && report.outcome > BELAY_GC_INCOMPLETE) {
        (void)snprintf(err.message, sizeof(err.message), "%.20s %.20s %.200s",
                       belay_gc_outcome_name(report.outcome), report.reason,
                       report.message);
        deed_broken(h, "gc", &err);
    }
    deed_done(h, &n, rc, &err);
}
