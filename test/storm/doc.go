// Package storm has all kinds of processes contend for a few atoms, under signals to any of
// them, and judges the result by the promises of lib/adlock.7 and lib/protocol.md, and not by
// the code.
//
// The stage is a pid namespace of its own: this test's binary is its first
// process, orphans come to it, and nothing outlives it. Contenders (storm.sh,
// under every shell) take atoms by the library, by `adlock run` and by
// adlock_guard, with and without children, sessions, slots, readers and nesting;
// some hang; newcomers end them. Meanwhile the storm stops, continues and ends supervisors,
// jobs, scripts and newcomers, and starts bystanders: processes that belong to no job, many
// with the very pid of an owner that has just died. With a compiler at hand they report the
// sender of a signal: 0 is a process outside the stage (a busy machine may end processes by
// their numbers), and proves nothing.
//
// The processes themselves report what happens, and not adlock: one line per event, of one
// write to one pipe, so that the order of the lines is an order in real time. And a process in
// an atom holds a pipe of the atom's as a lock that its whole job inherits and that costs no
// fork (storm.sh, hold), so that the next job notices processes of an earlier one. After each
// round all processes end, each atom is taken once more, and the judge (judge_test.go: a pure
// function of the history, tested with histories that it must find guilty) decides.
//
// # Covered processes
//
// Only processes that the promise covers may hold the pipe, or the storm would find the holes
// that lib/adlock.7 names:
//
//   - When a command ends, its supervisor releases the atom, whatever the command has
//     started (unless --whole-job). So the storm ends no command with children; and the
//     work of one that it may end forks nothing, not even between fork and exec.
//   - When a supervisor is killed, its process group and the command that the lock names
//     hold the atom. So a child that left the group counts only if the supervisor is not
//     killed; a command that leaves the group does so after the lock names it (KILL between
//     the fork and that write is the documented hole); and if the command is the parent of
//     the job (timeout, a nested run), it is not ended.
//   - When a process other than adlock ends a script, the group or session that the script
//     leads holds the atom. So a script that leads none is alone in its job; one that does
//     may have children, and ones outside the session only if the script is not ended.
//   - A process between parent and child is not ended: its child would be an orphan unknown
//     to its grandparent, which releases the atom.
//   - A daemon that gets the pid of a dead owner, and whose first process is gone, cannot be
//     distinguished from an orphan of that owner's job if both led a session.
//
// # By hand
//
// ADLOCK_SOAK=1h lasts an hour, ADLOCK_STORM_ACQUISITIONS=N until so many acquisitions;
// ADLOCK_STORM_SEED=N draws the same numbers again (but the machine does not repeat itself);
// ADLOCK_STORM_WITH=traps,… adds what is left out because it is known to break a promise
// (contender_linux_test.go, mended); ADLOCK_STORM_BINARY=FILE tries another build of the
// helper.
package storm
