/* contest.pml - the words of one subject of the contest, for spin.
 *
 * Processes, each with the member slot of its own number, contend for one subject.  Every
 * statement (a `d_step` is one) is one access to shared memory or one question to the
 * kernel; between any two of them any other process may run - that is also what a pause
 * is -, time may pass, and the process may be killed, in two steps: first its keeper
 * thread is gone while its other threads still run, then all of it and its file locks are.
 * A killed process is started again and joins anew.
 *
 *   O  owner word     [generation | member | record | FREE or HELD]
 *   D  deadline word  [tag: generation mod TAGS | deadline, 0 is REVOKED]; while O is HELD
 *      and D is of another generation, the claim is under way
 *   R  records, two a member and written by it alone: the generation described
 *   M  member word    [incarnation | state], one a member
 *
 * What is checked, by assertions at the steps that could break it:
 *
 *   I1  a generation has one owner; release and renewal succeed for it alone
 *   I2  a word that is not free is taken over only after its generation was revoked, or
 *       when its owner is dead for the kernel
 *   I3  once the owner has set D, D is of its generation (not with -DWRAP: a renewer that
 *       slept until tag and deadline came round may cost somebody a lease too early; that
 *       the same happens to a claimer between its two CAS, or to one about to revoke a
 *       stalled claim, is left out: it takes the fence to tell two holders apart then)
 *   C1  no two processes hold by their own knowledge: told so, until a time to come
 *   C2  a try that began after the owner's death does not yield to it, though no time
 *       passes; with -DLIVE, a dead owner is always followed by a free word
 *   C3  a name read between two equal reads of O is of that tenure
 *   T   tokens grow from grant to grant
 *   L   with -DLOG: the log, replayed, shows nobody but the owner (a closed id stays so)
 *
 * Bounds are macros, and so are the planted bugs: with -DMUTANT_x the protocol lacks one
 * of its rules, and the model must say so, else it proves nothing (test_model.sh).
 */

#ifndef N
#define N 3
#endif
#ifndef OPS
#define OPS 3 /* operations in all */
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef TICKS
#define TICKS 1
#endif
#ifndef RESETS
#define RESETS 0
#endif
#ifdef WRAP
#define TAGS 2 /* a tag comes round, as it does after 65536 generations in the product */
#else
#define TAGS 16
#endif
#define TTL 1
#define GENS 16

#define FREE 0
#define HELD 1
#define word(g_, m_, r_, s_) (((g_) << 4) | ((m_) << 2) | ((r_) << 1) | (s_))
#define gen(o_) ((o_) >> 4)
#define member(o_) (((o_) >> 2) & 3)
#define rec(o_) (((o_) >> 1) & 1)
#define state(o_) ((o_) & 1)
#define next_free(o_) word(gen(o_) + 1, 0, 0, FREE)

#define due(g_, d_) ((((g_) % TAGS) << 4) | (d_))
#define of(w_, g_) (((w_) >> 4) == (g_) % TAGS)
#define deadline(w_) ((w_) & 15)
#define REVOKED(g_) due(g_, 0)

#define M_FREE 0
#define M_JOINING 1
#define M_LIVE 2
#define M_SWEEPING 3
#define slot(i_, s_) (((i_) << 2) | (s_))

short O = 0;
byte D = 0;
byte R[2 * N];
byte M[N];
bool keeper[N]; /* a thread of it holds the robust mutex: the hint */
bool locked[N]; /* the kernel's lock on its byte: the arbiter */
byte token, now;
byte ops, kills, resets; /* used of the bounds */

/* What only the checks know. */
#define RUNNING 0
#define DYING 1 /* the keeper is gone, siblings may still run */
#define DEAD 2
byte life[N];
byte born[N];  /* processes of that number so far */
byte Oi;       /* which of them the owner is */
bool revoked;  /* the generation in O */
bool set;      /* its owner has set D */
byte granted;  /* the last token */
#ifdef WRAP
byte Dg;       /* the whole generation of D */
#endif
bool told[N];  /* it was told that it holds ... */
byte until[N]; /* ... until then */
short mine[N]; /* ... by this word */
bool forced[N]; /* somebody reset the table meanwhile */
#ifdef LOG
bool logged[GENS], closed[GENS];
#endif

#ifdef MUTANT_SHARED_RECORD
#define record(o_) R[0]
#else
#define record(o_) R[2 * member(o_) + rec(o_)]
#endif
#define owner_dead \
    (state(O) != FREE && (life[member(O)] == DEAD || born[member(O)] != Oi))
