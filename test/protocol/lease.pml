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
 * key), TWICE (a person removes two keys) and READERS (all but the last are readers):
 *   mutual exclusion   never two jobs at once, though beats are lost or late, holders
 *                      of a place die, and a person removes a key by hand
 * Variants (-D) that must fail:
 *   ONEKEY             no beat beside the place: a newcomer that finds no place goes in, as
 *                      when keys vanish with a revoked lease
 *   NOCOMPARE          a place is removed as dead though its beat has moved
 *   RECEIVED           an owner counts its lease from the answer to its beat
 *   SHOWN              a newcomer trusts the time in a beat
 *   UNCHECKED          a waiter begins though its own beat is old
 *   TRUSTING           a waiter that has seen the place in front go takes itself for the
 *                      first: the owner of that place may have given up waiting
 *   ANYSTAMP           a place that has stamped counts as the first, even if it stamped
 *                      for an owner that it found dead
 *   HANDS              a place that a person has removed is taken for one that
 *                      was left
 *   FORGETFUL          of the places removed by hand only the one directly in front counts
 *   SOLE               a waiter behind a place that was seen to be the first takes itself
 *                      for the first: that place may have been one of several readers
 *   STOPPED            a machine is suspended: only the fence helps then
 * With ORDERED the newcomers enter one after the other, and the first has long been dead:
 * so a fault among four is found sooner.
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
byte born[N+1];		/* the create revision of the beat; 0: none */
byte beat[N+1];		/* the revision of the beat: it only grows */
byte next = 1;

byte age[N+1];		/* ticks since the last successful beat was sent */
byte flight[N+1];	/* ticks since the latest beat was sent */
byte still[N+1];	/* ticks since a newcomer saw the beat in front at its revision */
byte mine[N+1];		/* the create revision that the store gave it */
bool running[N+1];
bool over[N+1];		/* gone: it needs its place no more */
byte off[N+1];		/* ticks since a newcomer saw a place in front removed by hand */
bool given[N+1];		/* its place went in one transaction with its beat, as adlock always removes it */
bool stamped[N+1];	/* it stamped the last lock in the transaction in which it left */
byte jobs;		/* readers together count as one */
byte reading;
byte entered;

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

/* before sets front to the place directly in front of a revision, and seen to its
 * beat. */
inline before(revision) {
	d_step {
		front = 0; least = revision; i = 1;
		do
		:: i <= N ->
			if
			:: blocks(i) && place[i] != 0 && place[i] < least -> least = place[i]; front = i
			:: else
			fi;
#ifndef ONEKEY
			if
			:: blocks(i) && born[i] != 0 && born[i] < least -> least = born[i]; front = i
			:: else
			fi;
#endif
			i++
		:: else -> break
		od;
		seen = beat[front]; i = 0; least = 0
	}
}

/* directly sets ahead to the place directly in front of a revision, and sole to whether that
 * was the first when it last looked. */
inline directly(revision) {
	d_step {
		ahead = 0; least = 0; i = 1;
		do
		:: i <= N ->
			if
			:: blocks(i) && place[i] > least && place[i] < revision -> least = place[i]; ahead = i
			:: else
			fi;
			i++
		:: else -> break
		od;
		sole = (ahead == front); i = 0; least = 0
	}
}

#if defined(HANDS)
#define counts(who) false
#elif defined(FORGETFUL)
#define counts(who) (who == ahead)
#else
#define counts(who) true
#endif

/* account counts the places that were there when the newcomer came, and were removed by hand
 * since; a lease begins with each removal (etcd.place.account). */
inline account() {
	d_step {
		least = 0; i = 1;
		do
		:: i <= N ->
			if
			:: counts(i) && (there & (1 << i)) && place[i] == 0 && !given[i] -> least++
			:: else
			fi;
			i++
		:: else -> break
		od;
		if
		:: least > removed -> removed = least; off[me] = 0
		:: else
		fi;
		i = 0; least = 0
	}
}

