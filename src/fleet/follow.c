#include "fleet/follow.h"

#include "fleet/impl.h"

belay_rc fleet_follow_begin(struct fleet_follow *w, struct belay_fleet *f,
                            uint32_t what, struct belay_cancel *cancel,
                            struct belay_error *err)
{
    struct belay_notify word;
    char name[RING_WORD_MAX];
    belay_rc rc = fleet_check_member(f, err);

    if (rc != BELAY_OK)
        return rc;
    *w = (struct fleet_follow){ .can_nap = park_words_work() };
    if ((what & FOLLOW_CONTESTS) != 0)
        w->words[w->n++].word = &f->log.shared->followers;
    if ((what & FOLLOW_MESSAGES) != 0) {
        /* The ring may have yet to be; its word is as good before. */
        ring_word_name(BELAY_FLEET_EVENT_KIND, name);
        rc = belay_notify_open(f, name, &word, err);
        if (rc != BELAY_OK)
            return rc;
        w->words[w->n++].word = &f->words[word.slot].value;
    }
    w->cancel = cancel;
    cancel_attach(cancel, &w->link, &w->parker);
    return BELAY_OK;
}

void fleet_follow_mark(struct fleet_follow *w)
{
    for (size_t i = 0; i < w->n; i++)
        w->words[i].value = word_mark(w->words[i].word);
    /* What is looked at next is as of after the marks. */
    fence_full();
}

void fleet_follow_nap(struct fleet_follow *w)
{
    if (w->can_nap)
        parker_nap(&w->parker, w->words, w->n, FOLLOW_NAP_US);
    else
        futex_wait(w->words[0].word, w->words[0].value, WAIT_SLICE_US);
}

void fleet_follow_end(struct fleet_follow *w)
{
    if (w->n > 0)
        cancel_detach(w->cancel, &w->link);
    w->n = 0;
}
