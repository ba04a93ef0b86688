/* Questions of several callers in one round trip. */
#include "store/drivers/postgres/impl.h"

/* Together they ask at most so much; one that expects more asks alone. */
#define READS_MAX 256
#define LIMIT_MAX 1024

struct reader {
    struct pg_waiter w;
    struct bytes ns;
    struct read *reads;
    size_t n;
    struct belay_arena *arena;
    struct belay_error *err;
    belay_rc rc;
};

static bool is_short(const struct read *reads, size_t n)
{
    size_t expected = 0;

    for (size_t i = 0; i < n; i++) {
        if (reads[i].kind == READ_CHUNK)
            return false;
        expected += reads[i].kind == READ_ROW    ? 1
                    : reads[i].kind == READ_RANK ? reads[i].rank.scan->limit
                    : reads[i].kind == READ_LOG  ? reads[i].log.limit
                                                 : reads[i].feed.limit;
        if (expected > LIMIT_MAX || (reads[i].kind == READ_RANK && reads[i].rank.hold))
            return false;
    }
    return true;
}

struct company {
    struct bytes ns;
    size_t n_reads;
};

static bool fits(void *arg, struct pg_waiter *w)
{
    const struct reader *r = (struct reader *)w;
    struct company *c = arg;

    if (c->n_reads + r->n > READS_MAX || !bytes_eq(c->ns, r->ns))
        return false;
    c->n_reads += r->n;
    return true;
}

static belay_rc read_alone(struct pg_store *s, struct pg_attempt *at,
                           struct read *reads, size_t n, struct belay_arena *a,
                           struct belay_error *err)
{
    struct belay_arena *few[8];
    CLEANUP(arena_release) struct belay_arena own = { .first = NULL };
    struct belay_arena **arenas =
        n <= COUNT_OF(few) ? few : arena_zalloc(&own, n, sizeof(*arenas));

    if (!arenas)
        return err_no_memory(err, "a question");
    for (size_t i = 0; i < n; i++)
        arenas[i] = a;
    return pg_read_alone(s, at, reads, n, arenas, err);
}

/* All their questions at once.  False: it went wrong for one of them, or for all.  Without
 * a server it has gone wrong for each: nobody waits for it once more. */
static bool read_all(struct pg_store *s, struct reader *first, size_t n_reads)
{
    CLEANUP(arena_release) struct belay_arena own = { .first = NULL };
    struct read *reads = arena_zalloc(&own, n_reads, sizeof(*reads));
    struct belay_arena **arenas = arena_zalloc(&own, n_reads, sizeof(*arenas));
    struct pg_attempt at = { .ns = first->ns };
    size_t n = 0;

    if (!reads || !arenas)
        return false;
    for (struct reader *r = first; r; r = (struct reader *)r->w.next) {
        for (size_t i = 0; i < r->n; i++) {
            arenas[n] = r->arena;
            reads[n++] = r->reads[i];
        }
    }
    struct belay_error why = { .code = 0 };
    belay_rc rc = pg_read_alone(s, &at, reads, n, arenas, &why);
    if (rc && !at.lost)
        return false;
    n = 0;
    for (struct reader *r = first; r; r = (struct reader *)r->w.next) {
        for (size_t i = 0; i < r->n && rc == BELAY_OK; i++)
            r->reads[i] = reads[n++];
        r->rc = rc;
        if (rc && r->err)
            *r->err = why;
    }
    return true;
}

/* Serves those in the list; what does not work for all of them is tried for each. */
static void serve(struct pg_store *s, struct reader *first, size_t n_reads)
{
    if (first->w.next && read_all(s, first, n_reads))
        return;
    for (struct reader *r = first; r; r = (struct reader *)r->w.next) {
        struct pg_attempt at = { .ns = r->ns };
        r->rc = read_alone(s, &at, r->reads, r->n, r->arena, r->err);
    }
}

belay_rc pg_read(struct driver *d, void *attempt, struct read *reads, size_t n,
                 struct belay_arena *a, struct belay_error *err)
{
    struct pg_store *s = (struct pg_store *)d;
    struct pg_attempt *at = attempt;
    struct reader self = {
        .ns = at->ns, .reads = reads, .n = n, .arena = a, .err = err
    };

    if (at->conn || !is_short(reads, n))
        return read_alone(s, at, reads, n, a, err);
    if (!pg_line_enter(&s->readers, &self.w))
        return self.rc;
    struct company c = { .ns = at->ns, .n_reads = n };
    struct pg_waiter *all = pg_line_take(&s->readers, &self.w, fits, &c);
    serve(s, (struct reader *)all, c.n_reads);
    pg_line_leave(&s->readers);
    for (struct pg_waiter *w = all, *next; w; w = next) {
        next = w->next;
        if (w != &self.w)
            pg_line_answer(w);
    }
    return self.rc;
}
