# A trap that calls the library in the middle of another call.
load common

# at_every_command makes a library in which a signal can come before every command: `instant`
# counts its calls in the functions, and sends USR1 to the shell at the wanted one. There is no
# call before a command that reads $?: instant would change $?, which a trap does not.
at_every_command() {
	export EACH=3
	[ -z "${ADLOCK_SOAK-}" ] || EACH=1
	awk '
		/^_adlock_call\(\) \{/ { inside = 1 }
		inside && !continued && /^\t+(set|shift|if|while|until|for|case|\[|[{]|_adlock_[a-z_]+[ =]|ADLOCK_[A-Z]+=|LC_ALL=)/ && !/\$\?/ { print "instant" }
		{ print; continued = /(\\|\|\||&&)$/ }
	' "$ADLOCK_SH" >"$T/adlock.sh"
	ADLOCK_SH=$T/adlock.sh
	cat >>"$T/prelude.sh" <<-'E'
		instants=0 wanted=0 trapped=0
		instant() {
			instants=$((instants + 1))
			[ "$instants" -ne "$wanted" ] || kill -USR1 "$$"
		}
	E
	cat "$prelude" >>"$T/prelude.sh"
	prelude=$T/prelude.sh
}

# each_instant runs `calls` with a signal at every third instant in it (which third depends on the
# shell), in a soak at every instant.
each_instant() {
	cat <<-'E'
		free() {
			for each in "$ADLOCK_DIR"/lock.*; do
				[ ! -e "$each" ] || note "$1: ${each##*/} is there"
			done
		}
		calls # the first time it fills caches, and has more instants
		instants=0
		calls
		last=$instants
		wanted=$((${#ADLOCK_TEST_SHELL} % EACH))
		while [ "$((wanted + EACH))" -le "$last" ]; do
			wanted=$((wanted + EACH)) instants=0 trapped=0
			calls
			wanted_was=$wanted wanted=0
			adlock_release || note "instant $wanted_was: the last release: $?"
			wanted=$wanted_was
			free "instant $wanted"
			[ "$trapped" = 1 ] || note "instant $wanted: $trapped traps"
		done
		[ "$last" -gt 50 ] || note "only $last instants"
	E
}

# bats test_tags=core:mksh,core:yash
@test "a trap at any command may get and release its own lock" {
	at_every_command
	{
		cat <<-'E'
			told() { [ "$1" = "$2" ] || note "instant $wanted: $3: $1, not $2"; }
			is() {
				if [ -e "$ADLOCK_DIR/lock.job.dax.$1" ]; then told yes "$2" "lock $1"; else told no "$2" "lock $1"; fi
			}
			on_signal() {
				trapped=$((trapped + 1)) status_in_trap=0
				adlock_get t || status_in_trap=$?
				told "$status_in_trap" 64 'trap: usage'
				adlock_get t one 0 90 dax || note "trap: $? $ADLOCK_VERDICT"
				is t.one yes
				adlock_release || note "trap: release: $?"
				is t.one no
				adlock_get t one 1 || status_in_trap=$?
				told "$status_in_trap $ADLOCK_VERDICT" '75 too-soon' 'trap: get again'
			}
			trap on_signal USR1
			within() {
				is m.one yes
				is m.two yes
				return 7
			}
			calls() {
				adlock_get m one 0 1h || note "instant $wanted: get: $? $ADLOCK_VERDICT"
				told "$ADLOCK_VERDICT" acquired verdict
				is m.one yes
				status=0
				adlock_with m two 0 -- within || status=$?
				told "$status" 7 with
				is m.two no
				adlock_release || note "instant $wanted: release: $?"
				is m.one no
			}
		E
		each_instant
	} | script job
	run launch job
	if crashed "$status"; then return; fi
	assert_success
	assert_notes </dev/null
	refute_output --partial lost
}

@test "a trap at any command may release what is held" {
	at_every_command
	{
		cat <<-'E'
			on_signal() {
				trapped=$((trapped + 1))
				adlock_release || note "trap: release: $?"
			}
			trap on_signal USR1
			calls() {
				adlock_get m one 0 || note "instant $wanted: get one: $? $ADLOCK_VERDICT"
				adlock_get m two 0 || note "instant $wanted: get two: $? $ADLOCK_VERDICT"
				adlock_release || note "instant $wanted: release: $?"
				adlock_release || note "instant $wanted: release: $?"
			}
		E
		each_instant
	} | script job
	run launch job
	if crashed "$status"; then return; fi
	assert_success
	assert_notes </dev/null
}

# bats test_tags=core:busybox
@test "every get and release succeeds under frequent signals" {
	[ "${shell[0]}" != zsh ] || skip 'zsh 5.9 now and then ends by itself in such a storm'
	script job <<-'E'
		traps=0 round=0 within=no nested=$1
		on_signal() {
			[ "$within" = no ] || return 0 # a nested trap would find its own locks held
			[ "$nested" = yes ] || trap '' USR1
			within=yes traps=$((traps + 1))
			adlock_with t one 0 -- : || note "trap: with: $?"
			adlock_get t two 0 || note "trap: get: $?"
			[ -e "$ADLOCK_DIR/lock.job.dax.t.two" ] || note 'trap: 0, and no lock'
			adlock_release || note "trap: release: $?"
			within=no
			[ "$nested" = yes ] || trap on_signal USR1
		}
		trap on_signal USR1
		: >|"$T/starts"
		until [ "$round" -ge 40 ] && [ "$traps" -ge 40 ]; do
			round=$((round + 1))
			adlock_get m one 0 || note "round $round: get: $? $ADLOCK_VERDICT"
			[ -e "$ADLOCK_DIR/lock.job.dax.m.one" ] || note "round $round: 0, and no lock"
			adlock_release || note "round $round: release: $?"
			[ ! -e "$ADLOCK_DIR/lock.job.dax.m.one" ] || note "round $round: 0, and still there"
		done
		trap '' USR1
		: >|"$T/ends"
	E
	local nested=yes
	case ${shell[*]} in dash | 'busybox ash') nested=no ;; esac # W15 in adlock.sh
	start_to starts job "$nested"
	local job=$! end=$((SECONDS + 90))
	while [ ! -e "$T/ends" ] && [ -e "/proc/$job" ] && ((SECONDS < end)); do # then the pid may be reused
		kill -USR1 "$job" 2>/dev/null || true
		sleep "0.0$((RANDOM % 3 + 1))"
	done
	local status=0
	wait "$job" || status=$?
	crashed "$status" || assert [ -e "$T/ends" ]
	assert_notes </dev/null
}

# bats test_tags=core:mksh
@test "an EXIT trap that releases keeps another trap's status" {
	script job <<-'E'
		set -eu
		leave() {
			trap - EXIT
			[ "$1" -le 255 ] || set -- "$((128 + ($1 & 127)))"
			adlock_release "$1" || :
			exit "$1"
		}
		trap 'leave "$?"' EXIT
		trap 'leave 143' TERM
		adlock_get a b 0
		: >|"$T/holds.$1"
		[ "$1" != 0 ] || sh -c 'kill -TERM "$$"'
		while :; do :; done
	E
	local round
	run launch job 0
	assert_failure 143
	for round in 1 2 3 4 5 6 7 8; do
		start_to "holds.$round" job "$round"
		kill -TERM "$!"
		local status=0
		wait "$!" || status=$?
		assert_equal "$status" 143
	done
	refute held a b
	expect 0 9 grep -hc 'event=release.* status=143' "$ADLOCK_DIR"/program.*.runlog
	expect 1 '' grep -s . "$T"/job.out
}

@test "adlock_release refuses a status that is no number" {
	script job <<-'E'
		adlock_get a b
		adlock_release nothing || note "$?"
		adlock_release 1 2 || note "$?"
		adlock_release 99999999999999999999 || note "$?"
		[ -e "$ADLOCK_DIR/lock.job.dax.a.b" ] && note held
		adlock_release 3
	E
	expect 0 $'adlock: adlock_release: bad status \'nothing\': a number is wanted\nadlock: adlock_release: bad status \'1 2\': a number is wanted\nadlock: adlock_release: bad status \'99999999999999999999\': a number is wanted' launch job
	assert_notes <<<$'64\n64\n64\nheld'
	refute held a b
}

# bats test_tags=yash
@test "a signal in the middle of a return changes no answer" {
	# For each return that the script reaches, an expansion in that return sends the signal. (W20)
	script job <<-'E'
		ADLOCK_AGENT=$1
		trap : USR1
		adlock_agent
		adlock_get a 1 0 60 && note "$ADLOCK_VERDICT" || note "$?"
		adlock_get a 1 0 || note "$? $ADLOCK_VERDICT"
		adlock_get b 1 0 || note "inner: $?"
		adlock_release || note "inner release: $?"
		adlock_with a 1 0 -- note run || note "with: $? $ADLOCK_VERDICT"
		adlock_with b 1 0 -- sh -c 'exit 143' || note "with: $?"
		adlock_release || note "release: $?"
		adlock_get a 1 1h || note "$? $ADLOCK_VERDICT"
		adlock_release || note "nothing held: $?"
		trap '' USR1
		ls "$ADLOCK_DIR" | grep '^lock' >>"$T/notes" || note end
	E
	local library=$ADLOCK_SH agent site
	local word='("[^"]*"|[0-9]+)'
	export ADLOCK_SH=$T/adlock.sh
	for agent in 0 1; do
		grep -nE "^[^#]*return $word" "$library" | cut -d: -f1 |
			sed 's/.*/&s\/return \\("[^"]*"\\|[0-9]*\\)\/return \\1"$(echo & >>"$T\\\/sites")"\//' >"$T/marks"
		sed -f "$T/marks" "$library" >"$ADLOCK_SH"
		launch job "$agent"
		sort -nu "$T/sites" >"$T/each"
		[ "$(wc -l <"$T/each")" -ge 10 ]
		while read -r site; do
			echo "agent: $agent, line $site"
			sed -E "$site s/return $word/return \\1\"\$(kill -USR1 \$\$)\"/" "$library" >"$ADLOCK_SH"
			rm -rf "$ADLOCK_DIR" "$T/notes"
			launch job "$agent" </dev/null
			assert_notes <<<$'acquired\n75 busy\nwith: 75 busy\nwith: 143\n75 too-soon\nend'
		done <"$T/each"
		rm "$T/sites"
	done
}
