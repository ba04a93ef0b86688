/* event_select.h - taking a value out of a payload.
 *
 *   "payload"                      the whole
 *   {"pointer":"/a/0"}             RFC 6901; no match is an error
 *   {"const":v}                    v
 *   {"template":{"template":"..{x}..","fields":{"x":S}}}   a string; fields by name in
 *                                  bytewise order, each {name} replaced everywhere by the
 *                                  text form of what S selects; what was put in is looked
 *                                  at again for the names that follow
 *   {"present":"/a"}               whether the pointer matches (null is there)
 *
 * Text form: a string is itself, anything else its canonical JSON.  Truth: null is false,
 * a boolean itself, a string, array or object true when it is not empty, a number always.
 *
 * Pure: memory comes from the arena it is handed.
 */
#ifndef POLICY_EVENT_SELECT_H
#define POLICY_EVENT_SELECT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

#define SELECTOR_DEPTH_MAX 8      /* templates within templates */
#define SELECTOR_FIELDS_MAX 64    /* of one template */
#define SELECTOR_COUNT_MAX 256    /* selectors within one selector, itself included */
#define SELECTOR_POINTER_MAX 1024 /* bytes */
#define SELECTOR_TEXT_MAX 1048576 /* bytes of a text form, and of a template */
#define SELECTOR_WORK_MAX \
    16777216 /* bytes that one selection writes or looks through */

enum selector_kind {
    SELECTOR_PAYLOAD,
    SELECTOR_POINTER,
    SELECTOR_CONST,
    SELECTOR_TEMPLATE,
    SELECTOR_PRESENT,
};

struct selector_field;

/* Texts and values are borrowed from the JSON it was read from. */
struct selector {
    enum selector_kind kind;
    struct bytes text;   /* pointer, present: the pointer; template: the template */
    const json_t *value; /* const */
    const struct selector_field *fields; /* template: by name, in the arena */
    size_t n_fields;
};

struct selector_field {
    struct bytes name;
    struct selector selector;
};

/* Reads a declared selector.  `invalid` (reason "selector"), "<what>: ..." for any other
 * shape, an unknown or second member, a pointer that does not begin with "/" (unless it
 * is empty) or has a ~ before anything but 0 and 1, and anything beyond the limits above.
 * `what` names it in the message. */
MUST_USE belay_rc selector_read(const json_t *declared, const char *what,
                                struct belay_arena *a, struct selector *out,
                                struct belay_error *err);

/* Appends the canonical form: what selector_read reads as the same selector. */
MUST_USE belay_rc selector_write(const struct selector *s, struct buf *out,
                                 struct belay_error *err);

/* What was selected: a value that is borrowed (from the payload or the declaration), or a
 * string or boolean made on the way, which has no json_t. */
struct selected {
    const json_t *value; /* NULL: made, then */
    bool is_text;        /* a string; else a boolean */
    struct bytes text;   /* in the arena */
    bool truth;
};

/* `invalid`: reason "pointer", "payload pointer `P` did not match"; reason "too_large"
 * for a text over SELECTOR_TEXT_MAX or work over SELECTOR_WORK_MAX. */
MUST_USE belay_rc selector_select(const struct selector *s, const json_t *payload,
                                  struct belay_arena *a, struct selected *out,
                                  struct belay_error *err);

bool selected_is_true(const struct selected *s);

/* The text form, in the arena or borrowed.  `invalid` (too_large) over
 * SELECTOR_TEXT_MAX. */
MUST_USE belay_rc selected_text(const struct selected *s, struct belay_arena *a,
                                struct bytes *out, struct belay_error *err);

/* The canonical JSON, appended. */
MUST_USE belay_rc selected_write(const struct selected *s, struct buf *out,
                                 struct belay_error *err);

/* The value a pointer leads to, or NULL.  A malformed pointer leads nowhere. */
const json_t *pointer_find(const json_t *value, struct bytes pointer);

/* As RFC 6901 spells it, and at most SELECTOR_POINTER_MAX bytes. */
bool pointer_is_valid(struct bytes pointer);

#endif /* POLICY_EVENT_SELECT_H */
