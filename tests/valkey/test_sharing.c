/* Several programs on one server: who makes a store, who wakes whom, and whose functions
 * they use. */
#include "sharing.h"

#include <stdlib.h>

#include "vk.h"

#define LIBRARY "belay6"
#define MARK "-- revision "

/* The text of the functions on the server; the caller frees it.  NULL: it has none. */
static char *library_text(void)
{
    redisReply *r = redis_test_ask(redis_test_url(),
                                   "FUNCTION LIST LIBRARYNAME " LIBRARY " WITHCODE");
    const redisReply *library = r && r->elements == 1 ? r->element[0] : NULL;
    char *text = NULL;

    for (size_t i = 0; library && i + 1 < library->elements && !text; i += 2) {
        if (strcmp(library->element[i]->str, "library_code") == 0)
            text = strdup(library->element[i + 1]->str);
    }
    freeReplyObject(r);
    return text;
}

/* The same text as somebody else's program has it: of another revision. */
static char *text_of_revision(const char *text, const char *revision)
{
    const char *mark = strstr(text, MARK);
    const char *rest = mark ? mark + strcspn(mark, "\n") : NULL;
    char *out = NULL;

    if (!mark || asprintf(&out, "%.*s" MARK "%s%s", (int)(mark - text), text, revision,
                          rest) < 0)
        return NULL;
    return out;
}

/* Opens beside the functions that are there, works, and sees whose they are then. */
static void work_beside(struct tap *t, const char *there, const char *want)
{
    CLEANUP(harness_close) struct harness h = { .t = t };
    struct deed d;

    TAP_OK(t, redis_test_run(redis_test_url(), "FUNCTION LOAD REPLACE %s", there));
    vk_setup_reset(redis_test_url());
    if (!harness_open(&h, t, 0))
        return;
    deed_found(&h, &d, 0);
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
    TAP_EQ(t, deed_times(&h, &d), 1);
    char *after = library_text();
    TAP_OK(t, after && strcmp(after, want) == 0);
    free(after);
}

static void functions_of_others(struct tap *t)
{
    CLEANUP(harness_close) struct harness h = { .t = t };

    vk_setup_reset(redis_test_url());
    if (!harness_open(&h, t, 0))
        return;
    char *ours = library_text();
    char *older = ours ? text_of_revision(ours, "0") : NULL;
    char *newer = ours ? text_of_revision(ours, "999999999") : NULL;
    if (TAP_OK(t, older && newer)) {
        work_beside(t, older, ours);
        work_beside(t, newer, newer);
        TAP_OK(t, redis_test_run(redis_test_url(), "FUNCTION LOAD REPLACE %s", ours));
        work_beside(t, ours, ours);
    }
    free(ours);
    free(older);
    free(newer);
}

int main(int argc, char **argv)
{
    static const struct tap_case own[] = {
        { "sharing: functions of older programs are replaced, of newer ones used",
          functions_of_others },
    };

    /* Whoever comes first brings them. */
    if (!redis_test_run(redis_test_url(), "FUNCTION FLUSH"))
        return 1;
    return sharing_main(&vk_target, own, COUNT_OF(own), argc, argv);
}
