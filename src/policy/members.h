/* members.h - JSON objects whose members are known by name.
 *
 * Pure: no I/O, no memory.
 */
#ifndef POLICY_MEMBERS_H
#define POLICY_MEMBERS_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/json.h"

struct member {
    const char *name;
    const json_t **out;
};

/* Puts each member where the table says, NULL for those that are absent or null.
 * `invalid` with that reason, "<what>: ...", for what is no object or has a member that
 * is not in the table; outputs are then of no use. */
MUST_USE belay_rc members_read(const json_t *value, const struct member *table,
                               size_t n, const char *reason, const char *what,
                               struct belay_error *err);

/* The content of a string; empty, with a NULL ptr, for anything else. */
static inline struct bytes json_bytes(const json_t *value)
{
    return bytes_of(json_string_value(value), json_string_length(value));
}

/* How deep the brackets of a text nest that json_write has written.  What is made of several
 * values may nest deeper than json_read takes, and must not be stored then. */
size_t json_nesting(struct bytes text);

/* For json_object_iter and its kin, which only read but are not declared so. */
static inline json_t *json_walked(const json_t *object)
{
    return (json_t *)object;
}

/* Text of the caller's in a message: at most SHOWN_NAME bytes of it, whole characters,
 * with control characters and backslashes made visible as \xNN.  For
 * use within one call: err_set(err, code, "%s", shown(name).text). */
#define SHOWN_NAME 40
struct shown {
    char text[4 * SHOWN_NAME + 1];
};
struct shown shown(struct bytes text);

#endif /* POLICY_MEMBERS_H */
