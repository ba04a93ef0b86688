/* hash.h - SHA-256, HMAC, random bytes: OpenSSL behind a few plain functions. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <belay/hooks.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/err.h"

#define SHA256_LEN 32
#define SHA256_HEX_LEN 64

/* Digest of all of `in`. */
MUST_USE belay_rc sha256(struct bytes in, uint8_t out[SHA256_LEN],
                         struct belay_error *err);

/* Digest of what arrives in pieces.  open, any number of updates, at most one finish,
 * close (which takes NULL). */
struct sha256_stream;
MUST_USE belay_rc sha256_open(struct sha256_stream **out, struct belay_error *err);
MUST_USE belay_rc sha256_update(struct sha256_stream *s, struct bytes in,
                                struct belay_error *err);
MUST_USE belay_rc sha256_finish(struct sha256_stream *s, uint8_t out[SHA256_LEN],
                                struct belay_error *err);
void sha256_close(struct sha256_stream *s);

MUST_USE belay_rc hmac_sha256(struct bytes key, struct bytes message,
                              uint8_t out[SHA256_LEN], struct belay_error *err);

/* 2 * in.len lower-case hex characters and a NUL. */
void hex_encode(struct bytes in, char *out);

/* Equal content, in time that depends on the lengths alone. */
bool bytes_eq_secret(struct bytes a, struct bytes b);

/* OpenSSL's generator, as a hook. */
struct belay_random random_system(void);

/* n bytes from the hook, or `unavailable`. */
MUST_USE belay_rc random_bytes(const struct belay_random *r, void *out, size_t n,
                               struct belay_error *err);

#endif /* BASE_HASH_H */
