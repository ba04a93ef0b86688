/* Inside of event_select: templates. */
#ifndef POLICY_EVENT_SELECT_IMPL_H
#define POLICY_EVENT_SELECT_IMPL_H

#include "policy/event_select.h"

/* What one selection may still do. */
struct selection {
    const json_t *payload;
    size_t left; /* bytes */
    struct belay_arena *arena;
    struct belay_error *err;
};

belay_rc selection_too_large(const struct selection *s);

/* Replaces "{name}" by `by` everywhere in *text; what was put in is not looked at. */
MUST_USE belay_rc template_replace(struct selection *s, struct bytes *text,
                                   struct bytes name, struct bytes by);

#endif /* POLICY_EVENT_SELECT_IMPL_H */
