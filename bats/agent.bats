# The agent of a pass: a helper that stays and answers questions through pipes. A script always
# gets the same answers as from one helper run for each question.
# shellcheck disable=SC2153 # ADLOCK_DIR is common.bash's
load common

# counted puts a helper in place that appends the verb of each run to $T/runs.
counted() {
	in_between <<<'echo "$1" >>"$T/runs"'
	: >"$T/runs"
}

# with_agent NAME writes the script NAME, behind functions that the scripts of this file share.
with_agent() {
	script "$1" <<-'E'
		# agent_of_me is the pid of this script's agent.
		agent_of_me() {
			agent_pid=${_adlock_questions#/proc/}
			agent_pid=${agent_pid%%/*}
		}
		# stop_agent returns once the agent is stopped.
		stop_agent() {
			kill -STOP "$agent_pid"
			until grep -q '^State:.T' "/proc/$agent_pid/status"; do sleep 0.01; done
		}
		# kill_stopped_agent stops the agent, and kills it once the script waits for its answer.
		kill_stopped_agent() {
			stop_agent
			(
				sleep 0.3
				kill -KILL "$agent_pid"
			) &
		}
		# signal_in_question stops the agent, until a trap in the middle of the next question has made
		# the file $T/trapped.
		signal_in_question() {
			me=$$ tries=0
			stop_agent
			(
				until [ -e "/proc/$me/fd/8" ] && [ -e "/proc/$me/fd/9" ]; do sleep 0.01; done
				kill -USR1 "$me"
				# Some shells run the trap only after the read.
				until [ -e "$T/trapped" ] || [ "$tries" -ge 50 ]; do
					tries=$((tries + 1))
					sleep 0.01
				done
				kill -CONT "$agent_pid"
			) &
		}
		# served starts the agent, and fails if none runs.
		served() {
			adlock_agent
			adlock_get warm up 0
			adlock_release
			agent_of_me
			[ -n "$agent_pid" ]
		}
	E
	cat >>"$T/$1"
}

# storm SCRIPT runs it, and fails if it does not end within a minute. The output goes to $T/out.
storm() {
	local status=0
	timeout 60 "${shell[@]}" "$T/$1" "${@:2}" >"$T/out" 3>&- || status=$?
	if crashed "$status"; then skip "$ADLOCK_TEST_SHELL crashed"; fi
	assert_equal "$status" 0
}

# bats test_tags=core
@test "the second lock of a pass starts its agent" {
	counted
	script job <<-'E'
		adlock_pass
		adlock_get a 1 0
		adlock_release
		adlock_get a 2 0
		adlock_release
		adlock_with a 3 0 -- note with
		adlock_get a 4 0
		adlock_get a 5 0
		adlock_release
		adlock_release
		adlock_age a 5 >/dev/null
	E
	quietly job
	assert_equal "$(cat "$T/runs")" $'take\nrelease\nagent'
	assert_notes <<<with
	run ls "$ADLOCK_DIR"
	refute_output --partial lock.
	assert_equal "$(grep -c 'event=release' "$ADLOCK_DIR/program.dax.runlog")" 5
}

unnumbered() { printf '%s\n' "$output" | sed 's/process [0-9]*/process N/'; }

# bats test_tags=core
@test "an agent answers as a helper run does" {
	script job <<-'E'
		[ "$1" = alone ] || adlock_agent
		for_each() {
			adlock_get a b 0 && note "$ADLOCK_VERDICT" || note "$?"
			adlock_get a b 0 || note "$? $ADLOCK_VERDICT"
			read -r pid <"$ADLOCK_DIR/lock.job.dax.a.b"
			IFS=' ' read -r me _ </proc/self/stat
			[ "$pid" = "$me" ] && note mine
			adlock_release 3
			note "$?"
			adlock_get a b 1h || note "$? $ADLOCK_VERDICT"
			adlock_get a b nonsense || note "$?"
			adlock_get a "two lines
		and \\ a backslash" 0 && note "$ADLOCK_VERDICT"
			adlock_release
			adlock_get a "a$(printf '\t')tab" 0 && note "$ADLOCK_VERDICT"
			adlock_release
			adlock_get a 'caf\303\251' 0 x && note taken || note "$?"
			adlock_get a '' || note "$?"
			note "$(adlock_age a b)"
			adlock_get a "$(printf %5000s x)" 0 && note long
			adlock_release
			adlock_release
			note "$?"
			ADLOCK_SLOTS=1
			adlock_get a 1 0 && note "$ADLOCK_VERDICT"
			ADLOCK_SLOTS=''
			ADLOCK_SHARED=1
			adlock_get a 2 0 && note "$ADLOCK_VERDICT"
			ADLOCK_SHARED=''
			adlock_release
			adlock_release
			adlock_with a b 0 -- sh -c 'exit 5' || note "$?"
		}
		for_each
	E
	run launch job alone
	local alone notes
	alone=$(unnumbered)
	notes=$(cat "$T/notes")
	rm -r "$ADLOCK_DIR" "$T/notes"
	run launch job agent
	assert_equal "$(unnumbered)" "$alone"
	assert_equal "$(cat "$T/notes")" "$notes"
	expect 0 5 grep -c acquired "$T/notes"
	assert_equal "$(find "$ADLOCK_DIR" -name 'read.*')" "$ADLOCK_DIR/read.job.dax.a.2" # the mark, and no reader
}

# bats test_tags=core
@test "an agent that left or was killed changes no answer" {
	with_agent job <<-'E'
		for way in gone killed asked released; do
			_adlock_agent=''
			served || exit 9
			case $way in
			gone) kill -TERM "$agent_pid" ;;
			killed) kill -KILL "$agent_pid" ;;
			asked) kill_stopped_agent ;;
			esac
			case $way in gone | killed) while [ -e "/proc/$agent_pid/fd/0" ]; do sleep 0.01; done ;; esac
			adlock_get a "$way" 0 && note "$way $ADLOCK_VERDICT"
			[ "$way" != released ] || kill_stopped_agent
			adlock_release && note released
			[ ! -e "$ADLOCK_DIR/lock.job.dax.a.$way" ] || note 'still there'
		done
		wait
	E
	quietly job
	assert_notes <<-'E'
		gone acquired
		released
		killed acquired
		released
		asked acquired
		released
		released acquired
		released
	E
}

