/* What a walk of the namespace shows of processes, as plain arrays. */
#include "procs.h"

#include <jansson.h>
#include <stdlib.h>

#include "work/queue_rows.h"

/* --- names --- */

uint64_t ptext(struct bytes b)
{
    return b.ptr ? data_of(b) | 1U : 0;
}

uint64_t pstr(const char *text)
{
    return text ? ptext(bytes_str(text)) : 0;
}

const char *pname(unsigned proc)
{
    static const char *const names[P_PROCS + 1] = { "p0", "p1", "p2", "p3" };

    return names[proc];
}

const char *psession(unsigned session)
{
    return session == 0 ? "s0" : "s1";
}

const char *pframe(bool frame)
{
    return frame ? "f" : NULL;
}

unsigned pname_of(struct bytes b)
{
    unsigned i = 0;

    while (i < P_PROCS && !bytes_eq(b, bytes_str(pname(i))))
        i++;
    return i;
}

unsigned psession_of(struct bytes b)
{
    unsigned i = 0;

    while (i < P_SESSIONS && !bytes_eq(b, bytes_str(psession(i))))
        i++;
    return i;
}

/* --- finding --- */

struct pevent *pevent_at(const struct pstate *st, unsigned proc, int64_t seq)
{
    for (size_t i = 0; i < st->n_events; i++) {
        if (st->event[i].proc == proc && st->event[i].seq == seq)
            return (struct pevent *)&st->event[i];
    }
    return NULL;
}

struct pevent *pevent_by_key(const struct pstate *st, unsigned proc, uint64_t key)
{
    for (size_t i = 0; i < st->n_events && key; i++) {
        if (st->event[i].proc == proc && st->event[i].key == key)
            return (struct pevent *)&st->event[i];
    }
    return NULL;
}

struct pgrant *pgrant_at(const struct pstate *st, struct pscope scope, unsigned proc)
{
    for (size_t i = 0; i < st->n_grants; i++) {
        const struct pgrant *g = &st->grant[i];
        if (g->proc == proc && g->session == scope.session && g->frame == scope.frame)
            return (struct pgrant *)g;
    }
    return NULL;
}

struct pbatch *pbatch_at(const struct pstate *st, unsigned session, int64_t seq)
{
    for (size_t i = 0; i < st->n_batches; i++) {
        if (st->batch[i].session == session && st->batch[i].seq == seq)
            return (struct pbatch *)&st->batch[i];
    }
    return NULL;
}

/* --- rows --- */

struct reading {
    struct procs *w;
    struct pstate *st;
    int pass; /* what belongs to others is read in the second one */
};

static uint64_t column(const struct row *r, unsigned i)
{
    return r->v[i].kind == VALUE_NULL ? 0 : ptext(row_bytes(r, i));
}

static struct please lease_in(const struct row *r, unsigned at)
{
    return (struct please){
        .owner = column(r, at + LEASE_OWNER),
        .token = column(r, at + LEASE_TOKEN),
        .id = column(r, at + LEASE_ID),
        .who = member_in(r, at),
        .fence = row_i64(r, at + LEASE_FENCE, 0),
        .claimed_ms = row_i64(r, at + LEASE_CLAIMED_AT_MS, -1),
        .expires_ms = row_i64(r, at + LEASE_EXPIRES_AT_MS, -1),
    };
}

static int status_of(struct bytes word)
{
    static const char *const words[] = { "deleting", "running", "completed", "failed",
                                         "cancelled" };

    for (int i = 0; i < (int)COUNT_OF(words); i++) {
        if (bytes_eq(word, bytes_str(words[i])))
            return i;
    }
    return -1;
}

static void read_process(struct pstate *st, const struct row *r)
{
    unsigned at = pname_of(row_bytes(r, PROCESS_ID));

    if (at == P_PROCS) {
        st->fault = "model: a process that nobody registered";
        return;
    }
    struct pproc *p = &st->proc[at];
    p->there = true;
    p->status = status_of(row_bytes(r, PROCESS_STATUS));
    p->deleting = p->status == 0;
    p->hash = column(r, PROCESS_HASH);
    p->first = row_i64(r, PROCESS_FIRST_SEQ, 0);
    p->last = row_i64(r, PROCESS_LAST_SEQ, 0);
    p->terminal_seq = row_i64(r, PROCESS_TERMINAL_SEQ, 0);
    p->created_ms = row_i64(r, PROCESS_CREATED_AT_MS, -1);
    p->updated_ms = row_i64(r, PROCESS_UPDATED_AT_MS, -1);
    p->finished_ms = row_i64(r, PROCESS_FINISHED_AT_MS, -1);
    p->retention_ms = row_i64(r, PROCESS_RETENTION_MS, -1);
    p->purge_ms = row_i64(r, PROCESS_PURGE_AT_MS, -1);
    p->lease = lease_in(r, PROCESS_LEASE);
}

