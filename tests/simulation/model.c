#include "model.h"

#include <string.h>

void model_reset(struct model *m)
{
    m->seq = 0;
    m->comparison = 0;
    m->n_rows = m->n_entries = m->n_feeds = m->n_holds = m->n_history = 0;
}

void model_copy(struct model *to, const struct model *from)
{
    to->seq = from->seq;
    to->comparison = from->comparison;
    to->n_rows = from->n_rows;
    to->n_entries = from->n_entries;
    to->n_feeds = from->n_feeds;
    to->n_holds = from->n_holds;
    to->n_history = from->n_history;
    memcpy(to->rows, from->rows, from->n_rows * sizeof(to->rows[0]));
    memcpy(to->entries, from->entries, from->n_entries * sizeof(to->entries[0]));
    memcpy(to->feeds, from->feeds, from->n_feeds * sizeof(to->feeds[0]));
    memcpy(to->holds, from->holds, from->n_holds * sizeof(to->holds[0]));
    memcpy(to->history, from->history, from->n_history * sizeof(to->history[0]));
}

uint64_t model_digest(uint64_t seed, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t h = seed ^ UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return (h ^ len) * UINT64_C(0x100000001b3);
}

struct mname model_name(const void *bytes, size_t len)
{
    struct mname n = { .digest = model_digest(0, bytes, len), .len = (uint32_t)len };

    memcpy(n.text, bytes, len < sizeof(n.text) ? len : sizeof(n.text));
    return n;
}

bool model_same(const struct mname *a, const struct mname *b)
{
    return a->digest == b->digest && a->len == b->len;
}

static int name_order(const struct mname *a, const struct mname *b)
{
    size_t n = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->text, b->text, n < sizeof(a->text) ? n : sizeof(a->text));

    if (order != 0)
        return order;
    return a->len < b->len ? -1 : a->len > b->len;
}

/* --- rows --- */

static struct mrow *find_row(const struct model *m, uint64_t key)
{
    for (size_t i = 0; i < m->n_rows; i++) {
        if (m->rows[i].key == key)
            return (struct mrow *)&m->rows[i];
    }
    return NULL;
}

const struct mrow *model_row(const struct model *m, uint64_t key)
{
    return find_row(m, key);
}

bool model_values_same(const struct mvalue *a, const struct mvalue *b, unsigned n,
                       unsigned but)
{
    for (unsigned i = 0; i < n; i++) {
        if (!((but >> i) & 1) && (a[i].kind != b[i].kind || a[i].i != b[i].i))
            return false;
    }
    return true;
}

static const char *remember(struct model *m, uint64_t key, int64_t ver)
{
    if (m->n_history == MODEL_HISTORY)
        return "model: too small a history";
    m->history[m->n_history++] =
        (struct mhistory){ .key = key, .seq = m->seq, .ver = ver };
    return NULL;
}

int64_t model_version_at(const struct model *m, uint64_t key, uint64_t seq)
{
    int64_t ver = 0;

    for (size_t i = 0; i < m->n_history && m->history[i].seq <= seq; i++) {
        if (m->history[i].key == key)
            ver = m->history[i].ver;
    }
    return ver;
}

const char *model_write(struct model *m, const struct mrow *row)
{
    struct mrow *old = find_row(m, row->key);

    if (row->ver <= 0 || (old && row->ver <= old->ver))
        return "version: a write did not raise it";
    for (size_t i = 0; i < m->n_history; i++) {
        if (m->history[i].key == row->key && m->history[i].ver == row->ver)
            return "version: a key has a version that it had before";
    }
    if (!old) {
        if (m->n_rows == MODEL_ROWS)
            return "model: too few rows";
        old = &m->rows[m->n_rows++];
    }
    *old = *row;
    return remember(m, row->key, row->ver);
}

const char *model_delete(struct model *m, uint64_t key)
{
    struct mrow *row = find_row(m, key);

    if (!row)
        return "state: a row is deleted that is not there";
    *row = m->rows[--m->n_rows];
    return remember(m, key, 0);
}

