/*
 * What must be dead before a lock is replaced: one owner, its job, and newcomers
 * that find its lock expired.
 *
 * A dead owner is not a dead job, and the process table does not say whose child
 * an orphan was. The lock itself has to: a process that ends a job appends each member
 * to the lock, under the guard, before that member is signalled, and all known members
 * before the first signal; `adlock run` appends its command. Between any two
 * statements every other process may run, be killed, fork, leave the group, or become
 * one that cannot be ended or seen. A signalled process dies some time, or
 * never: so a newcomer may give up at any time.
 *
 * A step names the function of lib/ that it stands for, as (package.function) or
 * (package.Type.method). The process table is read in one step here, and CONT,
 * INT, TERM and KILL are one signal: a process that survives some is slow to die.
 *
 * What must hold:
 *   only the dead     the lock is replaced, or released by a supervisor that has
 *                     ended its job, only when all of the job is dead
 *   recorded first    no process is signalled that the lock does not name
 *
 * By default the owner is a script, which may or may not lead a process group.
 * With RUN it is `adlock run`, which leads one, is its job's subreaper, records
 * its command (with GATE, as on a terminal, before that begins), and may end the
 * job by itself. With INSIDE another newcomer is a process of the job.
 *
 * Rules that did not hold are variants (-D):
 *   NORECORD       members are not recorded
 *   RECORDLATE     they are recorded only after all have been signalled
 *   UNWRITTEN      an append that failed is ignored
 *   HIDDENDEAD     a process that is not in the process table is taken for dead
 *   ZOMBIESHOWN    a group of which the table shows a zombie is taken to hide no process
 *   SPARE          a newcomer inside the job spares itself and its ancestors, and
 *                  ends the others
 *   NOCOMMAND      `adlock run` does not record its command
 *   GIVEUP         it gives up the record of its command if a newcomer has the guard
 * What is not promised is left out. These variants let it in, and show that it is a hole:
 *   HOLE           `adlock run` is killed between fork(2) and the record of its
 *                  command, which leaves the group
 *   ORPHANS        a process that is in no group which the lock names outlives a
 *                  parent that ended by itself or by a stranger's KILL
 *   LATEFORKS      such a process is started, or leaves the group, between a look
 *                  at the process table and the death of its parent
 * With WITNESS, replacing the lock counts as a fault: this shows that some runs get so far.
 */

#define OWNER 1
#define CHILD 2			/* with RUN: the command */
#define GRAND 3			/* of the child, or another child */
#define INSIDER 4		/* a newcomer that the child has started */
#define NEWCOMER 5		/* from outside the job, one after the other */

/* Sets of processes are bits. */
#define one(p) (1 << (p))
#define has(set, p) (((set) >> (p)) & 1)
#define lives(p) has(alive, p)

/* What a member is to a process that wants to end it. */
#define PLAIN 0
#define FROZEN 1		/* not even KILL reaches it until it thaws */
#define HIDDEN 2		/* another user's: not in the process table, and EPERM */

byte path = OWNER;		/* whose lock is in place; 0: none */
byte guard;			/* the holder of flock on the owner's lock; 0: none */
byte recorded;			/* the members that the lock names */
bool command;			/* the lock names CHILD as the command: its group is the job's too */
bool writing;			/* the command runs and RecordCommand is not over */

byte born = one(OWNER) | one(NEWCOMER);
byte alive = one(OWNER) | one(NEWCOMER);
byte doomed;			/* got a signal that ends it */
bool zombie;			/* the owner is dead, and in the process table */
bool leads;			/* the owner leads a process group */
bool root;			/* this newcomer is root's: no process is hidden from it */
bool killed;			/* this newcomer was killed */
byte nature[NEWCOMER+1];
byte parent[NEWCOMER+1];	/* 0: process 1 */
byte group[NEWCOMER+1];		/* OWNER; CHILD; 0: a group that proves nothing */
byte changes;			/* members that have become FROZEN or HIDDEN */
#ifdef INSIDE
#define CHANGES 0
#else
#define CHANGES 1
#endif

#define inGroup(p) (group[p] == OWNER && leads || group[p] == CHILD && command)

#ifdef RUN
#define subreaper (lives(OWNER) -> OWNER : 0)
#else
#define subreaper 0
#endif

/* Within atomic or d_step. */
inline fork(p, c) {
	born = born | one(c);
	alive = alive | one(c);
	parent[c] = p;
	group[c] = group[p];
	nature[c] = (nature[p] == HIDDEN -> HIDDEN : PLAIN)
}

