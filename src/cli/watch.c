#include "cli/watch.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/report.h"

#define SLICE_US 50000
#define CLEAR "\033[H\033[2J" /* to the corner; empty from there on */

static int64_t interval_us(const struct request *r)
{
    for (size_t i = 0; i < r->n_values; i++) {
        if (strcmp(r->values[i].arg->name, "every") == 0)
            return r->values[i].number * 1000;
    }
    return INT64_C(1000000);
}

/* False: told to stop. */
static bool pause_for(int64_t us, const struct belay_cancel *cancel)
{
    const struct belay_clock clock = clock_system();

    while (us > 0 && !belay_cancel_triggered(cancel)) {
        int64_t slice = us < SLICE_US ? us : SLICE_US;
        clock.sleep_us(clock.arg, slice);
        us -= slice;
    }
    return !belay_cancel_triggered(cancel);
}

belay_rc watch_run(const struct watched *what, const struct request *r, int out,
                   const struct belay_cancel *cancel, struct belay_error *err)
{
    bool is_table = r->output == OUTPUT_TABLE && !r->quiet;
    const char *before = isatty(out) ? CLEAR : "";
    const int64_t us = interval_us(r);
    belay_rc rc = BELAY_OK;

    do {
        json_t *result CLEANUP(json_decrefp) = NULL;
        struct buf text CLEANUP(buf_release) = { 0 };

        rc = what->ask(what->arg, &result, err);
        if (rc == BELAY_OK && is_table)
            buf_append_str(&text, before);
        if (rc == BELAY_OK)
            rc = output_render(r->op, result, r->output, r->quiet, &text, err);
        if (rc == BELAY_OK)
            rc = report_write(out, buf_view(&text), err);
        if (!isatty(out))
            before = "\n";
    } while (rc == BELAY_OK && pause_for(us, cancel));
    return rc;
}
