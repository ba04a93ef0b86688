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
        while (f < SIM_FAULTS && (strlen(fault_text((enum fault_name)f)) != len ||
                                  strncmp(fault_text((enum fault_name)f), text, len)))
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

static bool read_line(struct replay *r, const char *line)
{
    struct setup *u = &r->setup;
    char word[32], faults[256];
    struct mask m = { 0 };

    if (sscanf(line, " %31s", word) != 1 || word[0] == '#')
        return true;
    if (sscanf(line, " seed %" SCNu64, &u->seed) == 1 ||
        sscanf(line, " salt %" SCNu64, &u->salt) == 1 ||
        sscanf(line, " ops %u", &u->ops) == 1 ||
        sscanf(line, " prune %u", &u->prune) == 1)
        return true;
    if (sscanf(line, " faults %255s", faults) == 1)
        return replay_faults(faults, &u->faults);
    if (sscanf(line, " without-op %u %u", &m.actor, &m.op) == 2) {
        if (u->n_no_ops < MASKS_MAX)
            r->no_ops[u->n_no_ops++] = m;
        return true;
    }
    if (sscanf(line, " without-fault %u %u %u", &m.actor, &m.op, &m.point) == 3) {
        if (u->n_no_faults < MASKS_MAX)
            r->no_faults[u->n_no_faults++] = m;
        return true;
    }
    return false;
}

void replay_release(struct replay *r)
{
    free(r->no_ops);
    free(r->no_faults);
}

static bool make(struct replay *r)
{
    *r = (struct replay){ .setup = { .ops = 60 } };
    r->no_ops = calloc(MASKS_MAX, sizeof(*r->no_ops));
    r->no_faults = calloc(MASKS_MAX, sizeof(*r->no_faults));
    r->setup.no_ops = r->no_ops;
    r->setup.no_faults = r->no_faults;
    return r->no_ops && r->no_faults;
}

const char *replay_read(struct replay *r, const char *path)
{
    const char *fault = make(r) ? NULL : "no memory";
    FILE *f = fopen(path, "r");
    char line[512];

    if (!f)
        fault = "cannot be opened";
    while (!fault && fgets(line, sizeof(line), f)) {
        if (!read_line(r, line))
            fault = "has a line that is not understood";
    }
    if (f)
        (void)fclose(f);
    if (fault)
        replay_release(r);
    return fault;
}

static bool write_file(const struct replay *r, const char *rule, const char *why,
                       const char *path)
{
    const struct setup *u = &r->setup;
    FILE *f = fopen(path, "w");

    if (!f)
        return false;
    fprintf(f, "# broke %s: %s\nseed %" PRIu64 "\nsalt %" PRIu64 "\nops %u\nfaults ",
            rule, why, u->seed, u->salt, u->ops);
    bool any = false;
    for (unsigned i = 0; i < SIM_FAULTS; i++) {
        if ((u->faults >> i) & 1) {
            fprintf(f, "%s%s", any ? "," : "", fault_text((enum fault_name)i));
            any = true;
        }
    }
    fprintf(f, "%s\nprune %u\n", any ? "" : "none", u->prune);
    for (size_t i = 0; i < u->n_no_ops; i++)
        fprintf(f, "without-op %u %u\n", r->no_ops[i].actor, r->no_ops[i].op);
    for (size_t i = 0; i < u->n_no_faults; i++)
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
    const struct mask *no_ops = r.no_ops, *no_faults = r.no_faults;
    r.setup = *failing;
    r.setup.no_ops = no_ops;
    r.setup.no_faults = no_faults;
    r.setup.verbose = false;
    for (unsigned round = 0; round < 4; round++) {
        bool smaller = shrink_ops(s, &r, rule);
        smaller |= shrink_faults(s, &r, rule);
        if (!smaller)
            break;
    }
    bool broken = !world_run(s, &r.setup);
    bool written = broken && write_file(&r, s->rule, s->why, path);
    replay_release(&r);
    return !broken ? "the failure got lost" : written ? NULL : "cannot be written";
}
