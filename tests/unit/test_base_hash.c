#include "base/random_pool.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/err.h>

#include "tap.h"

/* A memory for OpenSSL that can run out: the allocation after `left` more fails.
 * Negative is never. */
static int left = -1;

static bool runs_out(void)
{
    if (left < 0)
        return false;
    if (left > 0) {
        left--;
        return false;
    }
    return true; /* and stays out of memory */
}

static void *counted_malloc(size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    return runs_out() ? NULL : malloc(n);
}

static void *counted_realloc(void *p, size_t n, const char *file, int line)
{
    (void)file;
    (void)line;
    return runs_out() ? NULL : realloc(p, n);
}

static void counted_free(void *p, const char *file, int line)
{
    (void)file;
    (void)line;
    free(p);
}

static bool hex_is(struct tap *t, const uint8_t digest[SHA256_LEN], const char *want)
{
    char got[SHA256_HEX_LEN + 1];

    hex_encode(bytes_of(digest, SHA256_LEN), got);
    return TAP_STR(t, got, want);
}

/* clang-format off */
static const struct {
    const char *name, *text, *want;
} digests[] = {
    { "of nothing", "",
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "FIPS 180-4, one block", "abc",
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "FIPS 180-4, two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "claim token", "session:owner:qwc:7:3:1000",
      "27ef8302266499db7abaed79ebe01b1f64b24a05ff3fb3064ecd9c55ab80c071" },
    { "batch id, no nonce", "session:Some(\"key\"):1000",
      "9388582ae23f26e0ca8f418a32512512a027d8697de330526f57c86918e4071f" },
    { "batch id, nonce 1", "session:Some(\"key\"):1000:1",
      "88583d19c41c3de754b50c05de42b3e64636222193ac8134a2556ecc79a8e42b" },
    { "batch id, no key, nonce 0", "session:None:1000:0",
      "8106495acef7d68123872546c43d85f7e470957da57457922d461514a5242ba5" },
    { "process lease token", "proc-1:owner-a:1000:1",
      "6df8915c6ad6032420e79ad0abd39c6f1c33c46a5b04b45c214f091ece14f97c" },
    { "blob ref", "orphan-blob",
      "b583d80c8c759a700ef320d324671438cd94fac62502795b11069d7dc9369ac2" },
};
/* clang-format on */

static void test_sha256(struct tap *t)
{
    for (size_t i = 0; i < COUNT_OF(digests); i++) {
        uint8_t out[SHA256_LEN] = { 0 };
        TAP_EQ(t, sha256(bytes_str(digests[i].text), out, NULL), BELAY_OK);
        if (!hex_is(t, out, digests[i].want))
            printf("# %s\n", digests[i].name);
    }
    uint8_t out[SHA256_LEN] = { 0 };
    TAP_EQ(t, sha256(bytes_of(NULL, 0), out, NULL), BELAY_OK);
    hex_is(t, out, digests[0].want);
}

/* The digest of all rows, each cut in two at `cut`. */
static void stream_rows(struct tap *t, size_t cut)
{
    for (size_t i = 0; i < COUNT_OF(digests); i++) {
        struct bytes text = bytes_str(digests[i].text);
        size_t n = cut < text.len ? cut : text.len;
        struct sha256_stream *s = NULL;
        uint8_t out[SHA256_LEN] = { 0 };

        if (!TAP_EQ(t, sha256_open(&s, NULL), BELAY_OK))
            return;
        TAP_EQ(t, sha256_update(s, bytes_of(text.ptr, n), NULL), BELAY_OK);
        TAP_EQ(t, sha256_update(s, bytes_of(NULL, 0), NULL), BELAY_OK);
        TAP_EQ(t, sha256_update(s, bytes_of(text.ptr + n, text.len - n), NULL),
               BELAY_OK);
        TAP_EQ(t, sha256_finish(s, out, NULL), BELAY_OK);
        hex_is(t, out, digests[i].want);
        sha256_close(s);
    }
}

static void test_stream(struct tap *t)
{
    for (size_t cut = 0; cut < 64; cut++)
        stream_rows(t, cut);

    struct sha256_stream *s = NULL;
    if (TAP_EQ(t, sha256_open(&s, NULL), BELAY_OK))
        sha256_close(s); /* without an update or a finish */
    sha256_close(NULL);
}

