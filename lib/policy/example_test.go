package policy_test

import (
	"fmt"
	"time"

	"adlock/lib/policy"
)

// A writer, which is a newcomer that wants the atom for itself, meets a reader.
func ExampleDecide() {
	terms := policy.Terms{Limits: policy.Limits{IfElapsed: 15 * time.Minute, ExpireAfter: 90 * time.Minute, Source: policy.Said}}
	found := policy.Situation{Last: policy.Last{Completed: true, Age: 20 * time.Minute}}
	fmt.Println(policy.Decide(terms, found).Reason())

	found.Readers = []policy.Active{{Held: true, Owner: policy.Lives, Age: time.Minute}}
	d := policy.Decide(terms, found)
	fmt.Println(d.Step.Granted(), d.Reason())

	found.Readers[0].Owner = policy.Gone
	fmt.Println(policy.Decide(terms, found).Reason())
	// Output:
	// free: completed 20m ago, IfElapsed is 15m, ExpireAfter is 1h30m
	// false busy: running for 1m, ExpireAfter is 1h30m
	// free: the owner is dead; its lock would be replaced
}
