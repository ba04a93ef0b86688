#include "cli/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "cli/report.h"

/* --- items --- */

static bool is_stderr(const json_t *item)
{
    const char *kind = json_string_value(json_object_get(item, "kind"));

    return kind && strcmp(kind, "stderr") == 0;
}

static belay_rc render(struct follower *f, const json_t *item, struct buf *text,
                       struct belay_error *err)
{
    if (f->format != OUTPUT_TABLE)
        return output_line(item, text, err);
    if (!f->quiet && output_body(f->op, item, text))
        return text->failed ? err_no_memory(err, "the output") : BELAY_OK;
    return output_row(f->op, item, f->quiet, &f->rows, text, err);
}

belay_rc follow_emit(void *follower, const json_t *item, struct belay_error *err)
{
    struct follower *f = follower;
    struct buf text CLEANUP(buf_release) = { 0 };
    bool aside = f->format == OUTPUT_TABLE && f->op->body_is_text && is_stderr(item);
    belay_rc rc = render(f, item, &text, err);

    if (rc != BELAY_OK)
        return rc;
    if (!report_write_all(aside ? f->err : f->out, buf_view(&text)))
        return err_reason(err, BELAY_UNAVAILABLE, "output",
                          "standard %s: cannot be written: %s",
                          aside ? "error" : "output", strerror(errno));
    return BELAY_OK;
}

/* --- the end --- */

static void *listen_for_signals(void *arg)
{
    struct stopper *s = arg;
    int n = 0, number;

    while (!atomic_load(&s->is_over)) {
        if (sigwait(&s->signals, &number) || atomic_load(&s->is_over))
            continue;
        if (s->has_relay) {
            char byte = (char)number;
            ssize_t told = write(s->relay[1], &byte, 1);
            (void)told; /* full of signals that nobody has looked at */
        }
        if (atomic_load(&s->is_relaying))
            continue;
        if (n++ > 0)
            _exit(128 + number); /* somebody is in a hurry */
        belay_cancel_trigger(s->cancel);
    }
    return NULL;
}

static void close_relay(struct stopper *s)
{
    if (!s->has_relay)
        return;
    (void)close(s->relay[0]);
    (void)close(s->relay[1]);
    s->has_relay = false;
}

int stopper_relay(struct stopper *s)
{
    atomic_store(&s->is_relaying, true);
    return s->relay[0];
}

belay_rc stopper_start(struct stopper *s, struct belay_error *err)
{
    struct belay_cancel *cancel;

    if (s->has_relay && pipe2(s->relay, O_CLOEXEC | O_NONBLOCK)) {
        s->has_relay = false;
        return err_reason(err, BELAY_UNAVAILABLE, "descriptors",
                          "too many files are open");
    }
    belay_rc rc = belay_cancel_new(&cancel, err);
    if (rc != BELAY_OK) {
        close_relay(s);
        return rc;
    }
    (void)sigemptyset(&s->signals);
    (void)sigaddset(&s->signals, SIGINT);
    (void)sigaddset(&s->signals, SIGTERM);
    (void)sigaddset(&s->signals, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &s->signals, &s->before);
    s->cancel = cancel;
    if (pthread_create(&s->thread, NULL, listen_for_signals, s) == 0)
        return BELAY_OK;
    (void)pthread_sigmask(SIG_SETMASK, &s->before, NULL);
    belay_cancel_free(cancel);
    s->cancel = NULL;
    close_relay(s);
    return err_reason(err, BELAY_UNAVAILABLE, "threads", "no thread can be started");
}

void stopper_stop(struct stopper *s)
{
    if (!s->cancel)
        return;
    atomic_store(&s->is_over, true);
    (void)pthread_kill(s->thread, SIGINT); /* blocked there: only ends the waiting */
    (void)pthread_join(s->thread, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &s->before, NULL);
    belay_cancel_free(s->cancel);
    s->cancel = NULL;
    close_relay(s);
}
