/* await_output.h - the states of a process, and what it leaves when it ends.
 *
 *   {"type":"success","value":V,"control":C?}
 *   {"type":"failure","class":K,"code":"..","message":"..","raw":V?,"control":C?}
 *   {"type":"cancelled","message":"..","raw":V?,"control":C?}
 *
 * control is an object whose "type" is switch_agent_frame, finish or fail, and else
 * nobody's business here.  The written form is canonical JSON: keys sorted, absent
 * members left out.
 *
 * Pure: memory comes from the arena it is handed.
 */
#ifndef POLICY_AWAIT_OUTPUT_H
#define POLICY_AWAIT_OUTPUT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

/* Numbers and names never change. */
enum process_state {
    PROCESS_RUNNING = 0,
    PROCESS_COMPLETED = 1,
    PROCESS_FAILED = 2,
    PROCESS_CANCELLED = 3,
    PROCESS_STATES_END,
};

enum await_type {
    AWAIT_SUCCESS = 0,
    AWAIT_FAILURE = 1,
    AWAIT_CANCELLED = 2,
    AWAIT_TYPES_END,
};

enum await_class {
    AWAIT_INVALID_REQUEST = 0,
    AWAIT_UNAVAILABLE = 1,
    AWAIT_PERMISSION_DENIED = 2,
    AWAIT_TIMEOUT = 3,
    AWAIT_EXECUTION = 4,
    AWAIT_EXTERNAL = 5,
    AWAIT_RESOURCE_LIMIT = 6,
    AWAIT_INTERNAL = 7,
    AWAIT_CLASSES_END,
};

/* NULL, or false with *out untouched, where there is none such. */
const char *process_state_name(int state);
const char *await_type_name(int type);
const char *await_class_name(int class_);
MUST_USE bool process_state_parse(struct bytes name, int *out);
MUST_USE bool await_class_parse(struct bytes name, int *out);

/* Every state but running is terminal, and final. */
bool process_state_is_terminal(enum process_state state);

/* success -> completed, failure -> failed, cancelled -> cancelled, and back.  The state
 * of await_type_of is terminal. */
enum process_state await_state(enum await_type type);
enum await_type await_type_of(enum process_state state);

/* "process.completed", "process.failed", "process.cancelled" of a terminal state. */
const char *process_state_event(enum process_state state);

/* Texts and values are borrowed. */
struct await_output {
    enum await_type type;
    enum await_class class_; /* failure */
    struct bytes code;       /* failure */
    struct bytes message;    /* failure, cancelled */
    const json_t *value;     /* success: value; else raw, NULL when there is none */
    const json_t *control;   /* NULL: none */
};

/* Reads one.  Members that are not listed above are ignored; null for raw and control
 * means none.  `invalid` (reason "await_output") for a type, class or shape that is not
 * listed; *out is then untouched. */
MUST_USE belay_rc await_output_read(const json_t *value, struct await_output *out,
                                    struct belay_error *err);

/* Appends the canonical form. */
MUST_USE belay_rc await_output_write(const struct await_output *o, struct buf *out,
                                     struct belay_error *err);

/* The same with JSON that is written already: the value or raw, and control; NULL ptr:
 * none. */
struct await_parts {
    enum await_type type;
    enum await_class class_;
    struct bytes code, message;
    struct bytes value, control;
};
MUST_USE belay_rc await_parts_write(const struct await_parts *p, struct buf *out,
                                    struct belay_error *err);

#endif /* POLICY_AWAIT_OUTPUT_H */
