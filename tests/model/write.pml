/*
 * The write protocol as a model: who may do what in which order, with a crash between any two steps. pan looks at every
 * interleaving within the bounds that the environment gives (tests/model/test_model.sh).
 *
 * Two writers of one branch, each with a visible effect: an endpoint is deleted, an edge to it is inserted (or, when
 * `disjoint`, two writes that do not meet). A writer whose process dies is tried again once, with its operation id, by a
 * new process. Beside them a recoverer, a deletion of the branch, a collection; at the end a fresh process recovers
 * twice. An adversary kills processes (their locks fall, what they wrote stays in the cache), fences one, and takes the
 * power away (what was not synced is there or not, a torn record or frame is the one before).
 *
 *   step of the model                         code
 *   barrier, recover                          coord/prepare.c, recover.c, resolve.c; slot locks: coord/intent.c
 *   plan                                      coord/prepare.c (base, look-up of the operation), arbitrate.c
 *   arm, apply, confirm                       coord/arm.c, intent.c, adapters/effects.c
 *   settle, append                            coord/append.c, store/log/append.c, mark.c
 *   publish                                   coord/publish.c
 *   give up, retire                           coord/finalize.c
 *   delete                                    coord/branch_delete.c
 *   collect                                   coord/gc.c
 *   fenced                                    platform/volume.h pf_volume_set_fence, coord/append.c check_epoch
 *
 * There are no gates here: they order, and prove nothing (tests/coord/test_no_gates.sh). A slot is used by one attempt,
 * and its number is the attempt's commit id. The look at the fence and the call behind it are one step.
 */

#define FREE      0 /* a slot: never used, or retired */
#define ARMED     1
#define CONFIRMED 2

#define COMMITTED 1 /* an audit row; a writer's answer */
#define DISCARDED 2

#define FLUSHED 2 /* a commit in the chain: that, or only in the cache */

#define SLOTS 5 /* 1 to 4: commit = 1 + 2 * operation + attempt */
#define LEN   5
#define OP(c) (((c) - 1) / 2)

#define RECOVERER 3 /* processes: the writers are 1 and 2; 0 is nobody */
#define DELETER   4
#define COLLECTOR 5
#define FRESH     6
#define PROCESSES 7

/* Planted defects; each must be found. The scenarios that find it stand behind it. */
#define M_ARBITRATION_SKIPPED      1  /* crash */
#define M_ROLLED_FORWARD_UNJUDGED  2  /* crash */
#define M_ANSWERED_BEFORE_FLUSH    3  /* crash */
#define M_RETIRED_BEFORE_PUBLISH   4  /* crash */
#define M_EFFECT_BEFORE_INTENT     5  /* crash */
#define M_FENCE_NOT_CHECKED        6  /* fence */
#define M_LIVE_OWNER_RECOVERED     7  /* crash */
#define M_MARK_NOT_WAITED_FOR      8  /* crash */
#define M_OPERATION_NOT_LOOKED_UP  9  /* crash */
#define M_TORN_RECORD_COUNTS       10 /* crash */
#define M_NO_PUBLISH_LOCK          11 /* crash */
#define M_COMMIT_NOT_LOOKED_FOR    12 /* crash */
#define M_UNCONFIRMED_PUBLISHED    13 /* crash */
#define M_NOT_UNDONE               14 /* crash */
#define M_REFUSED_WITH_INTENT_LEFT 15 /* crash */
#define M_EFFECTS_NOT_LOOKED_AT    21 /* crash */
#define M_DELETED_WITHOUT_LISTING  16 /* delete */
#define M_REF_NOT_LOOKED_AT        17 /* delete */
#define M_DELETED_BEFORE_INTENTS_SYNC 18 /* delete */
#define M_GC_IGNORES_INTENTS       19 /* collect */
#define M_GC_IGNORES_ATTEMPTS      20 /* collect */

/* clang-format off */
c_decl {
    static int bound(const char *name) { const char *text = getenv(name); return text ? atoi(text) : 0; }
};

byte mutant, deaths, losses, fences;         /* bounds; from the environment */
byte writers, recoverers, deleters, collectors;
bool disjoint;