#define holds(j) (told[j] && life[j] != DEAD && until[j] > now && !forced[j])
#if N > 2
#define alone(i) (!(holds(0) && i != 0) && !(holds(1) && i != 1) && !(holds(2) && i != 2))
#else
#define alone(i) (!(holds(0) && i != 0) && !(holds(1) && i != 1))
#endif
#ifdef WRAP
#define consistent true
#define came_round(x_) (Dg != (x_))
#define seen(x_) x_ = Dg
#define is_due(g_) Dg = g_
#else
#define came_round(x_) false
#define seen(x_) skip
#define is_due(g_) skip
#define consistent (!set || of(D, gen(O)))
#endif
/* A record that O does not name is read by nobody. */
#define own(o_, i_) \
    word(0, i_, (state(o_) == HELD && member(o_) == i_ && rec(o_) == 0 -> 1 : 0), HELD)
#ifdef MUTANT_SHARED_RECORD
#define unused(o_) skip
#else
#define unused(o_) record(o_) = (state(o_) == HELD -> 0 : record(o_))
#endif
#define changed() revoked = false; set = false; unused(O)
#define lost(i_) told[i_] = false; until[i_] = 0; mine[i_] = 0
#define forget() o = 0; w = 0; n = 0; k = 0; ok = false

/* The log.  A tenure is closed before its word changes: whoever dies in between, the next
 * one says it again, and whoever opens it later opens what is closed. */
#ifdef LOG
#define log_claim(g_) logged[g_] = true
#define log_close(g_) closed[g_] = true
#define ended(o_) (state(o_) == FREE || closed[gen(o_)])
#else
#define log_claim(g_) skip
#define log_close(g_) skip
#define ended(o_) true
#endif

/* ---- claim ----------------------------------------------------------------------------- */

/* One try.  o, w: O and D as read; n: the clock as read; k: the generation of a dead owner,
 * later the token. */
inline try(i)
{
    d_step { n = now; k = (owner_dead -> gen(O) : 0) };
retry:
    o = O;
#ifdef WRAP
    d_step { w = D; x = Dg };
#else
    w = D;
#endif
    if
    :: state(o) == FREE -> goto take
    :: state(o) == HELD && of(w, gen(o)) && deadline(w) == 0 -> goto take_over
    :: state(o) == HELD && of(w, gen(o)) && deadline(w) != 0 && deadline(w) <= n ->
#ifdef MUTANT_NO_REVOKE
        goto take_over
#else
        d_step {
            ok = (D == w && !came_round(x));
            if
            :: ok -> D = REVOKED(gen(o)); is_due(gen(o)); w = D; seen(x); revoked = revoked || gen(O) == gen(o)
            :: else
            fi
        }
        if
        :: ok -> goto take_over
        :: else -> goto retry
        fi
#endif
    :: state(o) == HELD && !(of(w, gen(o)) && deadline(w) <= n) -> skip
    fi;
    /* Not yet due, or under way. */
    if
    :: !keeper[member(o)] ->
#ifdef MUTANT_NO_CONFIRM
        goto take_over
#else
        if
        :: !locked[member(o)] -> goto take_over
        :: locked[member(o)] -> skip
        fi
#endif
    :: keeper[member(o)] && !of(w, gen(o)) ->
        /* Still the same word after the time of grace, and after D was read: a stopped
         * claimer must not block, and D must not be that of a later generation. */
#ifndef MUTANT_GRACE_UNSEEN
        ok = (O == o);
        if
        :: !ok -> goto retry
        :: else
        fi;
#endif
        d_step {
            ok = (D == w && !came_round(x));
            if
            :: ok ->
                D = REVOKED(gen(o)); is_due(gen(o)); w = D; seen(x); revoked = revoked || gen(O) == gen(o);
                assert(consistent)                          /* I3 */
            :: else
            fi
        }
        if
        :: ok -> goto take_over
        :: else -> goto retry
        fi
    :: keeper[member(o)] && of(w, gen(o)) -> skip
    fi;
    /* Yield.  The name goes out only if the word is the same after all the questions. */
    w = record(o);
    d_step {
        ok = (O == o);
#ifdef MUTANT_YIELD_UNSEEN
        assert(k == 0 || gen(o) != k);                      /* C2 */
#endif
        if
        :: ok ->
            assert(k == 0 || gen(o) != k);                  /* C2 */
            assert(w == gen(o));                            /* C3 */
            forget()
        :: else
        fi
    }
    if
    :: o == 0 -> goto done
    :: else -> goto retry
    fi;
take_over:
#ifndef MUTANT_SILENT_TAKEOVER
    log_close(gen(o));
#else
    skip;
#endif
take:
    /* A generation whose tag is not by chance that of D already. */
#ifdef MUTANT_TAG_COMES_ROUND
    ok = false;
#else
    ok = of(w, gen(o) + 1);
#endif
    record(own(o, i)) = gen(o) + 1 + ok;
    d_step {
        if
        :: O == o ->
            assert(state(o) == FREE || revoked || owner_dead); /* I2 */
            assert(ended(O));                               /* L */
            changed();
            o = word(gen(o) + 1 + ok, i, rec(own(o, i)), HELD);
            O = o; Oi = born[i]; ok = true
        :: else -> unused(own(o, i)); ok = false
        fi
    }
    if
    :: !ok -> goto retry
    :: else
    fi;
    d_step { token++; k = token };
    /* D by a CAS from what it was before: who revoked this claim has changed it.  Somebody
     * late may have revoked the tenure before this one; then again, but only while O is
     * ours, which is looked at after D. */
    do
    :: skip;
        d_step {
#ifdef MUTANT_STORE_D
            ok = true;
#else
            ok = (D == w && !came_round(x));
#endif
            if
            :: ok ->
                D = due(gen(o), n + TTL); is_due(gen(o)); set = set || O == o;
                assert(consistent)                          /* I3 */
            :: else -> w = D; seen(x)
            fi
        }
        if
        :: ok || of(w, gen(o)) -> break
        :: else
        fi;
#ifndef MUTANT_RETRY_UNSEEN
        if
        :: O == o -> skip
        :: O != o -> break
        fi
#endif
    od;
    if
    :: !ok ->
        d_step {
            if
            :: O == o -> changed(); O = next_free(o)
            :: else
            fi;
            forget()
        };
        goto done
    :: else
    fi;
    log_claim(gen(o));
    d_step {
        ok = (O == o);
        if
        :: ok ->
            assert(k > granted);                            /* T */
            granted = k;
            told[i] = true; until[i] = n + TTL; mine[i] = o; forced[i] = false;
            assert(!(until[i] > now) || alone(i))           /* C1 */
        :: else
        fi;
        w = 0; k = 0; n = 0
    }
#ifdef LOG
    /* Lost meanwhile?  Then it closes what it opened. */
    if
    :: !ok -> log_close(gen(o))
    :: else
    fi;
#endif
    d_step { forget() };
done:
    skip
}

