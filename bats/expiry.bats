# A newcomer ends an owner that has expired.
load common

# expires starts the script `job`, and returns once it has held `a b` for a second.
expires() {
	hung job
	eventually older 1 "$(lock_of a b)"
}

# bats test_tags=core
@test "a release while its owner is being ended prints the reason" {
	# The script catches INT, the newcomer's first signal: a busy machine has two pauses for the
	# message before KILL comes.
	env --default-signal true 2>/dev/null || skip 'env(1) cannot reset INT, which a background process ignores'
	script job <<-'E'
		release() { s=0; adlock_release 2>|"$T/said" || s=$?; }
		trap 'trap "" INT TERM; release; note "$s $ADLOCK_VERDICT"; exit 3' INT
		ADLOCK_PAUSE=100ms # the release waits for the newcomer four times as long
		adlock_get a b
		hang || :
	E
	shell=(env --default-signal=INT "${shell[@]}")
	expires
	newcomer
	in_between <<<'case $1 in take*) printf "%s\n" "$@" | grep ^--since >>"$T/since" ;; esac'
	ADLOCK_PAUSE=30s
	mkdir -p "$T/home/.config"
	echo ADLOCK_WAIT=1m >"$T/home/.config/adlock.conf"
	HOME=$T/home launch new 0 1s
	run uniq -d "$T/since" # the wait counts from the first try
	assert_output --regexp '^--since=[0-9.]+$'
	assert gone "$hung"
	run grep -hv -i 'terminated *$' "$T/job.out" "$T/said" # some shells print this about a helper
	assert_output --regexp '^adlock: a b: ended by force by process [0-9]+: it had run for [0-9ms]+, ExpireAfter is 1s$'
	expect 0 1 grep -cxF '75 lost' "$T/notes"
}

@test "adlock stop ends the script that holds an atom" {
	script job <<-'E'
		adlock_get a b
		sleep 61 &
		hang
	E
	expires
	run "$ADLOCK_BIN" stop 'job a b'
	assert_success
	assert_output --regexp "^adlock: a b: ended process $hung by force, as asked: it had run for [0-9ms]+$"
	assert gone "$hung"
	expect 0 '' leftovers 'sleep'
	refute held a b
	expect 0 'adlock: job a b: is not locked by any running job: nothing to stop' "$ADLOCK_BIN" stop 'job a b'
}

# bats test_tags=core
@test "the hook is called for a failed run" {
	script job <<-'E'
		ADLOCK_HOOK='echo "$ADLOCK_EVENT $ADLOCK_ATOM $ADLOCK_TEXT" >>"$T/told"'
		adlock_get a b
		adlock_release 0
		adlock_get a b
		adlock_release 5 || :
		note "$(env | grep -c ^ADLOCK_HOOK)"
	E
	quietly job
	eventually test -s "$T/told"
	expect 0 'fail job.dax.a.b a b: failed with status 5' cat "$T/told"
	assert_notes <<<0
}
