#include "replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool replay_faults(const char *text, uint32_t *out)
{
    uint32_t mask = 0;

    if (strcmp(text, "all") == 0 || strcmp(text, "none") == 0) {
        *out = *text == 'a' ? (1U << SIM_FAULTS) - 1 : 0;
        return true;
    }
    while (*text) {
        size_t len = strcspn(text, ",");
        unsigned f = 0;
        while (f < SIM_FAULTS &&
               (strlen(fault_text((enum fault_name)f)) != len ||
                strncmp(fault_text((enum fault_name)f), text, len) != 0))
            f++;
        if (f == SIM_FAULTS)
            return false;
        mask |= 1U << f;
        text += len + (text[len] == ',');
    }
    *out = mask;
    return true;
}

/* --- files --- */

/* The numbers of a swarm, by name. */
static const char *const fields[] = {
    "actors", "fronts",     "spaces",  "keys",     "loses-replies",
    "sticky", "walk-every", "tick-us", "attempts", "fault-steps",
    "far",    "oracle",     "seen",
};

static uint64_t get_field(const struct swarm *w, size_t i)
{
    const uint64_t values[COUNT_OF(fields)] = {
        w->n_actors,      w->n_fronts,    w->n_spaces,   w->n_keys,
        w->loses_replies, w->sticky,      w->walk_every, (uint64_t)w->tick_us,
        w->max_attempts,  w->fault_steps, w->far,        w->oracle,
        w->seen,
    };

    return values[i];
}

static void set_field(struct swarm *w, size_t i, uint64_t value)
{
    unsigned *const small[] = { &w->n_actors,   &w->n_fronts, &w->n_spaces,
                                &w->n_keys,     NULL,         &w->sticky,
                                &w->walk_every, NULL,         &w->max_attempts };

    if (i < COUNT_OF(small) && small[i])
        *small[i] = (unsigned)value;
    else if (strcmp(fields[i], "loses-replies") == 0)
        w->loses_replies = value != 0;
    else if (strcmp(fields[i], "far") == 0)
        w->far = value != 0;
    else if (strcmp(fields[i], "seen") == 0)
        w->seen = value != 0;
    else if (strcmp(fields[i], "oracle") == 0)
        w->oracle = (unsigned)value;
    else if (strcmp(fields[i], "tick-us") == 0)
        w->tick_us = (int64_t)value;
    else
        w->fault_steps = value;
}

#define WORDS_MAX 6

/* The words of a line, and their numbers where they are such. */
struct line {
    size_t n;
    char *word[WORDS_MAX];
    uint64_t number[WORDS_MAX];
    bool is_number[WORDS_MAX];
};

static void split(char *text, struct line *l)
{
    char *rest = NULL;

    l->n = 0;
    for (char *w = strtok_r(text, " \t\n", &rest); w && *w != '#' && l->n < WORDS_MAX;
         w = strtok_r(NULL, " \t\n", &rest)) {
        char *end;
        l->number[l->n] = strtoull(w, &end, 10);
        l->is_number[l->n] = *end == 0;
        l->word[l->n++] = w;
    }
}

/* Whether the line is this word and so many numbers. */
static bool is_line(const struct line *l, const char *word, size_t numbers)
{
    bool fits = l->n == numbers + 1 && strcmp(l->word[0], word) == 0;

    for (size_t i = 1; i < l->n && fits; i++)
        fits = l->is_number[i];
    return fits;
}

static bool read_field(struct replay *r, const struct line *l)
{
    for (size_t i = 0; i < COUNT_OF(fields); i++) {
        if (!is_line(l, fields[i], 1))
            continue;
        set_field(&r->swarm, i, l->number[1]);
        return true;
    }
    return false;
}

static bool read_op(struct replay *r, const struct line *l)
{
    struct fixed_op *o = &r->fixed[r->setup.n_fixed];
    unsigned kind = 0;

    if (r->setup.n_fixed == MASKS_MAX || l->n != 5 || !l->is_number[1] ||
        !l->is_number[2] || !l->is_number[4])
        return false;
    while (kind < OP_KINDS && strcmp(op_name((enum op_kind)kind), l->word[3]) != 0)
        kind++;
    if (kind == OP_KINDS || l->number[1] >= ACTORS_MAX - 1)
        return false;
    o->actor = (unsigned)l->number[1];
    o->op = (struct op){ .kind = (enum op_kind)kind,
                         .number = (unsigned)l->number[2],
                         .r = l->number[4] };
    r->setup.n_fixed++;
    return true;
}

