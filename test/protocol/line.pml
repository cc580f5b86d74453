/*
 * The line of waiters: flock(2) on a file that has nothing to do with the lock. The process that
 * the kernel has granted it is the head, which alone watches the atom. The steps are named as in
 * job.pml.
 *
 * Each statement outside atomic is one system call: between any two, every other process may run,
 * be killed, be stopped, and perhaps be continued. The kernel grants the flock of an inode in the order
 * in which processes asked for it; a process that is stopped while it blocks loses its place there.
 * (In truth the one behind a process that dies or is stopped asks again, and another may be faster.)
 * How the lock of a dead owner is replaced is one step here: adlock.pml has it.
 *
 * What must hold, also with SLOW (a head that runs is passed too):
 *   mutual exclusion   never two owners
 *   order              a waiter takes the atom only if no other asked before it for the line that is
 *                      at the path: until the file is removed, which loses the order once
 *   available          a free atom does not stay free while a waiter runs for which it is due (with
 *                      AVAILABLE: ltl, weak fairness). The head has no timeout here: events suffice
 * Variants (-D) that must fail:
 *   UNWATCHED          the head does not look again after it has begun to watch    available
 *   STALE              a waiter that becomes the head relies on an earlier look
 *   NOPASS             a head that is stopped is not passed
 *   KEEPSLINE          a head for which the atom is not due stays in the line
 *   RIGHT              the head takes a free atom without link(2)                  mutual exclusion
 *   NOCHECK            a waiter does not check that its inode is still at the path order
 *   BARGE              the kernel wakes the first that waits, and another is faster
 * With PATIENT all newcomers wait; with STEADFAST none gives up.
 */

#ifndef N
#define N 3
#endif
#ifndef STOPS
#define STOPS 1
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef PRUNES
#define PRUNES 1
#endif
#define PRUNER (N+1)
#define INODES (N+2)		/* one at the path, and one that each process has open */

byte path;			/* whose lock is in place; 0: none */
byte line;			/* the inode at the path of the line; 0: none */
byte holder[INODES+1];		/* of its flock; 0: none */
chan queue[INODES+1] = [N] of { byte };	/* that block in flock(2) */
chan asked = [N] of { byte };	/* waiters, in the order in which they asked for the line at the path */

bool dead[N+2];			/* dead[0]: no lock is a free atom */
bool stopped[N+2];
bool over[N+2];
bool waits[N+2];
bool early[N+2];		/* IfElapsed has not passed for this newcomer */
byte opened[N+2];		/* an inode of the line; 0: none */
bool blocks[N+2];		/* a thread has called flock(2), which may have granted it by now */
bool head[N+2];			/* it has the flock, and its inode was at the path then */
bool excused[N+2];		/* there was no line when it asked, or its line was removed when it was the head */
bool watches[N+2];
bool told[N+2];			/* a lock was removed since it began to watch, or was last told */

#define holds(p) (holder[opened[p]] == p)
#define queues(p) (blocks[p] && !holds(p))

inline ask(p) {
	if
	:: opened[p] == line && !(asked ?? [eval(p)]) -> asked ! p; excused[p] = false
	:: else
	fi
}

inline forget(p) {
	if
	:: asked ?? [eval(p)] -> asked ?? eval(p)
	:: else
	fi
}

/* unlock: the kernel grants the flock to the first that waits. */
inline unlock(i) {
#ifdef BARGE
	holder[i] = 0
#else
	if
	:: nempty(queue[i]) -> queue[i] ? holder[i]
	:: empty(queue[i]) -> holder[i] = 0
	fi
#endif
}

/* lock is flock(2) that blocks. */
inline lock(p) {
	if
	:: holder[opened[p]] == 0 -> holder[opened[p]] = p
	:: else -> queue[opened[p]] ! p
	fi;
	ask(p)
}

/* unqueue: its flock(2) is interrupted. */
inline unqueue(p) {
	if
	:: queue[opened[p]] ?? [eval(p)] -> queue[opened[p]] ?? eval(p)
	:: else
	fi;
	forget(p)
}

