/* Pages, logs, lists, and a claim as text. */
#include "nouns.h"

static void inbox_pages(struct world *w)
{
    struct belay_queue_page page = { .size = sizeof(page), .limit = 3 };
    struct belay_batches out = { 0 };
    const char *all = "";

    for (int i = 0; i < 8; i++)
        (void)post(w, (struct post){ .slot = BELAY_EXCLUSIVE });
    (void)take(w, 1);
    (void)take(w, 1); /* 1 and 2 are held */
    w->use = w->b;
    for (int pages = 1;; pages++) {
        RC(w, belay_queue_list(w->use, "s", &page, w->arena, &out, &w->err), BELAY_OK);
        for (size_t i = 0; i < out.n; i++)
            all = text(w, "%s %lld", all, (long long)out.batches[i].enqueue_seq);
        page.after_seq = out.next_after_seq;
        if (out.next_after_seq == 0 || pages == 9) {
            EQ(w, pages, 3);
            break;
        }
    }
    STR(w, all, " 1 2 3 4 5 6 7 8");
    page =
        (struct belay_queue_page){ .size = sizeof(page), .limit = 2, .pending = true };
    RC(w, belay_queue_list(w->use, "s", &page, w->arena, &out, &w->err), BELAY_OK);
    if (OK(w, out.n == 2)) {
        EQ(w, out.batches[0].enqueue_seq, 3);
        EQ(w, out.batches[1].enqueue_seq, 4);
        OK(w, out.next_after_seq > 0);
    }
    RC(w, belay_queue_list(w->use, "nobody", NULL, w->arena, &out, &w->err), BELAY_OK);
    EQ(w, out.n, 0);
    EQ(w, out.next_after_seq, 0);
}

/* N1: entry n of the log is revision n. */
static void the_log_is_the_chain(struct world *w)
{
    struct belay_commit_log log = { 0 };

    post_many(w, "s", 1);
    const struct belay_claim *c = take(w, 1);
    RC(w, say(w, "s", 0, "a", NULL), BELAY_OK);
    RC(w, finish(w, "s", 1, c), BELAY_OK);
    RC(w,
       commit(w, "s",
              (struct belay_commit){ .expected_revision = 2, .turn_id = "turn" }),
       BELAY_OK);
    w->use = w->b;
    RC(w, belay_session_log(session(w, "s"), 0, 2, w->arena, &log, &w->err), BELAY_OK);
    if (!OK(w, log.n == 2))
        return;
    EQ(w, log.entries[0].revision, 1);
    EQ(w, log.entries[1].revision, 2);
    STR(w, log.entries[0].turn_id, NULL);
    OK(w, strstr(log.entries[0].json, "\"a\"") != NULL);
    OK(w, c && strstr(log.entries[1].json, c->batches[0].batch_id) != NULL);
    EQ(w, log.next_after, 2);
    RC(w, belay_session_log(session(w, "s"), 2, 0, w->arena, &log, &w->err), BELAY_OK);
    EQ(w, log.next_after, 0);
    if (OK(w, log.n == 1))
        STR(w, log.entries[0].turn_id, "turn");
}

static void sessions_are_listed(struct world *w)
{
    struct belay_session_meta child = { .size = sizeof(child),
                                        .parent = "s0",
                                        .caused_by = "1" };
    struct belay_sessions out = { 0 };
    const char *all = "", *cursor = NULL;

    for (int i = 0; i < 5; i++) {
        RC(w, say(w, text(w, "s%d", i), 0, "n", NULL), BELAY_OK);
        world_pass(w, 2);
    }
    RC(w, belay_session_meta_save(session(w, "s3"), &child, false, &w->err), BELAY_OK);
    w->use = w->b;
    do {
        RC(w, belay_session_list(w->use, NULL, cursor, 2, w->arena, &out, &w->err),
           BELAY_OK);
        for (size_t i = 0; i < out.n; i++)
            all = text(w, "%s %s", all, out.heads[i].session_id);
        cursor = out.next_cursor;
    } while (cursor && strlen(all) < 100);
    STR(w, all, " s0 s1 s2 s3 s4"); /* in the order they began */
    RC(w, belay_session_list(w->use, "s0", NULL, 0, w->arena, &out, &w->err), BELAY_OK);
    if (OK(w, out.n == 1))
        STR(w, out.heads[0].session_id, "s3");
    STR(w, out.next_cursor, NULL);
    RC(w, belay_session_list(w->use, "s1", NULL, 0, w->arena, &out, &w->err), BELAY_OK);
    EQ(w, out.n, 0);
}