/* ---- renew, release, reset ------------------------------------------------------------- */

inline renew(i)
{
    d_step { o = mine[i]; n = now };
    w = D;
    ok = of(w, gen(o)) && deadline(w) > n && until[i] > n;
    if
    :: ok ->
        d_step {
            ok = (D == w);
            if
            :: ok -> D = due(gen(o), n + TTL); assert(consistent) /* I3 */
            :: else
            fi
        }
    :: else
    fi;
    d_step {
#ifndef MUTANT_BLIND_RENEW
        ok = ok && O == o; /* D's tag is short, O's generation is not */
#endif
        if
        :: ok ->
            assert(Oi == born[i] || gen(O) != gen(o));      /* I1 */
            until[i] = n + TTL; forced[i] = false;
            assert(!(until[i] > now) || alone(i))           /* C1 */
        :: else -> lost(i)
        fi;
        forget()
    }
}

inline release(i)
{
    d_step { o = mine[i]; lost(i) };
    log_close(gen(o));
    d_step {
#ifdef MUTANT_BLIND_RELEASE
        if
        :: state(O) == HELD ->
            assert(O == o);                                 /* I1 */
            changed(); O = next_free(O)
        :: else
        fi;
#else
        if
        :: O == o ->
            assert(Oi == born[i] && !forced[i] && ended(O)); /* I1, L */
            changed(); O = next_free(O)
        :: else
        fi;
#endif
        forget()
    }
}

inline reset(i)
{
    ok = false;
    do
    :: !ok ->
        o = O;
        if
        :: state(o) == HELD -> log_close(gen(o))
        :: else
        fi;
        d_step {
            ok = (O == o);
            if
            :: ok ->
                forced[member(o)] = forced[member(o)] || state(o) == HELD;
                changed();
#ifdef MUTANT_RESET_KEEPS_GENERATION
                O = word(gen(o) - (state(o) == HELD -> 1 : 0), 0, 0, FREE)
#else
                O = next_free(o)
#endif
            :: else
            fi
        }
    :: ok -> break
    od;
#ifdef MUTANT_RESET_REWINDS_TOKEN
    token = 0;
#endif
    skip;
    d_step { forget() }
}

/* ---- members --------------------------------------------------------------------------- */

/* What a dead member left is put in order, by as many as like; then its slot is free for
 * the next incarnation.  k: its word as read. */
