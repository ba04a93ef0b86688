#include "seedmodel.h"

#include <stdlib.h>
#include <string.h>

#define CLAIM_HEADER 21
#define RELEASE_HEADER 11

bool seed_open(struct seed_ring *r, uint64_t capacity)
{
    if (capacity == 0 || (capacity & (capacity - 1)) != 0)
        return false;
    *r = (struct seed_ring){ .capacity = capacity };
    r->slots = calloc(capacity, sizeof(*r->slots));
    r->active = calloc(capacity, sizeof(*r->active));
    if (r->slots && r->active)
        return true;
    seed_close(r);
    return false;
}

void seed_close(struct seed_ring *r)
{
    free(r->slots);
    free(r->active);
    *r = (struct seed_ring){ .slots = NULL };
}

void seed_reset(struct seed_ring *r)
{
    memset(r->slots, 0, r->capacity * sizeof(*r->slots));
    r->head = 0;
}

uint64_t seed_id(uint16_t node, uint64_t counter)
{
    return (uint64_t)SEED_CONTEST_KIND << 56 | (uint64_t)node << SEED_COUNTER_BITS |
           (counter & SEED_COUNTER_MASK);
}

static struct seed_slot *slot_of(const struct seed_ring *r, uint64_t counter)
{
    return &r->slots[counter & (r->capacity - 1)];
}

uint64_t seed_reserve(struct seed_ring *r)
{
    uint64_t counter = r->head++;

    slot_of(r, counter)->seq = 2 * counter + 1;
    return counter;
}

void seed_fill(struct seed_ring *r, uint64_t counter, const struct seed_frame *f)
{
    struct seed_slot *s = slot_of(r, counter);

    s->id = seed_id(f->node, counter);
    s->kind = f->kind;
    s->ver = f->ver;
    s->len = f->len;
    memcpy(s->payload, f->payload, f->len);
}

void seed_commit(struct seed_ring *r, uint64_t counter)
{
    slot_of(r, counter)->seq = 2 * counter + 2;
}

uint64_t seed_publish(struct seed_ring *r, const struct seed_frame *f)
{
    uint64_t counter = seed_reserve(r);

    seed_fill(r, counter, f);
    seed_commit(r, counter);
    return counter;
}

const struct seed_slot *seed_read_slot(const struct seed_ring *r, uint64_t counter)
{
    const struct seed_slot *s = slot_of(r, counter);

    return s->seq == 0 || s->seq % 2 ? NULL : s;
}

const struct seed_slot *seed_read_head(const struct seed_ring *r)
{
    return r->head == 0 ? NULL : seed_read_slot(r, r->head - 1);
}

struct seed_walk seed_walk_from(const struct seed_ring *r, uint64_t from)
{
    struct seed_walk w = { .next = from, .end = r->head };
    uint64_t floor = r->head > r->capacity ? r->head - r->capacity : 0;

    if (w.next > w.end)
        w.next = w.end;
    if (w.next < floor) {
        w.overwritten = floor - w.next;
        w.next = floor;
    }
    return w;
}

const struct seed_slot *seed_walk_next(const struct seed_ring *r, struct seed_walk *w)
{
    for (; w->next < w->end; w->unavailable++) {
        uint64_t counter = w->next++;
        const struct seed_slot *s = seed_read_slot(r, counter);

        /* The id has 40 bits of the counter, the cursor all 64. */
        if (s && (s->id & SEED_COUNTER_MASK) == counter)
            return s;
    }
    return NULL;
}

static void put_le(uint8_t *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_le(const uint8_t *in, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)in[i] << (8 * i);
    return value;
}

/* CLAIM: subject kind 1, subject length 2, owner length 2, claimed at 8, expires at 8,
 * subject, owner. */
