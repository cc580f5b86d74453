# adlock_guard: the one line that a legacy script needs.
load common

# guarded [NAME] writes a script with a guard, without the prelude.
guarded() {
	{
		# shellcheck disable=SC2016 # for the script to expand
		echo '. "$ADLOCK_SH" || exit 69; adlock_guard'
		cat
	} >"$T/${1-job}"
}

# guard_held: adlock_guard holds an atom.
# shellcheck disable=SC2153 # common.bash sets it
guard_held() { compgen -G "$ADLOCK_DIR/lock.*.guard.*" >/dev/null; }

# events KIND counts the runlog's events of that kind.
events() { grep -c "event=$1 " "$ADLOCK_DIR/program.dax.runlog"; }

# ran_once STATUS: the script took its atom once, and released it with that status.
ran_once() {
	assert_equal "$(events acquire) $(events release)" '1 1'
	assert grep -q "event=release .*status=$1\b" "$ADLOCK_DIR/program.dax.runlog"
	refute guard_held
	assert [ -s "$(echo "$ADLOCK_DIR"/last.*.guard.*)" ]
}

# The script prints which process owns its lock: itself (guarded by traps) or its supervisor.
tells_its_owner='read -r owner <"$(echo "$ADLOCK_DIR"/lock.*.guard.*)"
if [ "$owner" = $$ ]; then echo own; elif [ "$owner" = $PPID ]; then echo supervised; fi'

# waits_in_it starts a guarded script, whose pid is $first, and which has told in $T/mark the mark that
# its children get. When such a script comes below its guard, $T/in is there.
waits_in_it() {
	guarded <<-'E'
		echo "$ADLOCK_MARK" >"$T/mark"
		: >"$T/in"
		until [ -e "$T/go" ]; do sleep 0.05; done
		exit 3
	E
	start_to in job
	first=$!
	rm "$T/in"
}

# ended PID STATUS waits for the script, which must end with that status.
ended() {
	local status=0
	wait "$1" || status=$?
	assert_equal "$status" "$2"
}

# let_go lets the script go on, which ends with 3.
let_go() {
	: >"$T/go"
	ended "$first" 3
}

# bats test_tags=core
@test "a denied second start exits 0, or with ADLOCK_EXIT_DENIED" {
	waits_in_it
	quietly job
	ADLOCK_EXIT_DENIED=75 expect 75 '' launch job
	refute [ -e "$T/in" ]
	let_go
}

# bats test_tags=core:zsh
@test "a helper still answers after it was stopped and continued" {
	in_between <<-'E'
		case $1 in
		guard | stat-age)
			(
				until grep -q '^State:.T' "/proc/$$/status"; do sleep 0.01; done # CONT must come after STOP
				sleep 0.2 # the script's shell sees it stopped
				kill -CONT $$
			) >/dev/null 2>&1 &
			kill -STOP $$
			;;
		esac
	E
	guarded <<-'E'
		adlock_get a b
		adlock_release
		echo "age $(adlock_age a b)"
		exit 3
	E
	expect 3 'age 0' launch job
}

# bats test_tags=core
@test "a guarded script releases at its end and keeps its status" {
	guarded <<<"$tells_its_owner; exit 3"
	expect 3 supervised launch job
	ADLOCK_DIR=$T/i ADLOCK_STORE=$T/i expect 3 supervised launch job # an i in $- is an interactive shell's
	ran_once 3
	run launch job
	assert_failure 3
}

@test "a guarded script that execs completes with that status" {
	guarded <<<"exec sh -c 'exit 9'"
	expect 9 '' launch job
	ran_once 9
}

# bats test_tags=core
@test "a script's own EXIT trap runs, wherever it is set" {
	for script in 'trap "echo mine" EXIT; guard; exit 5' 'guard; trap "echo mine" EXIT; exit 5' \
		'trap "echo other" EXIT; guard; trap "echo mine" EXIT; exit 5' 'guard; trap "adlock_release; echo mine" EXIT; exit 5'; do
		echo ". \"\$ADLOCK_SH\" || exit 69; ${script/guard;/adlock_guard;}" >"$T/job"
		rm -rf "$ADLOCK_DIR"
		expect 5 mine launch job
		ran_once 5
	done
}

