# sh/shell, which a crontab names as its SHELL. Here the shell under test reads it, and runs the
# jobs too.
load common

# own prints the path of the shell under test, as a program without arguments.
own() {
	printf '#!/bin/sh\nexec %s "$@"\n' "$ADLOCK_TEST_SHELL" >"$T/own"
	chmod 755 "$T/own"
	echo "$T/own"
}

# guarded ARG... runs sh/shell with these arguments, as cron runs $SHELL.
guarded() {
	SHELL=$root/sh/shell ADLOCK_SHELL=${ADLOCK_SHELL-$(own)} "${shell[@]}" "$root/sh/shell" "$@" 3>&-
}

# plain ARG... does the same without adlock. A script is the shell in both cases, as the shell that
# starts it prints how its child ended.
plain() { SHELL=$(own) "$(own)" "$@" 3>&-; }

# line COMMAND starts a crontab line as cron does, in the background.
line() {
	SHELL=$root/sh/shell ADLOCK_SHELL=$(own) setsid "${shell[@]}" "$root/sh/shell" -c "$1" >>"$T/out" 2>&1 </dev/null 3>&- &
}

locks() { find "$ADLOCK_DIR" -name 'lock.*' 2>/dev/null; }
free() { [ -z "$(locks)" ]; }

# alike COMMAND checks that files, output and status are the same as without adlock.
alike() {
	local want=0 got=0
	mkdir -p "$T/plain" "$T/guarded"
	(cd "$T/plain" && plain -c "$1" <<<'some input' >out 2>err) || want=$?
	(cd "$T/guarded" && guarded -c "$1" <<<'some input' >out 2>err) || got=$?
	if [ "$got" != "$want" ] || ! diff -r "$T/plain" "$T/guarded"; then
		fail "$1: status $got, want $want"
	fi
}

@test "a lock changes neither a command's output nor its status" {
	local command long
	printf -v long 'x=%0565d; echo "${x#"${x%%?????}"}"' 0 # 592 bytes
	for command in 'echo "a  b" '\''c"d'\'' e\ f $((1+2)) `echo g`' 'printf "%s|" a b%c | tr a-z A-Z; echo done >&2' \
		'cat; exit 3; echo not' 'read -r x; echo "$x"; exec sh -c "exit 4"' 'kill -TERM $$' 'exec 2>/dev/null; sh -c "kill -KILL \$\$"; echo $?' \
		'echo a & wait' 'exec 2>&1; echo $0 $# "$@"' 'exit 75' '# nothing' 'echo a # b' $'cat <<E\na $HOME\nE\necho c' \
		'  echo blanks  ' $'\techo tab\t' ': a b c' ':' ': name ;' ': name; echo d' ': name ; exit 5' ': $x ; echo e' 'false' \
		'if' 'no-such-command-of-ours' 'cd / && pwd' 'x=1 y=2; set -u; echo $x$y' "$long" 'ulimit -n; umask' \
		'ls -l /proc/self/fd | grep -c -- "->"' '-x' '--name=x' '!' 'echo "$SHELL"' 'sleep 0 &' 'trap "echo bye" EXIT; false' 'echo é ü'; do
		alike "$command"
	done
	# yash passes an argument that it cannot decode as an empty one.
	[ "${shell[0]}" = yash ] || alike $'printf %s \'\xff\xfe\' | od -c'
	assert free
}

@test "the words after -c COMMAND are its arguments" {
	expect 0 'a 2: d  e' guarded -c 'echo "$0 $#: $2"' a 'b c' 'd  e'
	run "$ADLOCK_BIN" status
	assert_output --partial 'a b c d  e'
	expect 0 --help guarded -c 'echo "$1"' x --help
}

# bats test_tags=once
@test "blanks around a command do not change its lock" {
	guarded -c ' true '
	guarded -c 'true'
	expect 0 $'last.adlock.dax.run.true_2588936279-2477416133\nprogram.dax.runlog' ls "$ADLOCK_DIR"
}

# bats test_tags=once
@test "a crontab line's name is that of adlock run --name" {
	line ": nightly ADLOCK_WAIT=1s ; : >$T/in; until [ -e $T/go ]; do sleep 0.05; done"
	eventually test -e "$T/in"
	run "$ADLOCK_BIN" run --name nightly -- echo ran
	assert_failure 75
	run guarded -c ': nightly ; echo ran'
	assert_failure 75
	expect 0 ran guarded -c 'nightly=1; echo ran'
	run "$ADLOCK_BIN" status 'adlock run nightly'
	assert_output --partial running
	: >"$T/go"
	eventually free
}