# bats test_tags=core
@test "an agent uses no descriptor that the script has open" {
	counted
	with_agent job <<-'E'
		fds() { for fd in 5 6 7 8 9; do [ ! -e "/proc/self/fd/$fd" ] || note "$fd"; done; }
		served || exit 9
		exec 9<>"$T/nine" 8<>"$T/eight"
		echo mine >&9
		adlock_get a 1 0
		fds
		adlock_get a 2 0
		echo and mine >&9
		adlock_release
		adlock_release
		fds
		exec 7<>"$T/x" 6<&7 5<&7 4<&7 3<&7
		adlock_get a 3 0
		adlock_release
		note "$(cat "$T/runs")"
	E
	quietly job
	assert_equal "$(cat "$T/nine")" $'mine\nand mine'
	assert_notes <<<$'8\n9\n8\n9\nagent\ntake\ntake\nrelease'
}

@test "the agent inherits no open file, and leads a session" {
	with_agent job <<-'E'
		sleep 60 &
		sleeper=$!
		exec 5>"$T/held"
		served || exit 9
		[ "$!" = "$sleeper" ] && note 'same $!'
		IFS= read -r agent_parent <<-I
		$(sed 's/.*) . \([0-9]*\) \([0-9]*\) \([0-9]*\).*/\1 \2 \3/' "/proc/$agent_pid/stat")
		I
		IFS=' ' read -r me _ </proc/self/stat
		case $agent_parent in "$me "*) note child ;; *" $agent_pid $agent_pid") note 'leads its session' ;; esac
		ls -l "/proc/$agent_pid/fd" | grep -c "$T" || :
		kill "$sleeper"
		wait || :
		note waited
	E
	expect 0 0 launch job
	assert_notes <<<$'same $!\nleads its session\nwaited'
}

