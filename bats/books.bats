# The library's list of held locks is right whatever happens to its helpers, and while another
# process holds a lock's guard.
load common

# fragile installs a helper that dies as often as $T/before.VERB or $T/after.VERB has lines,
# before or after the work of VERB, like a program that gets no thread from the system.
fragile() {
	in_between <<-'E'
		dies() {
			[ -s "$1" ] || return 0
			sed 1d "$1" >"$1.next"
			mv "$1.next" "$1"
			exit 2
		}
		dies "$T/before.$1"
		"$T_HELPER" "$@"
		status=$?
		dies "$T/after.$1"
		exit "$status"
	E
}

times() { yes | head -n "$1"; }

@test "a get whose helper died holds no lock" {
	fragile
	times 1 >"$T/after.take"
	job_notes_and_prints $'2 none\nfree\nnever completed\nacquired' <<-'E'
		adlock_get a b || note "$? ${ADLOCK_VERDICT:-none}"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] || note free
		[ "$(stat -c %Y "$ADLOCK_DIR/last.job.dax.a.b")" = 0 ] && note 'never completed'
		adlock_get a b
		note "$ADLOCK_VERDICT"
		adlock_release
	E
	assert_output "adlock: $(lock_of a b): not taken: the helper died, with status 2"
	refute held a b
}

@test "a later call withdraws a lock that a failed get left" {
	fragile
	times 1 >"$T/after.take"
	times 6 >"$T/before.release"
	job_notes_and_prints $'2\nleaked\n75\nleaked\nacquired\nfree' <<-'E'
		adlock_get a b 0 || note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] && note leaked
		adlock_get a b 0 || note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] && note leaked
		adlock_get a b 0 && note "$ADLOCK_VERDICT"
		adlock_release
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] || note free
	E
}

@test "a release that withdraws a failed get's lock returns 0" {
	fragile
	times 1 >"$T/after.take"
	times 6 >"$T/before.release"
	job_notes_and_prints $'2\n2\nleaked\n0\nfree' <<-'E'
		adlock_get a b 0 || note "$?"
		adlock_release || note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] && note leaked
		adlock_release
		note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] || note free
	E
}

# In containers a pid comes again at each start.
@test "a dead process's lock with this pid is left alone" {
	job_notes $'75\n0' <<-'E'
		adlock_get a b 0
		cp -p "$ADLOCK_DIR/lock.job.dax.a.b" "$T/lock"
		adlock_release
		sed -i 's/^inode=.*/inode=1/' "$T/lock"
		mv "$T/lock" "$ADLOCK_DIR/lock.job.dax.a.b"
		adlock_get a b 60 || note "$?"
		adlock_release && note 0
		grep -qx inode=1 "$ADLOCK_DIR/lock.job.dax.a.b"
	E
}

# ksh93 takes the number of a signal for a helper's status: 10, 12, 14 and 15 were denials once (W14).
# bats test_tags=core
@test "a helper's status that the shell misread leaves no lock" {
	local number
	script job <<-'E'
		adlock_get a b 0 || note "$? ${ADLOCK_VERDICT:-none}"
		[ ! -e "$ADLOCK_DIR/lock.job.dax.a.b" ]
	E
	in_between <<<'[ "$1" != take ] || { "$T_HELPER" "$@" && exit "$(cat "$T/status")"; }'
	for number in 80 82 85 10 12 14 15; do
		echo "$number" >"$T/status"
		run launch job
		[ "$number" -ge 80 ] || assert_output "adlock: $(lock_of a b): not taken: the helper died, with status $number"
	done
	assert_notes <<<$'75 too-soon\n75 full\n75 paused\n10 none\n12 none\n14 none\n15 none'
}

@test "a release whose helper died is tried again at once" {
	fragile
	times 2 >"$T/before.release"
	job_notes $'0\nfree' <<-'E'
		adlock_get a b
		adlock_release
		note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] || note free
	E
	run older 60 "$(last_of a b)"
	assert_failure
}

# bats test_tags=core
@test "a release succeeds although TERM ends its helpers" {
	in_between <<<'[ "$1" != release ] || kill -TERM "$$"'
	script job <<-'E'
		adlock_get a b
		adlock_release
		note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] || note free
		trap
	E
	run launch job
	assert_success
	refute_output --partial 'the helper died'
	refute_output --regexp '(INT|TERM)$'
	assert_notes <<<$'0\nfree'
}

# bats test_tags=core
@test "a release ended by a signal returns 128 and its number" {
	in_between <<<'[ "$1" != release ] || { mkdir "$T/tried" && kill -TERM "$$" || kill -KILL "$PPID" "$$"; } 2>/dev/null'
	job_notes_and_prints 137 <<-'E'
		adlock_get a b
		adlock_release || note "$?"
	E
}

