/* Leases of processes: granting, renewing, giving back, and a lease as text. */
#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"
#include "work/epoch.h"
#include "work/exec_show.h"
#include "work/process_rows.h"

/* --- granting --- */

struct leasing {
    struct bytes id;
    int64_t lease_ms;
    struct lease_holder holder;
    struct host *host;
    char lease_id[LEASE_ID_HEX + 1];
    const struct belay_process_lease *out;
};

/* The seed's derivation: SHA-256 of <process>:<owner>:<now>:<fence>. */
static belay_rc make_token(struct txn *t, const struct leasing *l,
                           const struct lease_grant *g, char out[SHA256_HEX_LEN + 1])
{
    CLEANUP(buf_release) struct buf text = { 0 };
    uint8_t digest[SHA256_LEN];

    buf_append(&text, l->id);
    buf_append_char(&text, ':');
    buf_append(&text, l->holder.owner);
    buf_append_char(&text, ':');
    buf_append_i64(&text, g->claimed_at_ms);
    buf_append_char(&text, ':');
    buf_append_i64(&text, g->fence);
    if (text.failed)
        return err_no_memory(txn_error(t), "a lease");
    belay_rc rc = sha256(buf_view(&text), digest, txn_error(t));
    if (rc == BELAY_OK)
        hex_encode(bytes_of(digest, sizeof(digest)), out);
    return rc;
}

/* Fences of whoever had the id before are below the floor (P7).  It is read after the row:
 * while that stands, nothing that was removed before it came is missing in it. */
static belay_rc next_fence(struct txn *t, const struct proc *p, int64_t epoch,
                           int64_t *out)
{
    const struct row *floor = NULL;
    belay_rc rc = BELAY_OK;

    if (p->lease.fence == 0)
        rc = txn_get(t, &row_fence_floor, NULL, &floor);
    if (rc)
        return rc;
    return lease_next_fence(t, p->lease.fence,
                            floor ? row_i64(floor, FENCE_FLOOR_FLOOR, 0) : 0, epoch,
                            out);
}

static belay_rc tell_lease(struct txn *t, const struct leasing *l,
                           const struct lease_grant *g,
                           const struct belay_process_lease **out)
{
    struct belay_arena *a = txn_arena(t);
    struct belay_process_lease *lease = arena_zalloc(a, 1, sizeof(*lease));

    if (!lease || !show_text(a, l->id, &lease->process_id) ||
        !show_text(a, l->holder.owner, &lease->owner_id) ||
        !show_text(a, g->token, &lease->lease_token) ||
        !show_text(a, g->id, &lease->lease_id))
        return err_no_memory(txn_error(t), "a lease");
    lease->fence = g->fence;
    lease->claimed_at_ms = g->claimed_at_ms;
    lease->expires_at_ms = g->expires_at_ms;
    *out = lease;
    return BELAY_OK;
}

static void put_changes(struct proc *p, const struct change *changes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p->v[changes[i].column] = changes[i].value;
}

static belay_rc grant_lease(struct txn *t, struct leasing *l, struct proc *p,
                            int64_t now_ms, int64_t epoch)
{
    struct change changes[LEASE_COLUMNS];
    char token[SHA256_HEX_LEN + 1];
    struct lease_grant g = { .holder = l->holder,
                             .id = bytes_str(l->lease_id),
                             .claimed_at_ms = now_ms,
                             .expires_at_ms = lease_expiry(now_ms, l->lease_ms) };
    belay_rc rc = next_fence(t, p, epoch, &g.fence);

    if (rc == BELAY_OK)
        rc = make_token(t, l, &g, token);
    if (rc)
        return rc;
    g.token = bytes_str(token);
    rc = tell_lease(t, l, &g, &l->out);
    if (rc)
        return rc;
    put_changes(p, changes, lease_grant_changes(&g, PROCESS_LEASE, changes));
    rc = proc_write(t, p);
    if (rc)
        return rc;
    struct bytes topic;
    if (!proc_topic(l->id, txn_arena(t), &topic))
        return err_no_memory(txn_error(t), "a topic");
    return txn_wake(t, topic); /* who holds a lease that is dead now can find out */
}

/* The process and the epoch, in one round trip. */
static belay_rc load(struct txn *t, struct bytes id, struct proc *p, int64_t *now_ms,
                     int64_t *epoch)
{
    struct value key = value_text(id);
    const struct row_want wants[] = { { &row_process, &key }, { &row_epoch, NULL } };
    const struct row *rows[COUNT_OF(wants)];
    belay_rc rc = txn_get_many(t, wants, COUNT_OF(wants), rows);

    if (rc == BELAY_OK)
        rc = proc_found(t, id, rows[0], p);
    if (rc == BELAY_OK)
        rc = epoch_in(t, epoch);
    return rc ? rc : txn_now(t, now_ms);
}

