/* What actors do with blobs, pins, the collection and the epoch. */
#include "nouns.h"

#include <stdio.h>
#include <stdlib.h>

#include "work/epoch.h"

/* --- contents --- */

struct bytes content_of(unsigned which, char name[SHA256_HEX_LEN + 1])
{
    static const size_t sizes[CONTENTS] = { 3, 40, 300, 1500, 700 };
    static uint8_t content[CONTENTS][2048];
    static char names[CONTENTS][SHA256_HEX_LEN + 1];
    struct bytes b = bytes_of(content[which], sizes[which]);
    uint8_t digest[SHA256_LEN];

    if (!names[which][0]) {
        for (size_t i = 0; i < b.len; i++) /* the fourth is worth compressing */
            content[which][i] = (uint8_t)(which == 3 ? 'a' + i % 7 : mix(which, i));
        if (sha256(b, digest, NULL))
            abort();
        hex_encode(bytes_of(digest, sizeof(digest)), names[which]);
    }
    memcpy(name, names[which], sizeof(names[which]));
    return b;
}

/* --- putting and reading --- */

void op_put(struct actor *a)
{
    char name[SHA256_HEX_LEN + 1];
    struct bytes content = content_of(pick_of(a->op, 3, CONTENTS), name);
    struct space *sp = noun_space(a);
    struct blob_writer *writer = NULL;
    struct blob_info info = { .existed = false };
    struct belay_error err;

    if (!sp || blob_writer_open(&writer, sp, pick_of(a->op, 4, 2), NULL, &err))
        return;
    struct ncall *c = call_begin(a, N_PUT, NULL);
    c->sha = str_of(name);
    belay_rc rc = blob_write(writer, content, &err);
    /* Some begin an upload and never finish it. */
    if (!rc && pick_of(a->op, 5, 8) > 0)
        rc = blob_finish(writer, bytes_of(NULL, 0), name, &info, &err);
    blob_writer_close(writer);
    if (!call_end(c, rc))
        return;
    if (rc && rc != BELAY_NOT_FOUND) /* swept while it was written */
        call_refuse(c, rc);
    if (!rc && info.existed && c->changed == 0)
        violation(a->sim, "S6", "a blob was said to be there and was not touched");
}

belay_rc do_read(struct actor *a, const char *sha256_hex)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct nouns *w = a->sim->nouns;
    struct space *sp = noun_space(a);
    uint64_t sha = str_of(sha256_hex);
    struct bytes got;
    uint8_t digest[SHA256_LEN];
    char name[SHA256_HEX_LEN + 1];
    struct belay_error err;

    if (!sp)
        return BELAY_UNAVAILABLE;
    struct ncall *c = call_begin(a, N_LOOK, NULL);
    belay_rc rc = blob_load(sp, sha256_hex, 4096, &arena, &got, &err);
    if (!call_end(c, rc))
        return BELAY_UNAVAILABLE;
    bool missing = rc == BELAY_NOT_FOUND || rc == BELAY_CORRUPT;
    if (missing && sha != w->spoiled && is_there_since(w, sha, c->first_no))
        violation(w->s, "S4", "a blob that is there cannot be read: %s", err.message);
    if (rc && !missing)
        call_refuse(c, rc);
    if (rc)
        return rc;
    if (sha256(got, digest, NULL))
        abort();
    hex_encode(bytes_of(digest, sizeof(digest)), name);
    if (str_of(name) != sha)
        violation(w->s, "S4", "a blob was read with other bytes than its name's");
    return BELAY_OK;
}

/* A checkpoint and its parts. */
void do_load(struct actor *a, const char *session)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct nouns *w = a->sim->nouns;
    struct space *sp = noun_space(a);
    struct belay_checkpoint_info info;
    struct belay_error err;

    if (!sp)
        return;
    struct ncall *c = call_begin(a, N_LOOK, session);
    belay_rc rc = checkpoint_load(sp, session, &arena, &info, &err);
    if (!call_end(c, rc))
        return;
    const struct nsession *n = session_at(w->cur, c->session);
    bool calm = c->first_no == w->no, has = n && n->active && n->ref[N_MANIFEST];
    if (rc == BELAY_CORRUPT && (w->spoiled || !calm))
        return; /* its parts may have gone while it was read, and the head has moved */
    if (rc == BELAY_NOT_FOUND && calm && has)
        violation(w->s, "S3", "a checkpoint that is there was not found");
    if (rc && rc != BELAY_NOT_FOUND)
        call_refuse(c, rc);
    if (rc)
        return;
    if (calm && str_of(info.ref) != n->ref[N_MANIFEST])
        violation(w->s, "S3", "another checkpoint than the head's was loaded");
    const char *const refs[] = { info.tool_state_ref, info.plugin_snapshot_ref,
                                 info.execution_state_ref };
    for (unsigned i = 0; i < COUNT_OF(refs) && !a->sim->running->dead; i++) {
        if (refs[i])
            (void)do_read(a, refs[i]);
    }
}

void op_load(struct actor *a)
{
    do_load(a, session_name(a));
}

/* --- pins --- */

static const char *const pin_names[] = { "p0", "p1" };

