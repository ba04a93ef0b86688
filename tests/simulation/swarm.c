/* What a seed enables.  Each seed takes a random part of the operations and of the
 * faults, at mild or extreme rates: rare mixes appear that no average ever shows. */
#include "sim.h"

/* clang-format off */
static const struct {
    const char *name;
    op_run *run;
    unsigned most; /* weight of it at most */
} ops[OP_KINDS + 1] = {
    [OP_RMW]         = { "rmw",         op_rmw,         8 },
    [OP_TRANSFER]    = { "transfer",    op_transfer,    8 },
    [OP_SKEW]        = { "skew",        op_skew,        8 },
    [OP_CHURN]       = { "churn",       op_churn,       8 },
    [OP_ABSENCE]     = { "absence",     op_absence,     8 },
    [OP_COUNT]       = { "count",       op_count,       8 },
    [OP_PUT_COUNTED] = { "put_counted", op_put_counted, 6 },
    [OP_PRODUCE]     = { "produce",     op_produce,     8 },
    [OP_CLAIM_PICK]  = { "claim_pick",  op_claim_pick,  8 },
    [OP_CLAIM_SCAN]  = { "claim_scan",  op_claim_scan,  5 },
    [OP_FINISH]      = { "finish",      op_finish,      5 },
    [OP_RERANK]      = { "rerank",      op_rerank,      5 },
    [OP_LOG_APPEND]  = { "log_append",  op_log_append,  8 },
    [OP_LOG_TRIM]    = { "log_trim",    op_log_trim,    4 },
    [OP_FEED_APPEND] = { "feed_append", op_feed_append, 8 },
    [OP_FEED_TAIL]   = { "feed_tail",   op_feed_tail,   6 },
    [OP_FEED_TRIM]   = { "feed_trim",   op_feed_trim,   4 },
    [OP_SIGNAL]      = { "signal",      op_signal,      8 },
    [OP_WAIT]        = { "wait",        op_wait,        4 },
    [OP_HUNT]        = { "hunt",        op_hunt,        8 },
    [OP_FAIL]        = { "fail",        op_fail,        4 },
    [OP_CHUNK]       = { "chunk",       op_chunk,       5 },
    [OP_BLOB_PUT]    = { "blob_put",    op_blob_put,    3 },
    [OP_BLOB_GET]    = { "blob_get",    op_blob_get,    3 },
    [OP_SWEEP]       = { "sweep",       op_sweep,       2 },
    [OP_PRUNE]       = { "prune",       op_prune,       3 },
    [OP_NEW_SPACE]   = { "new_space",   op_new_space,   3 },
    [OP_NOW]         = { "now",         op_now,         5 },
    [OP_ENQUEUE]     = { "enqueue",     op_enqueue,     9 },
    [OP_CLAIM]       = { "claim",       op_claim,       6 },
    [OP_CLAIM_EXACT] = { "claim_exact", op_claim_exact, 2 },
    [OP_RENEW]       = { "renew",       op_renew,       4 },
    [OP_ABANDON]     = { "abandon",     op_abandon,     4 },
    [OP_FORGE]       = { "forge",       op_forge,       4 },
    [OP_CANCEL]      = { "cancel",      op_cancel,      2 },
    [OP_DROP]        = { "drop",        op_drop,        1 },
    [OP_LIST]        = { "list",        op_list,        2 },
    [OP_WORK]        = { "work",        op_work,        7 },
    [OP_COMMIT]      = { "commit",      op_commit,      5 },
    [OP_COMPLETE]    = { "complete",    op_complete,    6 },
    [OP_RETRY_TURN]  = { "retry_turn",  op_retry_turn,  4 },
    [OP_HEAD]        = { "read_head",   op_head,        2 },
    [OP_DELETE]      = { "delete",      op_delete,      1 },
    [OP_PUT]         = { "put",         op_put,         4 },
    [OP_PIN]         = { "pin",         op_pin,         3 },
    [OP_UNPIN]       = { "unpin",       op_unpin,       2 },
    [OP_COLLECT]     = { "collect",     op_collect,     5 },
    [OP_LOAD]        = { "load",        op_load,        2 },
    [OP_SPOIL]       = { "spoil",       op_spoil,       1 },
    [OP_EPOCH]       = { "epoch",       op_epoch,       1 },
    [OP_XSUBMIT]     = { "submit",      op_xsubmit,     9 },
    [OP_XCLAIM]      = { "take",        op_xclaim,      4 },
    [OP_XWORK]       = { "do_work",     op_xwork,       9 },
    [OP_XFINISH]     = { "end_attempt", op_xfinish,     6 },
    [OP_XRENEW]      = { "renew_lease", op_xrenew,      4 },
    [OP_XPROGRESS]   = { "progress",    op_xprogress,   2 },
    [OP_XFRAMES]     = { "frames",      op_xframes,     4 },
    [OP_XFORGE]      = { "forge_handle", op_xforge,     4 },
    [OP_XCANCEL]     = { "cancel_it",   op_xcancel,     2 },
    [OP_XREPLAY]     = { "replay_it",   op_xreplay,     4 },
    [OP_XPRIORITY]   = { "priority",    op_xpriority,   3 },
    [OP_XREVOKE]     = { "revoke",      op_xrevoke,     4 },
    [OP_XTAG]        = { "tag",         op_xtag,        2 },
    [OP_XGRANT]      = { "grant",       op_xgrant,      4 },
    [OP_XREDEEM]     = { "redeem",      op_xredeem,     4 },
    [OP_XTIMERS]     = { "timers",      op_xtimers,     6 },
    [OP_XEPOCH]      = { "raise_epoch", op_xepoch,      1 },
    [OP_PREGISTER]   = { "register",    op_pregister,   5 },
    [OP_PAPPEND]     = { "append",      op_pappend,     8 },
    [OP_PSAY]        = { "say",         op_psay,        8 },
    [OP_PCOMPLETE]   = { "end_process", op_pcomplete,   4 },
    [OP_PCANCEL]     = { "ask_to_end",  op_pcancel,     3 },
    [OP_PREF]        = { "refer",       op_pref,        2 },
    [OP_PLEASE]      = { "lease",       op_please,      6 },
    [OP_PRENEW]      = { "prolong",     op_prenew,      4 },
    [OP_PRELEASE]    = { "give_back",   op_prelease,    4 },
    [OP_PWORKER]     = { "run_process", op_pworker,     6 },
    [OP_PACK]        = { "acknowledge", op_pack,        3 },
    [OP_PGRANT]      = { "grant_it",    op_pgrant,      8 },
    [OP_PREVOKE]     = { "revoke_it",   op_prevoke,     3 },
    [OP_PTRANSFER]   = { "hand_over",   op_ptransfer,   5 },
    [OP_PFORGET]     = { "forget",      op_pforget,     3 },
    [OP_PLOOK]       = { "look",        op_plook,       4 },
    [OP_PCHANGES]    = { "changes",     op_pchanges,    4 },
    [OP_PINBOX]      = { "inbox",       op_pinbox,      6 },
    [OP_PDROP]       = { "drop_wake",   op_pdrop,       2 },
    [OP_PEXEC]       = { "execute",     op_pexec,       4 },
    [OP_PDELETE]     = { "remove",      op_pdelete,     3 },
    [OP_PTIMERS]     = { "purge",       op_ptimers,     4 },
    [OP_PSPOIL]      = { "lose_end",    op_pspoil,      1 },
    [OP_PEPOCH]      = { "new_epoch",   op_pepoch,      1 },
    [OP_AUDIT]       = { "audit",       op_audit,       0 },
};