static struct pproc *own_process(struct pstate *st, struct bytes id)
{
    static struct pproc nobody;
    unsigned at = pname_of(id);

    if (at == P_PROCS)
        st->fault = "model: something of a process that nobody registered";
    return at == P_PROCS ? &nobody : &st->proc[at];
}

static struct pevent *own_event(struct pstate *st, struct bytes id, int64_t seq)
{
    static struct pevent nobody;
    struct pevent *e = pevent_at(st, pname_of(id), seq);

    if (!e)
        st->fault = "E3: something of an event is there that is not";
    return e ? e : &nobody;
}

static void read_key(struct pstate *st, const struct row *r)
{
    struct pevent *e = own_event(st, row_bytes(r, PROCESS_KEY_PROCESS),
                                 row_i64(r, PROCESS_KEY_SEQ, 0));

    e->keys++;
}

static int wake_state_of(struct bytes word)
{
    static const char *const words[] = { "",           "queued",
                                         "consumed",   "acknowledged",
                                         "cancelled",  "duplicate",
                                         "target_gone" };

    for (int i = 1; i < (int)COUNT_OF(words); i++) {
        if (bytes_eq(word, bytes_str(words[i])))
            return i;
    }
    return -1;
}

static void read_wake(struct pstate *st, const struct row *r)
{
    struct pevent *e =
        own_event(st, row_bytes(r, WAKE_PROCESS), row_i64(r, WAKE_SEQ, 0));
    struct pwake *k = &e->wake;

    e->wakes++;
    k->state = wake_state_of(row_bytes(r, WAKE_STATE));
    k->batch = row_i64(r, WAKE_ENQUEUE_SEQ, 0);
    k->created_ms = row_i64(r, WAKE_CREATED_AT_MS, -1);
    k->settled_ms = row_i64(r, WAKE_SETTLED_AT_MS, -1);
    if (psession_of(row_bytes(r, WAKE_SESSION)) != k->session ||
        (r->v[WAKE_FRAME].kind != VALUE_NULL) != k->frame)
        st->fault = "E3: a wake is for somebody else than its event says";
}

static void read_target(struct pstate *st, const struct row *r)
{
    struct pevent *e = own_event(st, row_bytes(r, WAKE_TARGET_PROCESS),
                                 row_i64(r, WAKE_TARGET_SEQ, 0));

    if (e->marked)
        st->fault = "P3: a wake is marked twice";
    e->marked = true;
}

static void read_grant(struct pstate *st, const struct row *r)
{
    if (st->n_grants == P_GRANTS) {
        st->fault = "model: too many grants";
        return;
    }
    st->grant[st->n_grants++] = (struct pgrant){
        .session = psession_of(row_bytes(r, HANDLE_GRANT_SESSION)),
        .frame = row_bytes(r, HANDLE_GRANT_FRAME).len > 1,
        .proc = pname_of(row_bytes(r, HANDLE_GRANT_PROCESS)),
        .kind = column(r, HANDLE_GRANT_KIND),
        .label = column(r, HANDLE_GRANT_LABEL),
        .at_ms = row_i64(r, HANDLE_GRANT_AT_MS, -1),
    };
}

static void read_count(struct pstate *st, const struct row *r)
{
    bool process = bytes_eq(row_bytes(r, GRANT_COUNT_NOUN), bytes_str("process"));
    struct bytes id = row_bytes(r, GRANT_COUNT_ID);
    unsigned at = process ? pname_of(id) : psession_of(id);
    int64_t n = row_i64(r, GRANT_COUNT_N, 0);

    if (n < 1 || at >= (process ? (unsigned)P_PROCS : (unsigned)P_SESSIONS))
        st->fault = "P6: a count of grants that cannot be";
    else if (process)
        st->of_proc[at] = n;
    else
        st->of_session[at] = n;
}

static void read_batch(struct pstate *st, const struct row *r)
{
    struct bytes mark = row_bytes(r, BATCH_WAKE);
    const uint8_t *colon = mark.len > 0 ? memchr(mark.ptr, ':', mark.len) : NULL;

    if (st->n_batches == P_BATCHES || !colon) {
        st->fault = colon ? "model: too many batches" : "P3: a batch that is no wake";
        return;
    }
    size_t len = (size_t)(colon - mark.ptr);
    struct please l = lease_in(r, BATCH_LEASE);
    st->batch[st->n_batches++] = (struct pbatch){
        .session = psession_of(row_bytes(r, BATCH_SESSION)),
        .seq = row_i64(r, BATCH_SEQ, 0),
        .wake_seq = strtoll((const char *)mark.ptr, NULL, 10),
        .proc = pname_of(bytes_of(mark.ptr + len + 1, mark.len - len - 1)),
        .id = column(r, BATCH_ID),
        .lease = l.id,
        .fence = l.fence,
        .expires_ms = l.expires_ms,
        .who = l.who,
        .ready = row_i64(r, BATCH_DUE_AT_MS, -1) < 0,
    };
}