# bats test_tags=core
@test "a subshell asks its own agent, not its parent's" {
	with_agent job <<-'E'
		served || exit 9
		note "$agent_pid"
		(
			adlock_get a 1 0 && note "$ADLOCK_VERDICT"
			adlock_release
			_adlock_questions=
			served
			[ -z "$agent_pid" ] || note "$agent_pid"
			adlock_get a 2 0 && note "$ADLOCK_VERDICT"
		)
		adlock_get a 2 0 && note "$ADLOCK_VERDICT"
		adlock_release
		agent_of_me
		note "$agent_pid"
	E
	launch job
	assert_equal "$(head -n 1 "$T/notes")" "$(tail -n 1 "$T/notes")"
	# ksh93 has no process for a subshell: no agent, and its lock is the script's.
	if [ "$ADLOCK_TEST_SHELL" != ksh93 ]; then
		assert_equal "$(grep -c acquired "$T/notes")" 3
		assert_equal "$(grep -c '^[0-9]' "$T/notes")" 3
	fi
}

# bats test_tags=core:mksh
@test "a signal neither loses nor repeats a question to the agent" {
	with_agent job <<-'E'
		hits=0
		trap 'hits=$((hits + 1))' USR1
		served || exit 9
		IFS=' ' read -r me _ </proc/self/stat
		(while kill -USR1 "$me"; do sleep 0.003; done) 2>/dev/null &
		i=0
		while [ "$hits" -lt 20 ] && [ "$i" -lt 20000 ]; do
			i=$((i + 1))
			adlock_get a "$((i % 7))" 0 || note "get $i: $?"
			adlock_release || note "release $i: $?"
		done
		kill "$!" || :
		note "$i"
	E
	storm job
	assert_equal "$(wc -l <"$T/notes")" 1 # the last line, and no failure
	assert_free
	status=$(($(cat "$T/notes") + 1))
	assert_equal "$(cat "$ADLOCK_DIR"/program.dax.runlog* | grep -c 'event=acquire')" "$status"
	assert_equal "$(cat "$ADLOCK_DIR"/program.dax.runlog* | grep -c 'event=release')" "$status"
}

@test "a trap may get and release during a question to the agent" {
	with_agent job <<-'E'
		trap 'adlock_get trapped x 0 && adlock_release; : >"$T/heard"' USR1
		served || exit 9
		IFS=' ' read -r me _ </proc/self/stat
		# Send the next signal only after the trap for the last one has run: traps that nest
		# without end overflow the shell's stack.
		(while kill -USR1 "$me"; do
			while [ -d "/proc/$me" ] && ! rm "$T/heard"; do sleep 0.01; done
			sleep 0.03
		done) 2>/dev/null &
		i=0
		while [ "$i" -lt 100 ]; do
			i=$((i + 1))
			adlock_get a "$((i % 7))" 0 || note "get $i: $?"
			adlock_release || note "release $i: $?"
		done
		kill "$!" || :
		note done
	E
	storm job
	assert_notes <<<'done'
	assert_free
}

# bats test_tags=core
@test "a trap that takes the agent's descriptors changes no answer" {
	for way in '>&-' '<>"$T/own"'; do
		rm -f "$T/notes"
		echo mine >"$T/own"
		with_agent job <<-'E'
			served
			me=$$ way=$1 tries=0
			trap 'eval "exec 8$way 9$way"' USR1
			stop_agent
			(
				# Once the question is written, the shell sleeps until the answer comes.
				until [ -e "/proc/$me/fd/8" ] && [ -e "/proc/$me/fd/9" ] && grep -q '^State:.S' "/proc/$me/status"; do sleep 0.01; done
				kill -USR1 "$me"
				# Some shells run the trap only after the read.
				while [ "/proc/$me/fd/8" -ef "$_adlock_answers" ] && [ "$tries" -lt 50 ]; do
					tries=$((tries + 1))
					sleep 0.01
				done
				kill -CONT "$agent_pid"
			) &
			adlock_get a b 0
			note "$? $ADLOCK_VERDICT"
			wait
			adlock_release
			note "$?"
		E
		timeout 60 "${shell[@]}" "$T/job" "$way" 2>"$T/said" # some shells report a closed descriptor
		assert_notes <<<$'0 acquired\n0'
		assert_equal "$(cat "$T/own")" mine
		[ "$(wc -l <"$T/said")" -le 2 ]
		assert_free
	done
}

# bats test_tags=core:yash
@test "a trap may repeat the release that it interrupts" {
	with_agent job <<-'E'
		served
		adlock_get a b 0
		# As if the agent had released the lock, and its answer were not read yet.
		again() {
			[ ! -e "/proc/$me/fd/8" ] || rm -f "$ADLOCK_DIR/lock.job.dax.a.b"
			adlock_release
			note "$? $ADLOCK_VERDICT"
			: >"$T/trapped"
		}
		trap again USR1
		signal_in_question
		adlock_release
		wait
	E
	quietly job
	assert_notes <<<'0 acquired'
}

