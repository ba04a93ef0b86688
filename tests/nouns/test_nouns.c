/* test_nouns --driver NAME [-l | part of a case's name] */
#include <stdlib.h>

#include "nouns.h"

static const struct topic *const topics[] = {
    &topic_spec_queue,     &topic_spec_claims,  &topic_spec_sessions,
    &topic_spec_commits,   &topic_spec_storage, &topic_pure,
    &topic_traps_queue,    &topic_traps_claims, &topic_traps_sessions,
    &topic_traps_graph,    &topic_traps_blobs,  &topic_care,
    &topic_reads,          &topic_text,         &topic_leases,
    &topic_stale,          &topic_heads,        &topic_garbage,
    &topic_interleave,     &topic_bad_queue,    &topic_bad_claims,
    &topic_bad_commits,    &topic_bad_blobs,    &topic_bounds,
    &topic_crowds,         &topic_waiting,      &topic_threads,
    &topic_thread_commits, &topic_processes,    &topic_damage,
    &topic_damage_gc,      &topic_exec_traces,  &topic_exec_operations,
    &topic_exec_stale,     &topic_exec_claims,  &topic_exec_submit,
    &topic_exec_holding,   &topic_exec_looking, &topic_exec_timers,
    &topic_exec_feeds,     &topic_exec_waiting, &topic_exec_workers,
    &topic_exec_handles,   &topic_proc_spec,    &topic_proc_spec_more,
    &topic_proc_traps,     &topic_proc_stale,   &topic_proc_wakes,
    &topic_proc_life,      &topic_proc_waiting, &topic_proc_children,
    &topic_hosts,
};

/* What a case is run with: tap.h passes it through. */
struct suite {
    const struct test_store *store;
};

static const struct noun_case *find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(topics); i++) {
        for (size_t j = 0; j < topics[i]->n; j++) {
            if (strcmp(topics[i]->cases[j].name, name) == 0)
                return &topics[i]->cases[j];
        }
    }
    return NULL;
}

/* Names are unique, so the case is found by its own. */
static void run(struct tap *t)
{
    const struct suite *suite = t->arg;
    const struct noun_case *c = find(t->name);
    struct world w;

    if (!c)
        abort();
    int64_t start_ms = c->flags & CASE_REAL_TIME ? 0 : WORLD_START_MS;
    if (world_open(&w, t, suite->store, start_ms))
        c->run(&w);
    world_close(&w);
}

static bool fits(const struct noun_case *c, const struct test_store *store)
{
    if (c->flags & CASE_SHARED && !store->shared)
        return false;
    return !(c->flags & CASE_DAMAGE) || store->below;
}

static int usage_text(void)
{
    (void)fprintf(stderr, "usage: test_nouns --driver NAME [-l | PATTERN]\n"
                          "drivers:");
    for (size_t i = 0; i < n_test_stores; i++)
        (void)fprintf(stderr, " %s", test_stores[i].name);
    (void)fprintf(stderr, "\n");
    return 2;
}

static size_t collect_cases(const struct test_store *store, struct tap_case *out)
{
    size_t n = 0;

    for (size_t i = 0; i < COUNT_OF(topics); i++) {
        for (size_t j = 0; j < topics[i]->n; j++) {
            const struct noun_case *c = &topics[i]->cases[j];
            if (!fits(c, store))
                continue;
            if (find(c->name) != c) {
                (void)fprintf(stderr, "two cases are called %s\n", c->name);
                abort();
            }
            if (out)
                out[n] = (struct tap_case){ .name = c->name, .run = run };
            n++;
        }
    }
    return n;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--child") == 0)
        return child_main(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argc - 2, argv + 2);
    if (argc < 3 || strcmp(argv[1], "--driver") != 0)
        return usage_text();
    struct suite suite = { .store = test_store_find(argv[2]) };
    if (!suite.store)
        return usage_text();

    size_t n = collect_cases(suite.store, NULL);
    struct tap_case *all = calloc(n, sizeof(*all));
    if (!all)
        return 2;
    (void)collect_cases(suite.store, all);
    int result = tap_main(all, n, &suite, argc - 2, argv + 2);
    free(all);
    return result;
}