# bats test_tags=core
@test "signals ignored above the guard are ignored below it" {
	printf '%s\n' "trap 'echo usr' USR1; trap '' HUP" '. "$ADLOCK_SH" || exit 69; adlock_guard' \
		'kill -HUP $$; kill -USR1 $$; echo end' >"$T/job"
	expect 0 $'usr\nend' launch job
	ran_once 0
}

# bats test_tags=core
@test "TERM and HUP end the whole script, and release the lock" {
	guarded <<-'E'
		sleep 60 &
		: >"$T/in"
		wait
	E
	for signal in TERM HUP; do
		expected=143
		[ "$signal" = TERM ] || expected=129
		[ "$signal${shell[0]}" != HUPzsh ] || expected=1 # as it does without the guard
		rm -rf "$T/in" "$ADLOCK_DIR"
		start_to in job
		first=$!
		kill "-$signal" "$first"
		ended "$first" "$expected"
		ran_once "$expected"
		expect 0 '' leftovers sleep
	done
}

# bats test_tags=core:zsh
@test "a hangup that nohup ignores stays ignored" {
	guarded <<<$'kill -HUP $$\necho survived'
	run env nohup "${shell[@]}" "$T/job" </dev/null 3>&-
	assert_success
	assert_output --partial survived
	refute guard_held
}

@test "the guard's arguments are IfElapsed and ExpireAfter" {
	echo '. "$ADLOCK_SH" || exit 69; adlock_guard 15 90; echo ran' >"$T/job"
	expect 0 ran launch job
	assert grep -q 'if_elapsed=900 expire_after=5400' "$ADLOCK_DIR/program.dax.runlog"
	quietly job
	echo '. "$ADLOCK_SH" || exit 69; adlock_guard 1 2 3; echo ran' >"$T/job"
	expect 64 'adlock: adlock_guard: wants 0 to 2 arguments, got 3' launch job
}

@test "a script is one atom whatever the spelling of its path" {
	waits_in_it
	mkdir "$T/sub"
	ln -s sub "$T/link"
	cp "$T/job" "$T/sub/job"
	for path in ./job "$T/./job" "$T//job" sub/../job; do
		run env -C "$T" "${shell[@]}" "$path" 3>&-
		assert_success
		refute [ -e "$T/in" ]
	done
	: >"$T/go"
	run env -C "$T" "${shell[@]}" link/job 3>&-
	assert_failure 3
	ended "$first" 3
	assert_equal "$(compgen -G "$ADLOCK_DIR/last.*" | wc -l)" 2
}

# bats test_tags=core
@test "a guarded script gets its arguments unchanged" {
	guarded <<<'for arg; do printf "<%s>" "$arg"; done; echo'
	set -- 'a b' '' "it's" '"quoted"' '$HOME `x` \n' $'two\nlines' '*' -e -- é
	run launch job "$@"
	assert_output "$(printf '<%s>' "$@")"
	[ "${shell[0]}" != yash ] || return 0 # it makes an empty argument of what is not UTF-8
	guarded <<<'printf %s "$1" | od -An -tx1'
	expect 0 ' ff c3' launch job $'\xff\xc3'
}

# bats test_tags=core
@test "a guard keeps options, descriptors, directory, environment" {
	guarded <<-'E'
		case $- in *e*) echo errexit ;; esac
		read -r line <&4
		echo "$line" >&5
		pwd
		echo "$MINE $ADLOCK_SLOTS"
		false
		echo not reached
	E
	mkdir "$T/here"
	MINE=kept ADLOCK_SLOTS=3 run env -C "$T/here" "${shell[@]}" -e ../job 4<<<input 5>"$T/five" 3>&-
	assert_failure 1
	assert_output "errexit
$T/here
kept 3"
	assert_equal "$(cat "$T/five")" input
}

@test "set -x traces both starts of a guarded script" {
	guarded <<<'echo now >/dev/null'
	run "${shell[@]}" -x "$T/job" 3>&-
	assert_success
	assert_equal "$(grep -cx "+ \. $ADLOCK_SH\|+ echo now" <<<"$output")" 3
	ran_once 0
}

