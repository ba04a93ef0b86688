/* Batches: that they stand where their rows say, and that the rows can be true. */
#include "work/check_impl.h"
#include "work/queue_rows.h"

/* Q2 */
static belay_rc expect_batch(struct check *c, const struct row *row,
                             struct belay_error *err)
{
    CLEANUP(buf_release) struct buf index = { 0 };
    char text[I64_TEXT_MAX];
    int64_t seq = batch_seq(row);
    struct bytes member = bytes_of(text, bytes_put_i64(text, seq));

    buf_append_str(&index, batch_is_ready(row) ? READY_INDEX : DUE_INDEX);
    buf_append(&index, row_bytes(row, BATCH_SESSION));
    if (index.failed)
        return err_no_memory(err, "a check");
    return check_expect_rank(c, buf_view(&index), member,
                             row_i64(row, BATCH_DUE_AT_MS, seq), err);
}

belay_rc check_inbox_row(struct check *c, const struct row *row,
                         struct belay_error *err)
{
    struct bytes session = row_bytes(row, INBOX_SESSION);
    belay_rc rc = check_told(c, TALLY_FRONT, session, 1, err);

    return rc ? rc
              : check_told_more(c, TALLY_BATCHES, session, inbox_last_seq(row), err);
}

belay_rc check_inbox_front_row(struct check *c, const struct row *row,
                               struct belay_error *err)
{
    struct bytes session = row_bytes(row, INBOX_FRONT_SESSION);
    belay_rc rc = check_seen(c, TALLY_FRONT, session, 0, err);

    return rc ? rc
              : check_told_more(c, TALLY_BATCHES, session,
                                -row_i64(row, INBOX_FRONT_GONE, 0), err);
}

belay_rc check_batch_row(struct check *c, const struct row *row,
                         struct belay_error *err)
{
    struct belay_error why = { .code = 0 };
    unsigned column = batch_fault(row);
    belay_rc rc = expect_batch(c, row, err);

    if (rc == BELAY_OK)
        rc = check_seen(c, TALLY_BATCHES, row_bytes(row, BATCH_SESSION), 0, err);
    if (rc || column == BATCH_COLUMNS)
        return rc;
    (void)batch_corrupt(row, column, &why);
    return check_found(c, "bad_value", row_bytes(row, BATCH_ID), err, "%s",
                       why.message);
}
