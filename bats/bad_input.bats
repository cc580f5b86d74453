# Bad input: one clear line, the right status; no lock is taken, no job is ended, no lock is
# lost.
load common

# refused STATUS WORDS: the script failed with STATUS, and printed one line with WORDS.
refused() {
	assert_failure "$1"
	assert_output --partial "adlock: "
	assert_output --partial "$2"
	assert_equal "${#lines[@]}" 1
	refute held a b
}

getter() {
	script job <<-'E'
		adlock_get "$@"
		note taken
	E
}

@test "an empty operand or operator is refused" {
	getter
	run launch job a ''
	refused 64 'must not be empty'
	run launch job '' b
	refused 64 'must not be empty'
}

# bats test_tags=core
@test "too few or too many arguments are refused" {
	getter
	run launch job a
	refused 64 'arguments'
	run launch job a b 1 2 dax 4 5
	refused 64 'arguments'
}

@test "a bad duration is quoted" {
	getter
	run launch job a b soon
	refused 64 '"soon"'
	run launch job a b 1 -5
	refused 64 '"-5"'
	ADLOCK_PAUSE=1,5 run launch job a b
	refused 64 '"1,5"'
	ADLOCK_WAIT=never run launch job a b
	refused 64 'want "forever" to wait without end'
	ADLOCK_WAIT_ELAPSED=1 run launch job a b
	refused 64 'wants --wait too'
	ADLOCK_WAIT=x run launch job a b
	refused 64 '"x"'
	ADLOCK_SLOTS=many run launch job a b
	refused 64 '"many"'
}

@test "a bare number is minutes as an argument, else refused" {
	getter
	launch job a c 15 90
	ADLOCK_IF_ELAPSED=15 ADLOCK_EXPIRE_AFTER=90 launch job a d
	for lock in "$ADLOCK_DIR"/lock.*.a.[cd]; do
		run cat "$lock"
		assert_line 'if_elapsed=15m'
		assert_line 'expire_after=1h30m'
	done
	ADLOCK_WAIT=60 run launch job a b
	refused 64 'ADLOCK_WAIT: 60: say 60s or 60m'
	ADLOCK_PAUSE=3 run launch job a b
	refused 64 'ADLOCK_PAUSE: 3: say 3s or 3m'
	ADLOCK_PAUSE=0 ADLOCK_WAIT=0 run launch job a b
	assert_success
}

@test "errors name variables and arguments, not options" {
	getter
	run launch job a b soon
	refused 64 'adlock: IfElapsed: bad duration "soon"'
	run launch job a b 1 later
	refused 64 'adlock: ExpireAfter: bad duration "later"'
	ADLOCK_EXPIRE_AFTER=later run launch job a b
	refused 64 'adlock: ADLOCK_EXPIRE_AFTER: bad duration "later"'
	ADLOCK_WAIT=x run launch job a b
	refused 64 'adlock: ADLOCK_WAIT: '
	ADLOCK_SLOTS=many run launch job a b
	refused 64 'adlock: ADLOCK_SLOTS: '
	ADLOCK_WAIT_ELAPSED=1 run launch job a b
	refused 64 'adlock: ADLOCK_WAIT_ELAPSED: wants --wait too (ADLOCK_WAIT)'
	script job <<<'adlock_guard soon'
	run launch job
	refused 64 'adlock: IfElapsed: bad duration "soon"'
}

# bats test_tags=core
@test "a missing helper is 69, never an unlocked run" {
	getter
	ADLOCK_BIN=$T/none run launch job a b
	refused 69 'helper not found'
	ADLOCK_BIN='' run launch job a b
	refused 69 'helper not found'
	ADLOCK_BIN=$T run launch job a b
	refused 69 'helper not found'
	assert_notes </dev/null
}