# bats test_tags=core
@test "a script with a #! line is guarded, also if run by PATH" {
	[ "${#shell[@]}" -le 2 ] || skip '#! takes one argument'
	{
		echo "#!$(command -v "${shell[0]}") ${shell[1]--e}"
		echo '. "$ADLOCK_SH" || exit 69; adlock_guard'
		echo "$tells_its_owner"
	} >"$T/job"
	chmod +x "$T/job"
	expect 0 supervised "$T/job"
	PATH=$T:$PATH expect 0 supervised job
	assert_equal "$(compgen -G "$ADLOCK_DIR/last.*" | wc -l)" 1
}

@test "a script that did a cd restarts in its first directory" {
	mkdir "$T/elsewhere"
	echo 'echo wrong' >"$T/elsewhere/job"
	printf '%s\n' '. "$ADLOCK_SH" || exit 69; cd elsewhere; adlock_guard' pwd "$tells_its_owner" >"$T/job"
	expect 0 "$T/elsewhere"$'\n'supervised env -C "$T" "${shell[@]}" ./job 3>&-
}

@test "a guard in a sourced file guards the script" {
	guarded library </dev/null
	printf '%s\n' '. "$T/library"' "$tells_its_owner" >"$T/job"
	expect 0 supervised launch job
	ran_once 0
}

# bats test_tags=core
@test "a script without a path needs a name; traps guard it" {
	guarded <<<"$tells_its_owner; exit 4"
	for way in "\"$(command -v "${shell[0]}")\" ${shell[*]:1} <\"\$T/job\"" \
		"\"$(command -v "${shell[0]}")\" ${shell[*]:1} -c \"\$(cat \"\$T/job\")\""; do
		expect 64 'adlock: adlock_guard: the script has no path, or a cd stands above: name it with ADLOCK_NAME' bash -c "$way" 3>&-
		ADLOCK_OPERAND=mine ADLOCK_DRY_RUN=1 expect 64 "adlock: ADLOCK_DRY_RUN: only a script that can be re-executed can be tried: unset it to run this one" bash -c "$way" 3>&-
		refute [ -e "$ADLOCK_DIR" ]
		ADLOCK_OPERAND=mine ADLOCK_DRY_RUN=0 expect 4 own bash -c "$way" 3>&-
		refute guard_held
		assert [ -e "$(echo "$ADLOCK_DIR"/last.*.dax.guard.mine)" ]
		rm -rf "$ADLOCK_DIR"
	done
}

@test "ADLOCK_NAME names the guard as --name names a run" {
	mkdir "$T/one" "$T/two"
	for export in '' 'export '; do
		cat >"$T/one/deploy" <<-E
			${export}ADLOCK_NAME=deploy
			. "\$ADLOCK_SH" || exit 69; adlock_guard
			env | grep "^ADLOCK_NAME=" && exit 1
			: >"\$T/in"
			until [ -e "\$T/go" ]; do sleep 0.05; done
			exit 3
		E
		cp "$T/one/deploy" "$T/two/other"
		rm -f "$T/in" "$T/go"
		start_to in one/deploy
		first=$!
		rm "$T/in"
		launch two/other
		expect 75 '' "$ADLOCK_BIN" run --name deploy -- echo ran
		let_go
	done
	expect 3 '' "$ADLOCK_BIN" run --name deploy -- "${shell[@]}" "$T/one/deploy" # a part of the run of that name
	expect 0 "$ADLOCK_DIR/last.adlock.dax.run.deploy" compgen -G "$ADLOCK_DIR/last.*"
	ADLOCK_OPERAND=x expect 64 'adlock: ADLOCK_NAME: cannot go with ADLOCK_OPERAND' launch one/deploy
}

@test "ADLOCK_NAME names a guard by traps, and no lock below it" {
	guarded <<<"$tells_its_owner; adlock_get a b; ls \"\$ADLOCK_DIR\" | grep ^lock; exit 4"
	sed -i '1i ADLOCK_NAME=mine' "$T/job"
	run "${shell[@]}" <"$T/job" 3>&-
	assert_failure 4
	assert_line lock.adlock.dax.run.mine
	assert_line --regexp '^lock\..*\.dax\.a\.b$'
}

