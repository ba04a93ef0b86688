/* Every operation in every state: what it does, or the error that it answers with, and
 * then nothing has changed.  One table says it all. */
#include "exec.h"

struct refusal {
    char code;
    belay_rc rc;
    const char *reason;
};

static const struct refusal *refusal_of(char code)
{
    static const struct refusal all[] = {
        { 'r', BELAY_LEASE_LOST, "released" },
        { 'e', BELAY_LEASE_LOST, "expired" },
        { 'v', BELAY_LEASE_LOST, "revoked" },
        { 't', BELAY_LEASE_LOST, "terminal" },
        { 'T', BELAY_WRONG_STATE, "terminal" },
        { 'N', BELAY_WRONG_STATE, "not_terminal" },
        { 's', BELAY_WRONG_STATE, NULL },
        { '0', BELAY_NOT_FOUND, NULL },
        { 'o', BELAY_TIMEOUT, NULL },
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (all[i].code == code)
            return &all[i];
    }
    return NULL;
}

static int state_after(char code, int before)
{
    static const struct {
        char code;
        int state;
    } all[] = {
        { 'W', BELAY_STATE_WAITING }, { 'D', BELAY_STATE_DELAYED },
        { 'A', BELAY_STATE_ACTIVE },  { 'C', BELAY_STATE_COMPLETED },
        { 'F', BELAY_STATE_FAILED },  { 'X', BELAY_STATE_CANCELLED },
    };
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (all[i].code == code)
            return all[i].state;
    }
    return before;
}

static bool is_still(char code)
{
    return refusal_of(code) || code == '-' || code == 'R';
}

/* One operation, done by another caller than the one who made the cell. */
static void operate(struct world *w, const struct cell *c, size_t op, char code)
{
    const struct refusal *refused = refusal_of(code);
    enum deed did = DID_IT;

    w->use = w->b;
    belay_rc rc = operations[op].run(w, c, &did);
    if (refused)
        WHY(w, rc, refused->rc, refused->reason);
    else
        RC(w, rc, BELAY_OK);
    w->use = w->a;
    OK(w, code != 'R' || did == DID_BEFORE);
    OK(w, is_still(code) || did == DID_IT);
}

/* Those that change nothing, one after the other on one execution. */
static void try_still(struct world *w, size_t column, struct cell *c)
{
    const struct condition *in = &conditions[column];
    const char *before = all_of(w, c->id), *cursor = events_now(w);

    EQ(w, state_of(w, c->id), in->state);
    for (size_t i = 0; i < n_operations; i++) {
        char code = operations[i].does[column];
        unsigned failed = w->t->failed;
        if (!is_still(code))
            continue;
        if (in->hurried) { /* anew for each: it does not stay so for long */
            c->lane = text(w, "%c still %zu", in->code, i);
            if (!cells_make(w, in, c, 1))
                return;
            before = all_of(w, c->id);
        }
        operate(w, c, i, code);
        const char *after = all_of(w, c->id);
        STR(w, after, before);
        before = after;
        if (w->t->failed > failed)
            printf("# by %s\n", operations[i].name);
    }
    if (!in->hurried)
        STR(w, events_after(w, c->id, cursor), "");
}

/* Each of the others on an execution of its own. */
static void try_changing(struct world *w, size_t column, struct cell *cells)
{
    const struct condition *in = &conditions[column];

    for (size_t i = 0; i < n_operations; i++) {
        char code = operations[i].does[column];
        unsigned failed = w->t->failed;
        if (is_still(code) || code == ' ')
            continue;
        if (in->pass_ms == 0 && !cells_make(w, in, &cells[i], 1))
            return;
        EQ(w, state_of(w, cells[i].id), in->state);
        operate(w, &cells[i], i, code);
        EQ(w, state_of(w, cells[i].id), state_after(code, in->state));
        if (w->t->failed > failed)
            printf("# by %s\n", operations[i].name);
    }
}

static void try_condition(struct world *w, size_t column)
{
    const struct condition *in = &conditions[column];
    struct cell cells[32] = { 0 };
    struct cell *still = &cells[n_operations];

    if (!OK(w, n_operations < COUNT_OF(cells)))
        return;
    for (size_t i = 0; i <= n_operations; i++)
        cells[i].lane = text(w, "%c%zu", in->code, i);
    /* What takes time takes it once. */
    if (in->pass_ms > 0 ? !cells_make(w, in, cells, n_operations + 1)
                        : !cells_make(w, in, still, 1))
        return;
    try_still(w, column, still);
    try_changing(w, column, cells);
}

static void every_operation_in_every_state(struct world *w)
{
    if (!quick(w))
        return;
    for (size_t i = 0; i < n_operations; i++)
        EQ(w, strlen(operations[i].does), n_conditions);
    for (size_t i = 0; i < n_conditions; i++) {
        unsigned failed = w->t->failed;
        try_condition(w, i);
        if (w->t->failed > failed)
            printf("# where it was: %s\n", conditions[i].name);
    }
}

/* --- an execution that there is not --- */

static void nothing_of_that_name(struct world *w)
{
    struct cell c = { .lane = "l", .id = "exe_00000000000000000000000000" };
    const char *before = all_work(w);

    for (size_t i = 0; i < n_operations; i++) {
        enum deed did = DID_IT;
        if (operations[i].by_id &&
            !RC(w, operations[i].run(w, &c, &did), BELAY_NOT_FOUND))
            printf("# by %s\n", operations[i].name);
    }
    STR(w, all_work(w), before);
}

static const struct noun_case cases[] = {
    { "every operation in every state does what the table says, or nothing",
      every_operation_in_every_state, 0 },
    { "an execution that there is not is not found, whatever is asked",
      nothing_of_that_name, 0 },
};

const struct topic topic_exec_operations = { cases, COUNT_OF(cases) };