void op_pin(struct actor *a)
{
    struct nouns *w = a->sim->nouns;
    char name[SHA256_HEX_LEN + 1];
    struct space *sp = noun_space(a);
    const char *pin = pin_names[pick_of(a->op, 4, COUNT_OF(pin_names))];
    struct belay_error err;

    (void)content_of(pick_of(a->op, 3, CONTENTS), name);
    if (!sp)
        return;
    struct ncall *c = call_begin(a, N_PIN, NULL);
    c->sha = str_of(name);
    c->pin = str_of(pin);
    belay_rc rc = pin_put(sp, pin, name, &err);
    if (!call_end(c, rc))
        return;
    if (rc == BELAY_NOT_FOUND && is_there_since(w, c->sha, c->first_no))
        violation(w->s, "S6", "a blob is said to be unknown that was always there");
    if (rc && rc != BELAY_NOT_FOUND)
        call_refuse(c, rc);
    if (!rc && c->changed != 1)
        violation(w->s, "S6", "a pin was acknowledged and is not there");
}

void op_unpin(struct actor *a)
{
    struct space *sp = noun_space(a);
    const char *pin = pin_names[pick_of(a->op, 4, COUNT_OF(pin_names))];
    struct belay_error err;
    bool removed = false;

    if (!sp)
        return;
    struct ncall *c = call_begin(a, N_UNPIN, NULL);
    c->pin = str_of(pin);
    belay_rc rc = pin_remove(sp, pin, &removed, &err);
    if (!call_end(c, rc))
        return;
    if (rc)
        call_refuse(c, rc);
    else if (removed != (c->changed == 1))
        violation(a->sim, "answer", "unpin says something else than it did");
}

/* --- the collection --- */

static void check_report(struct ncall *c, const struct belay_gc_report *r, bool dry_run)
{
    struct nouns *w = c->actor->sim->nouns;

    switch ((enum belay_gc_outcome)r->outcome) {
    case BELAY_GC_FAILED:
        call_refuse(c, (belay_rc)r->code);
        break;
    case BELAY_GC_REFUSED:
        if (!w->spoiled)
            violation(w->s, "answer", "gc refused: %s", r->message);
        break;
    case BELAY_GC_SWEPT:
    case BELAY_GC_NOTHING:
        if (r->outcome == BELAY_GC_NOTHING && c->changed > 0)
            violation(w->s, "answer", "gc removed something and says nothing");
        break;
    case BELAY_GC_INCOMPLETE:
        break;
    }
    if (c->lost == 0 && !dry_run && r->deleted_blobs != c->collected)
        violation(w->s, "answer", "gc says %lld blobs, %lld are gone",
                  (long long)r->deleted_blobs, (long long)c->collected);
}

belay_rc do_collect(struct actor *a, int64_t grace_ms, struct belay_gc_report *report)
{
    struct space *sp = noun_space(a);
    struct belay_gc_options options = { .size = sizeof(options), .grace_ms = grace_ms };
    struct belay_error err;

    options.dry_run = a->op->kind == OP_COLLECT && pick_of(a->op, 4, 8) == 0;
    if (!sp)
        return BELAY_UNAVAILABLE;
    struct ncall *c = call_begin(a, N_COLLECT, NULL);
    c->grace_ms = grace_ms;
    belay_rc rc = gc_run(sp, &options, report, &err);
    if (!call_end(c, rc))
        return BELAY_UNAVAILABLE;
    if (rc)
        call_refuse(c, rc);
    else
        check_report(c, report, options.dry_run);
    if (options.dry_run && c->changed > 0)
        violation(a->sim, "S5", "a dry run removed something");
    return rc;
}

void op_collect(struct actor *a)
{
    static const int64_t graces_ms[] = { BELAY_NONE, BELAY_NONE, 30, 3000 };
    struct belay_gc_report report;

    (void)do_collect(a, graces_ms[pick_of(a->op, 3, COUNT_OF(graces_ms))], &report);
}

/* --- damage --- */

static belay_rc spoil_body(struct txn *t, void *arg)
{
    struct value key = value_str(arg);
    const struct row *row = NULL;
    belay_rc rc = txn_get(t, &row_blob, &key, &row);

    if (rc || !row)
        return rc;
    return txn_chunk_put(t, row_bytes(row, BLOB_UPLOAD), 0, bytes_str("{\"spoiled\":"));
}

/* Damages the manifest of a head, once in a schedule. */
void op_spoil(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct nouns *w = a->sim->nouns;
    const char *session = session_name(a);
    struct space *sp = noun_space(a);
    struct session s = { sp, session, BELAY_PROFILE_DEFAULT };
    struct belay_head head;
    struct belay_error err;

    if (!sp || w->spoiled || pick_of(a->op, 3, 3) > 0)
        return;
    struct ncall *c = call_begin(a, N_SPOIL, session);
    belay_rc rc = session_head(&s, &arena, &head, &err);
    if (!a->sim->running->dead && !rc && head.checkpoint_ref && !w->spoiled) {
        w->spoiled = str_of(head.checkpoint_ref);
        rc = txn_run(sp, spoil_body, (void *)head.checkpoint_ref, NULL, &arena, &err);
    }
    (void)call_end(c, rc);
}

void op_epoch(struct actor *a)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct space *sp = noun_space(a);
    struct epoch_info info;
    struct belay_error err;

    if (!sp || pick_of(a->op, 3, 2))
        return;
    struct ncall *c = call_begin(a, N_RAISE, NULL);
    belay_rc rc = epoch_raise(sp, bytes_str("simulated"), "sim", &arena, &info, &err);
    if (!call_end(c, rc))
        return;
    if (rc)
        call_refuse(c, rc);
    else if (c->changed != 1)
        violation(a->sim, "L2", "the epoch was not raised");
}
