# adlock_get takes a lock, adlock_release releases it.
load common

# bats test_tags=core
@test "the lock is there while the atom runs, and names the shell" {
	export ADLOCK_DIR="$T/an [odd] *dir"
	job_notes acquired <<-'E'
		adlock_get a b
		read -r pid <"$ADLOCK_DIR/lock.job.dax.a.b"
		[ "$pid" = "$$" ]
		note "$ADLOCK_VERDICT"
		adlock_release
		[ ! -e "$ADLOCK_DIR/lock.job.dax.a.b" ]
	E
}

# bats test_tags=core
@test "a release records the status before it, or 128 + a signal" {
	script job <<-'E'
		adlock_get a b
		sh -c "$1" || adlock_release
	E
	local how
	for how in 'exit 7=7' 'kill $$=143'; do
		launch job "${how%=*}"
		assert grep -q "event=release .*status=${how##*=}\b" "$ADLOCK_DIR"/program.*.runlog
	done
}

# bats test_tags=core
@test "an EXIT trap that finds its lock lost keeps the status" {
	script job <<-'E'
		trap 'adlock_release || :' EXIT
		adlock_get a b
		sed 's/^token=./token=x/' "$ADLOCK_DIR/lock.job.dax.a.b" >|"$T/other"
		mv "$T/other" "$ADLOCK_DIR/lock.job.dax.a.b"
		exit 3
	E
	run launch job
	assert_failure 3
}

# bats test_tags=core
@test "a relative lock directory is the same after cd, .. and links" {
	mkdir -p "$T/real/sub"
	mkdir -m 700 "$T/real/locks"
	ln -s real/sub "$T/link"
	cd "$T/link"
	script job <<-'E'
		ADLOCK_DIR=$1
		adlock_get a b
		case $ADLOCK_MARK in *//*) note "$ADLOCK_MARK" ;; esac
		"$ADLOCK_BIN" run --program job --operator a --operand b -- echo ran 2>/dev/null || note "$?"
		cd /
		adlock_release
	E
	for dir in ../locks/ "$T/link/../locks//" "$T/link/../new"; do quietly job "$dir"; done
	assert_notes <<<$'75\n75\n75'
	refute compgen -G "$T/*/lock.*"
	refute [ -e "$T/locks" -o -e "$T/new" ]
}

@test "a lock that a mount hides is released once it is shown" {
	[ "$(id -u)" = 0 ] && unshare --mount true || skip "needs root and a mount namespace"
	script job <<-'E'
		adlock_get a b || exit
		mount -t tmpfs -o "mode=$1" none "$ADLOCK_DIR"
		adlock_release && note 0 || note "$?"
		adlock_release && note 0 || note "$?"
		umount "$ADLOCK_DIR"
		adlock_release
	E
	local mode want
	shell=(unshare --mount "${shell[@]}")
	for mode in 1777 700; do
		want=77
		[ "$mode" = 1777 ] || want=75
		: >"$T/notes"
		launch job "$mode" 2>/dev/null
		run cat "$T/notes"
		assert_output "$want"$'\n'"$want"
		refute [ -e "$ADLOCK_DIR/lock.job.dax.a.b" ]
	done
}

# The shell, and the helper in its dry run, find the same directory.
@test "library and helper find the directory that root has made" {
	unprivileged
	[ "$(id -u)" = 0 ] && unshare --mount true || skip "needs root and a mount namespace"
	unset ADLOCK_DIR
	export HOME=$T/home
	script job <<-'E'
		said=$("$ADLOCK_BIN" run --name x --dry-run true) || exit
		said=${said##*lock: }
		adlock_get a b || exit
		adlock_release
		[ -e "${said%/*}/last.job.dax.a.b" ] || exit 9
		[ "${said%/*}" = "$1" ] || exit 8
	E
	local own=/var/lib/adlock-65534 make
	local as_user=("${shell[@]}")
	for make in "mkdir $own; chown 65534 $own" "mkdir $own" "mkdir /var/lib/x; chown 65534 /var/lib/x; ln -s x $own; chown -h 65534 $own" :; do
		shell=(unshare --mount sh -c "mount -t tmpfs -o mode=755 none /var/lib; $make; exec \"\$@\"" sh "${as_user[@]}")
		case $make in
		"mkdir $own; "*) launch job "$own" ;;
		*) launch job "$HOME/.local/state/adlock" ;;
		esac
	done
}
