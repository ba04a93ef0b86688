/* Blobs, pins and collections, asked wrongly. */
#include "nouns.h"

static void options_are_checked(struct world *w)
{
    const struct {
        struct belay_blob_options o;
        belay_rc want;
        const char *reason;
    } rows[] = {
        { { .size = sizeof(rows[0].o), .kind = -1 }, BELAY_INVALID, "kind" },
        { { .size = sizeof(rows[0].o), .kind = 6 }, BELAY_INVALID, "kind" },
        { { .size = sizeof(rows[0].o), .profile = 4 }, BELAY_INVALID, "profile" },
        { { .size = sizeof(rows[0].o), .expect = "" }, BELAY_INVALID, "sha256" },
        { { .size = sizeof(rows[0].o), .expect = "abc" }, BELAY_INVALID, "sha256" },
        { { .size = sizeof(rows[0].o), .pin = "" }, BELAY_INVALID, NULL },
        { { .size = sizeof(rows[0].o), .pin = "a\n" }, BELAY_INVALID, NULL },
        { { .size = sizeof(rows[0].o), .reserved = 1 }, BELAY_MISUSE, NULL },
        { { .size = 0 }, BELAY_MISUSE, NULL },
        { { .size = 5 }, BELAY_MISUSE, NULL },
        { { .size = UINT32_MAX }, BELAY_MISUSE, NULL },
    };
    struct belay_blob_writer *writer = NULL;
    const char *before = everything(w);

    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        belay_rc rc = belay_blob_open(w->use, &rows[i].o, &writer, &w->err);
        if (!WHY(w, rc, rows[i].want, rows[i].reason))
            printf("# in row %zu\n", i);
        OK(w, writer == NULL);
    }
    RC(w, belay_blob_open(NULL, NULL, &writer, &w->err), BELAY_MISUSE);
    RC(w, belay_blob_open(w->use, NULL, NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_blob_write(NULL, "x", 1, &w->err), BELAY_MISUSE);
    RC(w, belay_blob_finish(NULL, &w->blob, &w->err), BELAY_MISUSE);
    STR(w, everything(w), before);
}

/* After finish only close is left. */
static void writers_end(struct world *w)
{
    struct belay_blob_writer *writer = NULL;

    RC(w, belay_blob_open(w->use, NULL, &writer, &w->err), BELAY_OK);
    RC(w, belay_blob_write(writer, NULL, 1, &w->err), BELAY_MISUSE);
    RC(w, belay_blob_write(writer, "x", 1, &w->err), BELAY_OK);
    RC(w, belay_blob_finish(writer, &w->blob, &w->err), BELAY_OK);
    RC(w, belay_blob_write(writer, "x", 1, &w->err), BELAY_MISUSE);
    RC(w, belay_blob_finish(writer, &w->blob, &w->err), BELAY_MISUSE);
    belay_blob_close(writer);
    STR(w, content(w, w->blob.sha256), "x");
}

static void readers_are_checked(struct world *w)
{
    struct belay_blob_reader *r = NULL;
    const void *data = NULL;
    size_t len = 0;
    const char *name = blob(w, "x");

    RC(w, belay_blob_read_open(NULL, name, &r, &w->err), BELAY_MISUSE);
    RC(w, belay_blob_read_open(w->use, NULL, &r, &w->err), BELAY_MISUSE);
    RC(w, belay_blob_read_open(w->use, name, NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_blob_read(NULL, &data, &len, &w->err), BELAY_MISUSE);
    OK(w, r == NULL);
    belay_blob_read_close(NULL);
    RC(w, belay_blob_read_open(w->use, name, &r, &w->err), BELAY_OK);
    EQ(w, belay_blob_read_size(r), 1);
    RC(w, belay_blob_read(r, &data, &len, &w->err), BELAY_OK);
    EQ(w, len, 1);
    for (int i = 0; i < 3; i++) { /* the end stays the end */
        RC(w, belay_blob_read(r, &data, &len, &w->err), BELAY_OK);
        EQ(w, len, 0);
    }
    belay_blob_read_close(r);
}

static void pins_are_checked(struct world *w)
{
    static const char *const names[] = { "", "a\nb", "\xff" };
    struct belay_pins out = { 0 };
    const char *ref = blob(w, "x"), *before = everything(w);

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        RC(w, belay_blob_pin(w->use, names[i], ref, &w->err), BELAY_INVALID);
        RC(w, belay_blob_unpin(w->use, names[i], NULL, &w->err), BELAY_INVALID);
    }
    RC(w, belay_blob_pin(w->use, bytes_of(w, 'x', 256), ref, &w->err), BELAY_INVALID);
    RC(w, belay_blob_pin(w->use, NULL, ref, &w->err), BELAY_MISUSE);
    RC(w, belay_blob_pin(w->use, "p", NULL, &w->err), BELAY_MISUSE);
    RC(w, belay_blob_unpin(w->use, NULL, NULL, &w->err), BELAY_MISUSE);
    belay_rc rc = belay_blob_pin(w->use, "p", "no name of a blob", &w->err);
    OK(w, rc == BELAY_INVALID || rc == BELAY_NOT_FOUND);
    RC(w, belay_blob_pins(w->use, "no cursor", 0, w->arena, &out, &w->err),
       BELAY_INVALID);
    RC(w, belay_blob_pins(w->use, NULL, 0, NULL, &out, &w->err), BELAY_MISUSE);
    STR(w, everything(w), before);
    RC(w, belay_blob_pin(w->use, bytes_of(w, 'x', 255), ref, &w->err), BELAY_OK);
}

static void collections_are_checked(struct world *w)
{
    const struct {
        struct belay_gc_options o;
        belay_rc want;
    } rows[] = {
        { { .size = sizeof(rows[0].o), .grace_ms = -2 }, BELAY_INVALID },
        { { .size = sizeof(rows[0].o), .grace_ms = INT64_MAX }, BELAY_INVALID },
        { { .size = sizeof(rows[0].o), .budget_ms = -1 }, BELAY_INVALID },
        { { .size = 0 }, BELAY_MISUSE },
        { { .size = UINT32_MAX }, BELAY_MISUSE },
    };

    (void)blob(w, "x");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!RC(w, belay_gc(w->use, &rows[i].o, &w->gc, &w->err), rows[i].want))
            printf("# in row %zu\n", i);
    }
    RC(w, belay_gc(NULL, NULL, &w->gc, &w->err), BELAY_MISUSE);
    RC(w, belay_gc(w->use, NULL, NULL, &w->err), BELAY_MISUSE);
    OK(w, has_blob(w, digest(w, "x")));
}

static const struct noun_case cases[] = {
    { "blob options: kinds, profiles, names, sizes", options_are_checked, 0 },
    { "a writer that has finished can only be closed", writers_end, 0 },
    { "readers: NULL, and the end stays the end", readers_are_checked, 0 },
    { "pins: names, blobs, cursors", pins_are_checked, 0 },
    { "collections: options out of range are refused before anything goes",
      collections_are_checked, 0 },
};

const struct topic topic_bad_blobs = { cases, COUNT_OF(cases) };
