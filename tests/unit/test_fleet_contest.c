/* What users see of a contest; time is told. */
#include "test_fleet.h"

#define PROBE 1
#define OTHER 2

static struct belay_fleet *virtual_fleet(void)
{
    struct belay_fleet_options o =
        small_fleet(BELAY_FLEET_PRIVATE | BELAY_FLEET_VIRTUAL_CLOCK);

    return must_join("contest", &o);
}

static void first_claim_is_claimed_for_subject(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_contest_claim first =
        try_at(t, f, PROBE, "origin:tcp_1", "worker:1", 30000, 1000);
    struct belay_contest_claim second =
        try_at(t, f, PROBE, "origin:tcp_1", "worker:2", 30000, 1001);

    TAP_OK(t, first.is_claimed);
    TAP_OK(t, !second.is_claimed);
    TAP_STR(t, second.holder.owner, "worker:1");
    TAP_EQ(t, second.holder.claimed_at_ms, 1000);
    TAP_EQ(t, second.holder.expires_at_ms, 31000);
    TAP_OK(t, second.holder.claim_id == first.guard.claim_id);
    TAP_OK(t, second.holder.token == first.guard.token);
    belay_fleet_leave(f);
}

static void different_subject_labels_do_not_compete(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();

    TAP_OK(t, try_at(t, f, PROBE, "origin:tcp_1", "worker:1", 30000, 1000).is_claimed);
    TAP_OK(t, try_at(t, f, PROBE, "origin:tcp_2", "worker:2", 30000, 1001).is_claimed);
    belay_fleet_leave(f);
}

static void different_subject_types_do_not_compete(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();

    TAP_OK(t, try_at(t, f, PROBE, "same-label", "worker:1", 30000, 1000).is_claimed);
    TAP_OK(t, try_at(t, f, OTHER, "same-label", "worker:2", 30000, 1001).is_claimed);
    belay_fleet_leave(f);
}

static void releasing_claim_guard_allows_next_claim(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_contest_claim first =
        try_at(t, f, PROBE, "origin:tcp_1", "worker:1", 30000, 1000);
    struct belay_contest_holder holder;
    struct belay_contest_subject subject = subject_of(PROBE, "origin:tcp_1");

    TAP_EQ(t, belay_contest_release(&first.guard, NULL, NULL), BELAY_OK);
    struct belay_contest_claim next =
        try_at(t, f, PROBE, "origin:tcp_1", "worker:2", 30000, 1100);
    TAP_OK(t, next.is_claimed);
    TAP_OK(t, next.guard.token > first.guard.token);
    TAP_EQ(t, belay_contest_holder_at(f, &subject, 1100, &holder, NULL), BELAY_OK);
    TAP_STR(t, holder.owner, "worker:2");
    belay_fleet_leave(f);
}

static void expired_claim_does_not_block_next_claim(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_contest_holder holder;
    struct belay_contest_subject subject = subject_of(PROBE, "origin:tcp_1");

    TAP_OK(t, try_at(t, f, PROBE, "origin:tcp_1", "worker:1", 5, 1000).is_claimed);
    TAP_OK(t, try_at(t, f, PROBE, "origin:tcp_1", "worker:2", 30000, 1006).is_claimed);
    TAP_EQ(t, belay_contest_holder_at(f, &subject, 1006, &holder, NULL), BELAY_OK);
    TAP_STR(t, holder.owner, "worker:2");
    belay_fleet_leave(f);
}

static void yielding_claim_releases_itself(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_contest_claim first =
        try_at(t, f, PROBE, "origin:tcp_1", "worker:1", 30000, 1000);

    TAP_OK(t, !try_at(t, f, PROBE, "origin:tcp_1", "worker:2", 30000, 1001).is_claimed);
    TAP_EQ(t, belay_contest_release(&first.guard, NULL, NULL), BELAY_OK);
    TAP_OK(t, try_at(t, f, PROBE, "origin:tcp_1", "worker:3", 30000, 1100).is_claimed);
    belay_fleet_leave(f);
}