/* The kernel frees the guards that a dead process held, and gives its children to the
 * subreaper. Within atomic or d_step. */
inline die(p) {
	alive = alive & ~one(p);
	doomed = doomed & ~one(p);
	recorded = recorded & ~one(p);		/* fewer states: the dead need no record */
	parent[p] = 0;
	nature[p] = PLAIN;
	if
	:: p == OWNER -> zombie = true
	:: else -> group[p] = 0
	fi;
	if
	:: guard == p -> guard = 0
	:: else
	fi;
	for (c : CHILD .. NEWCOMER) {
		if
		:: parent[c] == p -> parent[c] = subreaper
		:: else
		fi
	}
	c = 0
}

/* shown: me finds p in the process table. (process.Identity.Life) looks up a number, and
 * EPERM is not death. */
#define shown(p) (nature[p] != HIDDEN || me == NEWCOMER && root)
#ifdef HIDDENDEAD
#define looksAlive(p) (lives(p) && shown(p))
#else
#define looksAlive(p) lives(p)
#endif

/* hides: (process.band.unseen), a group in which only hidden processes live. */
#define hiddenIn(p, g) (group[p] == g && lives(p) && !shown(p))
#define shownIn(p, g) (group[p] == g && lives(p) && shown(p))
#if defined(HIDDENDEAD)
#define hides(g) false
#elif defined(ZOMBIESHOWN)
#define hides(g) (!(g == OWNER && zombie) && hidesOne(g))
#else
#define hides(g) hidesOne(g)
#endif
#define hidesOne(g) ((hiddenIn(CHILD, g) || hiddenIn(GRAND, g)) && \
	!shownIn(CHILD, g) && !shownIn(GRAND, g) && !shownIn(INSIDER, g))
#define unseen (leads && hides(OWNER) || command && hides(CHILD))

/* remains: (process.Job.Remains) */
#define speaksFor(p) (has(recorded, p) && looksAlive(p) || inGroup(p) && lives(p) && shown(p))
#define remains (speaksFor(CHILD) || speaksFor(GRAND) || speaksFor(INSIDER) || unseen)

/* scan: (killer.tree.scan). Members that the lock names or this ending has found are looked
 * up by number, and a hidden process is found as a child of a shown one. */
inline scan() {
	seen = 0;
	for (p : OWNER .. NEWCOMER) {
		if
		:: (p == OWNER || has(recorded | mine, p)) && looksAlive(p) ||
		   inGroup(p) && lives(p) && shown(p) ||
		   has(seen, parent[p]) && lives(p) && (shown(p) || looksAlive(p) && shown(parent[p])) ->
			seen = seen | one(p)
		:: else
		fi
	}
	p = 0
}

/* ownScan: (killer.Killer.EndDescendants) */
inline ownScan() {
	scan();
	seen = seen & ~one(OWNER)
}

/* spare: (killer.tree.spare), (killer.ErrAncestor): this process and its
 * ancestors. */
inline spare() {
	spared = 0;
	p = me;
	do
	:: p != 0 -> spared = spared | one(p); p = parent[p]
	:: else -> break
	od;
#ifdef SPARE
	seen = seen & ~spared;
	spared = spared & one(OWNER)
#else
	spared = spared & seen
#endif
}

/* obstacle: (killer.tree.obstacle) */
#define forbidden(p) (has(seen, p) && !shown(p))
#define obstacle (forbidden(CHILD) || forbidden(GRAND) || unseen)

/* record: (lockfile.Active.AppendSurvivors), under the guard. It may fail: then
 * no process, or no further one, is signalled. */
inline record() {
	if
#ifdef UNWRITTEN
	:: true
#else
	:: true -> goto leave
#endif
#if defined(NORECORD) || defined(RECORDLATE)
	:: true
#else
	:: recorded = recorded | seen
#endif
	fi;
	mine = (mine | seen) & alive;
	seen = 0
}

/* send: (killer.Killer.signal), to all at once: a process that is signalled later, or not
 * at all because the newcomer is killed, is like one that is slow to die. A supervisor
 * comes last (process.Job.Supervised). Within atomic. */
#ifdef RUN
#define keeper ((alive & mine) == one(OWNER) -> 0 : one(OWNER))
#else
#define keeper 0
#endif
inline send() {
	for (p : OWNER .. INSIDER) {
		if
		:: has(mine & alive & ~keeper, p) && shown(p) -> doomed = doomed | one(p)
		:: else
		fi
	}
	p = 0;
#if !defined(NORECORD) && !defined(RECORDLATE) && !defined(UNWRITTEN)
	assert((doomed & ~recorded) == 0);		/* recorded first */
#endif
}