static void read_first(struct pstate *st, const struct row *r)
{
    if (r->type == &row_process) {
        read_process(st, r);
    } else if (r->type == &row_process_spec) {
        own_process(st, row_bytes(r, PROCESS_SPEC_ID))->specs = true;
    } else if (r->type == &row_process_end) {
        struct pproc *p = own_process(st, row_bytes(r, PROCESS_END_ID));
        p->has_end = true;
        p->output = column(r, PROCESS_END_OUTPUT);
    } else if (r->type == &row_process_ref) {
        own_process(st, row_bytes(r, PROCESS_REF_ID))->ref = column(r, PROCESS_REF_REF);
    } else if (r->type == &row_handle_grant) {
        read_grant(st, r);
    } else if (r->type == &row_grant_count) {
        read_count(st, r);
    } else if (r->type == &row_batch) {
        read_batch(st, r);
    } else if (r->type == &row_inbox) {
        unsigned at = psession_of(row_bytes(r, INBOX_SESSION));
        if (at < P_SESSIONS)
            st->last_batch[at] = inbox_last_seq(r);
    } else if (r->type == &row_epoch) {
        st->epoch = row_i64(r, EPOCH_EPOCH, 0);
    }
}

static void read_second(struct pstate *st, const struct row *r)
{
    if (r->type == &row_process_key) {
        read_key(st, r);
    } else if (r->type == &row_process_wake) {
        read_wake(st, r);
    } else if (r->type == &row_wake_target) {
        read_target(st, r);
    } else if (r->type == &row_batch_source) {
        unsigned at = psession_of(row_bytes(r, BATCH_SOURCE_SESSION));
        struct pbatch *b = pbatch_at(st, at, row_i64(r, BATCH_SOURCE_SEQ, 0));
        if (b)
            b->sources++;
        else
            st->fault = "P3: a source key of a batch that is not";
    }
}

/* --- events --- */

/* The wish that a process ends has a key with a hash: what it stands for is its payload. */
static uint64_t key_of_event(const char *key, struct bytes payload)
{
    if (key && strncmp(key, "process:", 8) == 0 && strstr(key, ":cancel_requested:"))
        return mix(pstr("cancel"), ptext(payload)) | 1U;
    return pstr(key);
}

static int word_of(const char *text, const char *const *words, int n)
{
    for (int i = 1; i < n && text; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
    }
    return text ? -1 : 0;
}

static void read_event(struct pstate *st, unsigned proc, const struct item *item)
{
    static const char *const states[] = { "", "running", "completed", "failed",
                                          "cancelled" };
    static const char *const authorities[] = { "", "owner", "external", "operator",
                                               "execution" };
    const uint8_t *end = memchr(item->data.ptr, '\n', item->data.len);

    if (!end || st->n_events == P_EVENTS) {
        st->fault = end ? "model: too many events" : "E1: an event without an end";
        return;
    }
    size_t len = (size_t)(end - item->data.ptr);
    struct bytes payload = bytes_of(end + 1, item->data.len - len - 1);
    json_t *o = json_loadb((const char *)item->data.ptr, len, 0, NULL);
    const json_t *k = json_object_get(o, "wake");
    const char *session = json_string_value(json_object_get(k, "session"));
    st->event[st->n_events++] = (struct pevent){
        .proc = proc,
        .seq = item->number,
        .at_ms = json_integer_value(json_object_get(o, "at")),
        .fence = json_integer_value(json_object_get(o, "fence")),
        .type = pstr(json_string_value(json_object_get(o, "type"))),
        .key = key_of_event(json_string_value(json_object_get(o, "key")), payload),
        .payload = ptext(payload),
        .authority = word_of(json_string_value(json_object_get(o, "authority")),
                             authorities, COUNT_OF(authorities)),
        .terminal = word_of(json_string_value(json_object_get(o, "terminal")), states,
                            COUNT_OF(states)),
        .wake = { .session = k ? psession_of(bytes_str(session)) : 0,
                  .frame = json_object_get(k, "frame") != NULL,
                  .dedupe = pstr(json_string_value(json_object_get(k, "dedupe"))) },
    };
    json_decref(o);
}