static bool encode_claim(struct seed_frame *f, struct seed_subject subject,
                         const char *owner, uint64_t now_ms, uint64_t expires_at_ms)
{
    size_t subject_len = strlen(subject.label), owner_len = strlen(owner);

    if (CLAIM_HEADER + subject_len + owner_len > SEED_PAYLOAD_MAX)
        return false;
    f->kind = SEED_CLAIM;
    f->payload[0] = subject.kind;
    put_le(f->payload + 1, subject_len, 2);
    put_le(f->payload + 3, owner_len, 2);
    put_le(f->payload + 5, now_ms, 8);
    put_le(f->payload + 13, expires_at_ms, 8);
    memcpy(f->payload + CLAIM_HEADER, subject.label, subject_len);
    memcpy(f->payload + CLAIM_HEADER + subject_len, owner, owner_len);
    f->len = (uint32_t)(CLAIM_HEADER + subject_len + owner_len);
    return true;
}

/* RELEASE: claim id 8, subject kind 1, subject length 2, subject. */
static bool encode_release(struct seed_frame *f, struct seed_subject subject,
                           uint64_t claim_id)
{
    size_t subject_len = strlen(subject.label);

    if (RELEASE_HEADER + subject_len > SEED_PAYLOAD_MAX)
        return false;
    f->kind = SEED_RELEASE;
    put_le(f->payload, claim_id, 8);
    f->payload[8] = subject.kind;
    put_le(f->payload + 9, subject_len, 2);
    memcpy(f->payload + RELEASE_HEADER, subject.label, subject_len);
    f->len = (uint32_t)(RELEASE_HEADER + subject_len);
    return true;
}

/* Whether the frame speaks of the subject; header is where its label begins. */
static bool names(const struct seed_slot *s, unsigned kind_at, unsigned header,
                  struct seed_subject subject)
{
    size_t len = strlen(subject.label);

    return s->len >= header && s->payload[kind_at] == subject.kind &&
           get_le(s->payload + kind_at + 1, 2) == len && header + len <= s->len &&
           memcmp(s->payload + header, subject.label, len) == 0;
}

static void read_claim(const struct seed_slot *s, struct seed_subject subject,
                       struct seed_holder *out)
{
    size_t subject_len = get_le(s->payload + 1, 2),
           owner_len = get_le(s->payload + 3, 2);

    if (owner_len > s->len - CLAIM_HEADER - subject_len)
        owner_len = s->len - CLAIM_HEADER - subject_len;
    out->claim_id = s->id;
    out->subject = subject;
    out->claimed_at_ms = get_le(s->payload + 5, 8);
    out->expires_at_ms = get_le(s->payload + 13, 8);
    memcpy(out->owner, s->payload + CLAIM_HEADER + subject_len, owner_len);
    out->owner[owner_len] = '\0';
}

/* Active claims in the order of the ring; a release takes its own out. */
static size_t collect(struct seed_ring *r, struct seed_subject subject, uint64_t now_ms,
                      struct seed_walk *w)
{
    const struct seed_slot *s;
    size_t n = 0;

    while ((s = seed_walk_next(r, w)) != NULL) {
        if (s->kind == SEED_CLAIM && names(s, 0, CLAIM_HEADER, subject) &&
            get_le(s->payload + 13, 8) > now_ms) {
            r->active[n++] = s->id & SEED_COUNTER_MASK;
        } else if (s->kind == SEED_RELEASE && names(s, 8, RELEASE_HEADER, subject)) {
            uint64_t gone = get_le(s->payload, 8) & SEED_COUNTER_MASK;
            size_t i = n;

            while (i > 0 && r->active[i - 1] != gone)
                i--;
            if (i > 0) {
                memmove(&r->active[i - 1], &r->active[i], (n - i) * sizeof(*r->active));
                n--;
            }
        }
    }
    return n;
}

static bool earliest(struct seed_ring *r, struct seed_subject subject, uint64_t now_ms,
                     struct seed_walk *w, struct seed_holder *out)
{
    if (collect(r, subject, now_ms, w) == 0)
        return false;
    read_claim(slot_of(r, r->active[0]), subject, out);
    return true;
}

bool seed_active_holder(struct seed_ring *r, struct seed_subject subject,
                        uint64_t now_ms, struct seed_holder *out)
{
    struct seed_walk w = seed_walk_from(r, 0);

    return earliest(r, subject, now_ms, &w, out);
}

