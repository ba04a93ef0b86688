#include "work/host.h"

#include "work/lease.h"

bool host_join(struct host *h)
{
    return h && h->ops->join(h);
}

bool host_proves_dead(struct host *h, const struct lease_holder *who)
{
    if (!h || !atomic_load_explicit(&h->is_joined, memory_order_acquire))
        return false;
    /* H2 */
    if (who->member.len == 0 || who->boot.len == 0 ||
        !bytes_eq(who->boot, h->self.boot) || !bytes_eq(who->host, h->self.host))
        return false;
    return h->ops->is_dead(h, who);
}

bool host_hold(struct host *h, struct host_seat *s)
{
    return !h || h->ops->hold(h, s);
}

void host_yield(struct host *h, struct host_seat *s)
{
    if (h)
        h->ops->yield(h, s);
}

uint64_t host_mark(struct host *h)
{
    return h ? atomic_load(&h->sweeps) : 0;
}

belay_rc host_settle(struct host *h, uint64_t mark, bool *again,
                     struct belay_error *err)
{
    *again = false;
    if (!h || !h->ops->settle || !host_join(h))
        return BELAY_OK;
    belay_rc rc = h->ops->settle(h, err);
    *again = host_mark(h) != mark;
    return rc;
}
