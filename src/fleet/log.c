/* Frames of the contest's log (K6), byte for byte those of kinds 1 and 2 that others read. */
#include <stdio.h>

#include "fleet/impl.h"

#define CLAIM_HEAD 21
#define RELEASE_HEAD 11
#define HASH_DIGITS 16

static inline uint8_t *put_u16(uint8_t *p, uint64_t n)
{
    uint16_t v = (uint16_t)n;

    memcpy(p, &v, 2); /* little-endian, as the machine is (layout.h) */
    return p + 2;
}

static inline uint8_t *put_u64(uint8_t *p, uint64_t n)
{
    memcpy(p, &n, 8);
    return p + 8;
}

static inline uint8_t *put_bytes(uint8_t *p, const void *data, size_t len)
{
    if (len > 0)
        memcpy(p, data, len);
    return p + len;
}

static bool is_hashed(size_t subject_len, size_t owner_len)
{
    return CLAIM_HEAD + subject_len + owner_len > BELAY_CONTEST_PAYLOAD_MAX;
}

uint64_t belay_contest_hash(struct belay_fleet *f, const char *label, size_t label_len)
{
    return fleet_check(f, NULL) == BELAY_OK ? fleet_hash(f->key, 0, label, label_len)
                                            : 0;
}

static void digits_of(struct belay_fleet *f, const void *label, size_t len,
                      char out[HASH_DIGITS + 1])
{
    (void)snprintf(out, HASH_DIGITS + 1, "%016llx",
                   (unsigned long long)fleet_hash(f->key, 0, label, len));
}

uint64_t claim_id_of(uint32_t node, uint64_t token)
{
    return (uint64_t)BELAY_CONTEST_RING_KIND << 56 | (uint64_t)node << 40 |
           (token & BELAY_NETID_COUNTER_MAX);
}

uint64_t log_claim(struct belay_fleet *f, const struct key *key,
                   const struct belay_contest_terms *terms, const struct tenure *who,
                   uint64_t now_ms, uint64_t expires_ms)
{
    uint8_t frame[BELAY_CONTEST_PAYLOAD_MAX + 8], *p = frame;
    char digits[2][HASH_DIGITS + 1];
    const char *subject = key->label, *owner = terms->owner;
    size_t subject_len = key->len, owner_len = terms->owner_len;
    bool hashed = is_hashed(subject_len, owner_len);

    if (UNLIKELY(hashed)) {
        digits_of(f, subject, subject_len, digits[0]);
        digits_of(f, owner, owner_len, digits[1]);
        subject = digits[0];
        owner = digits[1];
        subject_len = owner_len = HASH_DIGITS;
    }
    *p++ = key->kind;
    p = put_u16(p, subject_len);
    p = put_u16(p, owner_len);
    p = put_u64(p, now_ms);
    p = put_u64(p, expires_ms);
    p = put_bytes(p, subject, subject_len);
    p = put_bytes(p, owner, owner_len);
    struct frame_in in = {
        .id = claim_id_of(who->node, who->token),
        .ver = now_ms,
        .sig = key->hash,
        .kind = BELAY_CONTEST_FRAME_CLAIM,
        .flags = hashed ? BELAY_RING_FRAME_HASHED : 0,
        .data = frame,
        .len = (size_t)(p - frame),
    };
    return lane_publish(&f->log, &in);
}