@test "ADLOCK_OPERAND names the guard of a script with a path" {
	waits_in_it
	mkdir "$T/two"
	echo '. "$ADLOCK_SH" || exit 69; ADLOCK_OPERAND=mine; adlock_guard; env | grep ^ADLOCK_OPERAND=; echo ran' >"$T/two/job"
	expect 0 ran launch two/job
	assert [ -e "$ADLOCK_DIR/last.job.dax.guard.mine" ]
	let_go
}

@test "settings assigned above the guard need no export" {
	printf '%s\n' 'ADLOCK_ENFORCE=1 ADLOCK_PAUSE=100ms' '. "$ADLOCK_SH" || exit 69; adlock_guard 0 1s' 'env | grep ^ADLOCK_ENFORCE=; sleep 60' >"$T/job"
	run launch job
	assert_failure 124
	assert_output --regexp '^adlock: guard [^ ]*: ended by force: it had run for [0-9]+s, ExpireAfter is 1s$'
	printf '%s\n' 'ADLOCK_QUIET_OK=1 ADLOCK_ONCE_PER=1w' '. "$ADLOCK_SH" || exit 69; adlock_guard' 'echo quiet; : >>"$T/ran"; echo x >>"$T/ran"' >"$T/quiet"
	quietly quiet
	run launch quiet
	assert_equal "$(wc -l <"$T/ran")" 1
	ADLOCK_WHOLE_JOB=perhaps run launch job
	assert_failure 64
	assert_output --partial 'ADLOCK_WHOLE_JOB'
	printf '%s\n' 'ADLOCK_ENFORCE=1' '. "$ADLOCK_SH" || exit 69; adlock_guard; echo "no limit"' >"$T/job"
	expect 0 'no limit' launch job
}

@test "a script on /dev/fd/5, or not found after a cd, needs a name" {
	local begin='. "$ADLOCK_SH" || exit 69; adlock_guard; '
	echo "$begin echo ran" >"$T/piped"
	mkdir "$T/sub"
	echo "$begin echo sub" >"$T/sub/moved"
	printf '%s\n' "cd '$T/sub'" "$begin echo moved" >"$T/moved"
	local way
	for way in "\$ADLOCK_TEST_SHELL /dev/stdin <'$T/piped'" "\$ADLOCK_TEST_SHELL /dev/fd/5 5<'$T/piped'" \
		"cat '$T/piped' | \$ADLOCK_TEST_SHELL /dev/fd/5 5<&0" "cd '$T'; \$ADLOCK_TEST_SHELL ./moved"; do
		expect 64 'adlock: adlock_guard: the script has no path, or a cd stands above: name it with ADLOCK_NAME' bash -c "$way" 3>&-
		refute [ -e "$ADLOCK_DIR" ]
	done
	cd "$T/sub"
	expect 0 sub launch sub/moved
}

# bats test_tags=core
@test "a killed helper is reported, and the script does not run" {
	in_between <<<'[ "$1" != guard ] || kill -TERM "$$"'
	guarded <<<'echo not reached'
	run launch job
	assert_failure 143 # not 15, as exit cuts ksh93's 271 to (W10)
	assert_output --partial 'adlock: adlock_guard: the helper died, with status 143'
	refute_output --partial reached
}

@test "a hook that the script does not export is called" {
	printf '%s\n' "ADLOCK_HOOK='echo \"\$ADLOCK_EVENT\" >>\"$T/told\"'" '. "$ADLOCK_SH" || exit 69; adlock_guard; exit 3' >"$T/job"
	run launch job
	assert_failure 3
	eventually grep -qx fail "$T/told"
}

# bats test_tags=core
@test "a guard in a subshell guards the subshell" {
	echo '. "$ADLOCK_SH" || exit 69
	(adlock_guard; compgen_is_here=$(echo "$ADLOCK_DIR"/lock.*); [ -e "$compgen_is_here" ] && echo held; exit 6) || echo "$?"
	echo on' >"$T/job"
	expect 0 $'held\n6\non' launch job
	ran_once 6
}

