// Package learn computes an atom's limits from its past runs: each run changes a state, and the
// limits follow from the state. The package reads no clock and no files. The state is kept in the
// last lock, as lines that people can read. The figures below come from the simulator (test/sim).
//
// # ExpireAfter
//
// The limit is computed as Jacobson and Karels compute a timeout ("Congestion Avoidance and Control",
// 1988): mean + 4 mean deviations. It is learned from successes alone, and doubled when a run was ended
// by force. The runtimes of jobs differ by factors and not by seconds. So here
//
//   - mean and deviation are of the logarithm of the runtime. The first 32 runs weigh alike, and each later
//     one moves them by 1/32 of the difference, as the limit depends on the distribution's tail, not its middle;
//   - the longest of the last one to two thousand successes counts too, because a mean does not show
//     one long run in 168 (a weekly one of an hourly job). It also bounds the deviation, which is
//     large for a while after a sudden change;
//   - runs that are ended by force now and then are first taken for healthy runs of a new length:
//     each of the first three doubles the limit, which stays doubled. If no success has then taken
//     longer than the shortest of these runs, they are taken for hangs: the limit returns to its
//     value without doublings, until 1,000 successes have passed without an end by force;
//   - ends by force without a success between them double the limit each time. So the limit adapts
//     to a machine that has become slow.
//
// There is no limit before five runs have succeeded, and none is below 10 minutes: five runs of a job
// that takes a second show little. A limit ends only a job that was idle for a whole watch (lib/idle),
// so it can be shorter than a limit on runtimes alone. At σ 1.5 (of the logarithm of the runtime), 3.5
// deviations would end twice as many healthy runs with long sleeps as 4 do.
//
// The method has two weaknesses. At σ 1.5 one healthy run in a thousand takes 100 times the typical time, so a hang
// is ended only after hours there. And a job that spins looks like one that works, so a person has to stop it.
//
// # IfElapsed
//
// The interval is the typical runtime, but at least a minute, so the atom is held half of the time at
// most. While newcomers ask far more often than that, the interval is doubled up to four times.
package learn
