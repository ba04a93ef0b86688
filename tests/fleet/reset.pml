/* reset.pml - a reset of the fleet while others claim, for spin.
 *
 * Processes claim one subject, release it, and take it over from the dead; others reset the
 * fleet: they empty the log by raising its floor, take the subject from its holder, and raise
 * the epoch.  Every statement (a `d_step` is one) is one access to shared memory; between any
 * two of them any other process may run, and the process may be killed.  That the words of
 * the contest keep two holders apart is contest.pml's: here a word is its generation, and
 * that it is held; that its deadline was revoked is a bit.
 *
 *   O      owner word  [generation | FREE or HELD]
 *   cell   the order of the log: what stands at each position; set by a CAS, then the head is
 *          raised by whoever comes by
 *   floor  the first position that readers are shown
 *
 * What is checked:
 *
 *   V  when the last reset is over, whoever holds by a grant has its CLAIM in the log: also
 *      who claimed while it went on.  (A reset that was killed is not over: until the next
 *      one is, the log may lack a holder whom the table has.)
 *   F  when the epoch rises the log is empty of everything before the reset, and stays so
 *   G  who is granted a subject has it at that moment
 *   L  with one reset, the log from its floor on, replayed, shows nobody but the owner (a
 *      closed id stays so); with two at once, the second may take out an end that the first
 *      has written before the late CLAIM it belongs to
 *
 * With -DMUTANT_x a rule is taken out, and the model must say so (test_model.sh).
 */

#ifndef OPS
#define OPS 3 /* claims and releases in all */
#endif
#ifndef KILLS
#define KILLS 1
#endif
#ifndef N
#define N 2 /* who claim; those who reset come behind them, three in all */
#endif
#define RESETS (3 - N)
#define GENS 8
#define LEN 10

#define FREE 0
#define HELD 1
#define word(g_, s_) (((g_) << 1) | (s_))
#define gen(o_) ((o_) >> 1)
#define state(o_) ((o_) & 1)
#define freed(o_) O = word(gen(o_) + 1, FREE); told[gen(o_)] = false; at[gen(o_)] = 0
#define CLAIM(g_) (((g_) << 1) | 1)
#define END(g_) ((g_) << 1)

byte O = word(1, FREE);
byte cell[LEN];
byte head, floor, epoch;
bool token[GENS];   /* the record of that generation has one */
bool revoked[GENS]; /* its deadline was */
byte owner[GENS];
bool dead[N + RESETS];
byte ops, kills; /* used of the bounds */
bool through[N + RESETS];

/* What only the checks know. */
bool told[GENS];
byte at[GENS];     /* where its CLAIM stands */
bool over = true;  /* the reset that emptied the log last is */
byte last;         /* who did that */
#if RESETS == 1
bool open[GENS], shut[GENS];
#endif

#define shown(o_) (state(o_) == FREE || !told[gen(o_)] || at[gen(o_)] >= floor)

/* Appends a frame; its place is for the checks. */
inline append(frame_, place_)
{
    do
    :: h = head;
        d_step {
            ok = (cell[h] == 0);
            if
            :: ok -> cell[h] = frame_; place_ = h
            :: else
            fi
        }
        d_step { /* ours, or that of somebody who has not come to it */
            if
            :: head == h -> head++
            :: else
            fi
        }
        if
        :: ok -> break
        :: else
        fi
    od;
    skip
}

inline claim(i)
{
    o = O;
    if
    :: state(o) == HELD && !dead[owner[gen(o)]] -> goto done
    :: state(o) == HELD && dead[owner[gen(o)]] ->
        if
        :: token[gen(o)] -> append(END(gen(o)), x)
        :: else
        fi
    :: state(o) == FREE
    fi;
    d_step {
        ok = (O == o);
        if
        :: ok -> told[gen(O)] = false; at[gen(O)] = 0; o = word(gen(o) + 1, HELD); O = o; owner[gen(o)] = i
        :: else
        fi
    }
    if
    :: !ok -> goto done
    :: else
    fi;
    token[gen(o)] = true;
    ok = !revoked[gen(o)]; /* the CAS of D */
    if
    :: !ok ->
        d_step {
            if
            :: O == o -> freed(o)
            :: else
            fi
        }
        goto done
    :: else
    fi;
    append(CLAIM(gen(o)), at[gen(o)]);
    d_step {
        ok = (O == o);
#ifdef MUTANT_GRANT_UNSEEN
        ok = true;
#endif
        if
        :: ok ->
            told[gen(o)] = true; mine = o;
            assert(O == o);                                 /* G */
            assert(!over || shown(o))                       /* V */
        :: else
        fi
    }
    if
    :: !ok -> append(END(gen(o)), x)
    :: else
    fi;
done:
    skip;
    d_step { o = 0; h = 0; x = 0; ok = false }
}

