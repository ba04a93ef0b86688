#include "work/process_book.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/json.h"
#include "store/key.h"
#include "work/exec_show.h"

#define BUCKETS 1024
/* Then it begins anew: anybody can ask for any process. */
#define BOOK_MAX 4096
#define BOOK_BYTES_MAX ((size_t)32 << 20)

struct known {
    struct proc_reg reg; /* first */
    atomic_uint refs;
    struct known *next;
    json_t *event_types;
    size_t bytes;
    uint8_t text[];
};

struct proc_book {
    pthread_mutex_t mutex;
    struct known *buckets[BUCKETS];
    size_t n, bytes;
};

/* --- one --- */

void proc_reg_drop(const struct proc_reg *r)
{
    struct known *k = (struct known *)(uintptr_t)r;

    if (!k || atomic_fetch_sub(&k->refs, 1) != 1)
        return;
    json_decref(k->event_types);
    free(k);
}

/* The next text of what was allocated for all of them. */
static struct bytes put_text(uint8_t **at, const struct row *row, unsigned column)
{
    struct bytes b = row_bytes(row, column);

    if (row->v[column].kind == VALUE_NULL)
        return bytes_of(NULL, 0);
    if (b.len > 0)
        memcpy(*at, b.ptr, b.len);
    struct bytes out = bytes_of(*at, b.len);
    *at += b.len;
    return out;
}

static const unsigned text_columns[] = {
    PROCESS_SPEC_ID,          PROCESS_SPEC_HASH,
    PROCESS_SPEC_KIND,        PROCESS_SPEC_OWNER_SESSION,
    PROCESS_SPEC_OWNER_FRAME, PROCESS_SPEC_CAUSED_BY,
};

belay_rc proc_reg_of(struct txn *t, const struct row *spec, const struct proc_reg **out)
{
    json_t *types = NULL;
    struct bytes text = row_bytes(spec, PROCESS_SPEC_EVENT_TYPES);
    size_t len = 0;
    belay_rc rc = json_read(text, PROCESS_JSON_MAX, &types, txn_error(t));

    if (rc == BELAY_INVALID || (rc == BELAY_OK && !json_is_array(types))) {
        json_decref(types);
        return proc_corrupt(t, spec, PROCESS_SPEC_EVENT_TYPES);
    }
    if (rc)
        return rc;
    for (size_t i = 0; i < COUNT_OF(text_columns); i++)
        len += row_bytes(spec, text_columns[i]).len;
    struct known *k = malloc(sizeof(*k) + len);
    if (!k) {
        json_decref(types);
        return err_no_memory(txn_error(t), "a registration");
    }
    uint8_t *at = k->text;
    *k = (struct known){ .event_types = types, .bytes = sizeof(*k) + len + text.len };
    atomic_init(&k->refs, 1);
    k->reg.id = put_text(&at, spec, PROCESS_SPEC_ID);
    k->reg.hash = put_text(&at, spec, PROCESS_SPEC_HASH);
    k->reg.kind = put_text(&at, spec, PROCESS_SPEC_KIND);
    k->reg.owner_session = put_text(&at, spec, PROCESS_SPEC_OWNER_SESSION);
    k->reg.owner_frame = put_text(&at, spec, PROCESS_SPEC_OWNER_FRAME);
    k->reg.caused_by = put_text(&at, spec, PROCESS_SPEC_CAUSED_BY);
    k->reg.event_types = types;
    *out = &k->reg;
    return BELAY_OK;
}

/* --- the book --- */

belay_rc proc_book_open(struct proc_book **out, struct belay_error *err)
{
    struct proc_book *b = calloc(1, sizeof(*b));

    if (!b)
        return err_no_memory(err, "a book of processes");
    pthread_mutex_init(&b->mutex, NULL);
    *out = b;
    return BELAY_OK;
}

static void empty(struct proc_book *b)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct known *k = b->buckets[i], *next; k; k = next) {
            next = k->next;
            proc_reg_drop(&k->reg);
        }
        b->buckets[i] = NULL;
    }
    b->n = b->bytes = 0;
}

void proc_book_close(struct proc_book *b)
{
    if (!b)
        return;
    empty(b);
    pthread_mutex_destroy(&b->mutex);
    free(b);
}

static struct known **find(struct proc_book *b, struct bytes id)
{
    struct known **at = &b->buckets[key_hash(id) % BUCKETS];

    while (*at && !bytes_eq((*at)->reg.id, id))
        at = &(*at)->next;
    return at;
}

static const struct proc_reg *look_up(struct proc_book *b, struct bytes id)
{
    pthread_mutex_lock(&b->mutex);
    struct known *k = *find(b, id);
    if (k)
        atomic_fetch_add(&k->refs, 1);
    pthread_mutex_unlock(&b->mutex);
    return k ? &k->reg : NULL;
}

static void enter(struct proc_book *b, const struct proc_reg *reg)
{
    struct known *k = (struct known *)(uintptr_t)reg;

    pthread_mutex_lock(&b->mutex);
    if (b->n >= BOOK_MAX || b->bytes + k->bytes > BOOK_BYTES_MAX)
        empty(b);
    struct known **at = find(b, reg->id);
    struct known *before = *at;
    atomic_fetch_add(&k->refs, 1);
    k->next = before ? before->next : NULL;
    *at = k;
    b->n += !before;
    b->bytes += k->bytes - (before ? before->bytes : 0);
    if (before)
        proc_reg_drop(&before->reg);
    pthread_mutex_unlock(&b->mutex);
}

/* --- reading --- */

struct reading {
    struct bytes id;
    const struct proc_reg *found;
};

static belay_rc read_body(struct txn *t, void *arg)
{
    struct reading *r = arg;
    struct value key = value_text(r->id);
    const struct row_want wants[] = { { &row_process, &key },
                                      { &row_process_spec, &key } };
    const struct row *rows[COUNT_OF(wants)];
    struct proc p;
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    proc_reg_drop(r->found); /* of a run before */
    r->found = NULL;
    if (rc == BELAY_OK)
        rc = proc_found(t, r->id, rows[0], &p);
    if (rc)
        return rc;
    if (!rows[1])
        return proc_corrupt(t, rows[0], PROCESS_HASH);
    return proc_reg_of(t, rows[1], &r->found);
}

belay_rc proc_reg_get(const struct proc_site *site, struct bytes id, bool anew,
                      const struct proc_reg **out, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct reading r = { .id = id };

    *out = anew ? NULL : look_up(site->book, id);
    if (*out)
        return BELAY_OK;
    belay_rc rc = txn_run(site->space, read_body, &r, &look_only, &arena, err);
    if (rc) {
        proc_reg_drop(r.found);
        return rc;
    }
    enter(site->book, r.found);
    *out = r.found;
    return BELAY_OK;
}
