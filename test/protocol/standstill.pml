/*
 * A newcomer that is stopped (SIGSTOP, a debugger) while it holds the guard of
 * a dead owner's lock. Its next step may be the rename, so no other newcomer may take
 * the guard from it. Nor does any other get further, so a message must name it.
 * The steps are named as in job.pml.
 *
 * What must hold:
 *   mutual exclusion   never two jobs at once
 *   available          the last newcomer, which comes again and again, gets the
 *                      atom, if a person continues the process that a message names (ltl,
 *                      weak fairness)
 * Variants (-D) that must fail:
 *   BREAKGUARD         the guard is taken from a stopped holder
 *   SILENT             other newcomers are only denied as busy
 */

#define N 3		/* the last newcomer; it is not stopped itself */

byte path;		/* whose lock is in place; 0: the first owner's */
byte guard[N+1];	/* of each lock: the holder of its flock; 0: none */
bool dead[N+1];
bool stopped[N+1];
bool named[N+1];	/* in a message that says how to continue it */
byte jobs;
bool served;

inline let_go(lock) {
	if
	:: guard[lock] == me -> guard[lock] = 0
	:: else
	fi
}

proctype Newcomer(byte me) {
	byte owner;
look:	atomic {
		owner = path;
		if
		:: dead[owner]
		:: !dead[owner] -> goto denied
		fi
	};
	/* (lockfile.Active.Guard) */
	atomic {
		if
		:: guard[owner] == 0 -> guard[owner] = me
		:: guard[owner] != 0 && !stopped[guard[owner]] -> goto denied	/* busy */
		:: guard[owner] != 0 && stopped[guard[owner]] ->
			/* (lockdir.guarded), (process.Still): stuck */
#ifndef SILENT
			named[guard[owner]] = true;
#endif
#ifdef BREAKGUARD
			guard[owner] = me
#else
			goto denied
#endif
		fi
	};
	if
	:: atomic { path != owner -> let_go(owner); goto denied }	/* lost */
	:: else
	fi;
	/* It is stopped once at most, and for ever unless a person continues it. */
	if
	:: true
	:: atomic { me != N -> stopped[me] = true }; !stopped[me]
	fi;
	/* (lockdir.Locker.takeover) */
	atomic { path = me; let_go(owner) };
	atomic { assert(jobs == 0); jobs++; served = served || me == N };
	atomic { jobs--; dead[me] = true; goto done };
denied:	if
	:: me == N -> goto look
	:: else
	fi;
done:	skip
}

/* Person continues the processes that messages name. */
active proctype Person() {
end:	do
	:: atomic { named[1] -> named[1] = false; stopped[1] = false }
	:: atomic { named[2] -> named[2] = false; stopped[2] = false }
	od
}

init {
	atomic {
		dead[0] = true;
		run Newcomer(1);
		run Newcomer(2);
		run Newcomer(N)
	}
}

#ifndef UNCLAIMED
ltl available { <> served }
#endif
