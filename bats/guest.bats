# The library works under any settings of the script that sources it, and leaves everything as it
# was.
load common

# life writes a script that uses each function, and that no IFS breaks.
life() {
	script job <<-'E'
		adlock_pass
		adlock_get copy /etc/x.x 0 90
		adlock_get copy inner 0
		adlock_release
		adlock_release
		adlock_get copy /etc/x.x 1h || note "$? $ADLOCK_VERDICT"
		work() { note "$1"; }
		adlock_with copy with 15 90 -- work 'x y'
		note "$(adlock_age copy with)"
		sub=$(adlock_get copy sub && echo got && adlock_release)
		note "$sub"
	E
}

# for_settings SETTINGS [EDIT] runs that script, edited by sed(1).
for_settings() {
	export ADLOCK_TEST_SETTINGS=$1
	life
	sed -i "${2-}" "$T/job"
	quietly job
	assert_notes <<<$'75 too-soon\nx y\n0\ngot'
}

# bats test_tags=core
@test "the library works in a plain script" { for_settings ''; }
@test "the library works under set -eu" { for_settings 'eu'; }
@test "the library works with IFS=x" { for_settings 'ifs'; }
@test "the library works with noclobber" { for_settings 'noclobber'; }
@test "the library works with traps" { for_settings 'traps'; }
# bats test_tags=core
@test "the library works with a readonly IFS" { for_settings 'eu' '1a readonly IFS'; }
# bats test_tags=core
@test "the library works in the C locale" { LC_ALL=C for_settings 'eu ifs'; }
@test "the library works without a locale" {
	unset LC_ALL LANG
	for_settings 'eu ifs'
}

# bats test_tags=core
@test "the library works in a function, with set -af" {
	for_settings 'eu noclobber traps ifs' $'1a set -af; body() {\n$a }; body'
}
@test "the library works with failglob in bash" {
	for_settings 'eu' $'1a GLOBIGNORE="*"; [ -z "${BASH_VERSION-}" ] || shopt -s failglob'
}

# bats test_tags=core
@test "the script's options, IFS, traps and descriptors are kept" {
	job_notes $'parameters\nexit' <<-'E'
		state() {
			{
				printf '%s\n' "$-" "$IFS" "${LC_ALL-unset}" "${OPTIND-}" "$PWD"
				set -o
				trap
				for fd in 3 4 5 6 7 8 9; do # a shell itself uses those above 9
					[ ! -e "/proc/$$/fd/$fd" ] || echo "$fd"
				done
			} >|"$T/$1"
		}
		trap 'note exit' EXIT
		trap 'note int' INT
		set -- one 'two three' ''
		state before
		. "$ADLOCK_SH"
		state after
		diff "$T/before" "$T/after"
		adlock_get a b
		adlock_get c d 0 || :
		state during
		diff "$T/before" "$T/during"
		adlock_release
		adlock_get a b 2>/dev/null || : # its own job has it
		adlock_with e f -- true
		adlock_age e f >/dev/null
		adlock_release
		adlock_release
		state end
		diff "$T/before" "$T/end"
		[ "$#-$1-$2-$3" = '3-one-two three-' ] && note parameters
	E
}

# names_in_use prints a script's last part, which prints all names that are set by then, except
# those that shells set by themselves.
names_in_use() {
	cat <<-'E'
		set | sed -n 's/^\([A-Za-z_][A-Za-z_0-9]*\)=.*/\1/p; s/^[A-Za-z_][A-Za-z_0-9]*$/&/p' |
			grep -vE '^(_|LINENO|.*RANDOM|SECONDS|EPOCH.*|BASH_.*|PIPESTATUS|PPID|FUNCNAME)$' | sort
	E
}

# bats test_tags=core
@test "the library defines only names with its prefixes" {
	{
		cat <<-'E'
			adlock_pass
			adlock_get a b 0 90
			adlock_with c d -- true
			adlock_release
		E
		names_in_use
	} | script job
	names_in_use | script bare
	launch job >"$T/with"
	ADLOCK_SH=/dev/null launch bare >"$T/without"
	run comm -23 "$T/with" "$T/without"
	assert_success
	expect 1 '' grep -vE '^(_?adlock_.*|ADLOCK_(VERDICT|MARK))$' <<<"$output"
}

@test "the library exports neither its own names nor the verdict" {
	script job <<-'E'
		adlock_pass
		adlock_get a b
		env >|"$T/env"
		adlock_release
	E
	ADLOCK_MINE=1 launch job
	expect 1 '' grep -i '^_adlock' "$T/env"
	refute grep ADLOCK_VERDICT "$T/env"
}

# bats test_tags=core
@test "sourcing again while a lock is held does nothing" {
	job_notes $'0\nreleased' <<-'E'
		adlock_get a b
		. "$ADLOCK_SH"
		note "$?"
		adlock_release
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] || note released
	E
}

# bats test_tags=core
@test "the library reads nothing from standard input" {
	script job <<-'E'
		adlock_get a b
		read -r line
		note "$line"
		adlock_release
		read -r line
		note "$line"
	E
	printf 'one\ntwo\n' | launch job
	assert_notes <<<$'one\ntwo'
}

# bats test_tags=zsh
@test "zsh that does not emulate sh is refused" {
	printf '%s\n' '. "$ADLOCK_SH" || exit' >"$T/job"
	run zsh "$T/job" 3>&-
	assert_failure 69
	assert_output --partial 'must emulate sh'
}

# bats test_tags=zsh
@test "the library works in zsh under emulate sh -c" {
	printf '%s\n' "emulate sh -c '. \"\$ADLOCK_SH\"'" 'adlock_get a b && ls $ADLOCK_DIR && adlock_release' >"$T/job"
	run zsh "$T/job" 3>&-
	assert_success
	assert_line lock.job.dax.a.b
	refute held a b
}

# bats test_tags=core
@test "settings need not be exported, and may be readonly" {
	unset ADLOCK_DIR ADLOCK_HOST ADLOCK_PAUSE
	mkdir -m 700 "$T/record"
	script job <<-'E'
		ADLOCK_DIR=$T/locks ADLOCK_HOST=here ADLOCK_LOGDIR=$T/record ADLOCK_LOG_MAX=200
		readonly ADLOCK_DIR ADLOCK_HOST ADLOCK_LOGDIR ADLOCK_LOG_MAX
		adlock_get a b 0
		adlock_release
		note "$(export -p | grep -c 'ADLOCK_LOG')"
	E
	launch job
	assert [ -s "$T/record/program.here.runlog.1" ]
	refute [ -e "$T/locks/program.here.runlog" ]
	assert_notes <<<0
}

# bats test_tags=core
@test "the library prints help or an error if run, not sourced" {
	local word
	for word in -h --help; do
		run "${shell[@]}" "$ADLOCK_SH" "$word"
		assert_success
		assert_line --index 0 --partial 'adlock.sh: adaptive locks for scripts'
		assert_line --partial '. /usr/local/lib/adlock/adlock.sh || exit 69'
		assert_line --regexp '^adlock_get OPERATOR OPERAND'
		assert_line --regexp '^ADLOCK_WAIT '
		refute_line --regexp 'WORKAROUNDS|\(W[0-9]' # the help ends above the workarounds
	done
	local error="adlock: $ADLOCK_SH: is run, and does nothing: a script sources it (--help tells how)"
	for word in '' foo; do
		expect 64 "$error" "${shell[@]}" "$ADLOCK_SH" $word
	done
	script adlock.sh <<<'adlock_get a b; adlock_release'
	quietly adlock.sh
	script job <<<'note sourced'
	quietly job --help
	assert_notes <<<sourced
}