/* Rates are of a million points; a schedule of 60 operations has some 500. */
static const struct {
    const char *name;
    bool commit_only, reply;
    uint32_t mild, extreme;
} faults[SIM_FAULTS] = {
    [SIM_UNAVAILABLE] = { "unavailable", false, false,  5000, 100000 },
    [SIM_CONFLICT]    = { "conflict",    true,  false, 10000, 400000 },
    [SIM_DELAY]       = { "delay",       false, false, 10000, 200000 },
    [SIM_LOST]        = { "lost",        true,  true,  20000, 250000 },
    [SIM_AFTER]       = { "after",       true,  true,  20000, 250000 },
    [SIM_LATE]        = { "late",        true,  true,  20000, 250000 },
    [SIM_DEATH]       = { "death",       false, false,  3000,  30000 },
    [SIM_RESTART]     = { "restart",     false, false,  1000,   6000 },
    [SIM_FREEZE]      = { "freeze",      false, false,  3000,  40000 },
    [SIM_CLOG]        = { "clog",        false, false,  3000,  40000 },
    [SIM_STEP]        = { "step",        false, false,  5000, 100000 },
    [SIM_LEAP]        = { "leap",        false, false,  3000,  30000 },
    [SIM_OUTAGE]      = { "outage",      false, false,  2000,  10000 },
};
/* clang-format on */

const char *op_name(enum op_kind kind)
{
    return ops[kind].name;
}

op_run *op_of(enum op_kind kind)
{
    return ops[kind].run;
}

const char *fault_text(enum fault_name f)
{
    return faults[f].name;
}

