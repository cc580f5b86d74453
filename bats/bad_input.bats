# Bad input: one clear line, the right status; no lock is taken, no job is ended, no lock is
# lost.
load common

# getter [FUNCTION] writes a script that passes its arguments to adlock_get.
getter() {
	script job <<-E
		${1-adlock_get} "\$@"
		note taken
	E
}

# refused STATUS WORDS ARG...: the script fails with STATUS, and prints one line with WORDS.
refused() {
	[ -e "$T/job" ] || getter
	run launch job "${@:3}"
	assert_failure "$1"
	assert_output --partial "adlock: "
	assert_output --partial "$2"
	assert_equal "${#lines[@]}" 1
	refute held a b
	assert_notes </dev/null
}

# bats test_tags=core
@test "empty, missing and superfluous arguments are refused" {
	refused 64 'must not be empty' a ''
	refused 64 'must not be empty' '' b
	refused 64 'arguments' a
	refused 64 'arguments' a b 1 2 dax 4 5
}

@test "a bare number is minutes as a limit, an error as a wait" {
	getter
	launch job a c 15 90
	ADLOCK_IF_ELAPSED=15 ADLOCK_EXPIRE_AFTER=90 launch job a d
	for lock in "$ADLOCK_DIR"/lock.*.a.[cd]; do
		run cat "$lock"
		assert_line 'if_elapsed=15m'
		assert_line 'expire_after=1h30m'
	done
	ADLOCK_PAUSE=0 ADLOCK_WAIT=0 quietly job a e
	: >"$T/notes"
	ADLOCK_WAIT=60 refused 64 'ADLOCK_WAIT: 60: say 60s or 60m' a b
	ADLOCK_PAUSE=3 refused 64 'ADLOCK_PAUSE: 3: say 3s or 3m' a b
}

@test "errors name the variable or argument that is wrong" {
	refused 64 'adlock: IfElapsed: bad duration "soon"' a b soon
	refused 64 'adlock: ExpireAfter: bad duration "-5"' a b 1 -5
	refused 64 '"yesterday"' a b 1 90 dax yesterday
	ADLOCK_EXPIRE_AFTER=later refused 64 'adlock: ADLOCK_EXPIRE_AFTER: bad duration "later"' a b
	ADLOCK_PAUSE=1,5 refused 64 '"1,5"' a b
	ADLOCK_WAIT=x refused 64 'adlock: ADLOCK_WAIT: ' a b
	ADLOCK_SLOTS=many refused 64 'adlock: ADLOCK_SLOTS: ' a b
	ADLOCK_WAIT_ELAPSED=1 refused 64 'adlock: ADLOCK_WAIT_ELAPSED: wants --wait too (ADLOCK_WAIT)' a b
	getter adlock_guard
	refused 64 'adlock: IfElapsed: bad duration "soon"' soon
	getter adlock_pass
	refused 64 'adlock: adlock_pass: wants no arguments' now
}

# bats test_tags=core
@test "a missing helper means status 69, never an unlocked run" {
	ADLOCK_BIN=$T/none refused 69 'helper not found' a b
	ADLOCK_BIN='' refused 69 'helper not found' a b
	ADLOCK_BIN=$T refused 69 'helper not found' a b
}

# helper VERSION installs a helper that prints VERSION and accepts no option.
helper() {
	in_between <<-E
		[ "\$1" = --version ] || { echo 'adlock: --owner: unknown option' >&2; exit 64; }
		echo 'adlock version $1'
		exit
	E
}

@test "a helper of another version is named in the error" {
	getter
	helper '0.1.9 (abc)'
	run launch job a b
	assert_failure 64
	assert_line 'adlock: --owner: unknown option'
	assert_line --regexp "^adlock: $T/helper: is not of the version of adlock.sh, [0-9.]+, but says 'adlock version 0.1.9 \(abc\)': install both together\$"
	assert_notes </dev/null
}

@test "an error does not name a helper of the same version" {
	version=$("$ADLOCK_BIN" --version)
	for version in "${version#adlock version }" "$(sed -n 's/^_adlock_version=//p' "$ADLOCK_SH")"; do
		helper "$version"
		refused 64 '--owner: unknown option' a b
	done
}

# bats test_tags=core
@test "a get fails if the helper exits 0 but made no lock" {
	in_between <<<'exit 0'
	refused 75 'lost' a b
}

@test "a relative lock directory must exist; a newline is refused" {
	cd "$T"
	ADLOCK_DIR=$T/$'new\nline' refused 64 newline a b
	ADLOCK_DIR=mine refused 73 'mine: no such directory, and a relative one is not made' a b
	ADLOCK_STORE=mine refused 73 'mine: no such directory, and a relative one is not made' a b
	refute [ -e mine ]
	mkdir -m 700 mine
	ADLOCK_DIR=mine launch job a b
	assert [ -e mine/lock.job.dax.a.b ]
}

@test "a store with too few slashes is refused" {
	for store in etcd:/a ftp:a/b ftps:/h/a; do
		ADLOCK_STORE=$store refused 64 "$store: is no store: want a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR" a b
	done
}

@test "a get without ADLOCK_DIR fails if HOME is no absolute path" {
	unprivileged
	: >"$T/notes"
	unset ADLOCK_DIR
	for HOME in '' here; do
		refused 69 'adlock: ADLOCK_DIR: is not set, and HOME is no absolute path (' a b
	done
}
