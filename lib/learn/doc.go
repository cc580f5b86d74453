// Package learn decides an atom's limits from its past runs: a state that each run changes, and the
// limits that follow from it. It reads no clock and no files. The state is kept in the last lock, as
// lines that people can read.
//
// # ExpireAfter
//
// The limit is computed as Jacobson and Karels compute a timeout ("Congestion Avoidance and Control",
// 1988): mean + 4 mean deviations, learned from successes alone, and doubled when a run was ended by
// force: such an end shows only that the run would have taken longer. Applied literally, this
// does not fit jobs, whose runtimes differ by factors and not by seconds: of 10,000 healthy runs it
// ends 240 if runtimes are lognormal with σ 0.5, 1,290 with σ 1.5, and every weekly run that takes
// twelve times as long as the others (test/sim, which also supports the following points). So here
//
//   - mean and deviation are of the logarithm of the runtime. That fits constant runtimes as well as
//     widely varying ones: 4 mean deviations are 3.2 standard deviations of a normal distribution.
//     They change more slowly than TCP's (by 1/32 instead of 1/8 and 1/4), because the limit depends
//     on the tail of the distribution and not on its middle;
//   - the longest of the last one to two thousand successes counts too, because a mean does not show
//     a run that is long once in 168. It also bounds the deviation, which is large for a while after
//     a sudden change;
//   - if runs are ended by force now and then, they are first taken for healthy runs of a new
//     length: the limit is doubled and stays so, up to three times. If no success has taken longer
//     than the first limit by then, those runs are taken for hangs: the limit returns to its value
//     without doublings, until 1,000 successes have passed without an end by force;
//   - ends by force without a success between them double the limit each time. So it adapts to a
//     machine that has become slow, in a number of attempts that grows with the logarithm of the
//     slowdown. If all runs hang for a while, these doublings cost about as much time again.
//
// There is no limit before five runs have succeeded, and no limit is below 10 minutes: five runs
// of a job that takes a second show little.
//
// A limit ends only a job that was idle for a whole watch (lib/idle), and never a job that works. So
// it can be shorter than a limit on runtimes alone, which needs a fifth more than the longest run
// and a floor of 15 minutes. The simulator (test/sim) shows the results for each load. Of 10,000
// healthy runs that sleep for a tenth of a typical run at a time, fewer than 1 is ended. Of 10,000
// that sleep for a tenth of their own time, 8 are ended at σ 1.5 and 5 with the weekly run, where
// hangs are as frequent. From the beginning of an idle hang to the next completed run it takes 17
// to 19 minutes if runs take two or three minutes, 93 if they take 90, and 85 with the weekly run,
// provided that a newcomer comes every minute. With 3.5 deviations twice as many of the runs with
// long sleeps would be ended at σ 1.5, so the limit has 4.
//
// The method has two weaknesses. At σ 1.5 one healthy run in a thousand takes 100 times the typical
// time, so a hang is ended only after hours there; a fixed limit would end it sooner, and that
// healthy run too. And a job that spins looks like one that works, so a person has to stop it.
//
// # IfElapsed
//
// The interval is the typical runtime, so the atom is held half of the time at most. While
// newcomers ask for the atom far more often than that, the interval is doubled, up to 16 times the
// typical runtime; when they ask less often, the interval is halved again.
package learn