/* shut closes the file of the line. */
inline shut(p) {
	if
	:: opened[p] != 0 && holds(p) -> unlock(opened[p]); forget(p)
	:: opened[p] != 0 && !holds(p) -> unqueue(p)
	:: else
	fi;
	opened[p] = 0; blocks[p] = false; head[p] = false
}

/* remove unlinks the line, so the order is lost. */
inline remove() {
	i = 1;
	do
	:: i <= N ->
		excused[i] = excused[i] || (head[i] && opened[i] == line && line != 0);
		forget(i);
		i++
	:: else -> break
	od;
	i = 0; line = 0
}

/* create makes an inode that no process has open. */
inline create() {
	line = 1;
	do
	:: opened[1] == line || opened[2] == line || opened[N-1] == line || opened[N] == line || opened[PRUNER] == line -> line++
	:: else -> break
	od
}

/* check: is the inode that it has the flock of still at the path? (flock.File.TryLock) */
inline check() {
	atomic {
		if
#ifdef NOCHECK
		:: true
#else
		:: opened[me] == line
#endif
			-> head[me] = true; blocks[me] = false
#ifndef NOCHECK
		:: opened[me] != line -> shut(me); goto join
#endif
		fi
	}
}

proctype Newcomer(byte me) provided (!stopped[me]) {
	byte owner, i;
	bool free, tires;
	{
	if
	:: me == 1 -> goto job				/* the owner at first */
	:: atomic { me != 1 -> waits[me] = true }
#ifndef STEADFAST
	:: atomic { me != 1 -> waits[me] = true; tires = true }	/* it gives up, at any time */
#endif
#ifndef PATIENT
	:: me != 1
#endif
	fi;
look:	atomic {					/* (lockdir.Locker.look) */
		owner = path; free = dead[owner];
		if
		:: !waits[me] && (early[me] || !free) -> goto done
		:: !waits[me] && !early[me] && free -> goto take
		:: waits[me] && early[me] -> goto sleep
		:: waits[me] && !early[me] && !free -> goto join
		:: waits[me] && !early[me] && free
		fi
	};
	atomic {					/* (lockfile.line.isHead) */
		if
		:: opened[me] == 0 && line == 0 -> excused[me] = true; goto take
		:: opened[me] == 0 && line != 0 -> opened[me] = line
		:: opened[me] != 0
		fi
	};
	atomic {					/* (lockfile.line.tries) */
		if
		:: head[me] -> goto take
		:: !head[me] && holds(me)
		:: !head[me] && !blocks[me] && holder[opened[me]] == 0 -> holder[opened[me]] = me; ask(me)
		:: else -> goto pass
		fi
	};
	check();
	goto take;
pass:	/* (lockfile.line.passes): a head that runs takes a free atom, or leaves the line, within a second */
	if
#if defined(SLOW)
	:: opened[me] == line -> d_step { remove() }; d_step { shut(me) }
#elif !defined(NOPASS)
	:: opened[me] == line && stopped[holder[line]] -> d_step { remove() }; d_step { shut(me) }
#endif
#ifndef NOPASS
	:: opened[me] != line || !stopped[holder[line]]
#else
	:: true
#endif
	fi;
join:	if						/* (lockfile.line.join) */
	:: atomic { queues(me) && opened[me] != line -> shut(me) }
	:: else
	fi;
	atomic {					/* (lockfile.line.open) */
		if
		:: opened[me] == 0 && line == 0 -> create(); opened[me] = line
		:: opened[me] == 0 && line != 0 -> opened[me] = line
		:: opened[me] != 0
		fi
	};
	atomic {
		if
		:: head[me] -> goto watch
		:: !head[me] && holds(me)
		:: !head[me] && !blocks[me] && holder[opened[me]] == 0 -> holder[opened[me]] = me; ask(me)
		:: queues(me) -> goto wait
		:: else -> goto await
		fi
	};
	check();
	goto watch;
await:	atomic { lock(me); blocks[me] = true };		/* (flock.File.Await) */
wait:	if						/* (lockfile.Watch.Wait) */
	:: holds(me) -> goto look
	:: !holds(me) -> goto look			/* now and then */
	:: tires -> goto done
	fi;
watch:	/* (lockfile.Waiting.Next) */
	if
	:: !watches[me] -> watches[me] = true
#ifndef UNWATCHED
		; goto look
#endif
	:: watches[me]
	fi;
	do						/* (lockfile.Watch.Wait) */
#ifndef STALE
	:: free -> goto look
#endif
	:: told[me] ->
		atomic {
			told[me] = false;
			if
			:: path != owner -> goto look
			:: else
			fi
		}
	:: owner != 0 && dead[owner] -> goto look
	:: tires -> goto done
	od;
sleep:	atomic {					/* (lockfile.Waiting.begin) */
		watches[me] = true;
#ifndef KEEPSLINE
		shut(me)
#endif
	};
	if
	:: !early[me] -> goto look
	:: tires -> goto done
	fi;
take:	atomic {					/* (lockfile.TempFile.Link) */
		if
#ifdef RIGHT
		:: true
#else
		:: path == owner
#endif
			-> assert(dead[path]);		/* mutual exclusion */
			assert(!waits[me] || excused[me] || asked ? [eval(me)]);	/* order */
			path = me; waits[me] = false; watches[me] = false; told[me] = false;
			forget(me)
#ifndef RIGHT
		:: path != owner -> goto look
#endif
		fi
	};
job:	if
	:: atomic { shut(me) }				/* a script's helper */
	:: true						/* (lockfile.Waiting.Close): a supervisor keeps its place */
	fi;
	d_step {					/* (lockdir.Locker.Release) */
		path = 0; early[N] = (me != N); i = 1;
		do
		:: i <= N -> told[i] = watches[i]; i++
		:: else -> break
		od;
		i = 0
	};
	} unless { dead[me] };
done:	atomic { shut(me); over[me] = true; waits[me] = false; watches[me] = false; told[me] = false; excused[me] = false; owner = 0; free = false; tires = false }
}