# bats test_tags=once
@test "ADLOCK_NAME in the crontab names all unnamed lines" {
	ADLOCK_NAME=all guarded -c 'true'
	ADLOCK_NAME=all guarded -c ': one ; true'
	run ls "$ADLOCK_DIR"
	assert_line last.adlock.dax.run.all
	assert_line last.adlock.dax.run.one
	refute_line --partial run.true
}

# bats test_tags=once
@test "a line's limit, even an empty one, wins over the crontab's" {
	export ADLOCK_DRY_RUN=1 ADLOCK_IF_ELAPSED=5m
	run guarded -c 'true'
	assert_line --partial 'IfElapsed is 5m'
	run guarded -c ': n ADLOCK_IF_ELAPSED=7m ; true'
	assert_line --partial 'IfElapsed is 7m'
	run guarded -c ': n ADLOCK_IF_ELAPSED= ; true'
	assert_line --partial 'IfElapsed is 0s'
	run guarded -c ': ADLOCK_IF_ELAPSED=7m ; true'
	assert_line --partial 'IfElapsed is 7m'
	assert_line --regexp 'lock.adlock.dax.run.true_2588936279-2477416133$'
}

# bats test_tags=once
@test "a crontab line has no limit by default; auto learns one" {
	local n
	dry() { ADLOCK_DRY_RUN=1 run guarded -c "${1-true}"; }
	dry
	assert_line 'free: never completed, IfElapsed is 0s, no ExpireAfter'
	export ADLOCK_EXPIRE_AFTER=auto
	dry
	assert_line 'ExpireAfter never: 0 successful runs, fewer than 5: no limit until there are 5'
	for n in 1 2 3 4; do guarded -c true; done
	dry
	assert_line 'ExpireAfter never: 4 successful runs, fewer than 5: no limit until there are 5'
	guarded -c true
	dry
	assert_line --regexp '^ExpireAfter 10m: 5 successful runs: typically [0-9.]+s'
	dry ': true ADLOCK_EXPIRE_AFTER=never ; true'
	refute_output --partial successful
	ADLOCK_EXPIRE_AFTER=90m dry
	refute_output --partial successful
	ADLOCK_EXPIRE_AFTER='' ADLOCK_REPLACE=1 dry
	assert_success
	refute_output --partial successful
}

@test "the job's environment has its shell and the lock directory" {
	export ADLOCK_EXPIRE_AFTER=1h ADLOCK_WAIT=1s ADLOCK_VERBOSE=0 helper=kept set=kept
	run guarded -c 'env | grep -v ^ADLOCK_MARK | grep "^ADLOCK_\|^SHELL=\|^helper=\|^set=\|^_adlock" | sort; exec "$SHELL" -c "echo inner"'
	assert_output "ADLOCK_BIN=$ADLOCK_BIN
ADLOCK_DIR=$ADLOCK_DIR
ADLOCK_HOST=dax
ADLOCK_SH=$ADLOCK_SH
ADLOCK_TEST_SETTINGS=$ADLOCK_TEST_SETTINGS
ADLOCK_TEST_SHELL=$ADLOCK_TEST_SHELL
ADLOCK_VERBOSE=0
SHELL=$T/own
helper=kept
set=kept
inner"
}

@test "a command that takes a lock itself gets no other" {
	local command
	for command in "flock -n $T/f echo ran" "  exec flock -n $T/f echo ran" "A=b /usr/bin/flock -n $T/f echo ran"; do
		expect 0 ran guarded -c "$command"
	done
	refute [ -e "$ADLOCK_DIR" ]
	ADLOCK_NAME=mine run guarded -c '"$ADLOCK_BIN" run -- true; echo ran' # the words do not begin with adlock
	assert_output ran
	ln -s "$ADLOCK_BIN" "$T/adlock"
	ADLOCK_NAME=inner run guarded -c "$T/adlock run -- env"
	assert_line "SHELL=$T/own"
	refute_output --partial ADLOCK_SHELL
	assert [ -e "$ADLOCK_DIR/last.adlock.dax.run.inner" ]
}

# bats test_tags=core
@test "adlock's shell passes on arguments other than -c COMMAND" {
	echo 'echo "script $# $1"' >"$T/script"
	expect 0 'script 1 a b' guarded "$T/script" 'a b'
	run guarded -ec 'false; echo not'
	assert_failure
	refute_output --partial not
	expect 0 y guarded -e -c 'echo "$1"' x y
	expect 0 stdin guarded <<<'echo stdin'
	run guarded -c
	assert_failure
	run guarded -c ''
	assert_success
	run guarded -c ' '
	assert_success
	refute [ -e "$ADLOCK_DIR" ]
}

