/* check.h - everything that must be true of a store, looked at.
 *
 * Each namespace is read in one snapshot, so that people may go on working meanwhile.
 * Codes of what is found:
 *
 *     missing_row, bad_value       rows that every namespace has
 *     unsupported_format           this program is too old for the namespace
 *     rank_without_row, wrong_rank, row_without_rank
 *     log_gap                      a sequence is missing in a log
 *     wrong_count, wrong_revision, missing_blob: rows that tell about others
 *     audit_broken                 audit.h
 *     missing_chunk, wrong_size, hash_mismatch, bad_blob, orphan_chunk
 *     unreadable                   the store could not read some of it
 *
 * and whatever the driver finds below the shapes (driver.h), as it calls it.
 */
#ifndef WORK_CHECK_H
#define WORK_CHECK_H

#include "store/txn.h"

/* Findings that are reported; the rest is only counted. */
#define CHECK_FINDINGS_MAX 1000

struct check_counts {
    int64_t namespaces, deleting; /* deleting: in the registry, not looked into */
    int64_t rows, ranks, logs, feeds, blobs, chunks, audits; /* entries of each */
    int64_t findings;
};

/* Reports what is wrong.  BELAY_OK when everything could be looked at, whatever was
 * found. */
MUST_USE belay_rc check_store(struct store *s, finding_report *report, void *arg,
                              struct check_counts *out, struct belay_error *err);

#endif /* WORK_CHECK_H */