# bats test_tags=core
@test "a guarded script that a shell runs in a fork runs once" {
	echo '. "$ADLOCK_SH" || exit 69; adlock_guard; echo once' >"$T/inner" # without #! some shells run it in a fork
	chmod +x "$T/inner"
	echo '"$1"' >"$T/job"
	expect 0 once launch job "$T/inner"
	refute guard_held
}

@test "a script with locks above the guard is guarded by traps" {
	echo '. "$ADLOCK_SH" || exit 69; adlock_get a b; adlock_guard
	'"$tells_its_owner" >"$T/job"
	expect 0 own launch job
	refute guard_held
}

@test "a guarded script may be called back by one that it calls" {
	guarded <<<'echo "job $1"; [ -n "$1" ] || again other'
	guarded other <<<'echo in other; again job inner; exec $ADLOCK_TEST_SHELL "$T/job" last'
	sed -i '1i again() { name=$1; shift; $ADLOCK_TEST_SHELL "$T/$name" "$@"; }' "$T/job" "$T/other"
	ADLOCK_WAIT=forever ADLOCK_PROGRAM=both expect 0 $'job \nin other\njob inner\njob last' launch job
	assert_equal "$(events acquire) $(events release)" '2 2'
	refute guard_held
}

# bats test_tags=core
@test "a guarded script that starts or execs itself locks once" {
	guarded <<-'E'
		case $1 in
		first)
			printf '%s\n' 1 2 3 | xargs -n 1 -P 3 $ADLOCK_TEST_SHELL "$0" worker | sort
			(env -i ADLOCK_SH="$ADLOCK_SH" ADLOCK_BIN="$ADLOCK_BIN" ADLOCK_DIR="$ADLOCK_DIR" ADLOCK_HOST="$ADLOCK_HOST" PATH="$PATH" setsid $ADLOCK_TEST_SHELL "$0" cleared)
			exec $ADLOCK_TEST_SHELL "$0" last
			;;
		*) echo "$*" ;;
		esac
	E
	expect 0 $'worker 1\nworker 2\nworker 3\ncleared\nlast' launch job first
	ran_once 0
}

@test "a script guarded by traps may start itself" {
	guarded <<-'E'
		case $1 in
		'') $ADLOCK_TEST_SHELL "$0" worker | cat; exit 3 ;;
		*) echo "$1" ;;
		esac
	E
	sed -i '1i . "$ADLOCK_SH" || exit 69; [ -n "$1" ] || adlock_get a b' "$T/job"
	expect 3 worker launch job
	assert_equal "$(events acquire)" 2
	refute guard_held
}

@test "a script under adlock run takes its atom if it is not held" {
	guarded <<<'echo ran'
	expect 0 ran "$ADLOCK_BIN" run --program job --operator guard --operand "$T/job" -- "${shell[@]}" "$T/job"
	ran_once 0
	expect 0 ran "$ADLOCK_BIN" run -- "${shell[@]}" "$T/job"
	assert_equal "$(events acquire)" 3
}

@test "another process's mark does not let a script pass its guard" {
	waits_in_it
	local lock token start pid=$first
	lock=$(echo "$ADLOCK_DIR"/lock.*)
	token=$(sed -n 's/^token=//p' "$lock")
	start=$(sed 's/.*) //' "/proc/$pid/stat" | cut -d' ' -f20)
	: >"$T/other"
	guarded other <<<"$tells_its_owner"
	for mark in "again $pid:$start $token $lock" "again $$:1 $token $lock" "$pid:$start x $lock" 'again x' "again 1:1 $token /etc/passwd" \
		"again $pid:$start $token $T/lock.a.b.c.d" "$(cat "$T/mark")"; do
		ADLOCK_MARK=$mark expect 0 '' setsid "${shell[@]}" "$T/job" 3>&-
		refute [ -e "$T/in" ]
	done
	let_go
	ADLOCK_MARK="again $pid:$start $token $lock" run launch other
	assert_output supervised
}

@test "a guarded script that another one execs gets its own lock" {
	guarded <<<'exec $ADLOCK_TEST_SHELL "$T/other"'
	guarded other <<<'echo "$ADLOCK_VERDICT"; exit 2'
	expect 2 acquired launch job
	assert_equal "$(events acquire) $(events release)" '2 2'
}

