#include "policy/transition_impl.h"

/* Text in a cell, cut where it is full. */
struct cell {
    char *at;
    size_t len, cap; /* cap: with the NUL */
};

static void add(struct cell *c, const char *more)
{
    size_t len = strlen(more), room = c->cap - 1 - c->len;

    len = len < room ? len : room;
    memcpy(c->at + c->len, more, len);
    c->len += len;
    c->at[c->len] = '\0';
}

static void add_values(struct cell *c, size_t dim, uint32_t allowed)
{
    const char *between = "";

    for (int i = 0; i < dimension_count(dim); i++) {
        if (!(allowed >> i & 1))
            continue;
        add(c, between);
        add(c, vector_name((enum belay_dimension)dim, i));
        between = ", ";
    }
}

static void draw_from(struct cell *c, const struct step_rule *r)
{
    if (rule_creates(r)) {
        add(c, "nothing");
        return;
    }
    for (size_t i = 0; i < VECTOR_DIMENSIONS; i++) {
        uint32_t all = dimension_all(i);
        if ((r->from[i] & all) == all)
            continue;
        add(c, c->len > 0 ? " / " : "");
        add_values(c, i, r->from[i] & all);
    }
}

/* Whether the state of the result does not depend on what is kept. */
static bool state_is_given(const struct step_rule *r, int32_t phase)
{
    if (!r->to[BELAY_DIM_PHASE])
        return false;
    if (phase == BELAY_PHASE_RUNNABLE)
        return r->to[BELAY_DIM_ELIGIBILITY] != 0;
    return phase != BELAY_PHASE_TERMINAL || r->to[BELAY_DIM_OUTCOME] != 0;
}

static const char *state_of(const struct step_rule *r)
{
    struct belay_vector v = { 0 };

    rule_apply(r, NULL, &v);
    if (!state_is_given(r, v.phase))
        return "derived";
    return vector_name(BELAY_DIM_STATE, (int)vector_state(&v));
}

static struct cell cell_of(char *at, size_t cap)
{
    at[0] = '\0';
    return (struct cell){ .at = at, .cap = cap };
}

bool step_row_at(size_t i, struct step_row *out)
{
    struct step_table t = step_table();

    if (i >= t.n)
        return false;
    const struct step_rule *r = &t.rules[i];
    out->number = step_number(r->step);
    out->step = step_name(r->step);
    struct cell from = cell_of(out->from, sizeof(out->from));
    draw_from(&from, r);
    for (size_t d = 0; d < VECTOR_DIMENSIONS; d++) {
        struct cell to = cell_of(out->to[d], sizeof(out->to[d]));
        if (r->to[d])
            add_values(&to, d, r->to[d]);
        else
            add(&to, "kept");
    }
    struct cell state =
        cell_of(out->to[BELAY_DIM_STATE], sizeof(out->to[BELAY_DIM_STATE]));
    add(&state, state_of(r));
    return true;
}