static bool read_rate(struct replay *r, const struct line *l)
{
    uint32_t which = 0;

    if (l->n != 3 || !l->is_number[2] || !replay_faults(l->word[1], &which))
        return false;
    for (unsigned f = 0; f < SIM_FAULTS; f++) {
        if ((which >> f) & 1)
            r->swarm.rate[f] = (uint32_t)l->number[2];
    }
    return true;
}

static bool read_line(struct replay *r, const struct line *l)
{
    struct setup *u = &r->setup;

    if (l->n == 0)
        return true;
    if (is_line(l, "seed", 1))
        return u->seed = l->number[1], true;
    if (is_line(l, "salt", 1))
        return u->salt = l->number[1], true;
    if (is_line(l, "prune", 1))
        return u->prune = (unsigned)l->number[1], true;
    if (is_line(l, "nouns", 1))
        return u->nouns = l->number[1] != 0, true;
    if (is_line(l, "executions", 1))
        return u->execs = l->number[1] != 0, true;
    if (is_line(l, "processes", 1))
        return u->procs = l->number[1] != 0, true;
    if (strcmp(l->word[0], "op") == 0)
        return read_op(r, l);
    if (strcmp(l->word[0], "rate") == 0)
        return read_rate(r, l);
    if (is_line(l, "without-fault", 3) && u->n_no_faults < MASKS_MAX) {
        r->no_faults[u->n_no_faults++] =
            (struct mask){ (unsigned)l->number[1], (unsigned)l->number[2],
                           (unsigned)l->number[3] };
        return true;
    }
    return read_field(r, l);
}

void replay_release(struct replay *r)
{
    free(r->no_ops);
    free(r->no_faults);
    free(r->fixed);
}

static bool make(struct replay *r)
{
    *r = (struct replay){ .setup = { .ops = 60 } };
    r->no_ops = calloc(MASKS_MAX, sizeof(*r->no_ops));
    r->no_faults = calloc(MASKS_MAX, sizeof(*r->no_faults));
    r->fixed = calloc(MASKS_MAX, sizeof(*r->fixed));
    r->setup.no_ops = r->no_ops;
    r->setup.no_faults = r->no_faults;
    r->setup.fixed = r->fixed;
    return r->no_ops && r->no_faults && r->fixed;
}

static bool is_possible(const struct swarm *w)
{
    return w->n_actors > 0 && w->n_actors < ACTORS_MAX && w->n_fronts > 0 &&
           w->n_fronts <= 3 && w->n_spaces > 0 && w->n_spaces <= 2 && w->n_keys > 0 &&
           w->n_keys <= 8 && w->walk_every > 0 && w->tick_us > 0;
}

const char *replay_read(struct replay *r, const char *path)
{
    const char *fault = make(r) ? NULL : "no memory";
    FILE *f = fopen(path, "r");
    char text[512];

    if (!f)
        fault = "cannot be opened";
    while (!fault && fgets(text, sizeof(text), f)) {
        struct line l;
        split(text, &l);
        if (!read_line(r, &l))
            fault = "has a line that is not understood";
    }
    if (f)
        (void)fclose(f);
    if (!fault && !is_possible(&r->swarm))
        fault = "lacks a number, or has an impossible one";
    if (fault)
        replay_release(r);
    r->setup.swarm = &r->swarm;
    return fault;
}

/* Writes what the simulation has just run. */
static bool write_file(const struct sim *s, const struct replay *r, const char *path)
{
    FILE *f = fopen(path, "w");

    if (!f)
        return false;
    fprintf(f, "# broke %s: %s\nseed %" PRIu64 "\nsalt %" PRIu64 "\nprune %u\n",
            s->rule, s->why, r->setup.seed, r->setup.salt, r->setup.prune);
    if (r->setup.nouns)
        fprintf(f, "nouns 1\n");
    if (r->setup.execs)
        fprintf(f, "executions 1\n");
    if (r->setup.procs)
        fprintf(f, "processes 1\n");
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        fprintf(f, "%s %" PRIu64 "\n", fields[i], get_field(&s->swarm, i));
    for (unsigned i = 0; i < SIM_FAULTS; i++) {
        if (s->swarm.rate[i] > 0)
            fprintf(f, "rate %s %" PRIu32 "\n", fault_text((enum fault_name)i),
                    s->swarm.rate[i]);
    }
    for (unsigned a = 0; a < s->swarm.n_actors; a++) {
        for (size_t k = 0; k < s->actors[a].n_ops; k++) {
            const struct op *op = &s->actors[a].program[k];
            fprintf(f, "op %u %u %s %" PRIu64 "\n", a, op->number, op_name(op->kind),
                    op->r);
        }
    }
    for (size_t i = 0; i < r->setup.n_no_faults; i++)
        fprintf(f, "without-fault %u %u %u\n", r->no_faults[i].actor,
                r->no_faults[i].op, r->no_faults[i].point);
    return fclose(f) == 0;
}