static void the_end_is_exclusive(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();

    TAP_OK(t, try_at(t, f, PROBE, "s", "a", 10, 1000).is_claimed);
    TAP_OK(t, !try_at(t, f, PROBE, "s", "b", 10, 1009).is_claimed);
    TAP_OK(t, try_at(t, f, PROBE, "s", "b", 10, 1010).is_claimed);
    belay_fleet_leave(f);
}

static void a_ttl_of_zero_takes_nothing(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_contest_claim self = try_at(t, f, PROBE, "s", "a", 0, 1000);

    TAP_OK(t, !self.is_claimed && self.holder.is_self);
    TAP_STR(t, self.holder.owner, "a");
    TAP_OK(t, try_at(t, f, PROBE, "s", "b", 10, 1000).is_claimed);
    struct belay_contest_claim other = try_at(t, f, PROBE, "s", "a", 0, 1001);
    TAP_OK(t, !other.is_claimed && !other.holder.is_self);
    TAP_STR(t, other.holder.owner, "b");
    belay_fleet_leave(f);
}

static void renewing_moves_the_end_and_never_back(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_error err;
    struct belay_contest_claim a = try_at(t, f, PROBE, "s", "a", 100, 1000);

    TAP_EQ(t, belay_contest_renew_at(&a.guard, 100, 1050, &err), BELAY_OK);
    TAP_EQ(t, a.guard.expires_at_ms, 1150);
    TAP_EQ(t, belay_contest_renew_at(&a.guard, 1, 1060, &err), BELAY_OK);
    TAP_EQ(t, a.guard.expires_at_ms, 1150);
    TAP_OK(t, !try_at(t, f, PROBE, "s", "b", 10, 1149).is_claimed);
    TAP_EQ(t, belay_contest_renew_at(&a.guard, 100, 1150, &err), BELAY_LEASE_LOST);
    TAP_STR(t, err.reason, "expired");
    TAP_OK(t, belay_contest_is_held(&a.guard));
    TAP_OK(t, try_at(t, f, PROBE, "s", "b", 10, 1150).is_claimed);
    TAP_OK(t, !belay_contest_is_held(&a.guard));
    TAP_EQ(t, belay_contest_renew_at(&a.guard, 100, 1150, &err), BELAY_LEASE_LOST);
    TAP_STR(t, err.reason, "superseded");
    TAP_EQ(t, belay_contest_release(&a.guard, NULL, &err), BELAY_LEASE_LOST);
    belay_fleet_leave(f);
}