static void test_stream_long(struct tap *t)
{
    uint8_t text[1000];
    struct sha256_stream *s = NULL;
    uint8_t out[SHA256_LEN] = { 0 };

    memset(text, 'a', sizeof(text));
    if (!TAP_EQ(t, sha256_open(&s, NULL), BELAY_OK))
        return;
    for (unsigned i = 0; i < 1000; i++)
        TAP_EQ(t, sha256_update(s, bytes_of(text, sizeof(text)), NULL), BELAY_OK);
    TAP_EQ(t, sha256_finish(s, out, NULL), BELAY_OK);
    sha256_close(s);
    hex_is(t, out, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* RFC 4231, and an empty key. */
static void test_hmac(struct tap *t)
{
    uint8_t key[131], data[50], out[SHA256_LEN] = { 0 };

    memset(key, 0x0b, 20);
    TAP_EQ(t, hmac_sha256(bytes_of(key, 20), bytes_str("Hi There"), out, NULL),
           BELAY_OK);
    hex_is(t, out, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");

    TAP_EQ(t,
           hmac_sha256(bytes_str("Jefe"), bytes_str("what do ya want for nothing?"),
                       out, NULL),
           BELAY_OK);
    hex_is(t, out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");

    memset(key, 0xaa, sizeof(key));
    memset(data, 0xdd, sizeof(data));
    TAP_EQ(t, hmac_sha256(bytes_of(key, 20), bytes_of(data, sizeof(data)), out, NULL),
           BELAY_OK);
    hex_is(t, out, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");

    TAP_EQ(
        t,
        hmac_sha256(bytes_of(key, sizeof(key)),
                    bytes_str("Test Using Larger Than Block-Size Key - Hash Key First"),
                    out, NULL),
        BELAY_OK);
    hex_is(t, out, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");

    TAP_EQ(t, hmac_sha256(bytes_of(NULL, 0), bytes_of(NULL, 0), out, NULL), BELAY_OK);
    hex_is(t, out, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void test_hex(struct tap *t)
{
    static const uint8_t bytes[] = { 0x00, 0x01, 0x0f, 0x10, 0x9a, 0xaf, 0xff };
    char out[2 * sizeof(bytes) + 2];

    memset(out, '!', sizeof(out));
    hex_encode(bytes_of(bytes, sizeof(bytes)), out);
    TAP_STR(t, out, "00010f109aafff");
    TAP_EQ(t, out[2 * sizeof(bytes) + 1], '!');
    hex_encode(bytes_of(NULL, 0), out);
    TAP_STR(t, out, "");
}

static void test_secret_equality(struct tap *t)
{
    TAP_OK(t, bytes_eq_secret(bytes_str("secret"), bytes_of("secrets", 6)));
    TAP_OK(t, bytes_eq_secret(bytes_of(NULL, 0), bytes_str("")));
    TAP_OK(t, !bytes_eq_secret(bytes_str("secret"), bytes_str("secreT")));
    TAP_OK(t, !bytes_eq_secret(bytes_str("Secret"), bytes_str("secret")));
    TAP_OK(t, !bytes_eq_secret(bytes_str("secret"), bytes_str("secrets")));
    TAP_OK(t, !bytes_eq_secret(bytes_str("secret"), bytes_of(NULL, 0)));
}

static void test_random_system(struct tap *t)
{
    struct belay_random r = random_system();
    uint8_t a[4097] = { 0 }, b[4097] = { 0 };
    unsigned seen[256] = { 0 };

    TAP_EQ(t, random_bytes(&r, a, sizeof(a) - 1, NULL), BELAY_OK);
    TAP_EQ(t, random_bytes(&r, b, sizeof(b) - 1, NULL), BELAY_OK);
    TAP_EQ(t, random_bytes(&r, a, 0, NULL), BELAY_OK);
    TAP_OK(t, memcmp(a, b, sizeof(a)) != 0);
    TAP_EQ(t, a[sizeof(a) - 1], 0); /* no byte too many */
    for (size_t i = 0; i < sizeof(a) - 1; i++)
        seen[a[i]]++;
    for (size_t i = 0; i < COUNT_OF(seen); i++)
        TAP_OK(t, seen[i] < 64); /* 16 are expected */
}

struct source {
    int answer;
    size_t asked;
};

static int fill_from_source(void *arg, void *out, size_t n)
{
    struct source *s = arg;

    memset(out, 7, n);
    s->asked += n;
    return s->answer;
}

static void test_random_hook(struct tap *t)
{
    static const int failures[] = { 1, -1, INT32_MIN };
    struct source s = { 0 };
    struct belay_random r = { .fill = fill_from_source, .arg = &s };
    uint8_t out[10] = { 0 };

    TAP_EQ(t, random_bytes(&r, out, 9, NULL), BELAY_OK);
    TAP_EQ(t, s.asked, 9);
    TAP_EQ(t, out[8], 7);
    TAP_EQ(t, out[9], 0);
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        struct belay_error e = { 0 };
        s.answer = failures[i];
        TAP_EQ(t, random_bytes(&r, out, 9, &e), BELAY_UNAVAILABLE);
        TAP_EQ(t, e.code, BELAY_UNAVAILABLE);
        TAP_OK(t, e.message[0] != '\0');
    }
}

static belay_rc digest(uint8_t out[SHA256_LEN], struct belay_error *err)
{
    return sha256(bytes_str("abc"), out, err);
}

static belay_rc digest_stream(uint8_t out[SHA256_LEN], struct belay_error *err)
{
    struct sha256_stream *s = NULL;

    belay_rc rc = sha256_open(&s, err);
    if (rc == BELAY_OK)
        rc = sha256_update(s, bytes_str("abc"), err);
    if (rc == BELAY_OK)
        rc = sha256_finish(s, out, err);
    sha256_close(s);
    return rc;
}

static belay_rc digest_keyed(uint8_t out[SHA256_LEN], struct belay_error *err)
{
    return hmac_sha256(bytes_str("key"), bytes_str("abc"), out, err);
}

/* Fails every allocation of a call, one after the other.  OpenSSL does not always say
 * that memory was the cause; both codes tell the caller to come back later. */
static void test_no_memory(struct tap *t)
{
    static const struct {
        belay_rc (*call)(uint8_t *, struct belay_error *);
        bool allocates;
    } calls[] = {
        { digest, false }, /* what lies in one place takes the caller's memory alone */
        { digest_stream, true },
        { digest_keyed, true },
    };

    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        uint8_t want[SHA256_LEN] = { 0 };
        TAP_EQ(t, calls[i].call(want, NULL), BELAY_OK);
        for (int n = 0;; n++) {
            uint8_t poison[SHA256_LEN], out[SHA256_LEN];
            struct belay_error e = { 0 };

            memset(poison, 0x5a, sizeof(poison));
            memcpy(out, poison, sizeof(out));
            left = n;
            belay_rc rc = calls[i].call(out, &e);
            left = -1;
            TAP_EQ(t, ERR_peek_error(), 0);
            if (rc == BELAY_OK) {
                TAP_OK(t, memcmp(out, want, sizeof(out)) == 0);
                TAP_EQ(t, n > 0, calls[i].allocates); /* something was refused before */
                break;
            }
            TAP_OK(t, rc == BELAY_NO_MEMORY || rc == BELAY_UNAVAILABLE);
            TAP_EQ(t, e.code, rc);
            TAP_OK(t, memcmp(out, poison, sizeof(out)) == 0);
        }
    }
}

/* Everything that is drawn differs from everything else, also across refills and in a child. */
static void test_random_pool(struct tap *t)
{
    enum { DRAWS = 500, LEN = 16 };
    static uint8_t drawn[DRAWS + 1][LEN];
    uint8_t large[4096] = { 0 };
    struct random_pool pool;
    int pipes[2];

    random_pool_init(&pool);
    struct belay_random hook = random_pool_hook(&pool);
    for (size_t i = 0; i < DRAWS; i++)
        TAP_OK(t, hook.fill(hook.arg, drawn[i], LEN) == 0);
    TAP_OK(t, hook.fill(hook.arg, large, sizeof(large)) == 0);
    TAP_OK(t,
           large[0] | large[1] | large[4092] | large[4093] | large[4094] | large[4095]);

    if (!TAP_OK(t, pipe(pipes) == 0))
        return;
    pid_t pid = fork();
    if (pid == 0) {
        uint8_t own[LEN];
        bool ok =
            hook.fill(hook.arg, own, LEN) == 0 && write(pipes[1], own, LEN) == LEN;
        _exit(!ok);
    }
    uint8_t childs[LEN] = { 0 };
    TAP_OK(t, pid > 0 && read(pipes[0], childs, LEN) == LEN);
    TAP_OK(t, waitpid(pid, NULL, 0) == pid);
    TAP_OK(t, hook.fill(hook.arg, drawn[DRAWS], LEN) == 0);
    TAP_OK(t,
           memcmp(childs, drawn[DRAWS], LEN) != 0); /* what it would have been, too */
    for (size_t i = 0; i <= DRAWS; i++) {
        for (size_t k = 0; k < i; k++) {
            if (memcmp(drawn[i], drawn[k], LEN) == 0)
                TAP_OK(t, false);
        }
    }
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    random_pool_release(&pool);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "SHA-256 gives the golden digests", test_sha256 },
        { "pieces give the digest of the whole", test_stream },
        { "a million letters in a thousand pieces", test_stream_long },
        { "HMAC gives the digests of RFC 4231", test_hmac },
        { "hex is lower case and ends with a NUL", test_hex },
        { "secrets are compared by content", test_secret_equality },
        { "the system's random bytes differ", test_random_system },
        { "a random source that fails is unavailable", test_random_hook },
        { "a pool gives nothing twice, nor to a child what its parent gets",
          test_random_pool },
        { "no memory is an error and touches nothing", test_no_memory },
    };

    /* Must come before OpenSSL's first allocation. */
    CRYPTO_set_mem_functions(counted_malloc, counted_realloc, counted_free);
    return tap_main(cases, COUNT_OF(cases), NULL, argc, argv);
}
