/* Declarations of event types: read, found, written. */
#include "policy/event_type.h"

#include "policy/members.h"
#include "policy/words.h"

#define AT_AWAIT_OUTPUT                                               \
    {                                                                 \
        (const uint8_t *)"/await_output", sizeof("/await_output") - 1 \
    }

const struct event_type event_core[EVENT_CORE_COUNT] = {
    { .name = { (const uint8_t *)EVENT_CANCEL_REQUESTED,
                sizeof(EVENT_CANCEL_REQUESTED) - 1 } },
    {
        .name = { (const uint8_t *)"process.completed",
                  sizeof("process.completed") - 1 },
        .has_terminal = true,
        .terminal = { .state = PROCESS_COMPLETED,
                      .has_output = true,
                      .output = { .kind = SELECTOR_POINTER, .text = AT_AWAIT_OUTPUT } },
    },
    {
        .name = { (const uint8_t *)"process.failed", sizeof("process.failed") - 1 },
        .has_terminal = true,
        .terminal = { .state = PROCESS_FAILED,
                      .has_output = true,
                      .output = { .kind = SELECTOR_POINTER, .text = AT_AWAIT_OUTPUT } },
    },
    {
        .name = { (const uint8_t *)"process.cancelled",
                  sizeof("process.cancelled") - 1 },
        .has_terminal = true,
        .terminal = { .state = PROCESS_CANCELLED,
                      .has_output = true,
                      .output = { .kind = SELECTOR_POINTER, .text = AT_AWAIT_OUTPUT } },
    },
};

const struct event_type event_presets[EVENT_PRESET_COUNT] = {
    { .name = { (const uint8_t *)"process.yield", sizeof("process.yield") - 1 } },
    {
        .name = { (const uint8_t *)"process.wake", sizeof("process.wake") - 1 },
        .has_wake = true,
        .wake = { .input = { .kind = SELECTOR_POINTER,
                             .text = { (const uint8_t *)"/text",
                                       sizeof("/text") - 1 } } },
    },
    { .name = { (const uint8_t *)"process.signal", sizeof("process.signal") - 1 } },
};

/* --- reading --- */

static belay_rc bad(struct belay_error *err, struct bytes name, const char *why)
{
    return err_reason(err, BELAY_INVALID, "event_type", "event type `%s`: %s",
                      shown(name).text, why);
}

static belay_rc read_terminal(const json_t *declared, struct event_type *t,
                              struct belay_arena *a, struct belay_error *err)
{
    const json_t *state = NULL, *output = NULL;
    const struct member table[] = { { "state", &state }, { "await_output", &output } };
    belay_rc rc =
        members_read(declared, table, COUNT_OF(table), "event_type", "terminal", err);
    int number = PROCESS_RUNNING;

    if (rc != BELAY_OK)
        return rc;
    if (!process_state_parse(json_bytes(state), &number) || number == PROCESS_RUNNING)
        return bad(err, t->name, "a terminal state is completed, failed or cancelled");
    t->has_terminal = true;
    t->terminal.state = (enum process_state)number;
    t->terminal.has_output = output != NULL;
    if (output)
        return selector_read(output, "terminal.await_output", a, &t->terminal.output,
                             err);
    if (number == PROCESS_COMPLETED)
        return BELAY_OK;
    return err_reason(err, BELAY_INVALID, "terminal",
                      "event type `%s` is terminal without await output: only "
                      "completed may be",
                      shown(t->name).text);
}

static belay_rc read_dedupe(const json_t *declared, struct event_type *t,
                            struct belay_arena *a, struct belay_error *err)
{
    const json_t *selector = json_object_get(declared, "selector");
    const json_t *text = json_object_get(declared, "const");
    bool one = json_object_size(declared) == 1;

    if (!declared || bytes_eq(json_bytes(declared), bytes_str("event_identity"))) {
        t->wake.dedupe = DEDUPE_EVENT_IDENTITY;
        return BELAY_OK;
    }
    if (one && selector) {
        t->wake.dedupe = DEDUPE_SELECTOR;
        return selector_read(selector, "wake.dedupe_key", a, &t->wake.dedupe_selector,
                             err);
    }
    if (!one || !json_is_string(text) || json_string_length(text) > DEDUPE_KEY_MAX)
        return bad(err, t->name,
                   "a dedupe key is \"event_identity\", {\"selector\":...} or "
                   "{\"const\":\"text\"} of at most 65536 bytes");
    t->wake.dedupe = DEDUPE_CONST;
    t->wake.dedupe_const = json_bytes(text);
    return BELAY_OK;
}

static belay_rc read_wake(const json_t *declared, struct event_type *t,
                          struct belay_arena *a, struct belay_error *err)
{
    const json_t *when = NULL, *input = NULL, *dedupe = NULL;
    const struct member table[] = { { "when", &when },
                                    { "input", &input },
                                    { "dedupe_key", &dedupe } };
    belay_rc rc =
        members_read(declared, table, COUNT_OF(table), "event_type", "wake", err);

    if (rc != BELAY_OK)
        return rc;
    if (!input)
        return bad(err, t->name, "a wake has an input, which is a selector");
    t->has_wake = true;
    t->wake.has_when = when != NULL;
    if (when)
        rc = selector_read(when, "wake.when", a, &t->wake.when, err);
    if (rc == BELAY_OK)
        rc = selector_read(input, "wake.input", a, &t->wake.input, err);
    return rc ? rc : read_dedupe(dedupe, t, a, err);
}

static belay_rc read_semantics(const json_t *declared, struct event_type *t,
                               struct belay_arena *a, struct belay_error *err)
{
    const json_t *terminal = NULL, *wake = NULL;
    const struct member table[] = { { "terminal", &terminal }, { "wake", &wake } };
    belay_rc rc =
        members_read(declared, table, COUNT_OF(table), "event_type", "semantics", err);

