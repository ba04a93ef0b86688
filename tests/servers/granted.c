#include "granted.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "cli.h"

#define LEASE_MS ((int64_t)60000)

bool grantee_open(struct grantee *g, struct tap *t, const char *url)
{
    const struct belay_options options = { .size = sizeof(options), .ns = "default" };

    *g = (struct grantee){ .t = t };
    (void)snprintf(g->url, sizeof(g->url), "%s", url);
    if (TAP_EQ(t, belay_open(url, &options, &g->b, &g->err), BELAY_OK) &&
        TAP_EQ(t, belay_arena_new(&g->arena, &g->err), BELAY_OK))
        return true;
    printf("# %s\n", g->err.message);
    return false;
}

void grantee_close(struct grantee *g)
{
    belay_arena_free(g->arena);
    belay_close(g->b);
    *g = (struct grantee){ .t = g->t };
}

/* --- calls --- */

static belay_rc enqueue(struct grantee *g, const char *session)
{
    static const char *const payload[] = { "{}" };
    const struct belay_draft draft = { .size = sizeof(draft),
                                       .session_id = session,
                                       .delivery = BELAY_EARLIEST_SAFE_BOUNDARY,
                                       .slot = BELAY_EXCLUSIVE,
                                       .payloads = payload,
                                       .n_payloads = 1 };
    struct belay_enqueued out;

    return belay_queue_enqueue(g->b, &draft, g->arena, &out, &g->err);
}

static belay_rc claim(struct grantee *g, const char *session, struct belay_claimed *out)
{
    const struct belay_claim_request request = { .size = sizeof(request),
                                                 .session_id = session,
                                                 .owner_id = "me",
                                                 .lease_ms = LEASE_MS,
                                                 .max = 1 };

    *out = (struct belay_claimed){ .claim = NULL };
    return belay_queue_claim(g->b, &request, g->arena, out, &g->err);
}

static belay_rc renew(struct grantee *g, const struct belay_claim *c)
{
    int64_t expires_at_ms;

    return belay_queue_renew(g->b, c, LEASE_MS, &expires_at_ms, &g->err);
}

static belay_rc complete(struct grantee *g, const struct belay_claim *c)
{
    const struct belay_commit commit = { .size = sizeof(commit),
                                         .expected_revision = BELAY_ANY_REVISION,
                                         .completes = &c,
                                         .n_completes = 1 };
    struct belay_session *s = NULL;
    struct belay_committed out;
    belay_rc rc = belay_session_open(g->b, c->session_id, NULL, &s, &g->err);

    if (rc == BELAY_OK)
        rc = belay_session_commit(s, &commit, g->arena, &out, &g->err);
    belay_session_close(s);
    return rc;
}

static belay_rc give_back(struct grantee *g, const struct belay_claim *c)
{
    size_t released;

    return belay_queue_abandon(g->b, c, &released, &g->err);
}

/* A name that no inbox has yet. */
static void new_session(char out[32])
{
    static atomic_uint n;

    (void)snprintf(out, 32, "s%u", atomic_fetch_add(&n, 1));
}

/* --- what comes of them --- */

static bool check_ok(struct grantee *g, belay_rc rc)
{
    bool ok = TAP_EQ(g->t, rc, BELAY_OK);

    if (!ok)
        printf("# %s\n", g->err.message);
    return ok;
}

static void check_refusal(struct grantee *g, belay_rc rc, belay_rc want)
{
    if (TAP_EQ(g->t, rc, want))
        TAP_STR(g->t, g->err.reason, "epoch");
}

const struct belay_claim *grantee_claim(struct grantee *g)
{
    struct belay_claimed got = { .claim = NULL };
    char session[32];

    new_session(session);
    if (check_ok(g, enqueue(g, session)) && check_ok(g, claim(g, session, &got)))
        TAP_OK(g->t, got.claim);
    return got.claim;
}

void grantee_stands(struct grantee *g, const struct belay_claim *c)
{
    check_ok(g, renew(g, c));
    check_ok(g, complete(g, c));
}

void grantee_lost(struct grantee *g, const struct belay_claim *c)
{
    check_refusal(g, renew(g, c), BELAY_LEASE_LOST);
    check_refusal(g, complete(g, c), BELAY_LEASE_LOST);
}

static void check_said(struct grantee *g, const char *words, int status,
                       const char *text)
{
    struct cli out;

    cli_run(&out, "", g->url, words);
    if (!TAP_EQ(g->t, out.status, status) || !TAP_OK(g->t, strstr(out.text, text)))
        printf("# belay %s: not \"%s\": %s\n", words, text, out.text);
}

void grantee_refused(struct grantee *g, const struct belay_claim *c)
{
    struct belay_claimed got;
    char session[32];

    new_session(session);
    check_ok(g, enqueue(g, session));
    check_refusal(g, claim(g, session, &got), BELAY_UNAVAILABLE);
    TAP_OK(g->t, !got.claim);
    check_refusal(g, renew(g, c), BELAY_UNAVAILABLE);
    check_refusal(g, complete(g, c), BELAY_UNAVAILABLE);
    check_refusal(g, give_back(g, c), BELAY_UNAVAILABLE);
    check_said(g, "--json epoch show", 0, "\"granting\":false");
    check_said(g, "doctor", 1, "bad    epoch ");
}

void grantee_raise(struct grantee *g)
{
    check_said(g, "--json epoch raise --reason 'somebody has looked'", 0,
               "\"granting\":true");
}

int64_t grantee_epoch(struct grantee *g)
{
    struct cli out;

    cli_run(&out, "", g->url, "--json epoch show");
    const char *at = out.status == 0 ? strstr(out.text, "\"epoch\":") : NULL;
    if (TAP_OK(g->t, at))
        return strtoll(at + strlen("\"epoch\":"), NULL, 10);
    printf("# belay epoch show: %s\n", out.text);
    return -1;
}

unsigned grantee_raises(struct grantee *g, const char *reason)
{
    struct cli out;
    char entry[128];
    unsigned n = 0;

    (void)snprintf(entry, sizeof(entry), "\"reason\":\"%s\"", reason);
    cli_run(&out, "", g->url, "--output jsonl audit ls");
    TAP_EQ(g->t, out.status, 0);
    for (const char *at = out.text; (at = strstr(at, entry)); at++)
        n++;
    return n;
}