static void only_the_owner_guards_and_releases_a_holder(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_fleet *g = must_join_beside(f);
    struct belay_error err;
    struct belay_contest_claim a = try_at(t, f, PROBE, "s", "a", 100, 1000);
    struct belay_contest_claim again = try_at(t, f, PROBE, "s", "a", 100, 1001);
    struct belay_contest_claim b = try_at(t, g, PROBE, "s", "b", 100, 1001);
    struct belay_contest_guard guard;

    TAP_OK(t, a.is_claimed && !again.is_claimed && !b.is_claimed);
    TAP_EQ(t, belay_contest_guard_holder(g, &b.holder, &guard, &err), BELAY_LEASE_HELD);
    TAP_STR(t, err.reason, "not_owner");
    TAP_EQ(t, belay_contest_release_holder(g, &b.holder, NULL, &err), BELAY_LEASE_HELD);
    TAP_EQ(t, belay_contest_guard_holder(f, &again.holder, &guard, &err), BELAY_OK);
    TAP_OK(t, guard.token == a.guard.token && guard.claim_id == a.guard.claim_id);
    TAP_EQ(t, belay_contest_release(&guard, NULL, &err), BELAY_OK);
    TAP_EQ(t, belay_contest_release(&a.guard, NULL, &err), BELAY_LEASE_LOST);
    TAP_EQ(t, belay_contest_guard_holder(f, &again.holder, &guard, &err),
           BELAY_LEASE_LOST);
    TAP_OK(t, try_at(t, g, PROBE, "s", "b", 100, 1002).is_claimed);
    TAP_EQ(t, belay_contest_release_holder(f, &again.holder, NULL, &err),
           BELAY_LEASE_LOST);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

static void an_administrator_ends_any_tenure(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_fleet *g = must_join_beside(f);
    struct belay_error err;
    struct belay_contest_claim a = try_at(t, f, PROBE, "s", "a", 100, 1000);
    struct belay_contest_claim b = try_at(t, g, PROBE, "s", "b", 100, 1001);

    TAP_EQ(t, belay_contest_force_release(g, &b.holder, &err), BELAY_OK);
    TAP_EQ(t, belay_contest_force_release(g, &b.holder, &err), BELAY_LEASE_LOST);
    TAP_EQ(t, belay_contest_renew_at(&a.guard, 100, 1002, &err), BELAY_LEASE_LOST);
    TAP_EQ(t, belay_contest_release(&a.guard, NULL, &err), BELAY_LEASE_LOST);
    TAP_OK(t, try_at(t, g, PROBE, "s", "b", 100, 1003).is_claimed);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

static void a_reset_frees_all_and_rewinds_no_token(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_error err;
    struct belay_contest_claim a = try_at(t, f, PROBE, "s", "a", 100, 1000);

    TAP_EQ(t, belay_fleet_reset(f, &err), BELAY_OK);
    TAP_EQ(t, belay_contest_release(&a.guard, NULL, &err), BELAY_LEASE_LOST);
    struct belay_contest_claim b = try_at(t, f, PROBE, "s", "b", 100, 1001);
    TAP_OK(t, b.is_claimed && b.guard.token > a.guard.token);
    TAP_EQ(t, belay_contest_release(&a.guard, NULL, &err), BELAY_LEASE_LOST);
    TAP_OK(t, belay_contest_is_held(&b.guard));
    struct belay_fleet_status status = { .size = sizeof(status) };
    TAP_EQ(t, belay_fleet_status(f, &status, &err), BELAY_OK);
    TAP_EQ(t, status.epoch, 2);
    belay_fleet_leave(f);
}

static void tokens_of_a_later_segment_are_higher(struct tap *t)
{
    struct belay_fleet_options o =
        small_fleet(BELAY_FLEET_PRIVATE | BELAY_FLEET_VIRTUAL_CLOCK);
    uint64_t last = 0;

    for (int i = 0; i < 3; i++) {
        struct belay_fleet *f = must_join("contest", &o);
        for (int n = 0; n < 100; n++) {
            struct belay_contest_claim c = try_at(t, f, PROBE, "s", "a", 100, 1000);
            TAP_OK(t, c.guard.token > last);
            last = c.guard.token;
            TAP_EQ(t, belay_contest_release(&c.guard, NULL, NULL), BELAY_OK);
        }
        belay_fleet_leave(f);
    }
    o.token_floor = last + (UINT64_C(1) << 62);
    struct belay_fleet *f = must_join("contest", &o);
    TAP_OK(t, try_at(t, f, PROBE, "s", "a", 100, 1000).guard.token > o.token_floor);
    belay_fleet_leave(f);
}

static void clocks_are_not_mixed(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *g = must_join("real", &o);
    struct belay_contest_subject subject = subject_of(PROBE, "s");
    struct belay_contest_terms terms = terms_of("a", 10);
    struct belay_contest_claim claim;
    struct belay_error err;

    TAP_EQ(t, belay_contest_try(f, &subject, &terms, &claim, &err), BELAY_MISUSE);
    TAP_STR(t, err.reason, "virtual_clock");
    TAP_EQ(t, belay_contest_try_at(g, &subject, &terms, 1, &claim, &err), BELAY_MISUSE);
    belay_fleet_leave(f);
    belay_fleet_leave(g);
}

static void impossible_terms_are_refused(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    static char label[70000];
    struct belay_contest_subject subject = { .label = label, .label_len = 65536 };
    struct belay_contest_terms terms = terms_of("a", 10);
    struct belay_contest_claim claim;
    struct belay_error err;

    TAP_EQ(t, belay_contest_try_at(f, &subject, &terms, 1, &claim, &err),
           BELAY_INVALID);
    TAP_STR(t, err.reason, "contest_frame_too_large");
    TAP_EQ(t, err.expected, 65535);
    TAP_EQ(t, err.actual, 65537);
    subject.label_len = 1;
    terms.ttl_ms = -1;
    TAP_EQ(t, belay_contest_try_at(f, &subject, &terms, 1, &claim, &err),
           BELAY_INVALID);
    terms.ttl_ms = 86400001;
    TAP_EQ(t, belay_contest_try_at(f, &subject, &terms, 1, &claim, &err),
           BELAY_INVALID);
    TAP_STR(t, err.reason, "ttl");
    terms.ttl_ms = BELAY_CONTEST_FOREVER;
    TAP_EQ(t, belay_contest_try_at(f, &subject, &terms, 1, &claim, &err), BELAY_OK);
    TAP_OK(t, claim.is_claimed && claim.guard.expires_at_ms == INT64_MAX);
    terms.ttl_ms = 1;
    TAP_EQ(t, belay_contest_try_at(f, &subject, &terms, INT64_MAX, &claim, &err),
           BELAY_OK);
    TAP_OK(t, !claim.is_claimed);
    belay_fleet_leave(f);
}

/* The labels of 235 bytes together that a frame can carry, and the longest there are. */
static void long_labels_are_labels(struct tap *t)
{
    struct belay_fleet_options o =
        small_fleet(BELAY_FLEET_PRIVATE | BELAY_FLEET_VIRTUAL_CLOCK);
    static const size_t lens[] = {
        0, 1, 7, 8, 9, 191, 192, 193, 235, 236, 1024, 65535
    };
    static char label[65535], owner[65535], got[65535];
    struct belay_error err;

    for (size_t i = 0; i < sizeof(label); i++) {
        label[i] = (char)(i * 7 + i / 251);
        owner[i] = (char)(i * 5 + i / 13);
    }
    o.arena_len = 1 << 20;
    struct belay_fleet *f = must_join("contest", &o);
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        for (size_t j = 0; j < sizeof(lens) / sizeof(lens[0]); j++) {
            struct belay_contest_subject s = { .label = label, .label_len = lens[i] };
            struct belay_contest_terms terms = { owner, lens[j], 1000 };
            struct belay_contest_claim a, b;
            size_t len = 0;
            if (!TAP_EQ(t, belay_contest_try_at(f, &s, &terms, 1, &a, &err),
                        BELAY_OK) ||
                !TAP_OK(t, a.is_claimed))
                continue;
            TAP_EQ(t, belay_contest_try_at(f, &s, &terms, 1, &b, &err), BELAY_OK);
            TAP_OK(t, !b.is_claimed && b.holder.owner_len == lens[j]);
            TAP_EQ(t, belay_contest_owner(f, &b.holder, got, sizeof(got), &len, &err),
                   BELAY_OK);
            TAP_OK(t, len == lens[j] && memcmp(got, owner, len) == 0);
            TAP_EQ(t, belay_contest_release(&a.guard, NULL, &err), BELAY_OK);
        }
    }
    belay_fleet_leave(f);
}

static void a_table_that_is_full_forgets_what_nobody_holds(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet(); /* 64 subjects */
    struct belay_contest_claim held = try_at(t, f, PROBE, "held", "a", 1000, 1);
    char label[32];

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(label, sizeof(label), "subject %d", i);
        struct belay_contest_claim c = try_at(t, f, PROBE, label, "a", 1000, 1);
        if (!TAP_OK(t, c.is_claimed))
            break;
        TAP_EQ(t, belay_contest_release(&c.guard, NULL, NULL), BELAY_OK);
        TAP_OK(t, !try_at(t, f, PROBE, "held", "b", 1000, 1).is_claimed);
    }
    TAP_EQ(t, belay_contest_release(&held.guard, NULL, NULL), BELAY_OK);
    belay_fleet_leave(f);
}