bool seed_attempt_init(struct seed_attempt *a, uint16_t node,
                       struct seed_subject subject, const char *owner, uint64_t ttl_ms,
                       uint64_t now_ms)
{
    a->subject = subject;
    a->owner = owner;
    a->now_ms = now_ms;
    a->expires_at_ms = ttl_ms > UINT64_MAX - now_ms ? UINT64_MAX : now_ms + ttl_ms;
    a->counter = UINT64_MAX;
    a->frame.node = node;
    a->frame.ver = now_ms;
    return encode_claim(&a->frame, subject, owner, now_ms, a->expires_at_ms);
}

void seed_attempt_publish(struct seed_ring *r, struct seed_attempt *a)
{
    a->counter = seed_publish(r, &a->frame);
}

static bool release_id(struct seed_ring *r, struct seed_subject subject,
                       uint64_t claim_id, uint64_t now_ms)
{
    struct seed_frame f;

    f.node = 0;
    f.ver = now_ms;
    if (!encode_release(&f, subject, claim_id))
        return false;
    (void)seed_publish(r, &f);
    return true;
}

void seed_attempt_withdraw(struct seed_ring *r, const struct seed_attempt *a)
{
    (void)release_id(r, a->subject, seed_id(a->frame.node, a->counter), a->now_ms);
}

/* What the walk found, as an answer: nothing at all is a yield to oneself, and then
 * nothing is taken back. */
static enum seed_answer answer(const struct seed_attempt *a, bool found,
                               struct seed_holder *out)
{
    if (!found) {
        out->claim_id = seed_id(a->frame.node, a->counter);
        out->subject = a->subject;
        out->claimed_at_ms = a->now_ms;
        out->expires_at_ms = a->expires_at_ms;
        strncpy(out->owner, a->owner, sizeof(out->owner) - 1);
        out->owner[sizeof(out->owner) - 1] = '\0';
        return SEED_YIELD;
    }
    bool own = (out->claim_id & SEED_COUNTER_MASK) == (a->counter & SEED_COUNTER_MASK);
    return own ? SEED_CLAIMED : SEED_YIELD;
}

static enum seed_answer decide(struct seed_ring *r, const struct seed_attempt *a,
                               bool found, struct seed_holder *out)
{
    enum seed_answer got = answer(a, found, out);

    if (found && got == SEED_YIELD)
        seed_attempt_withdraw(r, a);
    return got;
}

enum seed_answer seed_attempt_look(struct seed_ring *r, const struct seed_attempt *a,
                                   struct seed_holder *out)
{
    return answer(a, seed_active_holder(r, a->subject, a->now_ms, out), out);
}

enum seed_answer seed_attempt_decide(struct seed_ring *r, const struct seed_attempt *a,
                                     struct seed_holder *out)
{
    return decide(r, a, seed_active_holder(r, a->subject, a->now_ms, out), out);
}

enum seed_answer seed_attempt_decide_stopping(struct seed_ring *r,
                                              const struct seed_attempt *a,
                                              struct seed_holder *out)
{
    struct seed_walk w = seed_walk_from(r, 0);

    for (uint64_t c = w.next; c < w.end; c++) {
        if (slot_of(r, c)->seq < 2 * c + 2)
            w.end = c;
    }
    return decide(r, a, earliest(r, a->subject, a->now_ms, &w, out), out);
}

enum seed_answer seed_claim(struct seed_ring *r, struct seed_subject subject,
                            const char *owner, uint64_t ttl_ms, uint64_t now_ms,
                            struct seed_holder *out)
{
    struct seed_attempt a;

    if (!seed_attempt_init(&a, 0, subject, owner, ttl_ms, now_ms))
        return SEED_TOO_LARGE;
    seed_attempt_publish(r, &a);
    return seed_attempt_decide(r, &a, out);
}

bool seed_release_holder(struct seed_ring *r, const struct seed_holder *h,
                         uint64_t now_ms)
{
    return release_id(r, h->subject, h->claim_id, now_ms);
}
