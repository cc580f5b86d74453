/*
 * The queue for an atom in a store beyond one machine: places in the queue, their beats
 * (heartbeats), and newcomers that take the owner of a silent place for dead. The steps are
 * named as in job.pml.
 *
 * Each statement outside atomic is one transaction in the store, or one message on its
 * way to or from there: between any two every other process may run and time may pass. A
 * lease has L ticks. The model assumes that a job is over before its lease is (KILL works,
 * the clocks run at one rate): Time waits for it.
 *
 * What must hold, also with BEATS (more beats of each), UNTOUCHED (no person removes a
 * beat) and READERS (all but the last are readers):
 *   mutual exclusion   never two jobs at once, though beats are lost or late, holders
 *                      of a place die, and a person removes a beat by hand
 * (A person who removes a place unlocks.)
 * Variants (-D) that must fail:
 *   NOCOMPARE          a place is removed as dead though its beat has moved
 *   RECEIVED           an owner counts its lease from the answer to its beat
 *   SHOWN              a newcomer trusts the time in a beat
 *   UNCHECKED          a waiter begins though its own beat is old
 *   STOPPED            a machine is suspended: only the fence helps then
 */

#ifndef N
#define N 2
#endif
#ifndef L
#define L 3
#endif
#ifndef BEATS
#define BEATS 1		/* of each, after the first: then it is cut off */
#endif

byte place[N+1];	/* the create revision; 0: none */
byte beat[N+1];		/* the revision of the beat: it only grows */
byte next = 1;

byte age[N+1];		/* ticks since the last successful beat was sent */
byte flight[N+1];	/* ticks since the latest beat was sent */
byte still[N+1];	/* ticks since a newcomer saw the beat in front at its revision */
byte mine[N+1];		/* the create revision that the store gave it */
bool running[N+1];
bool over[N+1];		/* gone: it needs its place no more */
byte jobs;		/* readers together count as one */
byte reading;

#ifdef READERS
#define reads(who) (who < N)
#else
#define reads(who) false
#endif
#define blocks(who) !(reads(me) && reads(who))

/* young: there is time for a job before the lease is over. */
#ifdef UNCHECKED
#define young(who) true
#else
#define young(who) (age[who] < L - 1)
#endif

/* before sets front to the first place in front of a revision, and seen to its beat. */
inline before(revision) {
	d_step {
		front = 0; least = revision; i = 1;
		do
		:: i <= N ->
			if
			:: blocks(i) && place[i] != 0 && place[i] < least -> least = place[i]; front = i
			:: else
			fi;
			i++
		:: else -> break
		od;
		seen = beat[front]; i = 0; least = 0
	}
}

#define lapsed(who) (still[me] >= L)

/* Beater sends the beats of one place. */
proctype Beater(byte me) {
	byte n;
	bool well;
	do
	:: n < BEATS && !over[me] ->
		atomic { n++; flight[me] = 0 };		/* (lease.heldLease.renew) */
		if
		:: atomic {				/* (etcd.place.Renew) */
			well = place[me] != 0 && place[me] == mine[me];
			if
			:: well -> beat[me]++
			:: else
			fi
		   }
		:: well = false				/* the message is lost */
		fi;
		atomic {				/* the answer */
			if
#ifdef RECEIVED
			:: well -> age[me] = 0
#else
			:: well -> age[me] = flight[me]
#endif
			:: else
			fi;
			well = false
		}
	:: else -> break
	od
}

proctype Newcomer(byte me) {
	byte i, front, least, saw, sawbeat, seen;
	if
	:: me == 1					/* the first of the line */
	:: me != 1 && mine[1] != 0 -> age[me] = 0	/* sent */
	fi;
	atomic {					/* (etcd.Store.Enter) */
		place[me] = next; mine[me] = next; next++;
		beat[me]++;
#if BEATS > 0
		run Beater(me)
#endif
	};
look:	atomic {					/* (etcd.place.Look) */
		if
		:: place[me] != mine[me] -> goto done	/* lost: it would begin anew */
		:: else
		fi;
		before(mine[me])
	};
	if
	:: front == 0 -> goto won
	:: else
	fi;
	atomic {					/* (etcd.Store.stillness) */
		if
		:: front != saw || seen != sawbeat -> saw = front; sawbeat = seen; still[me] = 0
		:: else
		fi;
#ifdef SHOWN
		if
		:: still[me] = L
		:: true
		fi
#endif
	};
	if
	:: lapsed(front) -> atomic {			/* (etcd.place.Pass) */
		if
#ifdef NOCOMPARE
		:: place[me] == mine[me] ->
#else
		:: place[me] == mine[me] && beat[front] == seen ->
#endif
			place[front] = 0
		:: else
		fi;
		front = 0
	   }
	:: !lapsed(front) || front == 0
	:: me != N -> goto gone				/* it gives up waiting, or dies */
	fi;
	front = 0;
	goto look;
won:	if						/* (lease.Locker.stand), (watchdog.Watchdog.Arm) */
	:: atomic {
		young(me) ->
		if
		:: !reads(me) || reading == 0 -> jobs++
		:: else
		fi;
		reading = reading + reads(me); running[me] = true;
		assert(jobs == 1)
	   }
	:: !young(me) -> goto gone			/* renewed in time, or given up */
	fi;
	atomic {
		running[me] = false; reading = reading - reads(me);
		if
		:: !reads(me) || reading == 0 -> jobs--
		:: else
		fi
	};
gone:	if
	:: atomic {					/* (etcd.place.Leave) */
		if
		:: place[me] == mine[me] -> place[me] = 0
		:: else
		fi
	   }
	:: me != N					/* it was killed, or is cut off */
	fi;
done:	atomic { over[me] = true; age[me] = 0; still[me] = 0; saw = 0; sawbeat = 0; seen = 0; }
}

/* in_time: no job runs to the end of its lease. */
#ifdef STOPPED
#define in_time(who) true
#else
#define in_time(who) !(running[who] && age[who] >= L - 1)
#endif

inline passes(clock) {
	if
	:: clock < L -> clock++
	:: else
	fi
}

active proctype Time() {
	byte who;
end:	do
	:: d_step { in_time(1) && in_time(2) && in_time(N-1) && in_time(N) &&
		!(over[1] && over[2] && over[N-1] && over[N]) ->
		who = 1;
		do
		:: who <= N -> passes(age[who]); passes(flight[who]); passes(still[who]); who++
		:: else -> break
		od;
		who = 0
	   }
	od
}

#ifndef UNTOUCHED
/* A person removes a beat by hand. */
active proctype Person() {
	byte whose = 1;
	do
	:: whose < N -> whose++
	:: break
	od;
	if
	:: beat[whose]++
	:: true
	fi
}
#endif

init {
	atomic {
		byte who = 1;
		do
		:: who <= N -> run Newcomer(who); who++
		:: else -> break
		od
	}
}