static void more_than_there_is_room_for_is_an_error(struct tap *t)
{
    struct belay_fleet_options o =
        small_fleet(BELAY_FLEET_PRIVATE | BELAY_FLEET_VIRTUAL_CLOCK);
    struct belay_error err;
    char label[32];
    int n = 0;

    o.subjects = 8;
    struct belay_fleet *f = must_join("contest", &o);
    struct belay_contest_terms terms = terms_of("a", 1000);
    struct belay_contest_claim claim;
    belay_rc rc = BELAY_OK;
    for (; rc == BELAY_OK && n < 100; n++) {
        (void)snprintf(label, sizeof(label), "subject %d", n);
        struct belay_contest_subject s = subject_of(PROBE, label);
        rc = belay_contest_try_at(f, &s, &terms, 1, &claim, &err);
    }
    TAP_EQ(t, rc, BELAY_NO_MEMORY);
    TAP_STR(t, err.reason, "table_full");
    TAP_EQ(t, n, 9);
    belay_fleet_leave(f);

    o.subjects = 64;
    f = must_join("contest", &o);
    for (n = 0, rc = BELAY_OK; rc == BELAY_OK && n < 100; n++) {
        (void)snprintf(label, sizeof(label), "subject %d", n);
        struct belay_contest_subject s = subject_of(PROBE, label);
        rc = belay_contest_try_at(f, &s, &terms, 1, &claim, &err);
    }
    TAP_EQ(t, rc, BELAY_NO_MEMORY);
    TAP_STR(t, err.reason, "holds");
    TAP_EQ(t, n, 17);
    /* What was lost and never released is room again. */
    struct belay_fleet *g = must_join_beside(f);
    TAP_OK(t, try_at(t, g, PROBE, "subject 3", "b", 1000, 5000).is_claimed);
    TAP_OK(t, try_at(t, f, PROBE, "another", "a", 1000, 5000).is_claimed);
    belay_fleet_leave(g);
    belay_fleet_leave(f);
}