/* RELEASE, and REVOKED with a reason behind it. */
static uint64_t log_end(struct belay_fleet *f, const struct tenure *who,
                        uint64_t now_ms, int reason)
{
    uint8_t frame[BELAY_CONTEST_PAYLOAD_MAX + 8], *p = frame;
    const struct entry *e = &f->entries[who->entry];
    uint64_t lens = atomic_load_explicit(&e->lens, memory_order_relaxed);
    size_t subject_len = lens & 0xffff, got = 0;
    bool hashed = is_hashed(subject_len, who->owner_len);

    p = put_u64(p, claim_id_of(who->node, who->token));
    *p++ = (uint8_t)(lens >> 16);
    if (UNLIKELY(hashed)) {
        uint64_t digest = atomic_load_explicit(&e->digest, memory_order_relaxed);
        char digits[HASH_DIGITS + 1];
        (void)snprintf(digits, sizeof(digits), "%016llx", (unsigned long long)digest);
        p = put_u16(p, HASH_DIGITS);
        p = put_bytes(p, digits, HASH_DIGITS);
    } else {
        p = put_u16(p, subject_len);
        if (entry_label(f, e, (char *)p, BELAY_CONTEST_PAYLOAD_MAX - CLAIM_HEAD, &got))
            p += subject_len;
        else
            (void)put_u16(p - 2, 0);
    }
    if (reason != 0)
        *p++ = (uint8_t)reason;
    struct frame_in in = {
        .ver = now_ms,
        .sig = atomic_load_explicit(&e->hash, memory_order_relaxed),
        .kind = reason != 0 ? BELAY_CONTEST_FRAME_REVOKED : BELAY_CONTEST_FRAME_RELEASE,
        .flags = hashed ? BELAY_RING_FRAME_HASHED : 0,
        .data = frame,
        .len = (size_t)(p - frame),
    };
    return lane_publish(&f->log, &in);
}

uint64_t log_release(struct belay_fleet *f, const struct tenure *who, uint64_t now_ms)
{
    uint64_t seq = log_end(f, who, now_ms, 0);

    return belay_netid_make(BELAY_CONTEST_RING_KIND, (uint16_t)f->node, seq);
}

void log_revoked(struct belay_fleet *f, const struct tenure *who, uint64_t now_ms,
                 enum belay_contest_reason reason)
{
    /* Without a token it never got as far as its CLAIM, and never will. */
    if (who->token != 0)
        (void)log_end(f, who, now_ms, (int)reason);
}

static uint16_t get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint64_t get_u64(const uint8_t *p)
{
    uint64_t n;

    memcpy(&n, p, 8);
    return n;
}

static bool decode_claim(const uint8_t *p, size_t len, struct belay_contest_frame *out)
{
    if (len < CLAIM_HEAD)
        return false;
    out->subject_kind = p[0];
    out->subject_len = get_u16(p + 1);
    out->owner_len = get_u16(p + 3);
    out->claimed_at_ms = get_u64(p + 5);
    out->expires_at_ms = get_u64(p + 13);
    out->subject = (const char *)p + CLAIM_HEAD;
    out->owner = out->subject + out->subject_len;
    return CLAIM_HEAD + out->subject_len + out->owner_len <= len;
}

static bool decode_end(const uint8_t *p, size_t len, bool is_revoked,
                       struct belay_contest_frame *out)
{
    if (len < RELEASE_HEAD)
        return false;
    out->claim_id = get_u64(p);
    out->subject_kind = p[8];
    out->subject_len = get_u16(p + 9);
    out->subject = (const char *)p + RELEASE_HEAD;
    size_t need = RELEASE_HEAD + out->subject_len + (is_revoked ? 1 : 0);
    if (need > len)
        return false;
    if (is_revoked)
        out->reason = p[need - 1];
    return true;
}

bool belay_contest_decode(uint8_t frame_kind, const void *payload, size_t len,
                          struct belay_contest_frame *out)
{
    struct belay_contest_frame frame = { .kind = frame_kind };
    bool is_one = false;

    if (frame_kind == BELAY_CONTEST_FRAME_CLAIM)
        is_one = decode_claim(payload, len, &frame);
    else if (frame_kind == BELAY_CONTEST_FRAME_RELEASE ||
             frame_kind == BELAY_CONTEST_FRAME_REVOKED)
        is_one =
            decode_end(payload, len, frame_kind == BELAY_CONTEST_FRAME_REVOKED, &frame);
    if (is_one)
        *out = frame;
    return is_one;
}