/* L1, C5: asked only where somebody else is in the way. */
static belay_rc make_room(struct txn *t, const struct leasing *l, const struct proc *p,
                          int64_t now_ms)
{
    struct lease_holder who = lease_holder_in(p->row, PROCESS_LEASE);

    if (bytes_eq(p->lease.owner, l->holder.owner) ||
        lease_may_be_taken(&p->lease, now_ms, host_proves_dead(l->host, &who)))
        return BELAY_OK;
    return proc_unheld(t, p, now_ms);
}

static belay_rc lease_body(struct txn *t, void *arg)
{
    struct leasing *l = arg;
    struct proc p = { .row = NULL };
    int64_t now_ms = 0, epoch = 0;
    belay_rc rc = load(t, l->id, &p, &now_ms, &epoch);

    if (rc == BELAY_OK)
        rc = make_room(t, l, &p, now_ms);
    return rc ? rc : grant_lease(t, l, &p, now_ms, epoch);
}

static belay_rc take_incarnation(const struct belay_incarnation *i,
                                 struct lease_holder *out, struct belay_error *err)
{
    const struct {
        const char *text;
        struct bytes *to;
    } texts[] = { { i->host_id, &out->host },
                  { i->boot_id, &out->boot },
                  { i->fleet_member, &out->member } };

    for (size_t k = 0; k < COUNT_OF(texts); k++) {
        if (!texts[k].text)
            continue;
        belay_rc rc = proc_check_id(texts[k].text, "incarnation", err);
        if (rc)
            return rc;
        *texts[k].to = bytes_str(texts[k].text);
    }
    if (i->pid < 0 || i->process_start < 0)
        return err_reason(err, BELAY_INVALID, "incarnation",
                          "incarnation: pid and process_start are not negative");
    out->pid = i->pid;
    out->process_start = i->process_start;
    return BELAY_OK;
}

belay_rc proc_lease(const struct proc_site *site, const char *process_id,
                    const char *owner_id, int64_t lease_ms,
                    const struct belay_incarnation *incarnation, struct belay_arena *a,
                    const struct belay_process_lease **out, struct belay_error *err)
{
    struct leasing l = { .id = bytes_str(process_id),
                         .lease_ms = lease_ms,
                         .host = site->host };
    belay_rc rc = proc_check_id(process_id, "process_id", err);

    if (rc == BELAY_OK)
        rc = proc_check_id(owner_id, "owner_id", err);
    if (rc == BELAY_OK)
        rc = lease_check_ttl(lease_ms, err);
    if (rc)
        return rc;
    /* An incarnation of the caller's own stands for the handle's. */
    l.holder = lease_holder_of(bytes_str(owner_id), site->principal,
                               incarnation ? NULL : site->host);
    if (incarnation)
        rc = take_incarnation(incarnation, &l.holder, err);
    if (rc == BELAY_OK)
        rc = lease_id_make(space_store(site->space), l.lease_id, err);
    if (rc == BELAY_OK)
        rc = txn_run(site->space, lease_body, &l, NULL, a, err);
    /* Who is dead is known to those who have joined. */
    if (rc == BELAY_LEASE_HELD && site->host &&
        !atomic_load_explicit(&site->host->is_joined, memory_order_acquire) &&
        host_join(site->host))
        rc = txn_run(site->space, lease_body, &l, NULL, a, err);
    if (rc == BELAY_OK)
        *out = l.out;
    return rc;
}

/* --- holding --- */

struct holding {
    const struct belay_process_lease *lease;
    int64_t lease_ms, expires_at_ms;
    bool released;
};

static belay_rc renew_body(struct txn *t, void *arg)
{
    struct holding *h = arg;
    struct bytes id = bytes_str(h->lease->process_id);
    struct proc p = { .row = NULL };
    int64_t now_ms = 0, epoch = 0;
    belay_rc rc = load(t, id, &p, &now_ms, &epoch);

    if (rc == BELAY_OK)
        rc = proc_hold(t, &p, h->lease, epoch);
    if (rc)
        return rc;
    /* L6: never nearer, and not once its time has passed. */
    const char *reason = lease_renew(&p.lease, LEASE_RENEW_IN_TIME, now_ms, h->lease_ms,
                                     &h->expires_at_ms);
    if (reason)
        return proc_lease_lost(t, id, reason);
    p.v[PROCESS_LEASE + LEASE_EXPIRES_AT_MS] = value_i64(h->expires_at_ms);
    return proc_write(t, &p);
}

belay_rc proc_renew(const struct proc_site *site,
                    const struct belay_process_lease *lease, int64_t lease_ms,
                    int64_t *out_expires_at_ms, struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct holding h = { .lease = lease, .lease_ms = lease_ms };
    belay_rc rc = proc_check_id(lease->process_id, "process_id", err);

    if (rc == BELAY_OK)
        rc = lease_check_ttl(lease_ms, err);
    if (rc == BELAY_OK)
        rc = txn_run(site->space, renew_body, &h, NULL, &arena, err);
    if (rc == BELAY_OK && out_expires_at_ms)
        *out_expires_at_ms = h.expires_at_ms;
    return rc;
}