static void subjects_can_be_looked_up_once(struct tap *t)
{
    struct belay_fleet_options o = small_fleet(BELAY_FLEET_PRIVATE);
    struct belay_fleet *f = must_join("contest", &o);
    struct belay_contest_subject s = subject_of(PROBE, "interned");
    struct belay_contest_terms terms = terms_of("a", 1000);
    struct belay_contest_ref ref;
    struct belay_contest_claim claim;
    char label[32];

    TAP_EQ(t, belay_contest_intern(f, &s, &ref, NULL), BELAY_OK);
    TAP_EQ(t, belay_contest_try_ref(f, &ref, &terms, &claim, NULL), BELAY_OK);
    TAP_OK(t, claim.is_claimed);
    TAP_OK(t, !try_now(t, f, "interned", "b", 1000).is_claimed);
    TAP_EQ(t, belay_contest_release(&claim.guard, NULL, NULL), BELAY_OK);
    /* Its entry becomes another subject's; the reference still means the same. */
    for (int i = 0; i < 200; i++) {
        (void)snprintf(label, sizeof(label), "subject %d", i);
        struct belay_contest_claim c = try_now(t, f, label, "a", 1000);
        TAP_EQ(t, belay_contest_release(&c.guard, NULL, NULL), BELAY_OK);
    }
    TAP_EQ(t, belay_contest_try_ref(f, &ref, &terms, &claim, NULL), BELAY_OK);
    TAP_OK(t, claim.is_claimed);
    TAP_OK(t, !try_now(t, f, "interned", "b", 1000).is_claimed);
    belay_fleet_leave(f);
}

static void subjects_are_listed(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_contest_entry page[3];
    uint64_t cursor = 0;
    size_t n = 0, total = 0, held = 0;
    char label[32];

    for (int i = 0; i < 10; i++) {
        (void)snprintf(label, sizeof(label), "subject %d", i);
        struct belay_contest_claim c = try_at(t, f, PROBE, label, "a", 1000, 1);
        if (i % 2 == 0)
            TAP_EQ(t, belay_contest_release(&c.guard, NULL, NULL), BELAY_OK);
    }
    do {
        TAP_EQ(t, belay_contest_list(f, &cursor, page, 3, &n, NULL), BELAY_OK);
        for (size_t i = 0; i < n; i++) {
            bool is_odd = (page[i].label[strlen(page[i].label) - 1] - '0') % 2 == 1;
            TAP_OK(t, page[i].is_held == is_odd);
            held += page[i].is_held;
        }
        total += n;
    } while (cursor != 0);
    TAP_EQ(t, total, 10);
    TAP_EQ(t, held, 5);
    belay_fleet_leave(f);
}