    if (rc == BELAY_OK && terminal)
        rc = read_terminal(terminal, t, a, err);
    if (rc == BELAY_OK && wake)
        rc = read_wake(wake, t, a, err);
    return rc;
}

static belay_rc read_schema(const json_t *declared, struct event_type *t,
                            struct belay_error *err)
{
    const struct member table[] = { { "schema", &t->schema } };

    return members_read(declared, table, COUNT_OF(table), "event_type",
                        "payload_schema", err);
}

static belay_rc read_type(const json_t *declared, struct belay_arena *a,
                          struct event_type *t, struct belay_error *err)
{
    const json_t *name = NULL, *schema = NULL, *semantics = NULL;
    const struct member table[] = { { "name", &name },
                                    { "payload_schema", &schema },
                                    { "semantics", &semantics } };
    belay_rc rc =
        members_read(declared, table, COUNT_OF(table), "event_type", "event type", err);

    if (rc != BELAY_OK)
        return rc;
    t->name = json_bytes(name);
    if (!json_is_string(name) ||
        (t->name.len > 0 && !bytes_is_id(t->name, EVENT_NAME_MAX)))
        return bad(err, t->name,
                   "a name is a string of at most 255 bytes without control "
                   "characters");
    if (schema)
        rc = read_schema(schema, t, err);
    if (rc == BELAY_OK && semantics)
        rc = read_semantics(semantics, t, a, err);
    return rc;
}

belay_rc event_type_read(const json_t *declared, struct belay_arena *a,
                         struct event_type *out, struct belay_error *err)
{
    struct event_type t = { .schema = NULL };
    belay_rc rc = read_type(declared, a, &t, err);

    if (rc == BELAY_OK && t.schema)
        rc = event_schema_check(t.schema, a, err);
    if (rc == BELAY_OK)
        *out = t;
    return rc;
}

belay_rc event_type_find(const json_t *event_types, struct bytes name,
                         struct belay_arena *a, struct event_type *out, bool *found,
                         struct belay_error *err)
{
    const json_t *declared = NULL;
    struct event_type t = { .schema = NULL };
    struct belay_error why = { .size = sizeof(why) };

    if (!json_is_array(event_types))
        return err_set(err, BELAY_CORRUPT, "event types: not an array");
    for (size_t i = 0; !declared && i < json_array_size(event_types); i++) {
        const json_t *item = json_array_get(event_types, i);
        if (bytes_eq(json_bytes(json_object_get(item, "name")), name))
            declared = item;
    }
    *found = declared != NULL;
    if (!declared)
        return BELAY_OK;
    belay_rc rc = read_type(declared, a, &t, &why);
    if (rc == BELAY_INVALID)
        return err_set(err, BELAY_CORRUPT, "event types: %s", why.message);
    if (rc != BELAY_OK)
        return err_set(err, rc, "%s", why.message);
    *out = t;
    return BELAY_OK;
}

/* --- writing --- */

static belay_rc write_terminal(const struct terminal_spec *t, struct buf *out,
                               struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    buf_append_str(out, "\"terminal\":{\"state\":");
    json_append_string(out, bytes_str(process_state_name((int)t->state)));
    if (t->has_output) {
        buf_append_str(out, ",\"await_output\":");
        rc = selector_write(&t->output, out, err);
    }
    buf_append_char(out, '}');
    return rc;
}

static belay_rc write_dedupe(const struct wake_spec *w, struct buf *out,
                             struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    switch (w->dedupe) {
    case DEDUPE_EVENT_IDENTITY:
        buf_append_str(out, "\"event_identity\"");
        break;
    case DEDUPE_SELECTOR:
        buf_append_str(out, "{\"selector\":");
        rc = selector_write(&w->dedupe_selector, out, err);
        buf_append_char(out, '}');
        break;
    case DEDUPE_CONST:
        buf_append_str(out, "{\"const\":");
        json_append_string(out, w->dedupe_const);
        buf_append_char(out, '}');
        break;
    }
    return rc;
}

static belay_rc write_wake(const struct wake_spec *w, struct buf *out,
                           struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    buf_append_str(out, "\"wake\":{");
    if (w->has_when) {
        buf_append_str(out, "\"when\":");
        rc = selector_write(&w->when, out, err);
        buf_append_char(out, ',');
    }
    buf_append_str(out, "\"input\":");
    if (rc == BELAY_OK)
        rc = selector_write(&w->input, out, err);
    buf_append_str(out, ",\"dedupe_key\":");
    if (rc == BELAY_OK)
        rc = write_dedupe(w, out, err);
    buf_append_char(out, '}');
    return rc;
}

belay_rc event_type_write(const struct event_type *t, struct buf *out,
                          struct belay_error *err)
{
    belay_rc rc = BELAY_OK;

    buf_append_str(out, "{\"name\":");
    json_append_string(out, t->name);
    buf_append_str(out, ",\"payload_schema\":{\"schema\":");
    if (t->schema)
        rc = json_write(t->schema, out, err);
    else
        buf_append_str(out, "{}");
    buf_append_str(out, "},\"semantics\":{");
    if (rc == BELAY_OK && t->has_terminal)
        rc = write_terminal(&t->terminal, out, err);
    if (t->has_terminal && t->has_wake)
        buf_append_char(out, ',');
    if (rc == BELAY_OK && t->has_wake)
        rc = write_wake(&t->wake, out, err);
    buf_append_str(out, "}}");
    return rc == BELAY_OK && out->failed ? err_no_memory(err, "an event type") : rc;
}