/* The volume: what the cache says, and what is surely on the medium. */
byte chain[LEN];          /* commits in order; the end is the branch's state */
byte end, synced;
bool torn;                /* a part of a record behind the end */
byte mark, mark_synced;   /* the acknowledged mark */
byte phase[SLOTS], phase_synced[SLOTS], base[SLOTS];
bool effect[SLOTS], object[SLOTS];
byte audit[SLOTS];
bool ref = 1;

/* Locks: who holds them. They fall with the process. */
byte publish, reclaim, owner[SLOTS], resolver[SLOTS], attempt[SLOTS];

/* Processes, and what clients were told. */
bool running[PROCESSES], dead[PROCESSES], fenced[PROCESSES];
bool power_lost;
byte told[2];
byte over;

#define DIES(me)    (dead[me] || (fenced[me] && mutant != M_FENCE_NOT_CHECKED))
#define DURABLE(me) assert(!fenced[me]) /* a fenced owner changes nothing */

inline let_go(who) /* the kernel, when a process ends */
{
    d_step {
        i = 0;
        do
        :: i < SLOTS ->
            if :: owner[i] == who -> owner[i] = 0 :: else fi;
            if :: resolver[i] == who -> resolver[i] = 0 :: else fi;
            if :: attempt[i] == who -> attempt[i] = 0 :: else fi;
            i++
        :: else -> break
        od;
        i = 0;
        if :: publish == who -> publish = 0 :: else fi;
        if :: reclaim == who -> reclaim = 0 :: else fi
    }
}

/* Is commit c in the chain, another commit of its operation, something since `from` that its reads meet? */
inline look(c, from)
{
    d_step {
        self = 0; twin = 0; met = 0; i = 0;
        do
        :: i < end ->
            if
            :: chain[i] == 0 -> assert(false) /* whatever is in the chain is whole */
            :: chain[i] == c && i >= synced -> self = 1
            :: chain[i] == c && i < synced -> self = FLUSHED
            :: chain[i] != 0 && chain[i] != c && OP(chain[i]) == OP(c) -> twin = 1
            :: chain[i] != 0 && OP(chain[i]) != OP(c) && i >= from && !disjoint -> met = 1
            :: else
            fi;
            i++
        :: else -> break
        od;
        i = 0
    }
}

inline take_publish(me)
{
    atomic { (publish == 0 || mutant == M_NO_PUBLISH_LOCK) -> publish = me }
}

inline drop_publish(me)
{
    d_step { if :: publish == me -> publish = 0 :: else fi }
}

inline settle(me) /* the same bytes again, synced; then the mark */
{
    atomic {
        if
        :: torn && mutant == M_TORN_RECORD_COUNTS -> DURABLE(me); end++; torn = 0
        :: else
        fi
    }
    if
    :: mark < end && mutant != M_MARK_NOT_WAITED_FOR ->
        d_step { DURABLE(me); synced = end };
        d_step { DURABLE(me); mark = end }
    :: else
    fi
}

/* The one place that appends. */
inline append(me, c)
{
    atomic { reclaim == 0 -> reclaim = me };
    assert(object[c]); /* nothing is named that is not there, and what may yet be published is kept */
    d_step { DURABLE(me); at = end; torn = 1 };
    atomic {
        DURABLE(me);
        assert(end == at && torn && chain[at] == 0); /* one continuation */
        assert(ref);                         /* no commit on a branch that is gone */
        look(c, 0);
        assert(!self && !twin);              /* an operation is published at most once */
        assert(!met);                        /* no dangling edge */
        chain[at] = c;
        end++;
        torn = 0
    };
    if
    :: mutant == M_ANSWERED_BEFORE_FLUSH -> told[OP(c)] = COMMITTED
    :: else
    fi;
    d_step { DURABLE(me); synced = end };
    d_step { DURABLE(me); mark = end; reclaim = 0; at = 0; self = 0; twin = 0; met = 0 }
}

inline retire(me, c)
{
    atomic {
        DURABLE(me);
        look(c, 0);
        assert(!effect[c] || self == FLUSHED); /* settled: acknowledged, or nothing of it is left */
        self = 0; twin = 0; met = 0;
        phase[c] = FREE
    };
    d_step { DURABLE(me); phase_synced[c] = FREE }
}

