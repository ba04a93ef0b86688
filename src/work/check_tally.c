/* Numbers that rows tell about others, and names that must be somewhere else: what was
 * told is compared with what was seen when the walk is over. */
#include <inttypes.h>

#include "work/check_impl.h"

struct check_tally {
    struct check_entry entry; /* key: kind, name */
    enum tally_kind kind;
    struct bytes name;
    bool is_told;
    int64_t told, seen;
};

/* What a difference is called, and how it is put. */
static const struct {
    const char *code, *what;
    bool unless_told; /* what was seen and never told is wrong, too */
} kinds[] = {
    [TALLY_BATCHES] = { "wrong_count", "batches of its inbox", true },
    [TALLY_FRONT] = { "missing_row", "rows of the front of its inbox", true },
    [TALLY_NODES] = { "wrong_count", "nodes that are not tombstoned", false },
    [TALLY_NAMES] = { "wrong_count", "names of nodes that are not tombstoned", false },
    [TALLY_COMMITS] = { "wrong_revision", "the last entry of its log of commits",
                        false },
    [TALLY_GRANTS_OF_PROCESS] = { "wrong_count", "grants of the process", true },
    [TALLY_GRANTS_OF_SESSION] = { "wrong_count", "grants of the session", true },
    [TALLY_BLOB] = { "missing_blob", "blobs of a name that is used", false },
};

static belay_rc tally_of(struct check *c, enum tally_kind kind, struct bytes name,
                         struct check_tally **out, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf key = { 0 };

    buf_append_char(&key, (char)('a' + (int)kind));
    buf_append(&key, name);
    if (key.failed)
        return err_no_memory(err, "a check");
    *out = (struct check_tally *)check_find(&c->tallies, buf_view(&key));
    if (*out)
        return BELAY_OK;
    struct check_tally *new = arena_zalloc(&c->arena, 1, sizeof(*new));
    if (!new || !arena_copy(&c->arena, buf_view(&key), &new->entry.key) ||
        !check_add(&c->tallies, &new->entry, &c->arena))
        return err_no_memory(err, "a check");
    new->kind = kind;
    new->name = bytes_of(new->entry.key.ptr + 1, new->entry.key.len - 1);
    *out = new;
    return BELAY_OK;
}

belay_rc check_told_more(struct check *c, enum tally_kind kind, struct bytes name,
                         int64_t n, struct belay_error *err)
{
    struct check_tally *t;
    belay_rc rc = tally_of(c, kind, name, &t, err);

    if (rc)
        return rc;
    t->is_told = true;
    if (__builtin_add_overflow(t->told, n, &t->told))
        t->told = -1; /* nothing is as many */
    return BELAY_OK;
}

belay_rc check_told(struct check *c, enum tally_kind kind, struct bytes name, int64_t n,
                    struct belay_error *err)
{
    struct check_tally *t;
    belay_rc rc = tally_of(c, kind, name, &t, err);

    if (rc)
        return rc;
    t->is_told = true;
    t->told = n;
    return BELAY_OK;
}

belay_rc check_seen(struct check *c, enum tally_kind kind, struct bytes name,
                    int64_t upto, struct belay_error *err)
{
    struct check_tally *t;
    belay_rc rc = tally_of(c, kind, name, &t, err);

    if (rc == BELAY_OK)
        t->seen = upto > 0 ? upto : t->seen + 1;
    return rc;
}

belay_rc check_tallies_end(struct check *c, struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    for (size_t i = 0; i < c->tallies.n_buckets; i++) {
        for (struct check_entry *e = c->tallies.buckets[i]; e && rc == BELAY_OK;
             e = e->next) {
            const struct check_tally *t = (const struct check_tally *)e;
            bool judged = t->is_told || kinds[t->kind].unless_told;
            if (judged && t->told != t->seen)
                rc = check_found(c, kinds[t->kind].code, t->name, err,
                                 "%s: %" PRId64 " by its row, found %" PRId64,
                                 kinds[t->kind].what, t->told, t->seen);
        }
    }
    return rc;
}