inline sweep(v_)
{
    k = M[v_];
    if
    :: ((k & 3) == M_LIVE || (k & 3) == M_JOINING) && !locked[v_] ->
        d_step {
            ok = (M[v_] == k);
            if
            :: ok -> k = (k & 252) | M_SWEEPING; M[v_] = k
            :: else
            fi
        }
    :: ((k & 3) == M_LIVE || (k & 3) == M_JOINING) && locked[v_] -> ok = false
    :: (k & 3) == M_SWEEPING -> ok = true
    :: (k & 3) == M_FREE -> ok = false
    fi;
    if
    :: ok ->
        do
        :: o = O;
            if
            :: state(o) == FREE || member(o) != v_ -> break
            :: else
            fi;
            /* O names a number, not an incarnation: after O was read the sweep must still
             * be on, else the word may be that of a new member. */
#ifndef MUTANT_SWEEP_TRUSTS_NUMBER
            if
            :: M[v_] == k -> skip
            :: M[v_] != k -> break
            fi;
#endif
            log_close(gen(o));
            d_step {
                if
                :: O == o -> assert(owner_dead && ended(O)); changed(); O = next_free(o) /* I2, L */
                :: else
                fi
            }
        od;
        o = 0;
        d_step {
            if
            :: M[v_] == k -> M[v_] = (k & 252) + 4 + M_FREE
            :: else
            fi
        }
    :: else
    fi;
    k = 0; ok = false
}

inline join(i)
{
    do
    ::
#ifdef MUTANT_REUSE_BEFORE_SWEEP
        if
        :: (M[i] & 3) == M_LIVE -> M[i] = (M[i] & 252) + 4 + M_FREE
        :: else
        fi;
#else
        sweep(i);
#endif
        d_step {
            k = M[i];
            ok = (k & 3) == M_FREE;
            if
            :: ok -> k = (k & 252) | M_JOINING; M[i] = k
            :: else
            fi
        }
        if
        :: ok ->
            locked[i] = true;
            d_step {
                ok = (M[i] == k);
                if
                :: ok -> M[i] = (k & 252) | M_LIVE; keeper[i] = (life[i] == RUNNING)
                :: else -> locked[i] = false
                fi
            }
        :: else
        fi;
        if
        :: ok -> break
        :: else
        fi
    od;
    k = 0; ok = false
}

proctype Process(byte i)
{
    short o;
    byte w, n, k;
    bool ok;
#ifdef WRAP
    byte x;
#endif

    goto member;
begin:
    {
        join(i);
member:
        do
        :: d_step { ops < OPS && !told[i] -> ops++ }; try(i)
        :: d_step { ops < OPS && told[i] && until[i] > now -> ops++ }; renew(i)
        :: d_step { ops < OPS && told[i] -> ops++ }; release(i)
#ifdef SWEEPS
        :: d_step { ops < OPS && life[(i + 1) % N] != RUNNING -> ops++ }; sweep((i + 1) % N)
#endif
#if RESETS > 0
        :: d_step { resets < RESETS -> resets++ }; reset(i)
#endif
#ifdef LIVE
        :: i == 0 && owner_dead -> try(i)
#endif
#ifdef LIVE
        :: ops == OPS && i != 0 -> break
#else
        :: ops == OPS -> break
#endif
        od
    } unless { life[i] == DEAD }
    if
    :: d_step {
            life[i] == DEAD ->
            life[i] = RUNNING; born[i]++;
            lost(i); forced[i] = false;
            forget()
        }
        goto begin
    :: life[i] != DEAD
    fi
}

#define mortal(v_) (kills < KILLS && life[v_] == RUNNING && (M[v_] & 3) != M_FREE)
#define dying(v_) kills++; life[v_] = DYING; keeper[v_] = false
#define dead(v_) life[v_] = DEAD; keeper[v_] = false; locked[v_] = false

proctype World()
{
end:
    do
    :: now < TICKS -> now++
#ifndef LIVE
    :: d_step { mortal(0) -> dying(0) }; d_step { dead(0) }
#endif
    :: d_step { mortal(1) -> dying(1) }; d_step { dead(1) }
#if N > 2
    :: d_step { mortal(2) -> dying(2) }; d_step { dead(2) }
#endif
    od
}

init {
    atomic {
        M[0] = M_LIVE; keeper[0] = true; locked[0] = true;
        M[1] = M_LIVE; keeper[1] = true; locked[1] = true;
#if N > 2
        M[2] = M_LIVE; keeper[2] = true; locked[2] = true;
#endif
        run Process(0);
        run Process(1);
#if N > 2
        run Process(2);
#endif
        run World()
    }
}

#ifdef LIVE
ltl freed { [] (owner_dead -> <> !owner_dead) }
#endif