const char *model_count(struct model *m, uint64_t key, enum mcount how, unsigned column,
                        int64_t amount, int64_t min, int64_t max, int64_t *out)
{
    struct mrow *row = find_row(m, key);
    int64_t sum = 0;

    if (!row)
        return "counter: of a row that is not there";
    int64_t old = row->v[column].kind ? row->v[column].i : 0;
    if (how == M_RAISE) {
        sum = old > amount ? old : amount;
    } else if (__builtin_add_overflow(old, amount, &sum) || sum < min || sum > max) {
        return "counter: beyond its bounds";
    }
    row->v[column] = (struct mvalue){ .kind = 1, .i = sum };
    *out = sum;
    return NULL;
}

/* --- entries of all kinds --- */

static struct mentry *find_entry(const struct model *m, uint64_t ns, enum mkind kind,
                                 const struct mname *name, int64_t number,
                                 const struct mname *member)
{
    for (size_t i = 0; i < m->n_entries; i++) {
        const struct mentry *e = &m->entries[i];
        if (e->kind != kind || e->ns != ns || !model_same(&e->name, name))
            continue;
        if (member ? model_same(&e->member, member) : e->number == number)
            return (struct mentry *)e;
    }
    return NULL;
}

static const char *add_entry(struct model *m, const struct mentry *e)
{
    if (m->n_entries == MODEL_ENTRIES)
        return "model: too few entries";
    m->entries[m->n_entries++] = *e;
    return NULL;
}

static void drop_entry(struct model *m, struct mentry *e)
{
    *e = m->entries[--m->n_entries];
}

const struct mentry *model_next(const struct model *m, uint64_t ns, enum mkind kind,
                                const struct mname *name, int64_t after)
{
    const struct mentry *best = NULL;

    for (size_t i = 0; i < m->n_entries; i++) {
        const struct mentry *e = &m->entries[i];
        if (e->kind == kind && e->ns == ns && e->number > after &&
            (!best || e->number < best->number) && model_same(&e->name, name))
            best = e;
    }
    return best;
}

void model_trim(struct model *m, uint64_t ns, enum mkind kind, const struct mname *name,
                int64_t upto)
{
    for (size_t i = 0; kind == M_FEED && i < m->n_feeds; i++) {
        struct mfeed *f = &m->feeds[i];
        if (f->ns != ns || !model_same(&f->name, name))
            continue;
        int64_t last = upto < f->last ? upto : f->last;
        f->trimmed = f->trimmed > last ? f->trimmed : last;
    }
    for (size_t i = 0; i < m->n_entries;) {
        struct mentry *e = &m->entries[i];
        if (e->kind == kind && e->ns == ns && e->number <= upto &&
            model_same(&e->name, name))
            drop_entry(m, e);
        else
            i++;
    }
}

/* --- ranks --- */

static void forget_holds(struct model *m, uint64_t ns, const struct mname *index,
                         const struct mname *member)
{
    for (size_t i = 0; i < m->n_holds;) {
        struct mhold *h = &m->holds[i];
        if (h->ns == ns && model_same(&h->index, index) &&
            model_same(&h->member, member))
            *h = m->holds[--m->n_holds];
        else
            i++;
    }
}

const char *model_rank(struct model *m, uint64_t ns, const struct mrank *change)
{
    struct mentry *e = find_entry(m, ns, M_RANK, &change->index, 0, &change->member);

    if (!change->had && e)
        return "rank: a member was added that was there";
    if (change->had && (!e || e->number != change->old_rank))
        return "rank: a member was changed that was not at its rank";
    forget_holds(m, ns, &change->index, &change->member);
    if (e && change->has)
        e->number = change->rank;
    else if (e)
        drop_entry(m, e);
    else
        return add_entry(m, &(struct mentry){ .kind = M_RANK,
                                              .ns = ns,
                                              .name = change->index,
                                              .member = change->member,
                                              .number = change->rank });
    return NULL;
}

bool model_stands(const struct model *m, uint64_t ns, const struct mrank *change)
{
    const struct mentry *e =
        find_entry(m, ns, M_RANK, &change->index, 0, &change->member);

    return change->had ? e && e->number == change->old_rank : !e;
}

void model_hold(struct model *m, const struct mhold *hold)
{
    forget_holds(m, hold->ns, &hold->index, &hold->member);
    if (m->n_holds < MODEL_HOLDS)
        m->holds[m->n_holds++] = *hold;
}

