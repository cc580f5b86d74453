/*
 * The protocol of one atom: set, release, takeover, crash and clock.
 *
 * An active lock is an inode. Each newcomer makes at most one, so a lock has its
 * maker's number. `path` is the lock that is called lock.NAME now. A process
 * that has opened a lock keeps its number, even if the name leads elsewhere later: so
 * a newcomer that stalled may act on a lock that is no longer there. Each
 * statement outside atomic is one system call; between any two, every other process
 * may run, time may pass, and a doomed process may die.
 *
 * What must hold:
 *   mutual exclusion         never two jobs at once
 *   only the dead            a newcomer replaces the lock of a dead owner only,
 *                            and a release removes only its own
 *   IfElapsed                no job begins within IfElapsed of another's end
 *   available                a newcomer that comes again and again gets the atom
 *                            (ltl, weak fairness; with -DCRON)
 *
 * By default the guard is flock on the lock's own inode, as in lib/lockdir. The
 * variants (-D):
 *   NOGUARD                  verify, then act                        unsound
 *   LASTGUARD                flock on the last lock, never deleted   sound
 *   LASTGUARD PLAINRM        release by rm, no second look after
 *                            the owner's death                       unsound
 *   LASTGUARD ADMIN          an administrator deletes the last lock  unsound
 *   CRON NOEXPIRY            nothing expires: a hung owner keeps
 *                            the atom                                unavailable
 * With EXCLUSION only mutual exclusion is asserted.
 */

#ifndef N
#define N 3		/* newcomers; with CRON the last of them comes again and again */
#endif
#ifndef CRASHES
#define CRASHES 1	/* deaths without a killer */
#endif
#ifdef EXCLUSION
#define also(claim) skip
#else
#define also(claim) assert(claim)
#endif
#define HELPER N	/* p + HELPER: the releaser of owner p, which may outlive it */

byte path;		/* the lock in place; 0: none */
byte last = 1;		/* the inode of the last lock; an administrator makes it another */
byte guard[N+1];	/* of each lock (LASTGUARD: of each last lock): its holder; 0: none */
bool recent;		/* the last completion was less than IfElapsed ago */
byte completer;		/* the newcomer that stamped it */

bool doomed[N+1];	/* got a signal that it cannot survive */
bool dead[N+1];
bool old[N+1];		/* has held its lock for ExpireAfter */
#ifdef CRON
byte opened[N+1];	/* `owner` of each Newcomer, for other processes to read */
#define owner opened[me]
#endif
bool running[N+1];	/* its job runs */
byte jobs;		/* how many run */
bool served;		/* the last newcomer had the atom */

inline stamp(who) { atomic { recent = true; completer = who } }

/* seize is flock without waiting, and sets got. g is what is guarded: the opened
 * lock, or the opened last lock. Within atomic, like let_go. */
inline seize(g, who) {
#ifdef NOGUARD
	got = true
#else
	if
	:: guard[g] == 0 -> guard[g] = who; got = true
	:: else -> got = false
	fi
#endif
}

inline let_go(g, who) {
	if
	:: guard[g] == who -> guard[g] = 0
	:: else
	fi
}

/* acquired: the newcomer's last look is done. Within atomic. */
inline acquired() {
	let_go(me, me);
	owner = 0;
	if
	:: me == N -> served = true
	:: else
	fi
}

inline begin_job() {
	atomic {
		assert(jobs == 0);				/* mutual exclusion */
		also(!recent || completer == me);		/* IfElapsed */
		running[me] = true;
		jobs++
	}
}

inline end_job(p) {
	if
	:: running[p] -> running[p] = false; jobs--
	:: else
	fi
}

