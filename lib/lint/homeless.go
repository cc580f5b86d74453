package lint

// homeless looks for a user whose jobs have no usable lock directory, and so never run.
func (j *job) homeless(v *invocation) {
	known := j.environment(v)
	if j.User == "" || known == nil || j.limit(v, "store") != nil {
		return
	}
	if known("ADLOCK_DIR") == "" && j.Homeless != nil && j.Homeless(j.User, known("HOME")) {
		j.add(j.Number, "a user without a lock directory", j.User+" can make none at home, and the job is never run", "as root: adlock init "+j.User)
	}
}
