/* Who may come in, and how: TLS, passwords, rights.  What is refused is refused at once,
 * with the reason, and no password is ever repeated. */
#include "doors.h"

/* What a program of ours may do, as docs/valkey.md has it. */
#define RIGHTS                                                                      \
    "-@all", "+hdel", "+hget", "+hgetall", "+hincrby", "+hlen", "+hmget", "+hset",  \
        "+pexpireat", "+get", "+set", "+strlen", "+exists", "+unlink", "+scan",     \
        "+xadd", "+xlen", "+xrange", "+xrevrange", "+xtrim", "+zadd", "+zcard",     \
        "+zcount", "+zmscore", "+zrange", "+zrank", "+zrem", "+zremrangebyscore",   \
        "+zrevrange", "+zscore", "+time", "+fcall", "+fcall_ro", "+multi", "+exec", \
        "+ping", "+info", "+select", "+wait", "+client|setname", "+config|get",     \
        "+cluster|slots", "+function|load", "+function|list", "+publish",           \
        "+subscribe", "+bgrewriteaof"

/* And one that only looks. */
#define READER                                                                 \
    "-@all", "+@read", "-@dangerous", "+time", "+fcall_ro", "+multi", "+exec", \
        "+ping", "+info", "+select", "+client|setname", "+config|get",         \
        "+function|list"

/* --- TLS --- */

static void encrypts(struct tap *t)
{
    static const char *const tls[] = { "--tls", NULL };
    char ca[300], other[300], cert[300], key[300];

    if (!serve(t, tls))
        return;
    (void)snprintf(ca, sizeof(ca), "%s/ca.crt", server.word[1]);
    (void)snprintf(other, sizeof(other), "%s/other.crt", server.word[1]);
    (void)snprintf(cert, sizeof(cert), "%s/client.crt", server.word[1]);
    (void)snprintf(key, sizeof(key), "%s/client.key", server.word[1]);

    vk_setup.options.tls = true;
    vk_setup.options.tls_ca = ca;
    check_works(t);
    vk_setup.options.tls_cert = cert;
    vk_setup.options.tls_key = key;
    check_works(t);
    vk_setup.options.tls_cert = vk_setup.options.tls_key = NULL;

    vk_setup.options.tls_ca = other;
    check_refused(t, "tls", "certificate");
    vk_setup.options.tls_ca = NULL; /* the system's */
    check_refused(t, "tls", "certificate");
    vk_setup.options.tls_insecure = true;
    check_works(t);
    vk_setup.options.tls_insecure = false;
    vk_setup.options.tls_ca = "no-such-file.crt";
    check_refused(t, "tls", "tls_ca");
    vk_setup.options.tls_ca = ca;
    vk_setup.options.tls_server_name = "elsewhere.example";
    check_refused(t, "tls", "hostname mismatch");
    vk_setup.options.tls_server_name = "localhost";
    check_works(t);
}

/* A server that wants a certificate of its clients, and one that knows no TLS. */
static void wants_certificates(struct tap *t)
{
    static const char *const strict[] = { "--tls", "tls-auth-clients=yes", NULL };
    char ca[300], cert[300], key[300];

    if (!serve(t, strict))
        return;
    (void)snprintf(ca, sizeof(ca), "%s/ca.crt", server.word[1]);
    (void)snprintf(cert, sizeof(cert), "%s/client.crt", server.word[1]);
    (void)snprintf(key, sizeof(key), "%s/client.key", server.word[1]);
    vk_setup.options.tls = true;
    vk_setup.options.tls_ca = ca;
    check_away(t);
    vk_setup.options.tls_cert = cert;
    vk_setup.options.tls_key = key;
    check_works(t);
    if (!serve_plainly(t))
        return;
    vk_setup.options.tls = true;
    vk_setup.options.request_timeout_ms = 2000;
    check_away(t);
}

/* --- logins --- */