/* --- shrinking --- */

/* Whether the schedule still breaks that rule, under some order of turns near by. */
static bool still_breaks(struct sim *s, struct setup *u, const char *rule)
{
    uint64_t salt = u->salt;

    for (uint64_t i = 0; i < 8; i++) {
        u->salt = salt + i;
        if (!world_run(s, u) && strcmp(s->rule, rule) == 0)
            return true;
    }
    u->salt = salt;
    return false;
}

/* Leaves out operations first..last of an actor, if that is possible. */
static bool try_without(struct sim *s, struct replay *r, const char *rule,
                        unsigned actor, unsigned first, unsigned last)
{
    size_t before = r->setup.n_no_ops;

    for (unsigned k = first; k <= last; k++) {
        bool out = false;
        for (size_t i = 0; i < r->setup.n_no_ops; i++)
            out |= r->no_ops[i].actor == actor && r->no_ops[i].op == k;
        if (!out && r->setup.n_no_ops < MASKS_MAX)
            r->no_ops[r->setup.n_no_ops++] = (struct mask){ actor, k, 0 };
    }
    if (r->setup.n_no_ops == before)
        return false;
    if (still_breaks(s, &r->setup, rule))
        return true;
    r->setup.n_no_ops = before;
    return false;
}

static bool shrink_ops(struct sim *s, struct replay *r, const char *rule)
{
    unsigned actors = s->swarm.n_actors;
    unsigned each = r->setup.ops / actors + 1;
    bool smaller = false;

    for (unsigned len = each; len > 0; len /= 2) {
        for (unsigned a = 0; a < actors; a++) {
            for (unsigned k = 0; k < each; k += len) {
                unsigned last = k + len - 1;
                smaller |= try_without(s, r, rule, a, k, last < each ? last : each - 1);
            }
        }
    }
    return smaller;
}

static bool shrink_faults(struct sim *s, struct replay *r, const char *rule)
{
    bool smaller = false;

    for (unsigned f = 0; f < SIM_FAULTS; f++) { /* whole kinds first */
        uint32_t before = r->setup.faults;
        r->setup.faults &= ~(1U << f);
        if (r->setup.faults == before)
            continue;
        if (still_breaks(s, &r->setup, rule))
            smaller = true;
        else
            r->setup.faults = before;
    }
    if (world_run(s, &r->setup))
        return smaller;
    size_t n = s->n_fired;
    struct mask *fired = calloc(n + 1, sizeof(*fired));
    if (!fired)
        return smaller;
    memcpy(fired, s->fired, n * sizeof(*fired));
    for (size_t i = 0; i < n && r->setup.n_no_faults < MASKS_MAX; i++) {
        r->no_faults[r->setup.n_no_faults++] = fired[i];
        if (still_breaks(s, &r->setup, rule))
            smaller = true;
        else
            r->setup.n_no_faults--;
    }
    free(fired);
    return smaller;
}

const char *replay_shrink(struct sim *s, const struct setup *failing, const char *path)
{
    struct replay r;
    const char *rule = s->rule;

    if (!make(&r)) {
        replay_release(&r);
        return "no memory";
    }
    r.setup = *failing;
    r.setup.no_ops = r.no_ops;
    r.setup.no_faults = r.no_faults;
    r.setup.verbose = false;
    for (unsigned round = 0; round < 4; round++) {
        bool smaller = shrink_ops(s, &r, rule);
        smaller |= shrink_faults(s, &r, rule);
        if (!smaller)
            break;
    }
    bool broken = !world_run(s, &r.setup);
    bool written = broken && write_file(s, &r, path);
    replay_release(&r);
    return !broken ? "the failure got lost" : written ? NULL : "cannot be written";
}
