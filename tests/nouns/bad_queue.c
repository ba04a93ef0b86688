/* What cannot be enqueued, and calls that cannot be right. */
#include "nouns.h"

#define MIB ((size_t)1024 * 1024)

static struct belay_draft usual(void)
{
    static const char *const payloads[] = { "1" };

    return (struct belay_draft){ .size = sizeof(struct belay_draft),
                                 .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                 .slot = BELAY_JOIN,
                                 .session_id = "s",
                                 .payloads = payloads,
                                 .n_payloads = 1 };
}

static belay_rc enqueue(struct world *w, const struct belay_draft *d)
{
    return belay_queue_enqueue(w->use, d, w->arena, &w->enqueued, &w->err);
}

/* What no id may be: too long, not UTF-8, with control characters, empty. */
static void bad_ids(struct world *w, const char *out[8], size_t max)
{
    out[0] = "";
    out[1] = bytes_of(w, 'x', max + 1);
    out[2] = "a\nb";
    out[3] = "\x7f";
    out[4] = "\xff\xfe";
    out[5] = "\xc3";         /* cut off */
    out[6] = "\xed\xa0\x80"; /* a surrogate */
    out[7] = "\xc2\x85";     /* a control character of two bytes */
}

static void ids_are_checked(struct world *w)
{
    const char *session_ids[8], *keys[8];

    post_many(w, "s", 1);
    bad_ids(w, session_ids, 255);
    bad_ids(w, keys, 512);
    const char *before = everything(w);
    for (size_t i = 0; i < 8; i++) {
        struct belay_draft d = usual();
        unsigned failed = w->t->failed;
        d.session_id = session_ids[i];
        WHY(w, enqueue(w, &d), BELAY_INVALID, "session_id");
        d = usual();
        d.source_key = keys[i];
        WHY(w, enqueue(w, &d), BELAY_INVALID, "source_key");
        d = usual();
        d.merge = BELAY_MERGE_GROUP;
        d.merge_group = session_ids[i];
        WHY(w, enqueue(w, &d), BELAY_INVALID, "merge");
        if (w->t->failed > failed)
            printf("# in row %zu\n", i);
    }
    STR(w, everything(w), before);

    struct belay_draft d = usual();
    d.session_id = bytes_of(w, 's', 255);
    d.source_key = bytes_of(w, 'k', 512);
    d.merge = BELAY_MERGE_GROUP;
    d.merge_group = bytes_of(w, 'g', 255);
    RC(w, enqueue(w, &d), BELAY_OK);
    STR(w, w->enqueued.batch->source_key, d.source_key);
    STR(w, w->enqueued.batch->merge_group, d.merge_group);
}

static void enums_are_checked(struct world *w)
{
    static const int32_t wrong[] = { -1, 3, INT32_MAX, INT32_MIN };
    const char *before = everything(w);
    struct belay_draft d;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        d = usual();
        d.delivery = wrong[i];
        WHY(w, enqueue(w, &d), BELAY_INVALID, "delivery");
        d = usual();
        d.slot = wrong[i];
        WHY(w, enqueue(w, &d), BELAY_INVALID, "slot");
        d = usual();
        d.merge = wrong[i];
        WHY(w, enqueue(w, &d), BELAY_INVALID, "merge");
    }
    d = usual();
    d.delivery = BELAY_DELIVERY_UNSET;
    WHY(w, enqueue(w, &d), BELAY_INVALID, "delivery");
    d = usual();
    d.slot = BELAY_SLOT_UNSET;
    WHY(w, enqueue(w, &d), BELAY_INVALID, "slot");
    d = usual();
    d.merge = BELAY_MERGE_GROUP; /* of which group? */
    WHY(w, enqueue(w, &d), BELAY_INVALID, "merge");
    d = usual();
    d.merge_group = "g"; /* which is not asked for */
    WHY(w, enqueue(w, &d), BELAY_INVALID, "merge");
    d = usual();
    d.available_at_ms = -1;
    WHY(w, enqueue(w, &d), BELAY_INVALID, "available_at");
    STR(w, everything(w), before);
}