# helper VERSION installs a helper that prints VERSION and accepts no option.
helper() {
	printf '#!/bin/sh\ncase $1 in --version) echo adlock version "%s" ;; *) echo "adlock: --owner: unknown option" >&2; exit 64 ;; esac\n' "$1" >"$T/other"
	chmod +x "$T/other"
}

@test "a helper of another version is named in the error" {
	getter
	helper '0.1.9 (abc)'
	ADLOCK_BIN=$T/other run launch job a b
	assert_failure 64
	assert_line 'adlock: --owner: unknown option'
	assert_line --regexp "^adlock: $T/other: is not of the version of adlock.sh, [0-9.]+, but says 'adlock version 0.1.9 \(abc\)': install both together\$"
	assert_notes </dev/null
}

@test "an error does not name a helper of the same version" {
	getter
	version=$("$ADLOCK_BIN" --version)
	for version in "${version#adlock version }" "$(sed -n 's/^_adlock_version=//p' "$ADLOCK_SH")"; do
		helper "$version"
		ADLOCK_BIN=$T/other run launch job a b
		refused 64 '--owner: unknown option'
	done
}

# bats test_tags=core
@test "a status of 0 without a lock is not believed" {
	getter
	printf '#!/bin/sh\nexit 0\n' >"$T/liar"
	chmod +x "$T/liar"
	ADLOCK_BIN=$T/liar run launch job a b
	refused 75 'lost'
}

@test "a lock directory that cannot be created is an error" {
	getter
	ADLOCK_DIR=/dev/null/locks run launch job a b
	refused 73 '/dev/null/locks'
}

@test "a shared or linked lock directory is refused" {
	getter
	mkdir "$ADLOCK_DIR"
	chmod 777 "$ADLOCK_DIR"
	run launch job a b
	refused 77 "$ADLOCK_DIR"
	chmod 700 "$ADLOCK_DIR"
	ln -s "$ADLOCK_DIR" "$T/link"
	ADLOCK_DIR=$T/link run launch job a b
	refused 77 "$T/link"
}

@test "a missing relative lock directory is refused" {
	getter
	cd "$T"
	ADLOCK_DIR=mine run launch job a b
	refused 73 'mine: no such directory, and a relative one is not made'
	ADLOCK_STORE=mine run launch job a b
	refused 73 'mine: no such directory, and a relative one is not made'
	refute [ -e mine ]
	mkdir -m 700 mine
	ADLOCK_DIR=mine launch job a b
	assert [ -e mine/lock.job.dax.a.b ]
}

@test "a store with too few slashes is refused" {
	getter
	for store in etcd:/a ftp:a/b ftps:/h/a; do
		ADLOCK_STORE=$store run launch job a b
		refused 64 "$store: is no store: want a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR"
	done
}

@test "a newline in the lock directory's name is refused" {
	getter
	ADLOCK_DIR=$T/$'new\nline' run launch job a b
	refused 64 newline
}

@test "a truncated lock file is left as it is" {
	getter
	launch job x y
	printf '12' >"$(lock_of a b)"
	run launch job a b 0
	assert_failure
	assert_equal "$(cat "$(lock_of a b)")" 12
}

@test "without HOME and ADLOCK_DIR a get fails" {
	unprivileged
	getter
	unset ADLOCK_DIR HOME
	run launch job a b
	assert_failure 69
	assert_output --regexp "^adlock: ADLOCK_DIR: is not set, and HOME is no absolute path \(as root: adlock init [0-9]+\)\$"
	export HOME=here
	run launch job a b
	assert_failure 69
	assert_output --regexp "^adlock: ADLOCK_DIR: is not set, and HOME is no absolute path \(as root: adlock init [0-9]+\)\$"
}

@test "a pass takes no arguments" {
	script job <<<'adlock_pass now'
	run launch job
	assert_failure 64
	assert_output 'adlock: adlock_pass: wants no arguments'
}

@test "a bad time for a pass is refused" {
	getter
	run launch job a b 1 90 dax yesterday
	refused 64 '"yesterday"'
}