/* Adopted by another parent, or by none: it stands where its meta says. */
static void children_move(struct world *w)
{
    struct belay_session_meta meta = { .size = sizeof(meta), .parent = "p" };
    struct belay_sessions out = { 0 };

    RC(w, say(w, "s", 0, "n", NULL), BELAY_OK);
    RC(w, belay_session_meta_save(session(w, "s"), &meta, false, &w->err), BELAY_OK);
    meta.parent = "q";
    RC(w, belay_session_meta_save(session(w, "s"), &meta, false, &w->err), BELAY_OK);
    RC(w, belay_session_list(w->use, "p", NULL, 0, w->arena, &out, &w->err), BELAY_OK);
    EQ(w, out.n, 0);
    RC(w, belay_session_list(w->use, "q", NULL, 0, w->arena, &out, &w->err), BELAY_OK);
    EQ(w, out.n, 1);
    meta.parent = NULL;
    RC(w, belay_session_meta_save(session(w, "s"), &meta, false, &w->err), BELAY_OK);
    RC(w, belay_session_list(w->use, "q", NULL, 0, w->arena, &out, &w->err), BELAY_OK);
    EQ(w, out.n, 0);
}

static void heads_say_what_they_are(struct world *w)
{
    RC(w, commit(w, "s", (struct belay_commit){ .expected_revision = 0 }), BELAY_OK);
    (void)revision(w, "s");
    int64_t began = w->head.created_at_ms;
    STR(w, w->head.config, "{}");
    STR(w, w->head.agent_frames, "[]");
    STR(w, w->head.current_frame, NULL);
    STR(w, w->head.checkpoint_ref, NULL);
    STR(w, w->head.leaf, NULL);
    EQ(w, w->head.node_count, 0);
    world_pass(w, 10);
    RC(w,
       commit(w, "s",
              (struct belay_commit){ .expected_revision = 1,
                                     .config = "{\"b\":1,\"a\":2}",
                                     .agent_frames = "[{\"x\":1}]",
                                     .current_frame = "f" }),
       BELAY_OK);
    RC(w, commit(w, "s", (struct belay_commit){ .expected_revision = 2 }), BELAY_OK);
    (void)revision(w, "s");
    STR(w, w->head.config, "{\"a\":2,\"b\":1}"); /* as it was */
    STR(w, w->head.agent_frames, "[{\"x\":1}]");
    STR(w, w->head.current_frame, "f");
    EQ(w, w->head.created_at_ms, began);
    OK(w, w->head.updated_at_ms >= began + 10);
}

/* A session begins with its first commit: before, there is nothing to read, and nothing
 * to care for, which is no error. */
static void before_the_beginning(struct world *w)
{
    struct belay_session_meta meta = { .size = sizeof(meta), .parent = "p" };
    struct belay_sessions out = { 0 };
    static const char *const ids[] = { "n" };
    size_t n = 9;
    bool changed = true;

    RC(w, belay_session_meta_save(session(w, "s"), &meta, false, &w->err), BELAY_OK);
    post_many(w, "s", 1);
    EQ(w, revision(w, "s"), 0);
    STR(w, nodes(w, "s"), "not_found");
    STR(w, path(w, "s", NULL), "not_found");
    STR(w, usage(w, "s"), "not_found");
    RC(w, belay_session_vacuum(session(w, "s"), &n, &w->err), BELAY_OK);
    EQ(w, n, 0);
    RC(w, belay_session_tombstone(session(w, "s"), ids, 1, &n, &w->err), BELAY_OK);
    EQ(w, n, 0);
    RC(w, belay_session_heal(session(w, "s"), &changed, &w->err), BELAY_OK);
    OK(w, !changed);
    RC(w, belay_session_list(w->use, NULL, NULL, 0, w->arena, &out, &w->err), BELAY_OK);
    EQ(w, out.n, 0);
    RC(w, belay_session_list(w->use, "p", NULL, 0, w->arena, &out, &w->err), BELAY_OK);
    if (OK(w, out.n == 1)) /* its meta names the parent all the same */
        EQ(w, out.heads[0].revision, 0);
}

/* --- a claim as text --- */