inline release()
{
    if
    :: O == mine -> append(END(gen(mine)), x)
    :: O != mine
    fi;
    d_step {
        if
        :: O == mine -> freed(mine)
        :: else
        fi;
        mine = 0; h = 0; x = 0; ok = false
    }
}

proctype Process(byte i)
{
    byte o, h, x, mine;
    bool ok;

    {
        do
        :: d_step { ops < OPS && mine == 0 -> ops++ }; claim(i)
        :: d_step { ops < OPS && mine != 0 -> ops++ }; release()
        :: ops == OPS -> break
        od
    } unless { dead[i] };
    skip;
    d_step { o = 0; h = 0; x = 0; mine = 0; ok = false; through[i] = true }
}

inline empty_log(i)
{
    x = head;
    d_step {
        over = false; last = i;
#if defined(MUTANT_FLOOR_STORED)
        floor = x;
#elif !defined(MUTANT_FLOOR_KEPT)
        floor = (x > floor -> x : floor);
#endif
        x = 0
    }
}

inline free_all()
{
    o = O;
    if
    :: state(o) == HELD ->
        /* Also a claim that is under way: it finds its deadline taken. */
        d_step {
            ok = (O == o);
            if
            :: ok -> revoked[gen(o)] = true
            :: else
            fi
        }
#ifndef MUTANT_FREED_SILENTLY
        if
        :: ok && token[gen(o)] -> append(END(gen(o)), x)
        :: else
        fi;
#endif
        d_step {
            if
            :: O == o -> freed(o)
            :: else
            fi;
            x = 0; h = 0; ok = false
        }
    :: else
    fi;
    o = 0
}

inline raise_epoch(i)
{
    d_step {
        epoch++;
        assert(floor >= begun);                             /* F */
        over = over || last == i;
        assert(!over || shown(O))                           /* V */
    }
}

proctype Reset(byte i)
{
    byte o, h, x, begun;
    bool ok;

    {
        begun = head;
#ifdef MUTANT_EPOCH_FIRST
        raise_epoch(i);
#endif
#ifdef MUTANT_FREE_FIRST
        free_all();
        empty_log(i);
#else
        empty_log(i);
        free_all();
#endif
#ifndef MUTANT_EPOCH_FIRST
        raise_epoch(i);
#endif
        assert(floor >= begun)                              /* F */
    } unless { dead[i] };
    skip;
    d_step { o = 0; h = 0; x = 0; begun = 0; ok = false; through[i] = true }
}

#define mortal(v_) (kills < KILLS && !dead[v_] && !through[v_])
#define kill(v_) kills++; dead[v_] = true

proctype Killer()
{
    byte v;

end:
    do
    :: d_step { mortal(0) -> kill(0) }
    :: d_step { mortal(1) -> kill(1) }
    :: d_step { mortal(2) -> kill(2) }
    :: through[0] && through[1] && through[2] -> break
    od;
#if RESETS == 1
    /* Somebody replays the log. */
    atomic {
        for (v : floor .. head) {
            if
            :: v < head && (cell[v] & 1) == 1 -> open[gen(cell[v])] = !shut[gen(cell[v])]
            :: v < head && (cell[v] & 1) == 0 -> open[gen(cell[v])] = false; shut[gen(cell[v])] = true
            :: else
            fi
        }
        for (v : 0 .. GENS - 1) {
            assert(!open[v] || O == word(v, HELD))          /* L */
        }
    }
#endif
}

init {
    atomic {
        run Process(0);
#if N > 1
        run Process(1);
#else
        run Reset(1);
#endif
        run Reset(2);
        run Killer()
    }
}