/* One intent, if its owner is dead: the rows of coord/resolve.c. */
inline recover(me, s)
{
    if
    :: phase[s] == FREE
    :: else ->
        atomic { resolver[s] == 0 -> resolver[s] = me };
        if
        :: atomic { owner[s] != 0 && mutant != M_LIVE_OWNER_RECOVERED -> resolver[s] = 0 }
        :: atomic { else -> if :: owner[s] == 0 -> owner[s] = me :: else fi };
            if
            :: phase[s] == FREE
            :: else ->
                take_publish(me);
                verdict = DISCARDED;
                if
                :: !ref /* row 2 */
                :: else ->
                    settle(me);
                    atomic {
                        look(s, base[s]);
                        if :: mutant == M_COMMIT_NOT_LOOKED_FOR -> self = 0 :: else fi;
                        if
                        :: self -> verdict = COMMITTED /* row 1 */
                        :: !self && twin               /* row 5 */
                        :: !self && !twin && phase[s] != CONFIRMED && mutant != M_UNCONFIRMED_PUBLISHED /* row 3 */
                        :: else ->
                            if
                            :: met && mutant != M_ROLLED_FORWARD_UNJUDGED /* row 5 */
                            :: (!met || mutant == M_ROLLED_FORWARD_UNJUDGED) && phase[s] == CONFIRMED && !effect[s] &&
                                mutant != M_EFFECTS_NOT_LOOKED_AT /* row 5: undone by an owner that gave up */
                            :: else -> verdict = 3            /* row 4 */
                            fi
                        fi;
                        self = 0; twin = 0; met = 0
                    };
                    if
                    :: verdict == 3 -> append(me, s); verdict = COMMITTED
                    :: else
                    fi
                fi;
                drop_publish(me);
                if
                :: verdict == DISCARDED && mutant != M_NOT_UNDONE -> d_step { DURABLE(me); effect[s] = 0 }
                :: else
                fi;
                d_step {
                    DURABLE(me);
                    assert(audit[s] == 0 || audit[s] == verdict); /* whoever comes again comes to the same row */
                    audit[s] = verdict
                };
                retire(me, s)
            fi;
            d_step { verdict = 0; if :: owner[s] == me -> owner[s] = 0 :: else fi; resolver[s] = 0 }
        fi
    fi
}

inline barrier(me)
{
    slot = 1;
    do
    :: slot < SLOTS && phase[slot] != FREE -> recover(me, slot); slot++
    :: atomic { slot < SLOTS && phase[slot] == FREE ->
            do
            :: slot < SLOTS && phase[slot] == FREE -> slot++
            :: else -> break
            od }
    :: slot == SLOTS -> break
    od;
    slot = 0
}

