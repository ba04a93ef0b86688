#include "store/plan.h"

#include "store/read.h"

bool fetch_key(const struct fetch *f, struct bytes member,
               struct value out[SCHEMA_KEY_MAX])
{
    unsigned last = f->type->n_key - 1U;

    for (unsigned i = 0; i < last; i++)
        out[i] = f->prefix[i];
    out[last] = value_text(member);
    if (f->type->columns[last].type != VALUE_I64)
        return true;
    out[last] = value_i64(0);
    return bytes_to_i64(member, &out[last].i);
}

belay_rc fetch_ref(struct row_ref *out, const struct fetch *f, struct bytes member,
                   struct belay_arena *a, struct belay_error *err)
{
    struct value key[SCHEMA_KEY_MAX];

    if (!fetch_key(f, member, key))
        return err_reason(err, BELAY_CORRUPT, "member",
                          "rank member: not a key of row type %s", f->type->name);
    return row_ref_make(out, f->type, key, a, err);
}

int scan_cmp(const struct scan *s, int64_t rank_a, struct bytes member_a,
             struct bytes index_a, int64_t rank_b, struct bytes member_b,
             struct bytes index_b)
{
    int order = 0;

    if (rank_a != rank_b)
        order = rank_a < rank_b ? -1 : 1;
    if (order == 0)
        order = bytes_cmp(member_a, member_b);
    if (order == 0)
        order = bytes_cmp(index_a, index_b);
    return s->descending ? -order : order;
}