# later_from WAY: a job that has started WAY is over; a start of WAY's process (the script with the
# argument later) takes the lock, though it carries the mark of that job.
later_from() {
	guarded <<-E
		case \$1 in
		later)
			echo later >>"\$T/later"
			until [ -e "\$T/go" ]; do sleep 0.05; done
			;;
		*) start() { \$ADLOCK_TEST_SHELL "\$0" later; }; $1 ;;
		esac
	E
}

@test "a daemon left by a job starts the job under a new lock" {
	later_from '{ exec setsid sh -c '"'"'until [ -e "$T/over" ]; do sleep 0.05; done; exec $ADLOCK_TEST_SHELL "$1" later'"'"' sh "$0"; } >/dev/null 2>&1 3>&- &'
	launch job
	: >"$T/over"
	eventually test -s "$T/later"
	assert_equal "$(events acquire)" 2
	quietly job
	assert_equal "$(events acquire)" 2
	: >"$T/go"
	eventually free_again
}

free_again() { ! guard_held; }

@test "a job whose supervisor was killed may start its script" {
	guarded <<-'E'
		[ -z "$1" ] || { echo part >"$T/part"; exit 0; }
		: >"$T/in"
		until [ -e "$T/go" ]; do sleep 0.05; done
		$ADLOCK_TEST_SHELL "$0" part
		: >"$T/over"
	E
	start_to in job
	first=$!
	kill -KILL "$first"
	ended "$first" 137
	: >"$T/go"
	eventually test -e "$T/over"
	assert [ -s "$T/part" ]
}

@test "a job may start only its own script as another user" {
	[ "$(id -u)" = 0 ] || skip 'only root can change the user'
	local as_root=("${shell[@]}")
	unprivileged
	shell=("${as_root[@]}")
	guarded <<-'E'
		[ "$1" = first ] || { echo "$ADLOCK_VERDICT $(id -u)"; exit 0; }
		setpriv --reuid=65534 --clear-groups $ADLOCK_TEST_SHELL "$T/other"
		exec setpriv --reuid=65534 --clear-groups $ADLOCK_TEST_SHELL "$0" inner
	E
	guarded other <<<'echo not reached'
	run launch job first
	assert_line 'acquired 65534'
	refute_line 'not reached'
	assert_equal "$(events acquire)" 1
}

@test "a daemon started by a running job is denied the job's atom" {
	later_from 'setsid sh -c '"'"'(until [ -e "$T/left" ]; do sleep 0.05; done; $ADLOCK_TEST_SHELL "$1" later >"$T/said" 2>&1; echo "$?" >"$T/status") &'"'"' sh "$0" >/dev/null 2>&1 3>&-
		: >"$T/left"
		until [ -s "$T/status" ]; do sleep 0.05; done'
	launch job
	assert_equal "$(cat "$T/status")" 75
	assert grep -q "job: not run: busy: the atom is running this very program; it was started from within the job of process [0-9]*$" "$T/said"
	refute [ -e "$T/later" ]
}

@test "a start from a cleared job is denied while a new job runs" {
	guarded <<-'E'
		case $1 in
		'')
			: >"$T/in"
			until [ -e "$T/go" ]; do sleep 0.05; done
			$ADLOCK_TEST_SHELL "$0" part
			;;
		new)
			: >"$T/new"
			until [ -e "$T/end" ]; do sleep 0.05; done
			;;
		part) echo part >"$T/part" ;;
		esac
	E
	start_to in job
	first=$!
	rm "$ADLOCK_DIR"/lock.* # as clear does once the owner cannot be found
	start_to new job new
	second=$!
	: >"$T/go"
	wait "$first" || :
	refute [ -e "$T/part" ]
	: >"$T/end"
	ended "$second" 0
}

@test "children do not inherit the mark of the guard's restart" {
	guarded <<<'env | grep ^ADLOCK_MARK='
	run launch job
	assert_output --regexp '^ADLOCK_MARK=[0-9]+:[0-9]+ [0-9a-f]{32} .*/lock\.'
}

