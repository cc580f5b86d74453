#!/usr/bin/env bats
# Locks in a store beyond this machine, kept by a locksmith: on a real etcd.

load common

setup_file() {
	command -v etcd >/dev/null && command -v etcdctl >/dev/null || return 0
	local try
	for try in 1 2 3 4 5; do
		export ETCD_PORT=$((20000 + RANDOM % 10000))
		! serve "$BATS_FILE_TMPDIR/etcd.$try" || return 0
	done
	return 1
}

# serve DIR starts an etcd at $ETCD_PORT and waits until it answers. It fails if another process,
# such as another test's etcd, has the port.
serve() {
	local peer=http://127.0.0.1:$((ETCD_PORT + 1)) end=$((SECONDS + 90)) pid name
	name=of-${1##*/}-of-$$
	etcd --data-dir "$1" --log-level error --name "$name" \
		--listen-client-urls "http://127.0.0.1:$ETCD_PORT" --advertise-client-urls "http://127.0.0.1:$ETCD_PORT" \
		--listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "$name=$peer" \
		>"$1.out" 2>&1 3>&- &
	pid=$!
	echo "$pid" >"$BATS_FILE_TMPDIR/etcd.pid"
	until etcdctl --endpoints "127.0.0.1:$ETCD_PORT" member list 2>/dev/null | grep -qF ", $name," &&
		etcdctl --endpoints "127.0.0.1:$ETCD_PORT" endpoint health >/dev/null 2>&1; do
		kill -0 "$pid" 2>/dev/null && ((SECONDS < end)) || return 1
		sleep 0.1
	done
}

teardown_file() {
	[ ! -e "$BATS_FILE_TMPDIR/etcd.pid" ] || kill -KILL "$(cat "$BATS_FILE_TMPDIR/etcd.pid")" || true
}

beyond() {
	[ -n "${ETCD_PORT-}" ] || skip 'etcd is not installed'
	[ -x "${ADLOCK_BIN%/*}/adlock-locksmith" ] || skip 'adlock-locksmith is not built'
	export ADLOCK_STORE=etcd://127.0.0.1:$ETCD_PORT/$BATS_TEST_NUMBER-${shell[0]}
	export ADLOCK_LEASE=1m
}

# quiet: no locksmith of this test is alive.
quiet() { [ -z "$(leftovers adlock-locksmith)" ]; }

@test "a script takes a lock in the store, and releases it" {
	beyond
	job_notes $'acquired fenced\nagain: 75 busy\nreleased 0\nthen: 75 too-soon' <<-'END'
		adlock_get copy nightly 0
		note "$ADLOCK_VERDICT ${ADLOCK_FENCE:+fenced}"
		adlock_get copy nightly 0 || note "again: $? $ADLOCK_VERDICT"
		adlock_release
		note "released $?"
		adlock_get copy nightly 60 || note "then: $? $ADLOCK_VERDICT"
	END
	eventually quiet
	assert [ -z "$(find "$ADLOCK_DIR" -name 'smith.*')" ]
}

# apart: no locksmith of this test has a parent in the test, and the standard descriptors of each
# are /dev/null. A locksmith that was just forked is not apart yet.
apart() {
	local smith parent file
	for smith in $(leftovers adlock-locksmith); do
		parent=$(awk '/^PPid/ { print $2 }' "/proc/$smith/status") || return
		! leftovers . | grep -qx "$parent" || return
		for file in "/proc/$smith/fd/"[012]; do
			[ "$(readlink "$file")" = /dev/null ] || return
		done
	done
}

@test "the locksmith is no child, and inherits no descriptor" {
	beyond
	script job <<-'END'
		adlock_get copy nightly 0
		wait
		note held
		: >"$T/held"
		await "$T/go"
		adlock_release
	END
	(launch job | cat >"$T/piped") &
	local piped=$!
	eventually test -e "$T/held"
	eventually apart
	: >"$T/go"
	wait "$piped"
	eventually quiet
}

@test "a release whose locksmith is dead ends as lost" {
	beyond
	script job <<-'END'
		adlock_get copy nightly 0
		: >"$T/held"
		await "$T/go"
		adlock_release || note "$? $ADLOCK_VERDICT"
	END
	start_to held job
	# shellcheck disable=SC2046 # several
	kill -KILL $(leftovers adlock-locksmith) # its watchdog too
	: >"$T/go"
	eventually noted '75 lost'
	run cat "$T/job.out"
	assert_output --partial 'lost: its holder is gone'
}

@test "ADLOCK_STORE may be a lock directory" {
	export ADLOCK_STORE=$T/other
	script job <<-'END'
		adlock_get copy nightly 0
		[ -e "$T/other/lock.job.dax.copy.nightly" ]
		adlock_release
		note finished
	END
	launch job
	noted finished
}