/* quiet: (killer.tree.living), which is called before the table is read, so that
 * no awaited process can have forked meanwhile. */
#define awaited(p) (has(mine, p) && looksAlive(p))
#define noneAwaited !(awaited(OWNER) || awaited(CHILD) || awaited(GRAND) || awaited(INSIDER))

proctype Newcomer(byte me) {
	byte seen, mine, spared, p, left;
	bool quiet;
	has(born, me);
again:	{
		/* (lockfile.Active.Guard): else busy, or lost */
		atomic {
			guard == 0 && path == OWNER -> guard = me;
			if
			:: me == NEWCOMER && (nature[CHILD] == HIDDEN || nature[GRAND] == HIDDEN) -> root = true
			:: true
			fi
		};
		/* (lockdir.Locker.look), (locker.OwnerOf): the owner, then its job */
		if
		:: lives(OWNER)
		:: atomic { !lives(OWNER) -> skip };
			if
			:: remains
			:: atomic { !remains -> goto replace }
			fi
		fi;

		/* (killer.Killer.End): the first look */
		atomic {
			d_step { scan(); spare() };
			if
			:: spared || obstacle -> goto leave	/* busy; stuck */
			:: else -> spared = 0
			fi;
			if
			:: seen == 0 -> goto replace
			:: else
			fi
		};
		/* (lockdir.ending.record) */
		atomic { record() };
signal:		atomic { send() };
#ifdef RECORDLATE
		recorded = (recorded | mine) & alive;
#endif
		quiet = noneAwaited;
		atomic {
			d_step { scan(); spare() };
			if
			:: spared -> goto leave
			:: !spared && (seen & ~mine) -> quiet = false
			:: !spared && !(seen & ~mine) && quiet && !unseen -> goto replace
			:: !spared && !(seen & ~mine) && !(quiet && !unseen) -> quiet = false; spared = 0; seen = 0; goto signal
			:: !spared && !(seen & ~mine) && !(quiet && !unseen) -> goto leave	/* (killer.ErrAlive): stuck */
			fi;
			spared = 0
		};
		atomic { record(); goto signal };

replace:	/* (lockdir.Locker.takeover) */
		atomic {
			left = alive & (one(OWNER) | one(CHILD) | one(GRAND));
			assert(left == 0);				/* only the dead */
#ifdef WITNESS
			assert(path != OWNER);
#endif
			path = me
		};
leave:		atomic {
			if
			:: guard == me -> guard = 0
			:: else
			fi
		}
	} unless { !lives(me) || me == NEWCOMER && killed };
	atomic {
		seen = 0; mine = 0; spared = 0; p = 0; left = 0; quiet = false;
		if
		:: me == NEWCOMER -> root = false; killed = false; goto again
		:: else
		fi
	}
}

#ifdef RUN
/* Supervisor: (run.runArgs.supervised), from the instant at which the lock is
 * in place. */
proctype Supervisor() {
	byte seen, mine, p, c, left;
	bool quiet;
	byte me = OWNER;
	{
		/* (supervise.run.start) */
		atomic {
			fork(OWNER, CHILD);
#ifdef GATE
			recorded = recorded | one(CHILD);
			command = true
#else
			writing = true
#endif
		};
#ifndef GATE
		/* (lockdir.Locker.RecordCommand) */
		atomic {
			if
#ifdef NOCOMMAND
			:: true
#else
			:: guard == 0 -> recorded = recorded | one(CHILD) & alive; command = true
#endif
#ifdef GIVEUP
			:: guard != 0
#endif
			fi;
			writing = false
		};
#endif

		/* (supervise.run.end): --enforce, or a signal */
		atomic {
			d_step { ownScan() };
			if
			:: seen == 0 && !unseen -> goto release
			:: obstacle -> goto leave
			:: else
			fi
		};
members:	/* (lockdir.Locker.RecordMembers): it waits for the guard, but not for ever */
		atomic {
			if
			:: guard == 0 -> record()
			:: guard != 0 -> goto leave
			fi
		};
signal:		atomic { send() };
#ifdef RECORDLATE
		recorded = (recorded | mine) & alive;
#endif
		quiet = noneAwaited;
		atomic {
			d_step { ownScan() };
			if
			:: seen & ~mine -> quiet = false; goto members
			:: !(seen & ~mine) && quiet && !unseen -> goto release
			:: !(seen & ~mine) && !(quiet && !unseen) -> quiet = false; seen = 0; goto signal
			:: !(seen & ~mine) && !(quiet && !unseen) -> goto leave
			fi
		};

release:	/* (lockdir.Locker.Release) */
		atomic {
			if
			:: guard == 0 ->
				left = alive & (one(CHILD) | one(GRAND));
				assert(left == 0);			/* only the dead */
				path = 0
			:: guard != 0					/* lost */
			fi
		};
leave:		atomic { die(OWNER) }
	} unless { !lives(OWNER) };
	atomic { seen = 0; mine = 0; p = 0; left = 0; quiet = false }
}
#endif