@test "a script with a new name at each start starts twice at most" {
	echo 'ADLOCK_PROGRAM=p$$; . "$ADLOCK_SH" || exit 69; echo above; adlock_guard; echo below' >"$T/job"
	expect 0 $'above\nabove\nbelow' launch job
	ran_once 0
}

@test "a missing helper ends the script with 69" {
	guarded <<<'echo not reached'
	ADLOCK_BIN=/nonexistent expect 69 'adlock: /nonexistent: helper not found: no lock is taken or released' launch job
}

@test "a wrong setting is refused before the first command" {
	guarded <<<'echo not reached'
	ADLOCK_EXPIRE_AFTER=soon run launch job
	assert_failure 64
	refute_output --partial reached
	assert_output --partial '"soon"'
	ADLOCK_SHARED=perhaps expect 64 'adlock: ADLOCK_SHARED: "perhaps": want 1 or 0' launch job
}

@test "a guarded script's atoms share a slot, its children's do not" {
	guarded <<-'E'
		adlock_get a b && echo shared && adlock_get c d && echo nested
		$ADLOCK_TEST_SHELL -c '. "$ADLOCK_SH"; adlock_get e f || echo "$ADLOCK_VERDICT"; :' job
		adlock_release && adlock_release && ls "$ADLOCK_DIR" | grep -c lock.*slot
	E
	ADLOCK_SLOTS=1 ADLOCK_PROGRAM=job run launch job
	assert_output --regexp $'^shared\nnested\nadlock: e f: not run: full: an atom of [a-z]+ is running; it was started from within the job of process [0-9]+\nfull\n1$'
	assert_free
}

# by_traps writes a script that is guarded in its own process.
by_traps() {
	{
		echo "$1"
		echo '. "$ADLOCK_SH" || exit 69; ADLOCK_OPERAND=mine; adlock_guard'
		cat
	} >"$T/job"
}

# start_read FILE starts the shell, which reads the script from its standard input, and waits until
# the script has made the file in $T; the pid is $first.
start_read() {
	"${shell[@]}" <"$T/job" 3>&- &
	first=$!
	eventually test -e "$T/$1"
}

# bats test_tags=core
@test "a guard by traps refuses a trap on EXIT, INT, TERM or HUP" {
	for signal in EXIT INT TERM HUP; do
		by_traps "trap ': two
		: lines' $signal" <<<'echo not reached'
		run "${shell[@]}" <"$T/job" 3>&-
		assert_failure 64
		assert_output --regexp "^adlock: adlock_guard: a trap on (SIG)?$signal is set already: use adlock_get and adlock_release$"
		refute guard_held
		assert_equal "$(stat -c %Y "$ADLOCK_DIR"/last.*.guard.mine)" 0
	done
	run ls -A "$ADLOCK_DIR"
	refute_output --partial traps
}

# bats test_tags=core
@test "a guard by traps releases at the end, on TERM and on HUP" {
	by_traps '' <<<': >"$T/in"; while [ ! -e "$T/go" ]; do sleep 0.05; done; exit 3'
	for signal in 0 TERM HUP; do
		rm -f "$T/in" "$T/go"
		start_read in
		case $signal in
		0) expected=3 && : >"$T/go" ;;
		TERM) expected=143 ;;
		HUP) expected=129 ;;
		esac
		[ "$signal" = 0 ] || kill "-$signal" "$first"
		ended "$first" "$expected"
		refute guard_held
	done
}

# died_of FILE sends INT to a shell that reads FILE, and prints the signal it died of, or 0 if it
# exited. perl starts it, as a background command ignores INT, and $? would not tell the two apart.
died_of() {
	rm -f "$T/in"
	perl -e '$SIG{INT} = "DEFAULT"; system(@ARGV); print $? & 127' "${shell[@]}" <"$1" >"$T/died" 3>&- &
	eventually test -s "$T/in"
	kill -INT "$(cat "$T/in")"
	ended "$!" 0
	cat "$T/died"
}