# ksh93 leaves a subshell at a signal, while the program in it works on.
# bats test_tags=core
@test "a trap during a helper run with a hook changes no status" {
	in_between <<<'case $1 in take | release) kill -USR1 "$PPID"; sleep 0.1 ;; esac'
	job_notes $'0\n0' <<-'E'
		ADLOCK_HOOK=:
		trap : USR1
		adlock_get a b
		note "$?"
		adlock_release
		note "$?"
	E
}

# bats test_tags=core
@test "settings reach a helper without PATH and despite aliases" {
	in_between <<<'[ "$ADLOCK_HOOK_RUNS" = 1 ] || exit 64'
	mkdir "$T/a=b"
	mv "$T/helper" "$T/a=b"
	ADLOCK_BIN=$T/a=b/helper job_notes 00 <<-'E'
		path=$PATH ADLOCK_HOOK_RUNS=1 PATH=/nowhere
		alias command=false env=false
		adlock_get a b
		got=$?
		adlock_release
		got=$got$? PATH=$path
		note "$got"
	E
}

# bats test_tags=core
@test "a release that a trap's release interrupted is not lost" {
	in_between <<-'E'
		case $1-$* in
		release-*.a.b)
			mkdir "$T/first" 2>/dev/null && kill -USR1 "$PPID" && exit 10
			sed -i "s/$3/another/" "$ADLOCK_DIR/lock.job.dax.a.b" # the first has released it meanwhile
			;;
		esac
	E
	job_notes $'inner 0\n0\nthere' <<-'E'
		trap 'adlock_with a inner "" -- :; note "inner $?"' USR1
		adlock_get a b
		adlock_release
		note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] && note there
	E
}

@test "a release can be repeated while the lock exists" {
	fragile
	times 6 >"$T/before.release"
	job_notes_and_prints $'2\n2\nthere\n0\nfree\nouter' <<-'E'
		adlock_get a outer
		adlock_get a b
		adlock_release || note "$?"
		adlock_release || note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] && note there
		adlock_release
		note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] || note free
		[ -e "$ADLOCK_DIR/lock.job.dax.a.outer" ] && note outer
		adlock_release
	E
	refute held a outer
}

@test "a release succeeds if its helper dies after it" {
	fragile
	times 1 >"$T/after.release"
	job_notes $'0\nouter\n0' <<-'E'
		adlock_get a outer
		adlock_get a b
		adlock_release
		note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.outer" ] && note outer
		adlock_release
		note "$?"
	E
	refute held a outer
}

@test "the next call releases a lock that adlock_with left" {
	fragile
	times 3 >"$T/before.release"
	job_notes_and_prints $'7\nthere\n0\nfree\ntoo-soon' <<-'E'
		adlock_get a outer 0
		adlock_with a b 0 -- sh -c 'exit 7' || note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] && note there
		adlock_release
		note "$?"
		ls "$ADLOCK_DIR" | grep '^lock' || note free
		adlock_get a b 1h || note "$ADLOCK_VERDICT"
	E
}

# bats test_tags=core
@test "a lock is kept while a killed command's children may live" {
	fragile
	mkfifo "$T/go"
	times 9 >"$T/before.left"
	job_notes_and_prints $'inner\n0\n75\n75\ninner\n0' <<-E
		inner() { [ ! -e "\$ADLOCK_DIR/lock.job.dax.a.b" ] || note inner; }
		adlock_get a outer 0
		adlock_with a b 0 -- $kills_itself 2>|"\$T/said" || :
		inner
		adlock_release
		note "\$?"
		adlock_release || note "\$?"
		adlock_get a b 0 || note "\$?"
		inner
		echo go >>"\$T/go"
		until adlock_release; do sleep 0.05; done
		note "\$?"
	E
	assert_output --partial 'has the lock itself'
	run tail -n 1 "$T/said"
	assert_output "adlock: $(lock_of a b): not released: processes of the command may be left"
	assert_free
}

# bats test_tags=core
@test "a subshell does not withdraw its parent's lock" {
	fragile
	times 1 >"$T/after.take"
	times 3 >"$T/before.release"
	job_notes_and_prints $'2\n0\n0' <<-'E'
		adlock_get a b 0 || note "$?"
		(
			adlock_release
			note "$?"
		)
		adlock_release
		note "$?"
	E
	refute held a b
}

@test "a get that returns 0 has a lock despite group signals" {
	script job <<-'E'
		trap 'signals=$((signals + 1))' TERM
		signals=0 round=0
		lock=$ADLOCK_DIR/lock.job.dax.a.b
		: >|"$T/starts"
		until [ "$round" -ge 15 ] && [ "$signals" -ge 30 ] || [ -e "$T/enough" ]; do
			round=$((round + 1))
			if adlock_get a b 0 2>/dev/null; then
				[ -e "$lock" ] || note "round $round: 0, and no lock"
			fi
			# A get that failed may leave its lock to the next call: the signals end its helpers as well.
			until adlock_release 2>/dev/null; do
				[ -e "$lock" ] || note "round $round: not 0, and no lock"
			done
			[ ! -e "$lock" ] || note "round $round: leaked"
		done
		: >|"$T/ends"
	E
	setsid "${shell[@]}" "$T/job" >"$T/out" 2>&1 3>&- &
	local leader=$!
	eventually test -e "$T/starts"
	local end=$((SECONDS + 60))
	while [ ! -e "$T/ends" ] && [ -e "/proc/$leader" ] && ((SECONDS < end)); do # then the pid may be reused
		kill -TERM -- "-$leader" 2>/dev/null || true
		sleep "0.0$((RANDOM % 4 + 1))"
	done
	: >"$T/enough"
	local status=0
	wait "$leader" || status=$?
	crashed "$status" || assert [ -e "$T/ends" ]
	assert_notes </dev/null
}