void model_release(struct model *m, uint64_t holder)
{
    for (size_t i = 0; i < m->n_holds;) {
        if (m->holds[i].holder == holder)
            m->holds[i] = m->holds[--m->n_holds];
        else
            i++;
    }
}

static bool is_hidden(const struct model *m, const struct mscan *s,
                      const struct mentry *e)
{
    for (size_t i = 0; s->holder && i < m->n_holds; i++) {
        const struct mhold *h = &m->holds[i];
        if (h->holder != s->holder && h->until_us > s->now_us && h->ns == s->ns &&
            model_same(&h->index, &e->name) && model_same(&h->member, &e->member))
            return true;
    }
    return false;
}

static int scan_order(const struct mscan *s, int64_t rank_a,
                      const struct mname *member_a, const struct mname *index_a,
                      const struct mentry *b)
{
    int order = rank_a < b->number ? -1 : rank_a > b->number;

    if (order == 0)
        order = name_order(member_a, &b->member);
    if (order == 0)
        order = name_order(index_a, &b->name);
    return s->descending ? -order : order;
}

static bool is_shown(const struct mscan *s, const struct mentry *e)
{
    bool named = false;

    for (size_t i = 0; i < s->n_indexes; i++)
        named |= model_same(&s->indexes[i], &e->name);
    if (!named || e->number < s->min_rank || e->number > s->max_rank)
        return false;
    return !s->has_after ||
           scan_order(s, s->after_rank, &s->after_member, &s->after_index, e) < 0;
}

/* Where the body itself has put (index, member); NULL: it did not touch it. */
static const struct mrank *own_change(const struct mscan *s, const struct mentry *e)
{
    const struct mrank *found = NULL;

    for (size_t i = 0; i < s->n_own; i++) {
        if (model_same(&s->own[i].index, &e->name) &&
            model_same(&s->own[i].member, &e->member))
            found = &s->own[i];
    }
    return found;
}

static size_t insert_sorted(const struct mscan *s, struct mentry *out, size_t n,
                            size_t cap, const struct mentry *e)
{
    size_t at = n;

    while (at > 0 && scan_order(s, e->number, &e->member, &e->name, &out[at - 1]) < 0)
        at--;
    if (at >= cap)
        return n;
    size_t last = n < cap ? n : cap - 1;
    memmove(&out[at + 1], &out[at], (last - at) * sizeof(*out));
    out[at] = *e;
    return n < cap ? n + 1 : cap;
}

size_t model_scan(const struct model *m, const struct mscan *s, struct mentry *out,
                  size_t cap)
{
    size_t n = 0;

    if (s->limit < cap)
        cap = s->limit;
    if (cap == 0)
        return 0;
    for (size_t i = 0; i < m->n_entries; i++) {
        const struct mentry *e = &m->entries[i];
        if (e->kind == M_RANK && e->ns == s->ns && is_shown(s, e) &&
            !own_change(s, e) && !is_hidden(m, s, e))
            n = insert_sorted(s, out, n, cap, e);
    }
    for (size_t i = 0; i < s->n_own; i++) {
        const struct mrank *own = &s->own[i];
        struct mentry e = { .kind = M_RANK,
                            .ns = s->ns,
                            .name = own->index,
                            .member = own->member,
                            .number = own->rank };
        if (own->has && own_change(s, &e) == own && is_shown(s, &e))
            n = insert_sorted(s, out, n, cap, &e);
    }
    return n;
}

/* --- logs, feeds, chunks --- */

const char *model_log_append(struct model *m, uint64_t ns, const struct mname *stream,
                             int64_t seq, uint64_t digest)
{
    int64_t last = 0;

    for (size_t i = 0; i < m->n_entries; i++) {
        const struct mentry *e = &m->entries[i];
        if (e->kind == M_LOG && e->ns == ns && e->number > last &&
            model_same(&e->name, stream))
            last = e->number;
    }
    if (last > 0 && seq != last + 1)
        return "log: a gap, or an entry twice";
    return add_entry(m, &(struct mentry){ .kind = M_LOG,
                                          .ns = ns,
                                          .name = *stream,
                                          .number = seq,
                                          .digest = digest });
}