/* known: the place directly in front had the atom, so that no place before it is left. */
#if defined(TRUSTING)
#define known(who) true
#elif defined(SOLE)
#define known(who) (sole || stamped[who] && !reads(who))
#else
#define known(who) (stamped[who] && !reads(who))
#endif

#ifdef ORDERED
#define lapsed(who) (still[me] >= L || who == 1)
#else
#define lapsed(who) (still[me] >= L)
#endif

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
			:: well ->
				beat[me]++;
				if
				:: born[me] == 0 -> born[me] = next; next++
				:: else
				fi
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
	byte i, front, least, saw, sawbeat, seen, ahead, there, removed;
	bool sole, ran, holds;
	if
	:: me == 1					/* the first of the line */
#ifdef ORDERED
	:: me != 1 && mine[me-1] != 0 -> age[me] = 0
#else
	:: me != 1 && mine[1] != 0 -> age[me] = 0	/* sent */
#endif
	fi;
	atomic {					/* (etcd.Store.Enter) */
		i = 1;
		do
		:: i <= N ->
			if
			:: blocks(i) && place[i] != 0 -> there = there | (1 << i)
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0; entered++;
		place[me] = next; born[me] = next; mine[me] = next; next++;
		beat[me]++;
#if BEATS > 0
		run Beater(me)
#endif
	};
#ifdef ORDERED
	if
	:: me == 1 -> goto done
	:: else
	fi;
#endif
look:	atomic {					/* (etcd.place.Look) */
		if
		:: place[me] != mine[me] -> goto done	/* lost: it would begin anew */
		:: else
		fi;
		if
		:: ahead != 0 && place[ahead] == 0 && known(ahead) -> front = 0; holds = false /* (etcd.place.lookBehind) */
		:: else ->
			before(mine[me]);
			if
			:: place[front] == 0 -> account()	/* no place in front, or only its beat */
			:: else
			fi;
			holds = (front == 0 && removed > 0 && off[me] < L)
		fi;
		ahead = 0; sole = false
	};
	if
	:: holds -> goto look
	:: holds && me != N -> goto gone
	:: !holds && front == 0 -> goto won
	:: else
	fi;
	directly(mine[me]);				/* (etcd.place.Await) */
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
#ifdef ANYSTAMP
			stamped[me] = true;		/* with the passer's own stamp */
#endif
			given[front] = (place[front] != 0 && born[front] != 0);
			place[front] = 0; born[front] = 0
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
		fi;
		ran = true
	};
gone:	if
	:: atomic {					/* (etcd.place.Leave) */
		if
		:: place[me] == mine[me] ->
			if
			:: ran -> stamped[me] = true
			:: true
			fi;
			given[me] = (born[me] != 0);
			place[me] = 0; born[me] = 0
		:: else -> born[me] = 0
		fi
	   }
	:: me != N					/* it was killed, or is cut off */
	fi;
done:	atomic { over[me] = true; age[me] = 0; still[me] = 0; saw = 0; sawbeat = 0; seen = 0; ahead = 0; sole = false; ran = false; holds = false; there = 0; removed = 0; off[me] = 0 }
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
		:: who <= N -> passes(age[who]); passes(flight[who]); passes(still[who]); passes(off[who]); who++
		:: else -> break
		od;
		who = 0
	   }
	od
}

#ifndef UNTOUCHED
/* A person removes a key by hand: a place, or a beat; with TWICE both, once all newcomers have
 * come: one that comes when no key is left cannot know. */
active proctype Person() {
	byte whose = 1;
	do
	:: whose < N -> whose++
	:: break
	od;
#ifdef TWICE
	entered == N;
#endif
	if
	:: atomic { place[whose] != 0 -> place[whose] = 0 }
#ifndef ONEKEY
	:: atomic { born[whose] != 0 -> born[whose] = 0; beat[whose]++ }
#endif
	:: true
	fi
#ifdef TWICE
	;
	if
	:: atomic { place[whose] != 0 -> place[whose] = 0 }
	:: atomic { born[whose] != 0 -> born[whose] = 0; beat[whose]++ }
	:: true
	fi
#endif
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
