/* event_type.h - the types of events a process declares, and what an event of such a
 * type means: an end of the process, a wake.
 *
 *   {"name":"..","payload_schema":{"schema":S},"semantics":{"terminal":T?,"wake":W?}}
 *   T = {"state":"completed|failed|cancelled","await_output":selector?}
 *   W = {"when":selector?,"input":selector,"dedupe_key":D?}
 *   D = "event_identity" (default) | {"selector":selector} | {"const":"text"}
 *
 * payload_schema and semantics may be left out: anything, nothing.  A declaration is read
 * once, into a struct that borrows from its JSON, and evaluated against payloads.
 *
 * Pure: memory comes from the arena it is handed.
 */
#ifndef POLICY_EVENT_TYPE_H
#define POLICY_EVENT_TYPE_H

#include "policy/await_output.h"
#include "policy/event_schema.h"
#include "policy/event_select.h"

#define EVENT_NAME_MAX 255   /* bytes of a type's name */
#define EVENT_TYPES_MAX 256  /* of one process, core types included */
#define DEDUPE_KEY_MAX 65536 /* bytes */

struct terminal_spec {
    enum process_state state;
    bool has_output; /* only completed may be without: the payload, then */
    struct selector output;
};

enum dedupe_kind {
    DEDUPE_EVENT_IDENTITY,
    DEDUPE_SELECTOR,
    DEDUPE_CONST,
};

struct wake_spec {
    bool has_when;
    struct selector when, input;
    enum dedupe_kind dedupe;
    struct selector dedupe_selector;
    struct bytes dedupe_const;
};

/* Borrows from the declaration it was read from. */
struct event_type {
    struct bytes name;
    const json_t *schema; /* NULL: anything */
    bool has_terminal, has_wake;
    struct terminal_spec terminal;
    struct wake_spec wake;
};

/* Reads one declaration, whole: its schema is checked, too.  `invalid` with reason
 * "event_type" (shape, name, members it does not know), "schema", "selector", or
 * "terminal": "terminal without await output" for a state other than completed without a
 * selector, and for running.  The blank name is the caller's to refuse: it is read. */
MUST_USE belay_rc event_type_read(const json_t *declared, struct belay_arena *a,
                                  struct event_type *out, struct belay_error *err);

/* Reads the one named `name` of an array of declarations that passed before (that of a
 * stored registration): the schema is not checked again.  *found is false, and *out
 * untouched, when there is none.  What cannot be read is `corrupt`. */
MUST_USE belay_rc event_type_find(const json_t *event_types, struct bytes name,
                                  struct belay_arena *a, struct event_type *out,
                                  bool *found, struct belay_error *err);

/* Appends the canonical form: name, payload_schema, semantics in this order, inside of
 * them as in the comment above, schemas and constants with sorted keys. */
MUST_USE belay_rc event_type_write(const struct event_type *t, struct buf *out,
                                   struct belay_error *err);

/* What one event means. */
struct event_meaning {
    bool terminal;
    enum process_state state;
    struct bytes await_output; /* canonical JSON, in the arena */
    bool wake;
    struct bytes wake_input, dedupe_key;
};

/* Evaluates the semantics against a payload; `sequence` is the number the event would
 * get.  The schema is not asked (event_schema_validate).
 *
 * `invalid`: reason "pointer" (a pointer that did not match), "too_large", "too_deep" (an
 * await output that could not be read back), or "await_output": a selected output whose
 * own type disagrees with the declared state. */
MUST_USE belay_rc event_type_mean(const struct event_type *t, const json_t *payload,
                                  struct bytes process_id, int64_t sequence,
                                  struct belay_arena *a, struct event_meaning *out,
                                  struct belay_error *err);

/* Core types are appended to every registration that lacks them, in this order:
 * process.cancel_requested, process.completed, process.failed, process.cancelled.
 * Presets are for producers to declare: process.yield, process.wake, process.signal. */
#define EVENT_CORE_COUNT 4
#define EVENT_PRESET_COUNT 3
extern const struct event_type event_core[EVENT_CORE_COUNT];
extern const struct event_type event_presets[EVENT_PRESET_COUNT];

#define EVENT_CANCEL_REQUESTED "process.cancel_requested"

#endif /* POLICY_EVENT_TYPE_H */
