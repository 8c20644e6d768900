/* The lease protocol of one job, for the model checker Spin: claim, complete, fail, recover.
 *
 * Two workers, a server, an operator and whoever recovers do whatever they can, in every order.
 * Workers are killed; sessions are cut, and the server notices later; a COMMIT is applied or not,
 * and its answer lost; a lease runs out at any moment, also between a transaction's last
 * statement and its COMMIT. A worker that stands still is one that the others overtake.
 * How often a lease is renewed changes nothing: how long it lasts is for chance to say.
 *
 * WITHOUT_FENCE and the like leave one rule of the protocol out: then Judge or an assertion has
 * to object.
 */
#define WORKERS  2
#define ATTEMPTS 2              /* then the job is dead */
#define SESSIONS (2 * WORKERS)  /* of each worker one in use, and one that it has given up */
#define TOKENS   (WORKERS + SESSIONS + 2)
#ifndef FAULTS
#define FAULTS   2              /* kills, cuts, COMMITs not applied, answers lost */
#endif
#ifndef COMMANDS
#define COMMANDS 2              /* cancel, requeue */
#endif

mtype = { ready, reserved, done, dead, cancelled };  /* the job */
mtype = { idle, open, committing, abandoned };       /* a session */
mtype = { nothing, claiming, completing, failing };  /* what is in its transaction */

/* The job's row, as it is committed. */
mtype status = ready;
byte token, attempts, effects;
bool expired;       /* lease_until is past, by the database's clock */
bool ended[TOKENS]; /* there is an attempt row of this token */

/* The server's side of the connections. */
typedef Session { mtype state = idle; mtype deed = nothing; byte token; bool applied };
Session sessions[SESSIONS];
byte holder;        /* the session that has the row locked, plus one */

byte mine[WORKERS]; /* the token that a worker believes to hold */
bool kill[WORKERS];
byte faults, commands;

#ifdef WITHOUT_DEADLINE
#define FENCE(t) (status == reserved && token == t)
#else
#define FENCE(t) (status == reserved && token == t && !expired)
#endif
#ifdef WITHOUT_EXPIRY
#define OVER     true
#else
#define OVER     expired
#endif
#define UNLOCKED (holder == 0)
#ifdef WITHOUT_FENCE
#define SEAL(t)  true
#else
#ifdef WITHOUT_TOKEN
#define SEAL(t)  (status == reserved && !expired)
#else
#define SEAL(t)  FENCE(t)
#endif
#endif
#ifdef WITHOUT_CLAIM_LOCK
#define CLAIMABLE true
#else
#define CLAIMABLE UNLOCKED
#endif
#ifdef WITHOUT_SKIP_LOCKED
#define SKIPPING  true
#else
#define SKIPPING  UNLOCKED
#endif

/* An attempt has one row, for ever. */
#define RECORD(t)   assert(!ended[t]); ended[t] = true
#define LEAVE(next) status = next; token = 0; expired = false
#define GIVE_BACK   if :: attempts < ATTEMPTS -> LEAVE(ready) :: else -> LEAVE(dead) fi
#define UNLOCK(s)   if :: holder == s + 1 -> holder = 0 :: else fi; \
                    sessions[s].deed = nothing; sessions[s].token = 0; sessions[s].state = idle
#define FAULT       faults < FAULTS -> faults++

/* What becomes of one session. */
proctype Server(byte s) {
end:
    do
    :: atomic { sessions[s].state == committing ->
            if
            :: sessions[s].deed == claiming ->
                status = reserved; token = sessions[s].token; attempts++; expired = false
            :: sessions[s].deed == completing ->
                RECORD(sessions[s].token); effects++; LEAVE(done)
            :: sessions[s].deed == failing ->
                RECORD(sessions[s].token); GIVE_BACK
            fi;
            assert(effects <= 1);
            sessions[s].applied = true;
            UNLOCK(s) }
    :: atomic { sessions[s].state == committing && FAULT; UNLOCK(s) }
    :: atomic { sessions[s].state == open && FAULT; sessions[s].state = abandoned }
    :: atomic { sessions[s].state == abandoned -> UNLOCK(s) }
    od
}

/* A transaction begins, on whichever session of the worker's is free. */
#define BEGIN(what) \
    if \
    :: sessions[i].state == idle -> s = i \
    :: sessions[i].state != idle && sessions[i + WORKERS].state == idle -> s = i + WORKERS \
    fi; \
    sessions[s].state = open; sessions[s].deed = what; \
    sessions[s].token = mine[i]; sessions[s].applied = false

/* Its last statement has changed the row, which is locked, under a lease that is not over. The
 * lease may well be over at the COMMIT: whoever wants the job then passes over the lock. */
