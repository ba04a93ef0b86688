/* Frames of the contest's log (K6), byte for byte those of kinds 1 and 2 that others read. */
#include <stdio.h>

#include "fleet/lane.h"

#define CLAIM_HEAD 21
#define RELEASE_HEAD 11
#define HASH_DIGITS 16

/* A frame is put together in a register and leaves it by whole words, straight into its slot:
 * bytes written one by one and read back as words would cost more than all the rest. */
struct packer {
    au64 *to;
    uint64_t last; /* `fill` bytes (0 to 7) of the next word */
    uint32_t fill;
};

static inline void put(struct packer *p, uint64_t word)
{
    atomic_store_explicit(p->to++, word, memory_order_relaxed);
}

/* Eight bytes: what is in the register stays as full as it was. */
static inline void pack_word(struct packer *p, uint64_t word)
{
    uint32_t shift = 8 * p->fill;

    put(p, p->last | word << shift);
    p->last = word >> 1 >> (63 - shift); /* by 64 when the register was empty */
}

/* The low `len` (1 to 7) bytes of a word whose other bytes are zero. */
static inline void pack_tail(struct packer *p, uint64_t word, uint32_t len)
{
    uint32_t shift = 8 * p->fill;

    p->last |= word << shift;
    p->fill += len;
    if (p->fill >= 8) {
        put(p, p->last);
        p->last = word >> 1 >> (63 - shift);
        p->fill -= 8;
    }
}

static inline void pack_bytes(struct packer *p, const void *data, size_t len)
{
    const uint8_t *at = data;
    uint64_t word;

    for (; len >= 8; len -= 8, at += 8) {
        memcpy(&word, at, 8);
        pack_word(p, word);
    }
    if (len > 0)
        pack_tail(p, tail_word(at, len), (uint32_t)len);
}