/* L4: what the proof does not hold stays as it is. */
static belay_rc release_body(struct txn *t, void *arg)
{
    struct holding *h = arg;
    struct bytes id = bytes_str(h->lease->process_id);
    struct change changes[LEASE_COLUMNS];
    struct proc p = { .row = NULL };
    int64_t now_ms = 0, epoch = 0;
    belay_rc rc = load(t, id, &p, &now_ms, &epoch);

    h->released = false;
    if (rc)
        return rc;
    rc = proc_hold(t, &p, h->lease, epoch);
    if (rc == BELAY_LEASE_LOST)
        return BELAY_OK;
    if (rc)
        return rc;
    h->released = true;
    put_changes(&p, changes, lease_release_changes(PROCESS_LEASE, changes));
    return proc_write(t, &p);
}

belay_rc proc_release(const struct proc_site *site,
                      const struct belay_process_lease *lease, bool *out_released,
                      struct belay_error *err)
{
    CLEANUP(arena_release) struct belay_arena arena = { .first = NULL };
    struct holding h = { .lease = lease };
    belay_rc rc = proc_check_id(lease->process_id, "process_id", err);

    if (rc == BELAY_OK)
        rc = txn_run(site->space, release_body, &h, NULL, &arena, err);
    if (rc == BELAY_OK && out_released)
        *out_released = h.released;
    return rc;
}

/* --- as text: prl:<fence>/<token>/<lease id>/<process, percent-encoded> --- */

#define LEASE_TEXT "prl:"

static bool is_plain(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '.' || c == '_' || c == '-' || c == ':';
}

belay_rc proc_lease_text(const struct belay_process_lease *lease, struct belay_arena *a,
                         const char **out, struct belay_error *err)
{
    CLEANUP(buf_release) struct buf text = { 0 };
    struct bytes id = bytes_str(lease->process_id);

    buf_printf(&text, LEASE_TEXT "%lld/%s/%s/", (long long)lease->fence,
               lease->lease_token, lease->lease_id);
    for (size_t i = 0; i < id.len; i++) {
        if (is_plain(id.ptr[i]))
            buf_append_char(&text, (char)id.ptr[i]);
        else
            buf_printf(&text, "%%%02x", id.ptr[i]);
    }
    if (text.failed || !show_text(a, buf_view(&text), out))
        return err_no_memory(err, "a lease");
    return BELAY_OK;
}

static belay_rc bad_lease(struct belay_error *err)
{
    return err_reason(err, BELAY_BAD_HANDLE, "lease",
                      "lease: this is none that was given out");
}

/* The part before the next slash, or the rest of the text. */
static struct bytes next_part(const char **text)
{
    size_t len = strcspn(*text, "/");
    struct bytes part = bytes_of(*text, len);

    *text += len + ((*text)[len] == '/');
    return part;
}

static bool is_hex(struct bytes b, size_t len)
{
    for (size_t i = 0; i < b.len; i++) {
        if (!(b.ptr[i] >= '0' && b.ptr[i] <= '9') &&
            !(b.ptr[i] >= 'a' && b.ptr[i] <= 'f'))
            return false;
    }
    return b.len == len;
}

static int digit_of(uint8_t c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-encoded text in place of itself; 0: it is none. */
static size_t decode_id(uint8_t *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++, n++) {
        if (text[i] != '%') {
            text[n] = text[i];
            continue;
        }
        if (i + 2 >= len || digit_of(text[i + 1]) < 0 || digit_of(text[i + 2]) < 0)
            return 0;
        text[n] = (uint8_t)(digit_of(text[i + 1]) << 4 | digit_of(text[i + 2]));
        i += 2;
    }
    return n;
}

belay_rc proc_lease_parse(const char *text, struct belay_arena *a,
                          const struct belay_process_lease **out,
                          struct belay_error *err)
{
    const char *rest = text + strlen(LEASE_TEXT);

    if (strncmp(text, LEASE_TEXT, strlen(LEASE_TEXT)) != 0)
        return bad_lease(err);
    struct bytes fence = next_part(&rest), token = next_part(&rest),
                 id = next_part(&rest), process = bytes_str(rest);
    struct belay_process_lease *lease = arena_zalloc(a, 1, sizeof(*lease));
    uint8_t *name = arena_alloc(a, process.len + 1);
    if (!lease || !name)
        return err_no_memory(err, "a lease");
    memcpy(name, process.ptr, process.len);
    size_t len = decode_id(name, process.len);
    name[len] = 0;
    if (!bytes_to_i64(fence, &lease->fence) || lease->fence < 1 ||
        !is_hex(token, SHA256_HEX_LEN) || !is_hex(id, LEASE_ID_HEX) ||
        !bytes_is_id(bytes_of(name, len), PROCESS_ID_MAX))
        return bad_lease(err);
    lease->process_id = (const char *)name;
    lease->owner_id = "";
    if (!show_text(a, token, &lease->lease_token) ||
        !show_text(a, id, &lease->lease_id))
        return err_no_memory(err, "a lease");
    *out = lease;
    return BELAY_OK;
}