static void a_fence_admits_no_lower_token(struct tap *t)
{
    uint64_t high = 0;

    TAP_OK(t, belay_fence_admit(&high, 5));
    TAP_OK(t, belay_fence_admit(&high, 5));
    TAP_OK(t, !belay_fence_admit(&high, 4));
    TAP_OK(t, belay_fence_admit(&high, 6));
    TAP_EQ(t, high, 6);
}

/* Guards are values: an old one must not touch the tenure that has its record now. */
static void a_guard_released_twice_harms_nobody(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_contest_claim old = try_at(t, f, PROBE, "a", "old", 1000, 1);

    TAP_EQ(t, belay_contest_release(&old.guard, NULL, NULL), BELAY_OK);
    struct belay_contest_claim now = try_at(t, f, PROBE, "b", "now", 1000, 1);
    TAP_OK(t, now.guard.word == old.guard.word && now.guard.entry != old.guard.entry);
    TAP_EQ(t, belay_contest_release(&old.guard, NULL, NULL), BELAY_LEASE_LOST);
    TAP_OK(t, try_at(t, f, PROBE, "c", "later", 1000, 1).is_claimed);
    struct belay_contest_claim y = try_at(t, f, PROBE, "b", "x", 1000, 2);
    TAP_OK(t, !y.is_claimed && y.holder.token == now.guard.token);
    TAP_STR(t, y.holder.owner, "now");
    belay_fleet_leave(f);
}

static void leaving_releases_what_is_held(struct tap *t)
{
    struct belay_fleet *f = virtual_fleet();
    struct belay_fleet *g = must_join_beside(f);

    TAP_OK(t, try_at(t, g, PROBE, "s", "b", 1000, 1).is_claimed);
    TAP_OK(t, !try_at(t, f, PROBE, "s", "a", 1000, 1).is_claimed);
    belay_fleet_leave(g);
    TAP_OK(t, try_at(t, f, PROBE, "s", "a", 1000, 1).is_claimed);
    belay_fleet_leave(f);
}

int main(int argc, char **argv)
{
    static const struct tap_case cases[] = {
        { "first_claim_is_claimed_for_subject", first_claim_is_claimed_for_subject },
        { "different_subject_labels_do_not_compete",
          different_subject_labels_do_not_compete },
        { "different_subject_types_do_not_compete",
          different_subject_types_do_not_compete },
        { "releasing_claim_guard_allows_next_claim",
          releasing_claim_guard_allows_next_claim },
        { "expired_claim_does_not_block_next_claim",
          expired_claim_does_not_block_next_claim },
        { "yielding_claim_releases_itself", yielding_claim_releases_itself },
        { "a claim is over at its end exactly", the_end_is_exclusive },
        { "a ttl of zero takes nothing and says who holds",
          a_ttl_of_zero_takes_nothing },
        { "renewing moves the end, and never back",
          renewing_moves_the_end_and_never_back },
        { "only the owner guards and releases a holder",
          only_the_owner_guards_and_releases_a_holder },
        { "an administrator ends any tenure", an_administrator_ends_any_tenure },
        { "a reset frees all and rewinds no token",
          a_reset_frees_all_and_rewinds_no_token },
        { "tokens of a later segment are higher",
          tokens_of_a_later_segment_are_higher },
        { "clocks are not mixed", clocks_are_not_mixed },
        { "impossible terms are refused", impossible_terms_are_refused },
        { "long labels are labels", long_labels_are_labels },
        { "a table that is full forgets what nobody holds",
          a_table_that_is_full_forgets_what_nobody_holds },
        { "more than there is room for is an error",
          more_than_there_is_room_for_is_an_error },
        { "subjects can be looked up once", subjects_can_be_looked_up_once },
        { "subjects are listed", subjects_are_listed },
        { "a fence admits no lower token", a_fence_admits_no_lower_token },
        { "a guard released twice harms nobody", a_guard_released_twice_harms_nobody },
        { "leaving releases what is held", leaving_releases_what_is_held },
    };

    return tap_main(cases, sizeof(cases) / sizeof(cases[0]), NULL, argc, argv);
}