static void payloads_are_json(struct world *w)
{
    char *deep = bytes_of(w, '[', 80);
    memset(deep + 40, ']', 40);
    const char *wrong[] = {
        "",
        " ",
        "{",
        "{\"a\":1,}",
        "nul",
        "'x'",
        "1 2",
        "{\"a\":1,\"a\":2}",
        "\"\\u0000\"",
        "9223372036854775808",
        "1e999",
        "\"\xff\"",
        "\"\\ud800\"",
        "\"a\nb\"",
        "NaN",
        deep,
    };
    const char *before = everything(w);

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct belay_draft d = usual();
        const char *second[] = { "1", wrong[i] };
        d.payloads = second;
        d.n_payloads = 2;
        if (!WHY(w, enqueue(w, &d), BELAY_INVALID, "payload"))
            printf("# in row %zu\n", i);
    }
    STR(w, everything(w), before);
}

/* A mebibyte in all, to the byte. */
static void payloads_have_a_size(struct world *w)
{
    char *half = bytes_of(w, 'x', MIB / 2), *more = bytes_of(w, 'x', MIB / 2 + 1);
    struct belay_draft d = usual();
    const char *two[2] = { half, half };

    half[0] = half[MIB / 2 - 1] = more[0] = more[MIB / 2] = '"';
    d.payloads = two;
    d.n_payloads = 2;
    RC(w, enqueue(w, &d), BELAY_OK);
    EQ(w, w->enqueued.batch->items[1].payload_len, MIB / 2);
    const char *before = everything(w);
    two[1] = more;
    WHY(w, enqueue(w, &d), BELAY_INVALID, "too_large");
    EQ(w, w->err.expected, MIB);
    EQ(w, belay_error_http_status(&w->err), 413);
    STR(w, everything(w), before);
}

static void structs_have_sizes(struct world *w)
{
    static const uint32_t wrong[] = { 0, 4, sizeof(struct belay_draft) - 8,
                                      UINT32_MAX };
    struct {
        struct belay_draft draft;
        char more[64];
    } later = { .draft = usual() };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct belay_draft d = usual();
        d.size = wrong[i];
        RC(w, enqueue(w, &d), BELAY_MISUSE);
    }
    later.draft.size = sizeof(later);
    RC(w, enqueue(w, &later.draft), BELAY_OK); /* a newer caller, with nothing new */
    later.more[0] = 1;
    RC(w, enqueue(w, &later.draft), BELAY_MISUSE);
    STR(w, listed(w, "s"), "1");
}

static void null_is_misuse(struct world *w)
{
    struct belay_draft d = usual();
    const char *none[] = { NULL };

    RC(w, belay_queue_enqueue(NULL, &d, w->arena, &w->enqueued, &w->err), BELAY_MISUSE);
    RC(w, belay_queue_enqueue(w->use, NULL, w->arena, &w->enqueued, &w->err),
       BELAY_MISUSE);
    RC(w, belay_queue_enqueue(w->use, &d, NULL, &w->enqueued, &w->err), BELAY_MISUSE);
    RC(w, belay_queue_enqueue(w->use, &d, w->arena, NULL, &w->err), BELAY_MISUSE);
    EQ(w, belay_queue_enqueue(NULL, NULL, NULL, NULL, NULL), BELAY_MISUSE);
    d.session_id = NULL;
    RC(w, enqueue(w, &d), BELAY_MISUSE);
    d = usual();
    d.payloads = none;
    RC(w, enqueue(w, &d), BELAY_MISUSE);
    d.payloads = NULL;
    RC(w, enqueue(w, &d), BELAY_MISUSE);
    OK(w, w->enqueued.batch == NULL); /* outputs are as they were */
    STR(w, listed(w, "s"), "");
    d = usual();
    EQ(w, belay_queue_enqueue(w->use, &d, w->arena, &w->enqueued, NULL), BELAY_OK);
}

static const struct noun_case cases[] = {
    { "ids of batches: length, UTF-8, control characters", ids_are_checked, 0 },
    { "drafts: enums and times outside their values are invalid", enums_are_checked,
      0 },
    { "payloads: what is no JSON, or too deep, is invalid", payloads_are_json, 0 },
    { "payloads: a mebibyte in all and no byte more", payloads_have_a_size, 0 },
    { "drafts: a size that cannot be right is misuse", structs_have_sizes, 0 },
    { "enqueue: NULL is misuse where it is not allowed", null_is_misuse, 0 },
};

const struct topic topic_bad_queue = { cases, COUNT_OF(cases) };