proctype writer(byte me)
{
    byte c = 1 + 2 * (me - 1), from, slot, i, at, verdict, self;
    bool twin, met, done;
again:
    {
        barrier(me);
        atomic { /* plan; what is staged lies under the attempt's lock */
            from = end;
            look(c, 0);
            if :: mutant == M_OPERATION_NOT_LOOKED_UP -> twin = 0 :: else fi
        };
        if
        :: twin -> goto repeated
        :: !twin && met -> goto refused /* a fresh look finds what is in the way */
        :: else
        fi;
        atomic { attempt[c] == 0 -> attempt[c] = me; DURABLE(me); object[c] = 1 };
        if
        :: mutant == M_EFFECT_BEFORE_INTENT -> effect[c] = 1
        :: else
        fi;
        d_step { DURABLE(me); owner[c] = me; base[c] = from; phase[c] = ARMED };
        d_step { DURABLE(me); phase_synced[c] = ARMED };
        d_step { DURABLE(me); effect[c] = 1 };
        d_step { DURABLE(me); phase[c] = CONFIRMED };
        d_step { DURABLE(me); phase_synced[c] = CONFIRMED };
        if
        :: mutant == M_RETIRED_BEFORE_PUBLISH -> d_step { phase[c] = FREE; phase_synced[c] = FREE }
        :: else
        fi;
        take_publish(me);
        if
        :: !ref && mutant != M_REF_NOT_LOOKED_AT -> drop_publish(me); goto give_up
        :: drop_publish(me); goto give_up /* whatever else ends a write: its patience, the disk */
        :: ref || mutant == M_REF_NOT_LOOKED_AT
        fi;
        settle(me);
        atomic {
            look(c, from);
            if :: mutant == M_ARBITRATION_SKIPPED -> met = 0 :: else fi;
            if :: mutant == M_OPERATION_NOT_LOOKED_UP -> twin = 0 :: else fi
        };
        if
        :: met || twin -> drop_publish(me); goto give_up
        :: else
        fi;
        append(me, c);
        drop_publish(me);
        told[me - 1] = COMMITTED;
        if
        :: mutant != M_RETIRED_BEFORE_PUBLISH -> retire(me, c)
        :: else
        fi;
        goto finished;
give_up: /* before the answer: else recovery may publish what the caller was told is not there */
        if
        :: mutant == M_REFUSED_WITH_INTENT_LEFT -> goto refused
        :: else
        fi;
        d_step { DURABLE(me); effect[c] = 0 };
        retire(me, c);
refused:
        told[me - 1] = DISCARDED;
        goto finished;
repeated: /* the answer relies on the chain: its end is made acknowledged first */
        take_publish(me);
        if
        :: ref -> settle(me)
        :: else
        fi;
        drop_publish(me);
        told[me - 1] = COMMITTED;
finished:
        done = 1
    } unless {
        DIES(me)
    };
    atomic {
        let_go(me);
        self = 0; twin = 0; met = 0; slot = 0; at = 0; verdict = 0; from = 0;
        if
        :: !done && dead[me] && !power_lost && c == 1 + 2 * (me - 1) && told[me - 1] == 0 ->
            dead[me] = 0;
            c++;
            goto again
        :: else
        fi;
        running[me] = 0;
        over++
    }
}

proctype recoverer()
{
    byte slot, i, at, verdict, self;
    bool twin, met;
    { barrier(RECOVERER) } unless { DIES(RECOVERER) };
    atomic { let_go(RECOVERER); running[RECOVERER] = 0; over++ }
}

proctype deleter()
{
    byte slot, i, at, verdict, self;
    bool twin, met, due, live;
    {
        barrier(DELETER);
        take_publish(DELETER);
        d_step {
            i = 1;
            do
            :: i < SLOTS ->
                if
                :: phase[i] != FREE && owner[i] == 0 -> due = 1
                :: phase[i] != FREE && owner[i] != 0 -> live = 1
                :: else
                fi;
                i++
            :: else -> break
            od;
            i = 0
        };
        if
        :: (due || live) && mutant != M_DELETED_WITHOUT_LISTING /* begins again, or is refused */
        :: else ->
            settle(DELETER);
            mark_synced = mark;
            if
            :: mutant != M_DELETED_BEFORE_INTENTS_SYNC ->
                d_step { /* a retirement that is lost again would count as an intent without a branch */
                    i = 1;
                    do
                    :: i < SLOTS -> phase_synced[i] = phase[i]; i++
                    :: else -> break
                    od;
                    i = 0
                }
            :: else
            fi;
            ref = 0
        fi;
        drop_publish(DELETER)
    } unless {
        DIES(DELETER)
    };
    atomic { let_go(DELETER); running[DELETER] = 0; over++ }
}

proctype collector()
{
    byte c = 1, i, self;
    bool twin, met, kept;
    {
        do
        :: c < SLOTS ->
            if
            :: object[c] -> /* a candidate; its attempt's lock is taken by a try, and kept */
                atomic {
                    if
                    :: attempt[c] == 0 -> attempt[c] = COLLECTOR
                    :: attempt[c] != 0 && mutant == M_GC_IGNORES_ATTEMPTS
                    :: else -> goto next
                    fi
                };
                kept = (phase[c] != FREE && mutant != M_GC_IGNORES_INTENTS); /* intents first, then logs */
                look(c, 0);
                kept = kept || self != 0;
                atomic { reclaim == 0 -> reclaim = COLLECTOR };
                atomic {
                    look(c, 0);
                    if :: !kept && !self -> object[c] = 0 :: else fi;
                    self = 0; twin = 0; met = 0; kept = 0;
                    reclaim = 0
                }
            :: else
            fi;
next:
            c++
        :: else -> break
        od
    } unless {
        DIES(COLLECTOR)
    };
    atomic { let_go(COLLECTOR); running[COLLECTOR] = 0; over++ }
}

