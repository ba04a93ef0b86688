#include "base/hash.h"

#include <limits.h>
#include <stdlib.h>

/* For sha256(): what OpenSSL has for this digest alone works in the caller's memory.  What it
 * recommends instead allocates and looks up each time, which takes longer than to digest a
 * line of text, and on cold caches ten times as long. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

struct sha256_stream {
    EVP_MD_CTX *ctx;
};

/* OpenSSL keeps its failures in a queue of the thread; it must not be found there by
 * somebody else. */
static belay_rc crypto_failed(struct belay_error *err, const char *what)
{
    unsigned long last = ERR_peek_last_error();
    ERR_clear_error();

    if (ERR_GET_REASON(last) == ERR_R_MALLOC_FAILURE)
        return err_no_memory(err, what);
    return err_set(err, BELAY_UNAVAILABLE, "%s: the cryptographic library refused",
                   what);
}

belay_rc sha256(struct bytes in, uint8_t out[SHA256_LEN], struct belay_error *err)
{
    SHA256_CTX ctx;

    if (SHA256_Init(&ctx) != 1 || SHA256_Update(&ctx, in.ptr, in.len) != 1 ||
        SHA256_Final(out, &ctx) != 1)
        return crypto_failed(err, "SHA-256");
    return BELAY_OK;
}

belay_rc sha256_open(struct sha256_stream **out, struct belay_error *err)
{
    struct sha256_stream *s = calloc(1, sizeof(*s));
    if (!s)
        return err_no_memory(err, "SHA-256");

    s->ctx = EVP_MD_CTX_new();
    if (!s->ctx || EVP_DigestInit_ex(s->ctx, EVP_sha256(), NULL) != 1) {
        sha256_close(s);
        return crypto_failed(err, "SHA-256");
    }
    *out = s;
    return BELAY_OK;
}

belay_rc sha256_update(struct sha256_stream *s, struct bytes in,
                       struct belay_error *err)
{
    if (EVP_DigestUpdate(s->ctx, in.ptr, in.len) != 1)
        return crypto_failed(err, "SHA-256");
    return BELAY_OK;
}

belay_rc sha256_finish(struct sha256_stream *s, uint8_t out[SHA256_LEN],
                       struct belay_error *err)
{
    if (EVP_DigestFinal_ex(s->ctx, out, NULL) != 1)
        return crypto_failed(err, "SHA-256");
    return BELAY_OK;
}

void sha256_close(struct sha256_stream *s)
{
    if (!s)
        return;
    EVP_MD_CTX_free(s->ctx);
    free(s);
}

belay_rc hmac_sha256(struct bytes key, struct bytes message, uint8_t out[SHA256_LEN],
                     struct belay_error *err)
{
    /* To OpenSSL a key of NULL is no key at all, not an empty one. */
    const void *key_ptr = key.len > 0 ? (const void *)key.ptr : "";
    size_t len = 0;

    if (!EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key_ptr, key.len, message.ptr,
                   message.len, out, SHA256_LEN, &len) ||
        len != SHA256_LEN)
        return crypto_failed(err, "HMAC");
    return BELAY_OK;
}

void hex_encode(struct bytes in, char *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < in.len; i++) {
        out[2 * i] = digits[in.ptr[i] >> 4];
        out[2 * i + 1] = digits[in.ptr[i] & 0xf];
    }
    out[2 * in.len] = '\0';
}

bool bytes_eq_secret(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0);
}

static int fill_from_openssl(void *arg, void *out, size_t n)
{
    unsigned char *at = out;

    (void)arg;
    while (n > 0) {
        int piece = n < INT_MAX ? (int)n : INT_MAX;
        if (RAND_priv_bytes(at, piece) != 1) {
            ERR_clear_error();
            return -1;
        }
        at += piece;
        n -= (size_t)piece;
    }
    return 0;
}

struct belay_random random_system(void)
{
    return (struct belay_random){ .fill = fill_from_openssl };
}

belay_rc random_bytes(const struct belay_random *r, void *out, size_t n,
                      struct belay_error *err)
{
    if (r->fill(r->arg, out, n) != 0)
        return err_set(err, BELAY_UNAVAILABLE, "random bytes: the source failed");
    return BELAY_OK;
}
