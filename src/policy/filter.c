#include "policy/filter.h"

bool filter_is_noop(const struct filter *f)
{
    return !f->ns.ptr && !f->tag_key.ptr;
}

bool filter_needs_tags(const struct filter *f)
{
    return f->tag_key.ptr != NULL;
}

static bool equal_if_there(struct bytes want, struct bytes have)
{
    return have.ptr && bytes_eq(want, have);
}

bool filter_matches(const struct filter *f, struct bytes ns, struct bytes tag)
{
    if (f->ns.ptr && !equal_if_there(f->ns, ns))
        return false;
    return !f->tag_key.ptr || equal_if_there(f->tag_value, tag);
}