/* --- a seed's choices --- */

static uint64_t draw_of(const struct sim *s, uint64_t what)
{
    return mix(mix(s->setup->seed, 1), what);
}

/* Kinds that meet each other; many seeds take one of these and nothing else. */
#define KIND(k) (UINT64_C(1) << (k))
static const uint64_t themes[] = {
    KIND(OP_RMW) | KIND(OP_TRANSFER) | KIND(OP_HUNT) | KIND(OP_FAIL),
    KIND(OP_SKEW) | KIND(OP_ABSENCE) | KIND(OP_CHURN) | KIND(OP_HUNT),
    KIND(OP_COUNT) | KIND(OP_PUT_COUNTED) | KIND(OP_NOW),
    KIND(OP_PRODUCE) | KIND(OP_CLAIM_PICK) | KIND(OP_CLAIM_SCAN) | KIND(OP_FINISH) |
        KIND(OP_RERANK),
    KIND(OP_LOG_APPEND) | KIND(OP_LOG_TRIM) | KIND(OP_FEED_APPEND) |
        KIND(OP_FEED_TAIL) | KIND(OP_FEED_TRIM),
    KIND(OP_SIGNAL) | KIND(OP_WAIT),
    KIND(OP_CHUNK) | KIND(OP_BLOB_PUT) | KIND(OP_BLOB_GET) | KIND(OP_SWEEP),
    KIND(OP_RMW) | KIND(OP_PRUNE) | KIND(OP_NEW_SPACE) | KIND(OP_NOW),
};
static const uint64_t noun_themes[] = {
    KIND(OP_ENQUEUE) | KIND(OP_CLAIM) | KIND(OP_CLAIM_EXACT) | KIND(OP_RENEW) |
        KIND(OP_ABANDON) | KIND(OP_COMPLETE) | KIND(OP_FORGE),
    KIND(OP_ENQUEUE) | KIND(OP_WORK) | KIND(OP_RENEW) | KIND(OP_COMPLETE) |
        KIND(OP_CANCEL) | KIND(OP_DROP) | KIND(OP_LIST) | KIND(OP_EPOCH),
    KIND(OP_ENQUEUE) | KIND(OP_WORK) | KIND(OP_COMMIT) | KIND(OP_RETRY_TURN) |
        KIND(OP_HEAD) | KIND(OP_DELETE),
    KIND(OP_COMMIT) | KIND(OP_PUT) | KIND(OP_PIN) | KIND(OP_UNPIN) | KIND(OP_COLLECT) |
        KIND(OP_LOAD) | KIND(OP_SPOIL),
};

/* Likewise of executions, counted from their first one on; all of them begin with those
 * that submit and work. */
#define XKIND(k) KIND((k)-OP_EXECS)
#define XUSUAL (XKIND(OP_XSUBMIT) | XKIND(OP_XWORK))
static const uint64_t exec_themes[] = {
    XUSUAL | XKIND(OP_XCLAIM) | XKIND(OP_XFINISH) | XKIND(OP_XRENEW) | XKIND(OP_XFORGE),
    XUSUAL | XKIND(OP_XTIMERS) | XKIND(OP_XRENEW) | XKIND(OP_XCLAIM),
    XUSUAL | XKIND(OP_XCANCEL) | XKIND(OP_XREPLAY) | XKIND(OP_XPRIORITY) |
        XKIND(OP_XREVOKE) | XKIND(OP_XTAG) | XKIND(OP_XTIMERS),
    XUSUAL | XKIND(OP_XGRANT) | XKIND(OP_XREDEEM) | XKIND(OP_XTIMERS) |
        XKIND(OP_XCANCEL),
    XUSUAL | XKIND(OP_XFRAMES) | XKIND(OP_XPROGRESS) | XKIND(OP_XFORGE) |
        XKIND(OP_XREVOKE),
    XUSUAL | XKIND(OP_XFINISH) | XKIND(OP_XREVOKE) | XKIND(OP_XEPOCH) |
        XKIND(OP_XREPLAY) | XKIND(OP_XTIMERS),
};