# bats test_tags=core:mksh
@test "a get that returns 0 has a lock even if no thread can start" {
	unprivileged
	if [ -n "${public-}" ]; then # a user of this test alone: ulimit -u counts no other processes
		shell=(setpriv "--reuid=$((100000 + BASHPID))" --regid=65534 --clear-groups "${shell[@]:4}")
		chown "$((100000 + BASHPID))" "$T"
	fi
	in_between <<<'[ ! -e "$T/most" ] || exec prlimit "--nproc=$(cat "$T/most")" "$T_HELPER" "$@"'
	: >"$T/notes"
	chmod 666 "$T/notes"
	export ADLOCK_DIR=$T/locks
	script job <<-'E'
		lock=$ADLOCK_DIR/lock.job.dax.a.b
		most=0
		while [ "$most" -lt 9 ]; do
			most=$((most + 1))
			echo "$most" >|"$T/most"
			if adlock_get a b 0; then
				[ -e "$lock" ] || note "$most: 0, and no lock"
			else
				rm -f "$T/most"
				adlock_get a b 0
				echo "$most" >|"$T/most"
			fi
			if adlock_release; then
				[ ! -e "$lock" ] || note "$most: released, and there"
			else
				rm -f "$T/most"
				adlock_release || note "$most: cannot be released"
				[ ! -e "$lock" ] || note "$most: leaked"
			fi
		done
		note end
	E
	launch job
	expect 0 end cat "$T/notes"
}

# flocked FILE: another process holds the lock's guard.
flocked() { ! flock -n "$1" true; }

@test "a lock can be released once its guard's holder is dead" {
	script job <<-'E'
		ADLOCK_PAUSE=0
		adlock_get a outer
		adlock_get a b
		: >|"$T/got"
		await "$T/stands"
		adlock_release || note "$? $ADLOCK_VERDICT"
		adlock_release || note "$? $ADLOCK_VERDICT"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.outer" ] && note outer
		: >|"$T/lost"
		await "$T/dead"
		adlock_release
		note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] || note free
		adlock_release
	E
	start_to got job
	local job=$!
	flock -F -x "$(lock_of a b)" sleep 60 3>&- &
	local newcomer=$!
	eventually flocked "$(lock_of a b)"
	: >"$T/stands"
	eventually test -e "$T/lost"
	kill -KILL "$newcomer"
	eventually gone "$newcomer"
	: >"$T/dead"
	wait "$job"
	assert_notes <<<$'75 lost\n75 lost\nouter\n0\nfree'
	refute held a outer
	run older 60 "$(last_of a b)"
	assert_failure
}

# bats test_tags=core
@test "a lock that another process took over is not released" {
	job_notes_and_prints $'75 lost\n0' <<-'E'
		adlock_get a outer
		adlock_get a b
		sed 's/^token=./token=x/' "$ADLOCK_DIR/lock.job.dax.a.b" >|"$T/other"
		mv "$T/other" "$ADLOCK_DIR/lock.job.dax.a.b"
		adlock_release || note "$? $ADLOCK_VERDICT"
		adlock_release
		note "$?"
	E
	assert_output --partial lost
	assert held a b
	refute held a outer
}

# bats test_tags=core
@test "a release fails if the helper exits 0 but left the lock" {
	fragile
	sed -i '1a [ "$1" != release ] || [ ! -e "$T/idle" ] || exit 0' "$T/helper"
	: >"$T/idle"
	job_notes_and_prints $'126\nthere\n0' <<-'E'
		adlock_get a b
		adlock_release || note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] && note there
		rm "$T/idle"
		adlock_release
		note "$?"
	E
	refute held a b
}

@test "reading a lock replaced by a pipe does not block" {
	script job <<-'E'
		adlock_get a b
		rm "$ADLOCK_DIR/lock.job.dax.a.b"
		mkfifo "$ADLOCK_DIR/lock.job.dax.a.b"
		adlock_release 2>|"$T/said" || note "$?"
		adlock_get a b 2>>"$T/said" || note "$?"
	E
	start job
	eventually gone "$!"
	assert_notes <<<$'77\n77'
	run cat "$T/said"
	assert_output --partial lock.job.dax.a.b
	assert_equal "${#lines[@]}" 2
}