/* A person prunes files that no waiter needs: it locks the line without waiting. */
#if PRUNES
active proctype Pruner() {
	byte i;
	if
	:: atomic { line != 0 -> opened[PRUNER] = line }
	:: goto done
	fi;
	if
	:: atomic { holder[opened[PRUNER]] == 0 -> holder[opened[PRUNER]] = PRUNER }
	:: goto done
	fi;
	if
	:: opened[PRUNER] == line -> d_step { remove() }
	:: opened[PRUNER] != line
	fi;
done:	atomic { shut(PRUNER) }
}
#endif

/* some draws a process. */
inline some() {
	p = 1;
	do
	:: p < N -> p++
	:: break
	od
}

/* Fate stops, continues and kills processes, and lets IfElapsed pass, or not. */
active proctype Fate() {
	byte stops, deaths, p;
	do
	:: atomic { stops < STOPS -> some();
		if
		:: !stopped[p] && !dead[p] && !over[p] -> stops++; stopped[p] = true;
			if
			:: queues(p) -> unqueue(p)
			:: else
			fi
		:: else
		fi;
		p = 0
	   }
	:: atomic { stops > 0 -> some();
		if
		:: stopped[p] -> stopped[p] = false;
			if
			:: queues(p) -> lock(p)
			:: else
			fi
		:: else
		fi;
		p = 0
	   }
	:: atomic { deaths < DEATHS -> some();
		if
		:: !dead[p] && !over[p] -> deaths++; dead[p] = true; stopped[p] = false; shut(p)
		:: else
		fi;
		p = 0
	   }
	:: early[N] -> early[N] = false
	:: break
	od
}

#ifdef BARGE
active proctype Kernel() {
	byte i = 1;
end:	do
	:: i < INODES -> i++
	:: i > 1 -> i = 1
	:: atomic { holder[i] == 0 && nempty(queue[i]) -> queue[i] ? holder[i] }
	od
}
#endif

init {
	byte p;
	atomic {
		dead[0] = true; path = 1;
		if
		:: line = 1; opened[1] = 1; holder[1] = 1; head[1] = true
		:: true
		fi;
		for (p : 1 .. N) { run Newcomer(p) }
	}
}

#ifdef AVAILABLE
#define wanted(p) (waits[p] && !early[p] && !stopped[p] && !dead[p])
ltl available { [] <> (!dead[path] || !(wanted(1) || wanted(2) || wanted(N-1) || wanted(N))) }
#endif