/* And of processes: all of them register, and tell something. */
#define PKIND(k) KIND((k)-OP_PROCS)
#define PUSUAL (PKIND(OP_PREGISTER) | PKIND(OP_PAPPEND))
static const uint64_t proc_themes[] = {
    PUSUAL | PKIND(OP_PCOMPLETE) | PKIND(OP_PCANCEL) | PKIND(OP_PLOOK) |
        PKIND(OP_PCHANGES) | PKIND(OP_PSPOIL),
    PUSUAL | PKIND(OP_PLEASE) | PKIND(OP_PRENEW) | PKIND(OP_PRELEASE) |
        PKIND(OP_PWORKER) | PKIND(OP_PDELETE) | PKIND(OP_PEPOCH),
    PKIND(OP_PREGISTER) | PKIND(OP_PSAY) | PKIND(OP_PACK) | PKIND(OP_PINBOX) |
        PKIND(OP_PDROP) | PKIND(OP_PDELETE),
    PUSUAL | PKIND(OP_PGRANT) | PKIND(OP_PREVOKE) | PKIND(OP_PTRANSFER) |
        PKIND(OP_PFORGET) | PKIND(OP_PCANCEL) | PKIND(OP_PDELETE),
    PUSUAL | PKIND(OP_PCOMPLETE) | PKIND(OP_PTIMERS) | PKIND(OP_PEXEC) |
        PKIND(OP_PSAY) | PKIND(OP_PGRANT) | PKIND(OP_PCHANGES) | PKIND(OP_PLEASE),
};

static void choose_faults(struct sim *s)
{
    struct swarm *w = &s->swarm;
    bool replies = false;

    for (unsigned f = 0; f < SIM_FAULTS; f++) {
        uint64_t d = draw_of(s, 100 + f);
        w->rate[f] = 0;
        if (!((s->setup->faults >> f) & 1) || d % 5 >= 2)
            continue;
        w->rate[f] = (d >> 8) % 3 == 0 ? faults[f].extreme : faults[f].mild;
        replies |= faults[f].reply;
    }
    w->loses_replies = replies || draw_of(s, 99) % 4 == 0;
    w->far = draw_of(s, 98) % 3 == 0;
    w->seen = w->far && draw_of(s, 96) % 3 > 0;
    uint64_t oracle = draw_of(s, 97) % 6;
    w->oracle = oracle < 3 ? ORACLE_NONE : (unsigned)oracle - 2;
}

static bool is_masked(const struct mask *masks, size_t n, struct mask m)
{
    for (size_t i = 0; i < n; i++) {
        if (masks[i].actor == m.actor && masks[i].op == m.op &&
            masks[i].point == m.point)
            return true;
    }
    return false;
}

static enum op_kind choose_op(const struct sim *s, uint64_t draw, unsigned total)
{
    unsigned at = (unsigned)(draw % total), kind = 0;

    while (at >= s->swarm.weight[kind])
        at -= s->swarm.weight[kind++];
    return (enum op_kind)kind;
}

/* The programs of a replay file. */
static void take_programs(struct sim *s)
{
    size_t n = 0;

    for (unsigned i = 0; i < s->swarm.n_actors; i++) {
        struct actor *a = &s->actors[i];
        *a = (struct actor){ .sim = s, .id = i, .program = &s->ops[n] };
        for (size_t k = 0; k < s->setup->n_fixed; k++) {
            if (s->setup->fixed[k].actor != i)
                continue;
            s->ops[n++] = s->setup->fixed[k].op;
            a->n_ops++;
        }
    }
    s->n_actors = s->swarm.n_actors;
}

static void write_programs(struct sim *s, unsigned total)
{
    const struct setup *u = s->setup;
    unsigned each = u->ops / s->swarm.n_actors + 1;
    size_t n = 0;

    for (unsigned i = 0; i < s->swarm.n_actors; i++) {
        struct actor *a = &s->actors[i];
        *a = (struct actor){ .sim = s, .id = i, .program = &s->ops[n] };
        for (unsigned k = 0; k < each && n < OPS_MAX - SPACES_MAX; k++) {
            uint64_t r = mix(draw_of(s, 2), i * 100003U + k);
            struct op op = { .kind = choose_op(s, mix(r, 5), total),
                             .number = k,
                             .r = r };
            if (is_masked(u->no_ops, u->n_no_ops, (struct mask){ i, k, 0 }))
                continue;
            s->ops[n++] = op;
            a->n_ops++;
        }
    }
    s->n_actors = s->swarm.n_actors;
}

/* The kinds of a mode: from the first one to before the last, and its themes. */
struct kinds {
    unsigned first, last, usual;
    const uint64_t *themes;
    size_t n_themes;
};

static struct kinds kinds_of(const struct setup *u)
{
    if (u->nouns)
        return (struct kinds){ OP_NOUNS, OP_EXECS, OP_ENQUEUE, noun_themes,
                               COUNT_OF(noun_themes) };
    if (u->execs)
        return (struct kinds){ OP_EXECS, OP_PROCS, OP_XSUBMIT, exec_themes,
                               COUNT_OF(exec_themes) };
    if (u->procs)
        return (struct kinds){ OP_PROCS, OP_KINDS, OP_PREGISTER, proc_themes,
                               COUNT_OF(proc_themes) };
    return (struct kinds){ 0, OP_NOUNS, OP_RMW, themes, COUNT_OF(themes) };
}

