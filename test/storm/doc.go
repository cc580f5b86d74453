// Package storm lets whatever there is contend for a few atoms, under signals that
// may hit anybody, and judges what came of it by the promises of lib/adlock.7 and
// lib/protocol.md, and by nothing of the code.
//
// The stage is a pid namespace of its own: this test's binary is its first
// process, orphans come to it, and nothing outlives it. Contenders (storm.sh,
// under every shell) take atoms by the library, by `adlock run` and by
// adlock_guard, with and without children, sessions, slots, readers and nesting;
// some hang; newcomers end them. Meanwhile the storm stops, continues and ends
// supervisors, jobs, scripts and newcomers, and sends bystanders into the crowd:
// processes that belong to no job, many of them with the very pid of an owner that
// has just died. Where there is a compiler they tell who signalled them: 0 is somebody
// who is not on the stage (a machine that does other things as well ends strangers too,
// by numbers), and proves nothing.
//
// What happens is told by those it happens to, not by adlock: one line per event,
// of one write to one pipe, so that the order of the lines is an order in real
// time. And who is in an atom holds a pipe of the atom's as a lock that its whole
// job inherits and that costs no fork (storm.sh, hold), so that what lives of an
// earlier job is seen by the next one. After each round everything comes to its
// end, each atom is taken once more, and the judge (judge_test.go: a pure function
// of the history, tried by histories that it has to find guilty) decides.
//
// # Who counts
//
// Only what the promise covers may hold the pipe, or the storm would find the
// holes that lib/adlock.7 names:
//
//   - When a command ends, its supervisor gives the atom back, whatever the command
//     has started (unless --whole-job). So a command with children is not ended by
//     the storm, and one that is has none: its work forks nothing, not even for
//     the moment between fork and exec.
//   - When a supervisor is killed, the atom is held by its process group and by the
//     command that the lock names. So a child that left the group counts only
//     where the supervisor is not killed; a command that leaves the group does so
//     once the lock names it (KILL between the fork and that write is the hole
//     that is said); and where it is the parent of the job (timeout, a nested
//     run), it is not ended.
//   - When a script is ended by somebody else than adlock, the atom is held by the
//     group or session that it leads. So a script that leads none is alone in its
//     job, and one that does may have children, those that left the session only
//     where the script is not ended.
//   - A process between parent and child is not ended: its child would be an orphan
//     of whom its grandparent knows nothing when it gives the atom back.
//   - A daemon that gets the pid of a dead owner, and whose first process is gone,
//     cannot be told from an orphan of that owner's job where both led a session.
//
// # By hand
//
// ADLOCK_SOAK=1h lasts so long, ADLOCK_STORM_ACQUISITIONS=N until so many
// acquisitions; ADLOCK_STORM_SEED=N draws the same numbers again (the machine does
// not repeat itself, though); ADLOCK_STORM_WITH=traps,… adds what is left out
// because it is known to break a promise (contender_linux_test.go, mended);
// ADLOCK_STORM_BINARY=FILE tries another build of the helper.
package storm
