/* value.h - the latest value of something, for every member of a fleet.
 *
 *     struct load { uint64_t jobs, waiting; } l = { 3, 40 };
 *     struct belay_value v;
 *     if (belay_value_open(f, 7, "load", sizeof(l), 1, &v, &err) == BELAY_OK)
 *         rc = belay_value_store(&v, &l, NULL, &err);
 *     ...
 *     rc = belay_value_load(&v, &l, NULL, &err);
 *
 * A value is bytes of a fixed length that belong to a kind of the fleet.  Every member stores
 * into two buffers of its own, in turns, and one word says whose is the latest.
 *
 *   V1  A value is loaded whole or not at all; nothing torn is returned.
 *   V2  All stores of a kind happen in one order, each at one moment between call and return;
 *       who has loaded one never loads an earlier one afterwards.
 *   V3  A member killed while it stores leaves the value that was, or its own; never another,
 *       and never none.  A store that was cut short may also show when its node stores next.
 *   V4  Storing and loading take the same time however many members there are.  A load tries
 *       again when its buffer was reused meanwhile, which takes two further stores.
 *   V5  A kind has one length, name and schema: another is refused (invalid, schema), and so is
 *       a kind that is a ring.
 *
 * A reset of the fleet forgets the value.  Where a call fails its outputs are as they were;
 * only `out` of a value over 512 bytes may then hold anything.
 */
#ifndef BELAY_VALUE_H
#define BELAY_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include <belay/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct belay_fleet;
struct belay_ring;

#define BELAY_VALUE_LEN_MAX 65536

/* A kind that is open; a value that may be copied, good until the handle leaves.  Members are
 * read-only. */
struct belay_value {
    struct belay_ring *ring;
    uint32_t len;
};

/* Opens the kind (0 to 199, 202 to 219, 223 to 255), creating it when it is not there yet.
 * An observer opens what is there; `not_found` otherwise.
 *   invalid  the kind is reserved (kind), len is not 1 to BELAY_VALUE_LEN_MAX (too_large), or
 *            it is another's (schema) */
BELAY_API BELAY_MUST_USE belay_rc belay_value_open(struct belay_fleet *f, uint8_t kind,
                                                   const char *name, size_t len,
                                                   uint64_t schema,
                                                   struct belay_value *out,
                                                   struct belay_error *err);

/* Makes the `len` bytes at data the latest.  *out_id (may be NULL) is a NetId64. */
BELAY_API BELAY_MUST_USE belay_rc belay_value_store(const struct belay_value *v,
                                                    const void *data, uint64_t *out_id,
                                                    struct belay_error *err);

/* The latest into out; *out_id (may be NULL) says who stored it.
 *   not_found   nobody stored any since the last reset
 *   contention  stores come faster than they can be copied */
BELAY_API BELAY_MUST_USE belay_rc belay_value_load(const struct belay_value *v,
                                                   void *out, uint64_t *out_id,
                                                   struct belay_error *err);

/* One by its id, as long as its member has not stored two more; `not_found` otherwise. */
BELAY_API BELAY_MUST_USE belay_rc belay_value_load_id(const struct belay_value *v,
                                                      uint64_t id, void *out,
                                                      struct belay_error *err);

#ifdef __cplusplus
}
#endif

#endif /* BELAY_VALUE_H */