@test "ADLOCK_AGENT=0 forbids an agent; a bad value is refused" {
	counted
	script job <<-'E'
		ADLOCK_AGENT=$1
		adlock_pass || note "$?"
		adlock_agent || note "$?"
		for i in 1 2 3; do
			adlock_get a "$i" 0
			adlock_release
		done
	E
	launch job 0
	expect 1 0 grep -c agent "$T/runs"
	run launch job maybe
	assert_notes <<<$'64\n64'
}

@test "a get with a hook or another runlog runs the helper" {
	counted
	with_agent job <<-'E'
		served || exit 9
		ADLOCK_HOOK="echo told >>'$T/hook'" ADLOCK_HOOK_RUNS=1
		adlock_get a 1 0
		adlock_release
		ADLOCK_HOOK='' ADLOCK_HOOK_RUNS=''
		ADLOCK_LOGDIR=$ADLOCK_DIR/logs
		mkdir "$ADLOCK_LOGDIR"
		adlock_get a 2 0
		ADLOCK_LOGDIR=''
		adlock_release
		note "$(cat "$T/runs")"
	E
	launch job
	assert_notes <<<$'agent\ntake\nrelease\ntake'
	test -s "$ADLOCK_DIR/logs/program.dax.runlog"
	eventually test -s "$T/hook"
}

# bats test_tags=core
@test "the library ignores aliases that the script sets later" {
	with_agent job <<-'E'
		[ -z "${BASH_VERSION-}" ] || shopt -s expand_aliases
		alias read=false printf=false command=false exec=false set=false return=false
		served || note none
		adlock_get a 1 0 && note "$ADLOCK_VERDICT"
		adlock_release && note "$_adlock_agent"
	E
	run timeout 60 "${shell[@]}" "$T/job"
	assert_success
	assert_notes <<<$'acquired\nserves'
}

# cycles prints a script's last part: calls under signals; then the script notes the agent's state.
cycles() {
	cat <<-'E'
		IFS=' ' read -r me _ </proc/self/stat
		(while kill -USR1 "$me"; do sleep 0.002; done) 2>/dev/null >&2 &
		i=0
		while [ "$i" -lt 150 ]; do
			i=$((i + 1))
			adlock_get a "$((i % 7))" 0 || note "get $i: $?"
			adlock_release || note "release $i: $?"
			after
		done
		kill "$!" || :
		wait "$!" 2>/dev/null || :
		trap '' USR1
		note "$_adlock_agent"
	E
}

# bats test_tags=core:ksh93,core:zsh
@test "output of a trap during a question to the agent is not lost" {
	{
		cat <<-'E'
			after() { :; }
			served || exit 9
			trap 'echo "a line of the trap"; echo x >>"$T/traps"' USR1
		E
		cycles
	} | with_agent job
	storm job
	assert_notes <<<serves
	assert_equal "$(grep -cx 'a line of the trap' "$T/out")" "$(wc -l <"$T/traps")"
	assert_equal "$(wc -l <"$T/out")" "$(wc -l <"$T/traps")"
}

# bats test_tags=core:mksh,core:zsh
@test "a script with a CHLD trap that prints runs to its end" {
	with_agent job <<-'E'
		# In mksh printf runs as a child, and its end would raise CHLD again.
		case ${KSH_VERSION-} in *MIRBSD*) trap 'print -n .' CHLD ;; *) trap 'printf .' CHLD ;; esac
		adlock_pass
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
			(sleep 0.0"$i") &
			adlock_get op "$i" 0 && adlock_release && note "$i"
		done
		trap '' CHLD
	E
	storm job
	assert_equal "$(wc -l <"$T/notes")" 30
	assert_equal "$(tr -d . <"$T/out")" ''
}

@test "a redirection by a trap in a question to the agent stays" {
	{
		cat <<-'E'
			heard=''
			after() { [ -z "$heard" ] || [ /proc/self/fd/1 -ef "$T/log" ] || note undone; }
			served || exit 9
			trap 'exec >>"$T/log"; heard=yes; echo heard' USR1
		E
		cycles
	} | with_agent job
	storm job
	assert_notes <<<serves
	assert_equal "$(cat "$T/out")" ''
}

