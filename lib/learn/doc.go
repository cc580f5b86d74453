// Package learn decides an atom's limits on its own history: a state that each run
// moves, and the limits it stands for. It has no clock and no files. The state is
// kept in the last lock, as lines that people can read.
//
// # ExpireAfter
//
// It is Jacobson and Karels' timer ("Congestion Avoidance and Control", 1988):
// mean + 4 mean deviations, learned from successes alone and doubled when a run
// was ended by force, as all that this says is that it would have taken longer.
// To the letter it does not do for jobs, which differ by factors and not by
// seconds. Of 10,000 healthy runs it ends 240 where runtimes are lognormal with
// σ 0.5, 1,290 with σ 1.5, and each of the weekly runs that take twelve times
// the time of the others (test/sim, which also has what follows). So here
//
//   - the mean and the deviation are of the logarithm of the runtime. That fits
//     a constant and a wide load alike: 4 mean deviations are 3.2 standard
//     deviations of a normal distribution. They move slower than TCP's (1/32 in
//     place of 1/8 and 1/4), as the tail is asked for and not the middle;
//   - the longest of the last one to two thousand successes counts too, with a
//     fifth above it: no mean knows of a run that is long once in 168. It also
//     bounds the deviation, which is large for a while after any sudden change;
//   - a run that was ended now and then is taken for an unseen long one at first:
//     the limit doubles and stays so, up to three times. If no success came above
//     the first limit by then, those runs had hung, and the limit returns to what
//     it was; until 1,000 successes have passed without an end by force;
//   - ends by force with no success in between double it each time, so any slower
//     world is let in, after no more attempts than the logarithm of its slowness.
//     Where all hangs for a while this costs about as long again.
//
// Nothing is limited before five runs have succeeded, and no limit is below 15 minutes: of
// what takes a second five quick runs tell little.
//
// Then 10 of 10,000 healthy runs at most are ended on any of these loads (7 at σ 1.5, where
// 90 minutes end 55; 2.5 with the weekly run), at most 3 where all runs come to take five
// times as long, and the next completed run comes 19 minutes after the beginning of a hang
// where runs take two or three minutes (93 with the fixed limits), if a newcomer asks every
// minute; asked hourly, the next start is waited for all the same: 55 minutes in place of 2
// hours. What it cannot do: at σ 1.5 one healthy run in a
// thousand takes 100 times the typical time, so a hang costs hours there, more
// than under a fixed limit, which ends that run; and where hangs are as frequent
// as long runs that were never seen to succeed, it takes the ones for the
// others, and ends them.
//
// # IfElapsed
//
// The typical runtime, so the atom is held half of the time at most; doubled, up
// to 16 times, while the atom is asked for far more often than that, and halved
// again when the asking calms down.
package learn