inline lose_power()
{
    power_lost = 1;
    who = 1;
    do
    :: who < FRESH -> dead[who] = 1; let_go(who); who++
    :: else -> break
    od;
    who = 0;
    torn = 0; /* at most a torn record, which is nothing: as if it were lost */
    do
    :: end > synced -> end--; chain[end] = 0
    :: break
    od;
    if :: mark = mark_synced :: skip fi;
    assert(mark <= end); /* else the branch would be CORRUPT */
    i = 1;
    do
    :: i < SLOTS ->
        if
        :: phase[i] != phase_synced[i] -> phase[i] = phase_synced[i]
        :: skip
        fi;
        phase_synced[i] = phase[i];
        i++
    :: else -> break
    od;
    i = 0;
    synced = end
}

proctype adversary()
{
    byte who, i;
    do
    :: atomic { deaths > 0 && !power_lost ->
            if
            :: running[1] && !dead[1] -> who = 1
            :: running[2] && !dead[2] -> who = 2
            :: running[RECOVERER] && !dead[RECOVERER] -> who = RECOVERER
            :: running[DELETER] && !dead[DELETER] -> who = DELETER
            :: running[COLLECTOR] && !dead[COLLECTOR] -> who = COLLECTOR
            :: else -> goto end_of_it
            fi;
            deaths--;
            dead[who] = 1;
            let_go(who);
            who = 0 }
    :: atomic { fences > 0 -> fences--; if :: fenced[1] = 1 :: writers > 1 -> fenced[2] = 1 fi }
    :: atomic { losses > 0 -> losses--; lose_power() }
    :: break
    od;
end_of_it:
    over++
}

init
{
    byte slot, i, at, verdict, started, self;
    bool twin, met;
    atomic {
        c_code {
            now.mutant = bound("MUTANT");
            now.deaths = bound("DEATHS");
            now.losses = bound("LOSSES");
            now.fences = bound("FENCES");
            now.writers = bound("WRITERS");
            now.recoverers = bound("RECOVERERS");
            now.deleters = bound("DELETERS");
            now.collectors = bound("COLLECTORS");
        };
        if :: disjoint = 0 :: disjoint = 1 fi;
        running[1] = 1;
        run writer(1);
        started = 2;
        if
        :: writers > 1 -> running[2] = 1; run writer(2); started++
        :: else
        fi;
        if
        :: recoverers > 0 -> running[RECOVERER] = 1; run recoverer(); started++
        :: else
        fi;
        if
        :: deleters > 0 -> running[DELETER] = 1; run deleter(); started++
        :: else
        fi;
        if
        :: collectors > 0 -> running[COLLECTOR] = 1; run collector(); started++
        :: else
        fi;
        run adversary()
    };
    over == started;
    barrier(FRESH);
    d_step { /* all is resolved */
        i = 1;
        do
        :: i < SLOTS ->
            assert(phase[i] == FREE);
            i++
        :: else -> break
        od;
        i = 0
    };
    d_step { at = end };
    barrier(FRESH); /* changes nothing any more */
    atomic {
        assert(end == at);
        slot = 1;
        do
        :: slot < SLOTS ->
            look(slot, 0);
            assert(!ref || !effect[slot] || self);           /* no effect without its commit */
            assert(!self || (effect[slot] && object[slot])); /* no commit without its effects */
            assert(audit[slot] != COMMITTED || self);
            assert(audit[slot] != DISCARDED || !self);
            assert(told[OP(slot)] != COMMITTED || self || twin); /* acknowledged stays */
            assert(told[OP(slot)] != DISCARDED || !(self || twin));
            slot++
        :: else -> break
        od
    }
}
/* clang-format on */