static void read_change(struct pstate *st, const struct item *item)
{
    static const char *const kinds[] = {
        "",      "registered", "external_ref", "cancel_requested",
        "ended", "deleted",    "event_refused"
    };

    if (st->n_changes == P_CHANGES) {
        st->fault = "model: too many changes";
        return;
    }
    json_t *all = json_loadb((const char *)item->data.ptr, item->data.len, 0, NULL);
    const json_t *o = json_array_get(all, 0);
    const char *id = json_string_value(json_object_get(o, "process"));
    const char *status = json_string_value(json_object_get(o, "status"));
    st->change[st->n_changes++] = (struct pchange){
        .proc = id ? pname_of(bytes_str(id)) : P_PROCS,
        .kind = word_of(json_string_value(json_object_get(o, "change")), kinds,
                        COUNT_OF(kinds)),
        .status = status ? status_of(bytes_str(status)) : -1,
        .seq = json_integer_value(json_object_get(o, "seq")),
        .at_ms = json_integer_value(json_object_get(o, "at")),
    };
    json_decref(all);
}

/* --- where things stand --- */

static bool starts(struct bytes name, const char *prefix, struct bytes *rest)
{
    size_t len = strlen(prefix);

    if (name.len < len || memcmp(name.ptr, prefix, len) != 0)
        return false;
    *rest = bytes_of(name.ptr + len, name.len - len);
    return true;
}

/* The part of a member before or behind its unit separator. */
static struct bytes part(struct bytes member, bool behind)
{
    const uint8_t *at = member.len > 0 ? memchr(member.ptr, 0x1f, member.len) : NULL;
    size_t len = at ? (size_t)(at - member.ptr) : member.len;

    if (!at)
        return bytes_of(NULL, 0);
    return behind ? bytes_of(at + 1, member.len - len - 1) : bytes_of(member.ptr, len);
}

static void stand(struct pstate *st, struct bytes session, struct bytes frame_key,
                  struct bytes proc, unsigned bit)
{
    struct pscope scope = { psession_of(session), frame_key.len > 1 };
    struct pgrant *g = pgrant_at(st, scope, pname_of(proc));

    if (!g || (g->ranks & bit) != 0)
        st->fault = "P6: an entry of a grant that is not there";
    else
        g->ranks |= bit;
}

static void read_rank(struct pstate *st, const struct item *item)
{
    struct bytes rest;

    if (starts(item->name, "processes_of/", &rest)) {
        own_process(st, item->member)->owned++;
    } else if (starts(item->name, "processes/", &rest)) {
        struct pproc *p = own_process(st, item->member);
        p->by_status++;
        p->status_rank = item->number;
        p->status_index = ptext(rest);
    } else if (bytes_eq(item->name, bytes_str("processes"))) {
        struct pproc *p = own_process(st, item->member);
        p->listed++;
        p->listed_rank = item->number;
    } else if (starts(item->name, "wakes/", &rest)) {
        own_event(st, rest, item->number)->wake.ranks++;
    } else if (starts(item->name, "grants/", &rest)) {
        stand(st, part(rest, false), part(rest, true), item->member, 1);
    } else if (starts(item->name, "granted/", &rest)) {
        stand(st, part(item->member, false), part(item->member, true), rest, 2);
    } else if (starts(item->name, "session_grants/", &rest)) {
        stand(st, rest, part(item->member, false), part(item->member, true), 4);
    }
}

/* --- all of it --- */

static belay_rc visit(void *arg, const struct item *item, struct belay_error *err)
{
    struct reading *g = arg;
    struct bytes rest;

    (void)err;
    if (item->kind == ITEM_ROW) {
        if (g->pass == 0)
            read_first(g->st, item->row);
        else
            read_second(g->st, item->row);
    } else if (item->kind == ITEM_RANK && g->pass == 1) {
        read_rank(g->st, item);
    } else if (item->kind == ITEM_LOG && g->pass == 0 &&
               starts(item->name, "process/", &rest)) {
        read_event(g->st, pname_of(rest), item);
    } else if (item->kind == ITEM_FEED && g->pass == 0 &&
               bytes_eq(item->name, bytes_str("processes"))) {
        read_change(g->st, item);
    }
    return BELAY_OK;
}

void pstate_clear(struct pstate *st)
{
    memset(st->proc, 0, sizeof(st->proc));
    memset(st->of_proc, 0, sizeof(st->of_proc));
    memset(st->of_session, 0, sizeof(st->of_session));
    memset(st->last_batch, 0, sizeof(st->last_batch));
    st->n_events = st->n_grants = st->n_batches = st->n_changes = 0;
    st->epoch = 0;
    st->fault = NULL;
}

void pstate_read(struct procs *w, struct pstate *st)
{
    struct reading g = { w, st, 0 };
    struct belay_error err;

    pstate_clear(st);
    for (; g.pass < 2; g.pass++) {
        if (driver_walk(w->s->memory, space_bytes(0), visit, &g, &err))
            st->fault = "model: the walk failed";
    }
}