# bats test_tags=core
@test "a trap in a question to the agent reads the script's input" {
	with_agent job <<-'E'
		served || exit 9
		trap 'IFS= read -r line; note "$line"; : >"$T/trapped"' USR1
		signal_in_question
		adlock_get a b 0
		note "$? $ADLOCK_VERDICT"
		IFS= read -r line
		note "$line"
		wait
		adlock_release
	E
	printf 'one\ntwo\n' >"$T/in"
	storm job <"$T/in"
	assert_equal "$(sort "$T/notes")" $'0 acquired\none\ntwo'
}

# bats test_tags=core
@test "functions named like builtins change no verdict" {
	script job <<-'E'
		ADLOCK_AGENT=$1
		read() { return 1; }
		printf() { return 1; }
		echo() { return 1; }
		print() { return 1; }
		cd() { return 1; }
		test() { return 1; }
		date() { return 1; }
		case ${BASH_VERSION:+bash}${POSIXLY_CORRECT+posix}${ZSH_VERSION-} in bash) eval 'trap() { return 1; }' ;; esac
		tell() { command printf '%s\n' "$1" >>"$T/notes"; }
		adlock_pass || tell "pass: $?"
		for i in 1 2; do
			adlock_get a b 0 || tell "$?"
			tell "$ADLOCK_VERDICT"
			adlock_get a b 0 2>>"$T/told" || tell "$ADLOCK_VERDICT"
			adlock_release || tell "$?"
			[ ! -e "$ADLOCK_DIR/lock.job.dax.a.b" ] || tell 'still there'
			adlock_age a b >>"$T/notes"
			adlock_get a 'caf\303\251' 0 || tell "$?"
			adlock_release || tell "$?"
		done
		tell "$_adlock_agent"
	E
	local agent
	for agent in 0 1; do
		: >"$T/notes"
		expect 0 '' timeout 60 "${shell[@]}" "$T/job" "$agent" 3>&-
		expect 0 $'acquired\nbusy\n0\nacquired\nbusy\n0' sed '$d' "$T/notes"
	done
	expect 0 serves tail -n 1 "$T/notes"
}

@test "a helper run answers a question too long for a pipe" {
	with_agent job <<-'E'
		[ "$1" = 0 ] || served || exit 9
		long=$(printf %09000d 1)
		adlock_get a "$1" "$long" && adlock_release || note "$?"
		adlock_get a "$1" 0 "$long" && adlock_release || note "$?"
		asked=$_adlock_number
		adlock_get a "$1" 0 "bad${long}000$long" || note "$? after $((_adlock_number - asked)) questions"
		ADLOCK_EXPIRE_AFTER=$long
		adlock_get a "$1" 0 && adlock_release || note "$?"
		ADLOCK_EXPIRE_AFTER="1$(printf '\nx')"
		adlock_get a "$1" 0 && adlock_release || note "$?"
	E
	local agent
	for agent in 0 1; do
		: >"$T/notes"
		run timeout 60 "${shell[@]}" "$T/job" "$agent" 3>&-
		assert_success
		cp "$T/notes" "$T/notes.$agent"
	done
	assert_equal "$(cat "$T/notes.1")" "$(cat "$T/notes.0")"
}

# bats test_tags=core:ksh93,core:zsh
@test "a DEBUG trap that prints starts no second agent" {
	case ${shell[0]} in
	bash | zsh | ksh93) ;;
	*) skip "$ADLOCK_TEST_SHELL has no DEBUG trap" ;;
	esac
	counted
	with_agent job <<-'E'
		[ -z "${BASH_VERSION-}" ] || set -T
		trap 'printf d' DEBUG
		adlock_pass
		for i in 1 2 3; do
			adlock_get a "$i" 0 || note "$?"
			adlock_release || note "$?"
			adlock_get a 1 1h || note "$? $ADLOCK_VERDICT"
		done
		trap - DEBUG
		note "$(adlock_age a 1)"
	E
	storm job
	assert_notes <<<$'75 too-soon\n75 too-soon\n75 too-soon\n0'
	assert_equal "$(tr -d d <"$T/out")" ''
	assert_equal "$(grep -c agent "$T/runs")" 1
}

