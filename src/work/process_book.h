/* process_book.h - what was registered, read once and kept.
 *
 * A registration never changes while its process is there; another one of the same id has
 * another hash, or the same content.  So whoever has one from the book compares its hash
 * with that of the process's row, which he guards, and asks anew where they differ.
 */
#ifndef WORK_PROCESS_BOOK_H
#define WORK_PROCESS_BOOK_H

#include "work/process_rows.h"

/* Texts and JSON are its own, and nobody changes them. */
struct proc_reg {
    struct bytes id, hash, kind, owner_session;
    struct bytes owner_frame, caused_by; /* ptr NULL: none */
    const json_t *event_types;
};

/* The registration of a process, from the book or, where it is not there or `anew`, from
 * the store.  not_found, `corrupt`.  Whoever got it drops it. */
MUST_USE belay_rc proc_reg_get(const struct proc_site *site, struct bytes id, bool anew,
                               const struct proc_reg **out, struct belay_error *err);
/* In a body: of its row. */
MUST_USE belay_rc proc_reg_of(struct txn *t, const struct row *spec,
                              const struct proc_reg **out);
void proc_reg_drop(const struct proc_reg *r); /* takes NULL */

/* Fits CLEANUP. */
static inline void proc_reg_dropp(const struct proc_reg **r)
{
    proc_reg_drop(*r);
}

#endif /* WORK_PROCESS_BOOK_H */