const char *model_feed_append(struct model *m, uint64_t ns, const struct mname *feed,
                              int64_t pos, uint64_t digest)
{
    struct mfeed *f = NULL;

    for (size_t i = 0; i < m->n_feeds && !f; i++) {
        if (m->feeds[i].ns == ns && model_same(&m->feeds[i].name, feed))
            f = &m->feeds[i];
    }
    if (!f) {
        if (m->n_feeds == sizeof(m->feeds) / sizeof(m->feeds[0]))
            return "model: too few feeds";
        f = &m->feeds[m->n_feeds++];
        *f = (struct mfeed){ .ns = ns, .name = *feed };
    }
    if (pos <= f->last)
        return "feed: a position at or before one that was given";
    f->last = pos;
    return add_entry(
        m,
        &(struct mentry){
            .kind = M_FEED, .ns = ns, .name = *feed, .number = pos, .digest = digest });
}

int64_t model_feed_trimmed(const struct model *m, uint64_t ns, const struct mname *feed)
{
    for (size_t i = 0; i < m->n_feeds; i++) {
        if (m->feeds[i].ns == ns && model_same(&m->feeds[i].name, feed))
            return m->feeds[i].trimmed;
    }
    return 0;
}

const char *model_chunk_put(struct model *m, uint64_t ns, const struct mname *upload,
                            int64_t index, uint64_t digest)
{
    model_chunk_drop(m, ns, upload, index);
    return add_entry(m, &(struct mentry){ .kind = M_CHUNK,
                                          .ns = ns,
                                          .name = *upload,
                                          .number = index,
                                          .digest = digest });
}

void model_chunk_drop(struct model *m, uint64_t ns, const struct mname *upload,
                      int64_t index)
{
    struct mentry *e = find_entry(m, ns, M_CHUNK, upload, index, NULL);

    if (e)
        drop_entry(m, e);
}

/* --- comparing --- */

void model_compare_begin(struct model *m)
{
    m->comparison++;
}

const char *model_compare_row(struct model *m, const struct mrow *row)
{
    struct mrow *own = find_row(m, row->key);

    if (!own)
        return "state: the store has a row too many";
    if (own->seen == m->comparison)
        return "state: the store has a row twice";
    own->seen = m->comparison;
    if (own->ver != row->ver)
        return "state: a row has another version";
    if (own->n != row->n || !model_values_same(own->v, row->v, own->n, own->counters))
        return "state: a row has other values";
    for (unsigned i = 0; i < own->n; i++) {
        int64_t a = own->v[i].kind ? own->v[i].i : 0;
        int64_t b = row->v[i].kind ? row->v[i].i : 0;
        if (((own->counters >> i) & 1) && a != b)
            return "state: a counter has another value";
    }
    return NULL;
}

const char *model_compare_entry(struct model *m, const struct mentry *e)
{
    struct mentry *own = NULL;

    if (e->kind == M_RANK) {
        own = find_entry(m, e->ns, e->kind, &e->name, 0, &e->member);
    } else if (e->kind == M_FEED) {
        /* In order: the least that was not seen yet. */
        for (size_t i = 0; i < m->n_entries; i++) {
            struct mentry *x = &m->entries[i];
            if (x->kind == M_FEED && x->ns == e->ns && x->seen != m->comparison &&
                (!own || x->number < own->number) && model_same(&x->name, &e->name))
                own = x;
        }
    } else {
        own = find_entry(m, e->ns, e->kind, &e->name, e->number, NULL);
    }
    if (!own)
        return "state: the store has an entry too many";
    if (own->seen == m->comparison)
        return "state: the store has an entry twice";
    own->seen = m->comparison;
    if (e->kind != M_FEED && own->number != e->number)
        return "state: a member stands at another rank";
    if (e->kind != M_RANK && own->digest != e->digest)
        return "state: an entry has other bytes";
    return NULL;
}

const char *model_compare_end(const struct model *m, uint64_t ns)
{
    for (size_t i = 0; i < m->n_rows; i++) {
        if (m->rows[i].ns == ns && m->rows[i].seen != m->comparison)
            return "state: a row is missing in the store";
    }
    for (size_t i = 0; i < m->n_entries; i++) {
        if (m->entries[i].ns == ns && m->entries[i].seen != m->comparison)
            return "state: an entry is missing in the store";
    }
    return NULL;
}