/* Which kinds, and how often; returns the sum of their weights. */
static unsigned choose_kinds(struct sim *s)
{
    struct kinds of = kinds_of(s->setup);
    unsigned rare = 2 + (unsigned)(draw_of(s, 19) % 3); /* few kinds, or many */
    uint64_t theme = draw_of(s, 20) % (2 * of.n_themes);
    unsigned total = 0, base = of.first >= OP_EXECS ? of.first : 0;

    for (unsigned k = 0; k < OP_KINDS; k++) {
        uint64_t d = draw_of(s, 200 + k);
        bool own = k >= of.first && k < of.last;
        bool in_theme =
            own && theme < of.n_themes && (of.themes[theme] >> (k - base) & 1U) != 0;
        bool taken = theme < of.n_themes ? in_theme : d % rare == 0;
        taken &= own;
        s->swarm.weight[k] = taken ? 1 + (unsigned)((d >> 8) % ops[k].most) : 0;
        total += s->swarm.weight[k];
    }
    return total;
}

/* Where hosts know of each other, processes die, and others look: with how much weight. */
static unsigned add_deaths(struct sim *s)
{
    const struct setup *u = s->setup;
    struct swarm *w = &s->swarm;
    enum op_kind look = u->execs ? OP_XTIMERS : u->procs ? OP_PLEASE : OP_CLAIM;
    unsigned more = u->execs ? 6 : 4;

    if ((u->nouns || u->procs) && ((u->faults >> SIM_RESTART) & 1))
        w->rate[SIM_RESTART] = faults[SIM_RESTART].extreme;
    if (!is_work(u) || (u->nouns && w->weight[OP_ENQUEUE] == 0))
        return 0;
    w->weight[look] += more;
    return more;
}

void swarm_make(struct sim *s)
{
    static const unsigned sticky[] = { 0, 30, 60, 90 };
    static const unsigned attempts[] = { 3, 20, 256, 256 };
    static const unsigned walks[] = { 1, 3, 8 };
    static const int64_t ticks_us[] = { 20, 500, 20000 };
    struct swarm *w = &s->swarm;

    if (s->setup->swarm) {
        *w = *s->setup->swarm;
        take_programs(s);
        return;
    }
    w->n_actors = 2 + (unsigned)(draw_of(s, 10) % 5);
    w->n_fronts = 1 + (unsigned)(draw_of(s, 11) % 3);
    w->n_spaces = 1 + (draw_of(s, 12) % 4 == 0);
    w->n_keys = 1 + (unsigned)(draw_of(s, 13) % 3);
    w->sticky = sticky[draw_of(s, 14) % COUNT_OF(sticky)];
    w->max_attempts = attempts[draw_of(s, 15) % COUNT_OF(attempts)];
    w->walk_every = walks[draw_of(s, 16) % COUNT_OF(walks)];
    w->tick_us = ticks_us[draw_of(s, 17) % COUNT_OF(ticks_us)];
    w->fault_steps = 200 + draw_of(s, 18) % 3000;
    unsigned total = choose_kinds(s);
    if (total == 0)
        total = w->weight[kinds_of(s->setup).usual] = 1;
    choose_faults(s);
    if (w->oracle != ORACLE_NONE)
        total += add_deaths(s);
    write_programs(s, total);
}

enum fault_name swarm_fault(struct sim *s, struct actor *a, enum point at,
                            uint64_t *draw)
{
    struct mask here = { a->id, a->op->number, a->n_points++ };
    uint64_t d = mix(draw_of(s, 3), ((uint64_t)here.actor << 40) +
                                        ((uint64_t)here.op << 20) + here.point);
    uint64_t at_draw = d % 1000000;

    *draw = mix(d, 1);
    for (unsigned f = 0; s->faults_on && f < SIM_FAULTS; f++) {
        bool fits = faults[f].commit_only ? at == AT_COMMIT
                                          : f != SIM_UNAVAILABLE || at <= AT_COMMIT;
        if (!fits)
            continue;
        if (at_draw >= s->swarm.rate[f]) {
            at_draw -= s->swarm.rate[f];
            continue;
        }
        if (is_masked(s->setup->no_faults, s->setup->n_no_faults, here))
            return SIM_NONE;
        if (s->n_fired < COUNT_OF(s->fired))
            s->fired[s->n_fired++] = here;
        return (enum fault_name)f;
    }
    return SIM_NONE;
}
