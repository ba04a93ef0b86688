/* What an event of a declared type means. */
#include "policy/event_type.h"

#include "policy/members.h"

static belay_rc disagrees(const struct event_type *t, enum process_state own,
                          struct belay_error *err)
{
    return err_reason(err, BELAY_INVALID, "await_output",
                      "await output: it is of a process that %s, the event of one that "
                      "%s",
                      process_state_name((int)own),
                      process_state_name((int)t->terminal.state));
}

/* A value that is no await output becomes one of the declared state. */
static belay_rc wrap(enum process_state state, const struct selected *chosen,
                     struct belay_arena *a, struct buf *out, struct belay_error *err)
{
    struct await_parts p = { .type = await_type_of(state),
                             .class_ = AWAIT_EXECUTION,
                             .code = bytes_str("process_failed") };
    struct buf value = buf_in(a);
    belay_rc rc = selected_write(chosen, &value, err);

    if (rc == BELAY_OK && p.type != AWAIT_SUCCESS)
        rc = selected_text(chosen, a, &p.message, err);
    if (rc != BELAY_OK)
        return rc;
    p.value = buf_view(&value);
    return await_parts_write(&p, out, err);
}

static belay_rc mean_terminal(const struct event_type *t, const json_t *payload,
                              struct belay_arena *a, struct event_meaning *m,
                              struct belay_error *err)
{
    static const struct selector whole = { .kind = SELECTOR_PAYLOAD };
    const struct terminal_spec *spec = &t->terminal;
    struct buf out = buf_in(a);
    struct selected chosen = { .value = NULL };
    struct await_output own;
    belay_rc rc = selector_select(spec->has_output ? &spec->output : &whole, payload, a,
                                  &chosen, err);

    if (rc != BELAY_OK)
        return rc;
    /* Without a selector the payload is a value, whatever it looks like. */
    if (spec->has_output && chosen.value &&
        await_output_read(chosen.value, &own, NULL) == BELAY_OK) {
        if (await_state(own.type) != spec->state)
            return disagrees(t, await_state(own.type), err);
        rc = await_output_write(&own, &out, err);
    } else {
        rc = wrap(spec->state, &chosen, a, &out, err);
    }
    if (rc == BELAY_OK && json_nesting(buf_view(&out)) > JSON_DEPTH_MAX)
        rc = err_reason(err, BELAY_INVALID, "too_deep",
                        "await output: nested deeper than %d", JSON_DEPTH_MAX);
    if (rc == BELAY_OK) {
        m->terminal = true;
        m->state = spec->state;
        m->await_output = buf_view(&out);
    }
    return rc;
}

static belay_rc identity(struct bytes process_id, int64_t sequence,
                         struct belay_arena *a, struct bytes *out,
                         struct belay_error *err)
{
    struct buf key = buf_in(a);

    buf_append(&key, process_id);
    buf_append_char(&key, ':');
    buf_append_i64(&key, sequence);
    *out = buf_view(&key);
    return key.failed ? err_no_memory(err, "a wake") : BELAY_OK;
}

static belay_rc select_text(const struct selector *s, const json_t *payload,
                            struct belay_arena *a, struct bytes *out,
                            struct belay_error *err)
{
    struct selected chosen = { .value = NULL };
    belay_rc rc = selector_select(s, payload, a, &chosen, err);

    return rc ? rc : selected_text(&chosen, a, out, err);
}

static belay_rc dedupe_key(const struct wake_spec *w, const json_t *payload,
                           struct belay_arena *a, struct bytes *out,
                           struct belay_error *err)
{
    if (w->dedupe == DEDUPE_CONST) {
        *out = w->dedupe_const;
        return BELAY_OK;
    }
    belay_rc rc = select_text(&w->dedupe_selector, payload, a, out, err);
    if (rc == BELAY_OK && out->len > DEDUPE_KEY_MAX) {
        (void)err_reason(err, BELAY_INVALID, "too_large",
                         "dedupe key: %zu bytes, at most %d are allowed", out->len,
                         DEDUPE_KEY_MAX);
        err_numbers(err, DEDUPE_KEY_MAX, (int64_t)out->len);
        rc = BELAY_INVALID;
    }
    return rc;
}

/* Whether there is a wake at all. */
static belay_rc is_wake(const struct wake_spec *w, const json_t *payload,
                        struct belay_arena *a, bool *out, struct belay_error *err)
{
    struct selected chosen = { .value = NULL };

    *out = true;
    if (!w->has_when)
        return BELAY_OK;
    belay_rc rc = selector_select(&w->when, payload, a, &chosen, err);
    if (rc == BELAY_OK)
        *out = selected_is_true(&chosen);
    return rc;
}

belay_rc event_type_mean(const struct event_type *t, const json_t *payload,
                         struct bytes process_id, int64_t sequence,
                         struct belay_arena *a, struct event_meaning *out,
                         struct belay_error *err)
{
    struct event_meaning m = { .terminal = false };
    belay_rc rc = BELAY_OK;

    if (t->has_terminal)
        rc = mean_terminal(t, payload, a, &m, err);
    if (rc == BELAY_OK && t->has_wake)
        rc = is_wake(&t->wake, payload, a, &m.wake, err);
    if (rc == BELAY_OK && m.wake) {
        rc = select_text(&t->wake.input, payload, a, &m.wake_input, err);
        if (rc == BELAY_OK)
            rc = t->wake.dedupe == DEDUPE_EVENT_IDENTITY
                     ? identity(process_id, sequence, a, &m.dedupe_key, err)
                     : dedupe_key(&t->wake, payload, a, &m.dedupe_key, err);
    }
    if (rc == BELAY_OK)
        *out = m;
    return rc;
}