/*
 * World is what the job does by itself, and what strangers and the kernel do.
 */
#define child(c, p) (lives(c) && parent[c] == p)
#define known(p) (has(recorded, p) || inGroup(p))
#ifdef ORPHANS
#define mayEnd(p) (nature[p] != FROZEN)
#else
#define mayEnd(p) (nature[p] != FROZEN && (p != OWNER && subreaper || \
	(!child(CHILD, p) || known(CHILD)) && (!child(GRAND, p) || known(GRAND))))
#endif
#ifdef LATEFORKS
#define settled(p) true
#else
#define settled(p) (p != OWNER && subreaper || guard == 0 && !has(doomed, p))
#endif
#define mayFork(p) (lives(p) && nature[p] != FROZEN && (group[p] == OWNER && leads || settled(p)))
#ifdef HOLE
#define unwritten false
#else
#define unwritten writing
#endif
#define mayChange(p) (changes < CHANGES && lives(p) && nature[p] == PLAIN)
#define mayDie(p) (has(doomed, p) && nature[p] != FROZEN)

active proctype World() {
	byte c;
end:	do
	:: d_step { !has(born, GRAND) && mayFork(CHILD) -> fork(CHILD, GRAND) }
#ifdef INSIDE
	:: d_step { !has(born, INSIDER) && mayFork(CHILD) -> fork(CHILD, INSIDER) }
#endif
	/* timeout(1) and setsid(1) make a group that is named after them */
#ifdef RUN
	:: d_step { lives(CHILD) && group[CHILD] == OWNER && nature[CHILD] != FROZEN -> group[CHILD] = CHILD }
	:: d_step { lives(OWNER) && !unwritten -> die(OWNER) }
	:: d_step { mayDie(OWNER) && !unwritten -> die(OWNER) }
#else
	:: d_step { !has(born, CHILD) && mayFork(OWNER) -> fork(OWNER, CHILD) }
	:: d_step { !has(born, GRAND) && mayFork(OWNER) -> fork(OWNER, GRAND) }
	:: d_step {
		lives(CHILD) && group[CHILD] == OWNER && nature[CHILD] != FROZEN &&
		(has(recorded, CHILD) || parent[CHILD] && settled(OWNER)) -> group[CHILD] = 0
	   }
	:: d_step { lives(OWNER) && mayEnd(OWNER) -> die(OWNER) }
	:: d_step { mayDie(OWNER) -> die(OWNER) }
#endif
	:: zombie -> zombie = false		/* its parent reaps it */
	:: d_step { lives(CHILD) && mayEnd(CHILD) -> die(CHILD) }
	:: d_step { mayDie(CHILD) -> die(CHILD) }
	:: d_step { lives(GRAND) && mayEnd(GRAND) -> die(GRAND) }
	:: d_step { mayDie(GRAND) -> die(GRAND) }
	:: d_step { lives(INSIDER) -> die(INSIDER) }
	:: d_step { guard == NEWCOMER -> guard = 0; killed = true }

	:: d_step { mayChange(CHILD) -> changes++; nature[CHILD] = FROZEN }
	:: d_step { mayChange(GRAND) -> changes++; nature[GRAND] = FROZEN }
	:: d_step { mayChange(CHILD) -> changes++; nature[CHILD] = HIDDEN }
	:: d_step { mayChange(GRAND) -> changes++; nature[GRAND] = HIDDEN }
	:: nature[CHILD] == FROZEN -> nature[CHILD] = PLAIN
	:: nature[GRAND] == FROZEN -> nature[GRAND] = PLAIN
	od
}

init {
	atomic {
		group[OWNER] = OWNER;
#ifdef RUN
		leads = true;
		run Supervisor();
#else
		if
		:: leads = true
		:: true
		fi;
#endif
#ifdef INSIDE
		run Newcomer(INSIDER);
#endif
		run Newcomer(NEWCOMER)
	}
}