static void takes_passwords(struct tap *t)
{
    if (!serve_plainly(t))
        return;
    TAP_OK(t, redis_test_run(server.word[0],
                             "ACL SETUSER t_admin on >" PASSWORD " ~* &* +@all"));
    vk_setup.options.user = "t_admin";
    vk_setup.options.password = PASSWORD;
    check_works(t);
    vk_setup.options.password = WRONG;
    check_refused(t, "login", "user or password");
    vk_setup.options.user = "t_nobody";
    vk_setup.options.password = PASSWORD;
    check_refused(t, "login", "user or password");

    TAP_OK(t, redis_test_run(server.word[0], "CONFIG SET requirepass " PASSWORD));
    vk_setup.options.user = NULL;
    vk_setup.options.password = NULL;
    check_refused(t, "login", "");
    vk_setup.options.password = WRONG;
    check_refused(t, "login", "");
    vk_setup.options.password = PASSWORD;
    struct driver *d = NULL;
    struct belay_error err = { .code = 0 };
    TAP_EQ(t, vk_open("password", &d, &err), BELAY_OK);
    driver_close(d);
}

/* --- rights --- */

/* Everything that a store does, with the rights of the manual. */
static void rights_are_enough(struct tap *t)
{
    CLEANUP(harness_close) struct harness h = { .t = t };
    static const char *const rules[] = { RIGHTS, "~belay-*", "&belay-*", NULL };
    struct deed d;
    bool more = true;

    if (!serve_plainly(t) || !TAP_OK(t, set_user("t_engine", rules)))
        return;
    vk_setup.options.user = "t_engine";
    vk_setup.options.password = PASSWORD;
    if (harness_open(&h, t, HARNESS_REAL_TIME)) {
        deed_found(&h, &d, 0);
        CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
        TAP_EQ(t, deed_times(&h, &d), 1);
        TAP_OK(t, redis_test_run(server.word[0], "FUNCTION FLUSH"));
        CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_OK);
        struct buf dump = harness_dump(&h);
        buf_release(&dump);
        while (more && !driver_erase(h.driver, bytes_str("default"), 100, &more, NULL))
            continue;
        TAP_OK(t, !more);
        redisReply *denied = redis_test_ask(server.word[0], "ACL LOG");
        TAP_EQ(t, denied ? denied->elements : 99, 0);
        freeReplyObject(denied);
    }
}

/* Keys of somebody else are not to be touched, even if the prefix says so. */
static void check_not_ours(struct harness *h)
{
    struct store_options options = h->options;
    struct store *store = NULL;
    struct space *space = NULL;
    struct driver *d = NULL;
    struct belay_error err = { .code = 0 };

    belay_rc rc = vk_open("belay-x", &d, &err);
    if (rc == BELAY_OK)
        rc = store_open(&store, d, &options, &err);
    if (rc == BELAY_OK)
        rc = store_space(store, bytes_str("default"), &space, &err);
    CHECK_RC(h, rc, BELAY_DENIED);
    check_silence(h->t, &err);
    store_close(store);
    driver_close(d);
}

static void rights_are_needed(struct tap *t)
{
    static const char *const elsewhere[] = { RIGHTS, "~other-*", "&other-*", NULL };
    static const char *const reader[] = { READER, "~belay-*", "&belay-*", NULL };
    CLEANUP(harness_close) struct harness h = { .t = t };
    struct deed d = { .id = "a" };

    if (!serve_plainly(t) || !TAP_OK(t, set_user("t_other", elsewhere)) ||
        !TAP_OK(t, set_user("t_reader", reader)) || !harness_open(&h, t, 0))
        return;
    thing_set(&h, "a", 1);
    vk_setup.options.password = PASSWORD;
    vk_setup.options.user = "t_other";
    check_not_ours(&h);
    vk_setup.options.user = "t_reader";
    if (!TAP_OK(t, harness_reopen(&h)))
        return;
    TAP_EQ(t, thing_n(&h, "a"), 1);
    CHECK_RC(&h, harness_run(&h, deed_body, &d), BELAY_DENIED);
    check_silence(t, &h.err);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "access: TLS is used and checked where it is asked for", encrypts },
        { "access: certificates of clients", wants_certificates },
        { "access: a login that is refused is not tried again", takes_passwords },
        { "access: the rights of the manual are enough", rights_are_enough },
        { "access: without them nothing is done", rights_are_needed },
    };
    int status =
        tap_main(cases, COUNT_OF(cases), (void *)(uintptr_t)&vk_driver, argc, argv);

    test_server_close(&server);
    return status;
}