@test "a crontab line does not run if the helper is missing" {
	local bin
	for bin in "$T/none" "$T" "$T/notes" none; do
		ADLOCK_BIN=$bin run guarded -c "echo ran >$T/ran"
		assert_failure 69
		assert_output "adlock: $bin: helper not found: nothing is locked, and the job is not run"
		ADLOCK_BIN=$bin run guarded -c "flock $T/f echo ran >$T/ran"
		assert_failure 69
	done
	refute [ -e "$T/ran" ]
}

# bats test_tags=once
@test "a wrong setting keeps the line from running" {
	local line
	for line in 'ADLOCK_EXPIRE_AFTR=90m|ADLOCK_EXPIRE_AFTR: unknown setting: did you mean ADLOCK_EXPIRE_AFTER?' \
		'EXPIRE_AFTER=90m|EXPIRE_AFTER=90m: is not understood' '--expire-after=90m|--expire-after=90m: '; do
		run guarded -c ": n ${line%%|*} ; : >$T/ran"
		assert_failure 64
		assert_output --partial "adlock: ${line#*|}"
	done
	ADLOCK_WAIT=soon run guarded -c ": >$T/ran"
	assert_failure 64
	refute [ -e "$T/ran" ]
}

# bats test_tags=once
@test "a crontab line can set each variable in adlock run's help" {
	local name
	for name in $("$ADLOCK_BIN" run --help | grep -o 'ADLOCK_[A-Z_]*'); do
		[ "$name" != ADLOCK_DIR ] || continue # without ADLOCK_DIR the test would use this machine's own locks
		expect 0 ran guarded -c ": n $name= ; echo ran"
	done
	run guarded -c ": n ADLOCK_DIR=$T/elsewhere ; ls $T/elsewhere"
	assert_line lock.adlock.dax.run.n
}

@test "a wrapper that starts adlock's shell again runs no command" {
	local way
	for way in 'exec ' ''; do
		printf '#!/bin/sh\n%s"%s" "$@"\n' "$way" "$root/sh/shell" >"$T/wrapper"
		chmod 755 "$T/wrapper"
		ADLOCK_SHELL=$T/wrapper run guarded -c 'echo ran'
		assert_failure 75
		assert_output --regexp '^adlock: run .*: not run: busy: the atom is running this very program; it was started from within the job of process [0-9]+$'
		refute_line ran
		assert free
	done
	printf '#!/bin/sh\nexec /bin/sh "$@"\n' >"$T/wrapper"
	ADLOCK_SHELL=$T/wrapper expect 0 ran guarded -c 'echo ran'
}

# bats test_tags=once
@test "ADLOCK_SHELL is an absolute path, not adlock's own shell" {
	local path
	ln -s "$root/sh/shell" "$T/link"
	ln -s "$ADLOCK_BIN" "$T/adlock"
	for path in "$root/sh/shell" "$T/link" "$ADLOCK_BIN" "$T/adlock"; do
		for command in "echo ran" "flock $T/f echo ran"; do
			ADLOCK_SHELL=$path run timeout 60 "$root/sh/shell" -c "$command"
			assert_failure 64
			assert_output --partial "adlock: ADLOCK_SHELL: \"$path\" is adlock's"
		done
	done
	ADLOCK_SHELL=bash expect 64 'adlock: ADLOCK_SHELL: "bash" is no absolute path' guarded -c 'echo ran'
	ADLOCK_SHELL=$T/none expect 127 "adlock: $T/none: no such file or directory" guarded -c 'echo ran'
	ADLOCK_SHELL=$T/notes run guarded -c 'echo ran'
	assert_failure 126
	expect 0 '/bin/bash /bin/bash' guarded -c ": n ADLOCK_SHELL=/bin/bash ; echo \"\$BASH \$SHELL\${ADLOCK_SHELL-}\""
	ADLOCK_SHELL='' expect 0 '/bin/sh /bin/sh' guarded -c 'echo "$0 $SHELL"'
}

# bats test_tags=once
@test "the next start of a line does not end children left behind" {
	local command="sleep 1000 </dev/null >/dev/null 2>&1 & setsid -f sleep 1000 </dev/null >/dev/null 2>&1; echo run"
	local n
	for n in 1 2 3 4 5 6 7; do # the last runs have a learned limit
		expect 0 run guarded -c "$command"
	done
	ADLOCK_REPLACE=1 expect 0 run guarded -c "$command"
	eventually sixteen_left # leftovers does not find a process during its exec
}

sixteen_left() { [ "$(leftovers 'sleep.1000' | wc -l)" = 16 ]; }
