// Package protocol tests the protocol of one atom in two ways: spin searches models of it, and a storm
// of signals and crashes is judged by the promises alone.
//
// The folders below it go through adlock step by step: crash kills it before each system call
// that touches a lock, and fault lets each such call fail.
//
// # Models
//
// spin checks the protocol of one atom: every order of the steps of an owner,
// newcomers, crashes and the clock (adlock.pml), a job that forks, dies and escapes while it is
// being ended (job.pml), a holder of a guard that is stopped (standstill.pml), a script and an
// agent that die during a question (agent.pml), owners and waiters in a store (lease.pml), and the
// line of waiters in a directory (line.pml).
// spin must find the faults of the variants that attacks and measurement have shown to be
// unsound, or the models would prove nothing.
//
// # Storms
//
// All kinds of processes contend for a few atoms, under signals to any of them, and a judge
// compares the result with the promises of lib/adlock.7 and lib/protocol.md, and not with the
// code.
//
// The stage is a pid namespace of its own: this test's binary is its first
// process, orphans come to it, and nothing outlives it. Contenders (storm.sh,
// under every shell) take atoms by the library, by `adlock run` and by
// adlock_guard, with and without children, sessions, slots, readers and nesting;
// some hang; newcomers end them. Meanwhile the storm stops, continues and ends supervisors,
// jobs, scripts and newcomers, and starts bystanders: processes that belong to no job, many
// with the very pid of an owner that has just died. If there is a compiler, bystanders report the
// sender of a signal: 0 is a process outside the stage (a busy machine may end processes by
// their numbers), and proves nothing.
//
// The processes themselves report what happens, and not adlock: one line per event, of one
// write to one pipe, so that the order of the lines is an order in real time. And a process in
// an atom holds a pipe of the atom's as a lock that its whole job inherits and that costs no
// fork (storm.sh, hold), so that the next job notices processes of an earlier one. After each
// round all processes end, each atom is taken once more, and the judge (storm_judge_test.go: a
// pure function of the history, tested with histories that it must find guilty) decides.
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
//   - When a process other than adlock ends a script, what the script has started holds the atom: it
//     is in the group or session that the script leads, or has its mark (ADLOCK_MARK). A child outside
//     the session counts only if the script is not ended.
//   - A process between parent and child is not ended: its child would be an orphan unknown
//     to its grandparent, which releases the atom.
//   - A daemon that gets the pid of a dead owner, and whose first process is gone, cannot be
//     distinguished from an orphan of that owner's job if both led a session.
//
// # By hand
//
// ADLOCK_SOAK=1h lasts an hour; ADLOCK_STORM_SEED=N draws the same numbers again (but the machine does
// not repeat itself); ADLOCK_STORM_BINARY=FILE tries another build of the helper.
package protocol
