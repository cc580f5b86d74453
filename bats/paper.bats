# The scenarios of Burgess and Skipitaris (LISA '97), mostly with seconds in place of minutes.
load common

# program writes a script with the atoms A, B and C. Standard input defines `body`, which B runs.
program() {
	script program <<-'E'
		ADLOCK_IF_ELAPSED=$2 ADLOCK_EXPIRE_AFTER=$3
		atom() {
			if adlock_get shellcommand "$2"; then
				note "$1 $2 starts"
				[ "$2" != B ] || body "$1"
				note "$1 $2 ends"
				adlock_release
			else
				note "$1 $2 $ADLOCK_VERDICT"
			fi
		}
	E
	cat >>"$T/program"
	cat >>"$T/program" <<-'E'
		atom "$1" A
		atom "$1" B
		atom "$1" C
	E
}

@test "figure 4: a program that calls itself runs twice at most" {
	program <<<'body() { again program "$(($1 + 1))" 15 90; }'
	run launch program 1 15 90
	assert_success
	assert_output --regexp '^adlock: shellcommand B: not run: busy: the atom is running this very program; it was started from within the job of process [0-9]+$'
	assert_notes <<-'E'
		1 A starts
		1 A ends
		1 B starts
		2 A too-soon
		2 B busy
		2 C starts
		2 C ends
		1 B ends
		1 C too-soon
	E
}

@test "figure 5: a second run does A, ends hung B, does B and C" {
	program <<-'E'
		body() {
			[ "$1" = 1 ] || return 0
			sh -c 'setsid sleep 61 & sleep 62; :' &
			hang
		}
	E
	hung program 1 0 2s
	eventually older 2 "$ADLOCK_DIR/lock.program.dax.shellcommand.B"
	run launch program 2 0 2s
	assert_success
	assert_output --regexp '^adlock: shellcommand B: ended process [0-9]+ by force: it had run for [0-9ms]+, ExpireAfter is 2s$'
	assert gone "$hung"
	expect 0 '' leftovers sleep
	assert_notes <<-'E'
		1 A starts
		1 A ends
		1 B starts
		2 A starts
		2 A ends
		2 B starts
		2 B ends
		2 C starts
		2 C ends
	E
}

# threads EXPIREAFTER writes a script in which wait_for hangs until the other thread has created its
# file.
threads() {
	script thread <<-'E'
		wait_for() {
			until [ -e "$T/$1" ]; do sleep 0.1; done
		}
		create() { : >|"$T/$1"; }
		both() { note within && wait_for "$1" && create "$2"; }
	E
	echo "ADLOCK_IF_ELAPSED=1h ADLOCK_EXPIRE_AFTER=$1" >>"$T/thread"
	cat >>"$T/thread"
	ticks=0
}

# tick COUNT EVENT starts both threads, by the clock of the pass two hours after those of the tick
# before, and waits until the runlog has the event as often.
tick() {
	export ADLOCK_NOW=$(($(date +%s) + 7200 * ticks++))
	start thread X Y 1
	start thread Y X 2
	eventually recorded "$@"
}

# within COUNT: so many threads have got their atoms, and are no longer taking them: while a thread
# is, the next one is denied.
within() { [ "$(grep -cx within "$T/notes")" -ge "$1" ]; }
recorded() { [ "$(cat "$ADLOCK_DIR"/program.dax.* | grep -c "event=$2")" -ge "$1" ]; }

@test "figure 6: a circular wait within one atom is not resolved" {
	threads 1h <<<'adlock_with thread "$3" -- both "$1" "$2" || :'
	tick 2 acquire
	eventually within 2
	tick 2 takeover
	eventually within 4
	tick 4 takeover
	refute [ -e "$T/X" ]
	refute [ -e "$T/Y" ]
}

@test "figure 6: two atoms break the deadlock in three ticks" {
	threads 3h <<-'E'
		adlock_with wait "$3" -- wait_for "$1" || :
		adlock_with create "$3" -- create "$2" || :
	E
	for n in 2 4 6; do tick "$n" '[a-z]* program=thread .*operator=wait '; done
	eventually test -e "$T/X"
	eventually test -e "$T/Y"
}