proctype Newcomer(byte me; bool again) {
	byte g;
	bool got, ended;
#ifndef CRON
	byte owner;		/* the lock it has open; 0: none */
#endif
	{
		skip;
look:		/* the cheap denial */
		if
		:: recent && !again -> goto done
		:: recent && again -> !recent
		:: else
		fi;
		atomic {
			owner = path;
			if
			:: owner == 0 -> goto set
			:: owner != 0 && (dead[owner] || old[owner]) -> goto takeover
			:: else -> goto denied			/* busy */
			fi
		};

set:		/* link(2); a lock is guarded from birth */
		atomic {
			if
			:: path == 0 -> path = me
			:: else -> goto look
			fi;
#if !defined(NOGUARD) && !defined(LASTGUARD)
			guard[me] = me
#endif
		};
		/* the second look */
		if
		:: recent ->
			/* stamp nothing */
			atomic {
				also(path == me);
				path = 0;
				if
				:: again -> old[me] = false
				:: else
				fi
			};
			atomic { let_go(me, me) };
#ifdef CRON
			/* Its next lock will be another inode. Here it has the same
			 * number, so it waits until no process has the old one open. */
			!again || (opened[1] != me && opened[2] != me);
#endif
			goto denied
		:: else
		fi;
		atomic { acquired(); goto job };

takeover:
#ifdef LASTGUARD
		g = last;
#else
		g = owner;
#endif
		atomic {
			seize(g, me);
			if
			:: !got -> goto denied		/* busy: another has the guard */
			:: else
			fi
		};
		/* does the name still lead there? */
		if
		:: atomic { path != owner -> let_go(g, me); goto look }
		:: else
		fi;
		if
		:: atomic { recent -> let_go(g, me); goto denied }	/* too soon */
		:: else
		fi;
		ended = false;
		if
		:: dead[owner]
		:: atomic { !dead[owner] && old[owner] -> doomed[owner] = true; ended = true };
			dead[owner]
		:: atomic { else -> let_go(g, me); goto look }
		fi;
#if defined(LASTGUARD) && !defined(PLAINRM)
		/* the second look after the death */
		if
		:: atomic { path != owner -> let_go(g, me); goto look }
		:: else
		fi;
#endif
		if
		:: ended -> stamp(me)
		:: else			/* the run of a dead owner has not completed */
		fi;
		/* rename(2) over what is in place */
		atomic {
			also(path == 0 || dead[path]);		/* only the dead */
			path = me;
#if !defined(NOGUARD) && !defined(LASTGUARD)
			guard[me] = me
#endif
		};
		atomic { let_go(g, me); acquired(); goto job };

denied:
		if
		:: again -> goto look
		:: else -> goto done
		fi;

job:
		begin_job();
		if
		:: skip				/* done */
		:: true -> false		/* hung */
		fi;
		atomic { end_job(me); run Releaser(me) }
	} unless {
		dead[me]
	};
	/* killed before its job was over: no release; after: the helper releases */
done:
	atomic { owner = 0; g = 0; got = false; ended = false }	/* fewer states */
}

/* Releaser is the helper that an owner starts once its job is over. It may crash
 * at any step. */
proctype Releaser(byte me) {
	byte g;
	bool got;
#ifdef PLAINRM
	stamp(me);
	path = 0
#else
	if
	:: path != me -> goto done		/* lost */
	:: else
	fi;
#ifdef LASTGUARD
	g = last;
#else
	g = me;
#endif
	/* it waits for the guard, and gives up at some time */
	do
	:: atomic {
			seize(g, me + HELPER);
			if
			:: got -> break
			:: !got
			:: !got -> goto done	/* lost */
			fi
		}
	od;
	if
	:: path != me -> goto crash		/* lost */
	:: else
	fi;
	if
	:: true -> goto crash
	:: stamp(me)
	fi;
	if
	:: true -> goto crash
	:: atomic { also(path == me); path = 0 }	/* its own, and no other's */
	fi;
crash:	atomic { let_go(g, me + HELPER) };
done:	atomic { g = 0; got = false }
#endif

}

/* die: the kernel frees the guards that a dead process held. Within d_step. */
inline die(p) {
	dead[p] = true;
#ifdef CRON
	opened[p] = 0;
#endif
	end_job(p);
	for (g : 1 .. N) { let_go(g, p) }
	g = 0
}

/* Fate: a doomed process dies, some time. */
proctype Fate(byte p) {
	byte g;
	doomed[p];
	d_step { die(p) }
}

/* Crash ends any process, at any time; with CRON not the last newcomer, which the
 * claim is about. */
active proctype Crash() {
	byte n, p, g;
	do
	:: n < CRASHES ->
		atomic {
			n++;
#ifdef CRON
			select (p : 1 .. N-1);
#else
			select (p : 1 .. N);
#endif
			if
			:: !dead[p] -> die(p)
			:: else
			fi;
			p = 0
		}
	:: break
	od
}

/* Clock lets IfElapsed and ExpireAfter pass. */
active proctype Clock() {
end:	do
	:: recent -> recent = false
#ifndef NOEXPIRY
	:: atomic { path != 0 && !old[path] -> old[path] = true }
#endif
	od
}

#ifdef ADMIN
active proctype Admin() { last = 2 }
#endif

init {
	byte p;
	atomic {
		for (p : 1 .. N) {
#ifdef CRON
			run Newcomer(p, p == N);
#else
			run Newcomer(p, false);
#endif
			run Fate(p)
		}
	}
}

#ifdef CRON
ltl available { <> served }
#endif