static void claims_are_text(struct world *w)
{
    const char *id = "s/%\xc3\xa9 x", *proof = NULL, *twice = NULL;
    const struct belay_claim *back = NULL;

    post_many(w, id, 2);
    const struct belay_claim *c = ask(w, (struct ask){ .session = id, .max = 2 });
    if (!c || !RC(w, belay_claim_text(c, w->arena, &proof, &w->err), BELAY_OK))
        return;
    STR(w, proof,
        text(w, "qwc:1:1/%s/%s/s%%2F%%25%%C3%%A9%%20x/1,2", c->lease_token,
             c->lease_id));
    RC(w, belay_claim_parse(proof, w->arena, &back, &w->err), BELAY_OK);
    if (!back)
        return;
    STR(w, back->session_id, id);
    STR(w, back->claim_id, c->claim_id);
    STR(w, back->lease_token, c->lease_token);
    STR(w, back->lease_id, c->lease_id);
    STR(w, seqs(w, back), "1 2");
    RC(w, belay_claim_text(back, w->arena, &twice, &w->err), BELAY_OK);
    STR(w, twice, proof);

    w->use = w->b;
    OK(w, renewed(w, back, 2 * MINUTE) > c->expires_at_ms);
    RC(w, finish(w, id, 0, back), BELAY_OK);
    EQ(w, abandoned(w, back), 0);
}

static void other_text_is_no_claim(struct world *w)
{
    const char *t = digest(w, "t"), *l = "0123456789abcdef0123456789abcdef";
    const struct belay_claim *back = NULL;
    const char *wrong[] = {
        "",
        "/",
        "qwc:1:1",
        "qwc:1:1/x/y/s/1",
        text(w, "qwc:1:1/%s/%s/s/", t, l),
        text(w, "qwc:1:1/%s/%s/s/1,", t, l),
        text(w, "qwc:1:1/%s/%s/s/0", t, l),
        text(w, "qwc:1:1/%s/%s/s/-1", t, l),
        text(w, "qwc:1:1/%s/%s/s/1,1", t, l),
        text(w, "qwc:1:1/%s/%s/s/99999999999999999999", t, l),
        text(w, "qwc:1:1/%s/%s//1", t, l),
        text(w, "qwc:1:1/%s/%s/%%00/1", t, l),
        text(w, "qwc:1:1/%s/%s/%%zz/1", t, l),
        text(w, "qwc:1:1/%s/%s/%%ff/1", t, l),
        text(w, "qwc:1:1/%s/%s/s/1 ", t, l),
        text(w, "qwb:1:1/%s/%s/s/1", t, l),
        text(w, "qwc:1:1/%s/%s/s/1/2", t, l),
        text(w, "qwc:1:1/%sx/%s/s/1", t, l),
        bytes_of(w, 'q', 100000),
    };

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        belay_rc rc = belay_claim_parse(wrong[i], w->arena, &back, &w->err);
        if (!RC(w, rc, BELAY_BAD_HANDLE))
            printf("# in row %zu\n", i);
        OK(w, back == NULL);
    }
}

static void answers_have_names(struct world *w)
{
    static const char *const why[] = { "claimed",           "empty",
                                       "not_yet_available", "boundary_blocked",
                                       "head_held",         "zero_limit",
                                       "other_batches" };
    static const char *const gc[] = { "swept", "nothing", "incomplete", "refused",
                                      "failed" };

    for (int i = 0; i < (int)COUNT_OF(why); i++)
        STR(w, belay_no_claim_name(i), why[i]);
    for (int i = 0; i < (int)COUNT_OF(gc); i++)
        STR(w, belay_gc_outcome_name(i), gc[i]);
    STR(w, belay_no_claim_name(-1), "unknown");
    STR(w, belay_no_claim_name(99), "unknown");
    STR(w, belay_gc_outcome_name(-1), "unknown");
    STR(w, belay_gc_outcome_name(99), "unknown");
}

static const struct noun_case cases[] = {
    { "an inbox is listed in pages", inbox_pages, 0 },
    { "entry n of a session's log is its revision n", the_log_is_the_chain, 0 },
    { "sessions are listed in the order they began, and by parent", sessions_are_listed,
      0 },
    { "a session is listed under the parent its meta names now", children_move, 0 },
    { "a session that has not begun has nothing to read", before_the_beginning, 0 },
    { "what a commit leaves out stays as it is", heads_say_what_they_are, 0 },
};

const struct topic topic_reads = { cases, COUNT_OF(cases) };

static const struct noun_case texts[] = {
    { "a claim's text is as good as the claim", claims_are_text, 0 },
    { "text that is no claim is a bad handle", other_text_is_no_claim, 0 },
    { "answers have names", answers_have_names, 0 },
};

const struct topic topic_text = { texts, COUNT_OF(texts) };