@test "a guard by traps stays busy while a child outlives TERM" {
	by_traps '' <<<'sleep 600 & echo "$!" >"$T/new"; mv "$T/new" "$T/child"; wait'
	start_read child
	kill -TERM "$first"
	ended "$first" 143
	assert guard_held
	run "${shell[@]}" <"$T/job" 3>&-
	assert_success
	assert_equal "$(events acquire)" 1
	kill -KILL "$(cat "$T/child")"
	eventually gone "$(cat "$T/child")"
	rm "$T/child"
	start_read child
	assert_equal "$(events acquire)" 2
	kill -KILL "$(cat "$T/child")"
	ended "$first" 0
}

# bats test_tags=core
@test "a shell guarded by traps dies of INT as without a guard" {
	local loops='echo "$$" >"$T/in"; while :; do sleep 0.05; done'
	# bash does not die of INT unless its current command did.
	[ "${shell[0]}" != bash ] || loops=${loops/sleep 0.05/:}
	by_traps '' <<<"$loops"
	echo "$loops" >"$T/plain"
	died_of "$T/plain" >"$T/want"
	[ "${shell[0]}" != ksh93 ] || echo 0 >"$T/want" # W19
	run died_of "$T/job"
	assert_output "$(cat "$T/want")"
	refute guard_held
}

# bats test_tags=core
@test "a guard by traps keeps traps on other signals" {
	by_traps "trap 'echo usr' USR1; trap '' HUP" <<<'kill -HUP $$; kill -USR1 $$; echo end'
	expect 0 $'usr\nend' "${shell[@]}" <"$T/job" 3>&-
}

@test "a guard by traps exits with ADLOCK_EXIT_DENIED if denied" {
	by_traps '' <<<': >"$T/in"; while [ ! -e "$T/go" ]; do sleep 0.05; done'
	start_read in
	run "${shell[@]}" <"$T/job" 3>&-
	assert_success
	ADLOCK_EXIT_DENIED=9 run "${shell[@]}" <"$T/job" 3>&-
	assert_failure 9
	: >"$T/go"
	ended "$first" 0
}

@test "the temporary file of a guard by traps is named temp.HEX" {
	script job <<-'E'
		PATH=$T:$PATH
		(adlock_guard)
	E
	printf '%s\n' '#!/bin/sh' 'echo "${2##*/}" >>"$T/notes"' >"$T/rm"
	chmod +x "$T/rm"
	launch job
	run cat "$T/notes"
	assert_output --regexp '^temp\.[0-9a-f]{32}$'
}

# on_terminal COMMAND runs it on a terminal of its own; what is written to descriptor 4 is typed.
on_terminal() {
	type -P script >/dev/null || skip 'no script(1)'
	mkfifo "$T/keys"
	# Without exec, a shell that stays (as dash does) would get the typed signals too, and die.
	env --default-signal=INT,QUIT script -qec "exec $*" /dev/null <"$T/keys" >"$T/screen" 2>&1 3>&- &
	terminal=$!
	exec 4>"$T/keys"
}

@test "a script's denial on a terminal names variables, no options" {
	waits_in_it
	on_terminal "$ADLOCK_TEST_SHELL '$T/job'"
	exec 4>&-
	ended "$terminal" 0
	run cat "$T/screen"
	assert_output --regexp 'adlock: guard [^ ]*: busy: .* tells more, ADLOCK_WAIT=D waits'
	refute_output --partial ' --'
	let_go
}

# stopped PID: a signal has stopped the process.
stopped() { grep -qs '^State:.T' "/proc/$1/status"; }

# bats test_tags=once
@test "job control on a terminal stops and continues a script" {
	mkfifo "$T/go"
	# Without a command in between: dash starts one by vfork, and if the child is stopped before its
	# exec, dash does not stop but waits for it.
	guarded <<-'E'
		echo $$ >"$T/in"
		read -r word <"$T/go"
		echo "$word"
	E
	on_terminal "bash --norc --noprofile -i"
	echo "$ADLOCK_TEST_SHELL '$T/job'" >&4
	eventually test -s "$T/in"
	printf '\032' >&4
	eventually stopped "$(cat "$T/in")"
	assert guard_held
	echo fg >&4
	echo over >"$T/go"
	eventually grep -q over "$T/screen"
	echo exit >&4
	exec 4>&-
	ended "$terminal" 0
	ran_once 0
}