#define COMMIT  assert(!expired); holder = s + 1; sessions[s].state = committing

/* The answer, or none: then the worker goes on as if the session had never been. */
#define ANSWER(yes, no, unknown) \
    if \
    :: atomic { sessions[s].state == idle && sessions[s].applied -> \
            sessions[s].applied = false; goto yes } \
    :: sessions[s].state == idle && !sessions[s].applied -> goto no \
    :: atomic { sessions[s].state == committing && FAULT; goto unknown } \
    fi

/* A random token is one that nobody has, or ever writes with again. */
inline draw() {
    byte t, n;
    t = 1;
    do
    :: t == token -> t++
    :: else ->
        n = 0;
        do
        :: n < SESSIONS && sessions[n].token != t -> n++
        :: n < SESSIONS && sessions[n].token == t -> break
        :: n == SESSIONS -> break
        od;
        if
        :: n < SESSIONS || mine[0] == t || mine[1] == t -> t++
        :: else -> break
        fi
    od;
    assert(t < TOKENS);
    ended[t] = false;
    mine[i] = t;
    t = 0; n = 0
}

proctype Worker(byte i) {
    byte s;
    bool locks;

again:
    {
        skip;
claim:
        atomic { mine[i] = 0; locks = false; s = 0 };
end:    atomic { status == ready && CLAIMABLE &&
            (sessions[i].state == idle || sessions[i + WORKERS].state == idle) ->
            draw(); BEGIN(claiming); COMMIT };
        ANSWER(handler, claim, claim_unknown);
claim_unknown: /* looked up by (id, token) */
        if :: status == reserved && token == mine[i] -> goto handler :: else -> goto claim fi;

handler:
        if
        :: goto fail
        :: locks = true  /* complete(): the row is locked first */
        :: locks = false /* atomic=True: the fence comes last alone */
        fi;
        atomic { BEGIN(completing) };
        if
        :: !locks
        :: atomic { locks && sessions[s].state == open && UNLOCKED ->
                if :: FENCE(mine[i]) -> holder = s + 1 :: else -> UNLOCK(s); goto claim fi }
        :: locks && sessions[s].state != open -> goto fail
        fi;
        /* Here are the handler's own rows. A cut takes them, and the lock, away. */
        if
        :: atomic { sessions[s].state == open && (UNLOCKED || holder == s + 1) ->
                if :: SEAL(mine[i]) -> COMMIT :: else -> UNLOCK(s); goto claim fi }
        :: sessions[s].state != open -> goto fail
        fi;
        ANSWER(claim, fail, look);

fail:   /* on another session, under the same fence */
        atomic { BEGIN(failing) };
        if
        :: atomic { sessions[s].state == open && UNLOCKED ->
                if :: FENCE(mine[i]) -> COMMIT :: else -> UNLOCK(s); goto claim fi }
        :: sessions[s].state != open -> goto fail
        fi;
        ANSWER(claim, fail, look);

look:   /* by (job, token): what is on record stands, all else is tried again under the fence */
        if :: ended[mine[i]] -> goto claim :: else -> goto fail fi
    } unless { kill[i] };
    atomic {
        kill[i] = false;
        if :: sessions[i].state == open -> sessions[i].state = abandoned :: else fi;
        if
        :: sessions[i + WORKERS].state == open -> sessions[i + WORKERS].state = abandoned
        :: else
        fi;
        goto again
    }
}

proctype World() {
end:
    do
    :: atomic { status == reserved && !expired -> expired = true }
#ifndef WITHOUT_RECOVERY
    :: atomic { status == reserved && OVER && SKIPPING ->
            assert(expired); RECORD(token); GIVE_BACK }
#endif
    :: atomic { (status == ready || status == reserved) && UNLOCKED && commands < COMMANDS ->
            commands++;
            if :: status == reserved -> RECORD(token) :: else fi;
            LEAVE(cancelled) }
    :: atomic { (status == dead || status == cancelled) && UNLOCKED && commands < COMMANDS ->
            commands++; attempts = 0; LEAVE(ready) }
    :: atomic { !kill[0] && FAULT; kill[0] = true }
    :: atomic { !kill[1] && FAULT; kill[1] = true }
    od
}

/* When nothing more can happen the job is final, and nobody's. */
proctype Judge() {
    timeout ->
    assert(status == done || status == dead || status == cancelled);
    assert(token == 0 && holder == 0);
    assert((effects == 1) == (status == done))
}

init {
    atomic {
        byte n;
        for (n : 0 .. SESSIONS - 1) { run Server(n) }
        n = 0;
        run Worker(0); run Worker(1); run World(); run Judge()
    }
}