/* Bytes that lie in shared words. */
static inline void pack_words(struct packer *p, const au64 *from, size_t len)
{
    for (; len >= 8; len -= 8)
        pack_word(p, atomic_load_explicit(from++, memory_order_relaxed));
    if (len > 0) {
        uint64_t word = atomic_load_explicit(from, memory_order_relaxed);
        pack_tail(p, word & ((UINT64_C(1) << (8 * len)) - 1), (uint32_t)len);
    }
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

/* Who sleeps until something is logged marks the word, and looks at the log again before it
 * sleeps: it has seen the frame, or we see its mark.  The word is on the line of the order's
 * head, which was just changed. */
void log_tell(struct belay_fleet *f)
{
    au32 *word = &f->log.shared->followers;

    if (UNLIKELY((atomic_load_explicit(word, memory_order_seq_cst) & WORD_SLEEPERS) !=
                 0))
        word_post(word);
}

static inline uint64_t log_commit(struct belay_fleet *f, struct slot *slot)
{
    uint64_t seq = lane_commit(&f->log, slot);

    log_tell(f);
    return seq;
}

static inline uint64_t write_claim(struct belay_fleet *f, const struct key *key,
                                   const struct belay_contest_terms *terms,
                                   const struct tenure *who, uint64_t now_ms,
                                   uint64_t expires_ms, uint8_t flags)
{
    struct frame_in in = {
        .id = claim_id_of(who->node, who->token),
        .ver = now_ms,
        .sig = key->hash,
        .kind = BELAY_CONTEST_FRAME_CLAIM,
        .flags = flags,
        .len = CLAIM_HEAD + key->len + terms->owner_len,
    };
    struct slot *slot = lane_begin(&f->log, &in, in.flags);
    struct packer p = { .to = slot->data };

    pack_tail(
        &p, key->kind | (uint64_t)key->len << 8 | (uint64_t)terms->owner_len << 24, 5);
    pack_word(&p, now_ms);
    pack_word(&p, expires_ms);
    pack_bytes(&p, key->label, key->len);
    pack_bytes(&p, terms->owner, terms->owner_len);
    put(&p, p.last);
    return log_commit(f, slot);
}

/* Labels that do not fit. */
static __attribute__((noinline)) uint64_t
claim_hashed(struct belay_fleet *f, const struct key *key,
             const struct belay_contest_terms *terms, const struct tenure *who,
             uint64_t now_ms, uint64_t expires_ms)
{
    char subject[HASH_DIGITS + 1], owner[HASH_DIGITS + 1];
    struct key short_key = { subject, HASH_DIGITS, key->kind, key->hash };
    struct belay_contest_terms short_terms = { owner, HASH_DIGITS, terms->ttl_ms };

    digits_of(f, key->label, key->len, subject);
    digits_of(f, terms->owner, terms->owner_len, owner);
    return write_claim(f, &short_key, &short_terms, who, now_ms, expires_ms,
                       BELAY_RING_FRAME_HASHED);
}

uint64_t log_claim(struct belay_fleet *f, const struct key *key,
                   const struct belay_contest_terms *terms, const struct tenure *who,
                   uint64_t now_ms, uint64_t expires_ms)
{
    if (UNLIKELY(is_hashed(key->len, terms->owner_len)))
        return claim_hashed(f, key, terms, who, now_ms, expires_ms);
    return write_claim(f, key, terms, who, now_ms, expires_ms, 0);
}

/* RELEASE, and REVOKED with a reason behind it. */
static inline uint64_t write_end(struct belay_fleet *f, const struct tenure *who,
                                 uint64_t now_ms, uint32_t reason, const au64 *subject,
                                 size_t len, uint8_t flags)
{
    const struct entry *e = &f->entries[who->entry];
    uint64_t lens = atomic_load_explicit(&e->lens, memory_order_relaxed);
    struct frame_in in = {
        .ver = now_ms,
        .sig = atomic_load_explicit(&e->hash, memory_order_relaxed),
        .kind = reason != 0 ? BELAY_CONTEST_FRAME_REVOKED : BELAY_CONTEST_FRAME_RELEASE,
        .flags = flags,
        .len = RELEASE_HEAD + len + (reason != 0 ? 1 : 0),
    };
    struct slot *slot = lane_begin(&f->log, &in, in.flags);
    struct packer p = { .to = slot->data };

    pack_word(&p, claim_id_of(who->node, who->token));
    pack_tail(&p, (lens >> 16 & 0xff) | (uint64_t)len << 8, 3);
    pack_words(&p, subject, len);
    if (reason != 0)
        pack_tail(&p, reason, 1);
    put(&p, p.last);
    return log_commit(f, slot);
}

/* A subject that is not in its entry or does not fit into a frame. */
static __attribute__((noinline)) uint64_t end_long(struct belay_fleet *f,
                                                   const struct tenure *who,
                                                   uint64_t now_ms, uint32_t reason,
                                                   size_t len)
{
    const struct entry *e = &f->entries[who->entry];
    const au64 *text;
    au64 words[HASH_DIGITS / 8];
    char digits[HASH_DIGITS + 1];

    if (is_hashed(len, who->owner_len)) {
        uint64_t digest = atomic_load_explicit(&e->digest, memory_order_relaxed);
        (void)snprintf(digits, sizeof(digits), "%016llx", (unsigned long long)digest);
        words_store(words, digits, HASH_DIGITS);
        return write_end(f, who, now_ms, reason, words, HASH_DIGITS,
                         BELAY_RING_FRAME_HASHED);
    }
    text = arena_at(f, atomic_load_explicit(&e->ref, memory_order_relaxed), len);
    return write_end(f, who, now_ms, reason, text, text ? len : 0, 0); /* or damaged */
}

static uint64_t log_end(struct belay_fleet *f, const struct tenure *who,
                        uint64_t now_ms, uint32_t reason)
{
    const struct entry *e = &f->entries[who->entry];
    size_t len = atomic_load_explicit(&e->lens, memory_order_relaxed) & 0xffff;

    if (UNLIKELY(len > TEXT_INLINE || is_hashed(len, who->owner_len)))
        return end_long(f, who, now_ms, reason, len);
    return write_end(f, who, now_ms, reason, e->text, len, 0);
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
        (void)log_end(f, who, now_ms, (uint32_t)reason);
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