@test "two agents that start at once do not mix their pipes" {
	[ "${shell[0]}" = bash ] || skip "$ADLOCK_TEST_SHELL does not tell a DEBUG trap the command"
	counted
	with_agent job <<-'E'
		set -T
		trap 'case $BASH_COMMAND in *_adlock_agent_at=*) trap - DEBUG; adlock_agent; adlock_get b 1 0; adlock_release ;; esac' DEBUG
		adlock_agent
		adlock_get a 1 0
		note "${_adlock_agent_sign%/fd/*} ${_adlock_agent_at%/fd/*} ${_adlock_questions%/fd/*}"
		adlock_release
	E
	launch job
	read -r sign at questions <"$T/notes"
	assert_equal "$sign $at" "$questions $questions"
	assert_equal "$(grep -c agent "$T/runs")" 2
}

@test "set -x to standard output changes no answer" {
	[ "${shell[0]}" = bash ] || skip "$ADLOCK_TEST_SHELL has no BASH_XTRACEFD"
	with_agent job <<-'E'
		ADLOCK_AGENT=$1
		BASH_XTRACEFD=1
		set -x
		adlock_pass
		for i in 1 2; do
			adlock_get a "$i" 0 || note "$?"
			adlock_release || note "$?"
			adlock_get a "a very long operand, of more than sixty letters and some blanks, $i" 0 || note "$?"
			adlock_release || note "$?"
		done
		set +x
		note "$ADLOCK_VERDICT"
	E
	local agent
	for agent in 0 1; do
		storm job "$agent"
	done
	assert_notes <<<$'acquired\nacquired'
}

# agents_of PID prints the pids of the agents of a process.
agents_of() {
	grep -lsazP "^adlock: agent$" /proc/[0-9]*/cmdline | while read -r file; do
		mapfile -t -d '' words <"$file" || continue
		[ "${words[1]}" = "$1" ] && echo "${file//[!0-9]/}"
	done
	return 0
}
told() { [ "$(wc -l <"$T/notes")" -ge "$1" ]; }
no_agent_of() { [ -z "$(agents_of "$1")" ]; }

# bats test_tags=once
@test "a script starts no other agent after an unusable one" {
	unprivileged
	export ADLOCK_DIR=$T/locks
	: | tee "$T/agents" >"$T/notes"
	local readable=$ADLOCK_BIN
	cp "$readable" "$T/adlock" # /proc hides the open files of a program that the user may not read
	chmod 111 "$T/adlock"
	cat >"$T/greets" <<-E
		#!/bin/sh
		[ "\$1" != agent ] || echo hello | tee -a "$T/agents"
		exec "$readable" "\$@"
	E
	chmod 755 "$T/greets"
	[ "$(id -u)" != 0 ] || chown 65534 "$T/notes" "$T/agents" "$T/adlock" "$T/greets"
	with_agent job <<-'E'
		adlock_pass
		for i in 1 2 3 4 5; do
			adlock_get a "$i" 0 && adlock_release && note "$ADLOCK_VERDICT"
		done
		note "$$"
		await "$T/go"
	E
	local helper pid job
	for helper in adlock greets; do
		: >"$T/notes"
		rm -f "$T/go"
		ADLOCK_BIN=$T/$helper start job
		job=$!
		eventually told 6
		pid=$(tail -n 1 "$T/notes")
		assert_equal "$(grep -c acquired "$T/notes")" 5
		[ "$(agents_of "$pid" | wc -l)" -le 1 ]
		eventually no_agent_of "$pid"
		touch "$T/go"
		wait "$job"
	done
	expect 0 hello cat "$T/agents"
}

@test "a generated script gets true verdicts and loses no output" {
	run env -u ADLOCK_DIR -u ADLOCK_PAUSE ADLOCK_TEST_SHELLS="$ADLOCK_TEST_SHELL" TMPDIR="$T" \
		"$BATS_TEST_DIRNAME/stress" 0 1 3>&- # this seed always draws the same script
	assert_success
}

# bats test_tags=core
@test "the library prints nothing if standard output is closed" {
	script closed <<-'EOF'
		exec >&-
		adlock_agent
		adlock_get op a && adlock_release
		note "$?"
	EOF
	quietly closed
	assert_notes <<<0
}
