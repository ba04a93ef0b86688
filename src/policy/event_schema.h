/* event_schema.h - whether a payload is what an event type says it is.
 *
 * The language is a part of JSON Schema; docs/events.md describes it.  A schema is an
 * object of keywords, or true (anything) or false (nothing).  Keywords that are not
 * listed here are ignored.
 *
 *   anyOf, oneOf   one of the schemas accepts; nothing else of this schema is looked
 *                  at.  anyOf goes before oneOf.  oneOf does not count the matches.
 *   enum           the value is one of these
 *   type           a name or a list of names: null boolean string integer number array
 *                  object.  An integer is written as one: 2.0 is none.  A name that is
 *                  none of these accepts.
 *   minimum, maximum       of numbers, inclusive, compared exactly
 *   minLength, maxLength   of strings, in Unicode scalar values
 *   minItems, maxItems, items            of arrays
 *   required, properties                 of objects
 *   additionalProperties   with properties: absent or false refuses other keys, true
 *                  allows them, a schema is for them.  Without properties: ignored.
 *
 * The key __session_id__ is never refused as unexpected, nor checked as an additional
 * one.  A keyword looks only at values it is about: minLength accepts every number.
 *
 * Pure: memory comes from the arena it is handed, and is used for messages alone.
 */
#ifndef POLICY_EVENT_SCHEMA_H
#define POLICY_EVENT_SCHEMA_H

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"

/* Schemas within a schema, itself included. */
#define EVENT_SCHEMA_NODES_MAX 4096

/* Steps one validation may take: a step is a value against a schema, a name that is
 * looked up, a member of an enum, or 64 bytes that are compared or counted. */
#define EVENT_SCHEMA_WORK_MAX 4000000

/* Whether the schema can be used: every keyword of the list has the shape it needs
 * (limits of lengths and items are integers from 0; anyOf, oneOf and type lists are not
 * empty), nesting is within JSON_DEPTH_MAX, no more than EVENT_SCHEMA_NODES_MAX schemas.
 * `invalid` (reason "schema"), "<where>: <what>", where is a dotted path of keywords
 * ("schema" is the root: "schema.properties.line.minLength: ..."). */
MUST_USE belay_rc event_schema_check(const json_t *schema, struct belay_arena *a,
                                     struct belay_error *err);

/* Whether the schema accepts the payload.  The schema need not be checked: a keyword of
 * a wrong shape is ignored, as is a schema that is neither object nor boolean.
 *
 * `invalid`, with the path of the value ("arguments" is the root; a.b[2].c):
 *   reason "payload"      "<path>: required property missing"
 *                         "<path>: unexpected property"
 *                         "<path>: expected <what>, got <value>"
 *                         "<path>: expected one of <values>, got <value>"
 *                         "<path>: no value is allowed"
 *   reason "schema_work"  more than EVENT_SCHEMA_WORK_MAX steps, whatever would come of it
 *   reason "too_deep"     payload or schema nested deeper than JSON_DEPTH_MAX
 * Long paths lose their beginning, long values their end; both then have "...".
 * Required names are asked first, in their order, then properties in the schema's order,
 * then other keys: the least of them that is refused, or the first that does not fit
 * the schema for them in the payload's order. */
MUST_USE belay_rc event_schema_validate(const json_t *schema, const json_t *payload,
                                        struct belay_arena *a, struct belay_error *err);

#endif /* POLICY_EVENT_SCHEMA_H */
