# shellcheck shell=sh disable=SC2030,SC2031,SC2034,SC2086,SC2154
# The contenders of the storm, under every shell:
#
#   storm.sh job ID ATOM MODE BODY CODE      the command of an `adlock run`
#   storm.sh leave ID ATOM COMMAND...        the same, which leaves the group of its supervisor
#   storm.sh script ROOT SEED COUNT ATOMS MODE SLOTS BODIES   a script that uses the library
#   storm.sh guard ID                        a script that guards itself
#
# Events are noted in lines, each of one write to the pipe $STORM/events, so that their order is
# an order in real time.

# note KIND [WORDS] notes an event of the attempt $id. A trapped signal may interrupt the
# opening of a pipe that many processes open at once (EINTR); then nothing was written. An echo
# of zsh 5.9 is torn in two by one in a trap that interrupts it: zsh has a write of its own.
note() {
	until read -r up _ </proc/uptime; do :; done
	until say "$1 $id $up ${2-}" >"$STORM/events"; do :; done
}
case ${ZSH_VERSION-} in
'') say() { echo "$1"; } ;;
*)
	zmodload zsh/system
	say() {
		syswrite "$1
"
	}
	;;
esac

# draw N puts a number from 0 to N-1 into $drawn, without a fork.
draw() {
	seed=$(((seed * 75 + 74) % 65537))
	drawn=$((seed % $1))
}

# whoami puts the pid of this very shell, subshells included, into $me.
whoami() { read -r me _ </proc/self/stat; }

# hold BODY CODE is the job. Each process of it has descriptor 9 open, a named pipe of the atom's.
# Data in a pipe stays as long as a process has it open: each newcomer writes two lines and
# reads one; if no process held the pipe, it reads its own. So this lock costs no fork, and is
# held until the last process of the job is gone. Processes that the promise does not cover
# close descriptor 9 (see doc.go). ksh93 passes the descriptor on only if a command names it.
hold() {
	{
		say "$mode $id
$mode $id" >&9
		until read -r first <&9; do :; done # a trapped signal ends a read
		case $mode in
		x) [ "$first" = "x $id" ] || note clash "$first" ;;
		s) # two readers at once, byte by byte, tear each other's lines
			case $first in *"x "*) note clash "$first" ;; esac
			;;
		esac
		whoami
		note in "$me"
		body "$1"
		note out "$2"
	} 9<>"$STORM/alive.$atom"
}

# body LETTERS does the work. The first three fork nothing: a child between fork and exec would
# hold the pipe after its parent's death.
body() {
	case $1 in
	q) ;; # quick
	p)    # spins
		spins=150
		while [ "$spins" -gt 0 ]; do spins=$((spins - 1)); done
		;;
	h) exec sleep 60 9>&9 ;; # hangs
	i)                       # hangs, and ignores what can be ignored
		trap '' INT TERM
		exec sleep 60 9>&9
		;;
	f) sleep 0.01 9>&9 ;; # a child
	b)                    # a child in the background; without exec, yash has a subshell between
		exec sleep 0.02 9>&9 &
		wait "$!"
		;;
	g) sh -c 'sleep 0.01 9>&9; :' 9>&9 ;;                        # a grandchild
	t) timeout 5 sleep 0.01 9>&9 ;;                              # a child that leads a group
	s) setsid sleep 0.02 9>&9 ;;                                 # a child that leads a session
	z) (sleep 0.01 9>&9 && :) 9>&9 ;;                            # a subshell with a child
	o) (sleep 0.02 9>&9 &) 9>&9 ;;                               # an orphan
	d) setsid sh -c 'sleep 0.03 9>&9 &' 9>&9 ;;                  # a daemon
	j) (trap '' INT TERM && exec sleep 60 9>&9) ;;               # a child that hangs and ignores signals
	n) inside "$id.n" --expire-after=0 ;;                        # a newcomer
	N) sh "$STORM_SCRIPT" orphan "$id.N" "$atom" "$mode" 9>&- ;; # an orphaned newcomer
	x) within ;;                                                 # another atom, by the library
	w) nested ;;                                                 # another atom
	*) note unknown "$1" ;;
	esac
}

# inside ID OPTION... is a newcomer started inside the job. It leads a group of its own, so that
# its parent's group holds none of its locks.
inside() {
	(
		id=$1
		shift
		case "$*" in *wait*) wait=1000 ;; *) wait=0 ;; esac
		note call "atom=$atom mode=$mode elapsed=0 limit=0 wait=$wait"
		status=0
		"$ADLOCK_BIN" run --program=p --host=dax --operator=o --operand="$atom" --pause="$STORM_PAUSE" \
			$shared "$@" -- "$STORM_SHELL" "$STORM_SCRIPT" job "$id" "$atom" "$mode" q 0 9>&- || status=$?
		note end "$status"
	) 9>&-
}

# nested runs another atom inside this one. It takes that one alone, even if this one is shared.
nested() {
	(
		id=$id.w
		unset ADLOCK_SHARED
		note call "atom=w0 mode=x elapsed=0 limit=-1"
		status=0
		"$ADLOCK_BIN" run --program=p --host=dax --operator=o --operand=w0 --pause="$STORM_PAUSE" \
			-- "$STORM_SHELL" "$STORM_SCRIPT" job "$id" w0 x q 0 9>&- || status=$?
		note end "$status"
	) 9>&-
}

# within takes another atom inside this one by the library, alone as well.
within() {
	outer=$id outeratom=$atom outermode=$mode
	id=$id.x atom=w0 mode=x ADLOCK_SHARED=''
	note call "atom=w0 mode=x elapsed=0 limit=-1"
	status=0
	if adlock_get o w0 0 never; then
		note got "0 ${ADLOCK_VERDICT:-none}"
		hold q 0
		adlock_release || status=$?
		note rel "$status ${ADLOCK_VERDICT:-none}"
	else
		status=$?
		note got "$status ${ADLOCK_VERDICT:-none}"
	fi
	id=$outer atom=$outeratom mode=$outermode status=0
	case $mode in s) ADLOCK_SHARED=1 ;; esac
}

# named waits until the lock names this process as its supervisor's command: KILL of `adlock
# run` before that is a documented hole. A command that has waited in vain stays in the group.
named() {
	whoami
	patience=500
	while [ "$patience" -gt 0 ]; do
		{
			read -r owner
			while read -r line; do
				case $line in "command=$me "*) return 0 ;; esac
			done
		} 2>/dev/null <"$ADLOCK_DIR/lock.p.dax.o.$atom"
		[ -d "/proc/$owner" ] || return 1
		patience=$((patience - 1))
		sleep 0.01
	done
	note unnamed "$me"
	return 1
}

# seconds MILLISECONDS puts a duration into $seconds.
seconds() {
	case $1 in
	?000) seconds=${1%000}s ;;
	????) seconds=${1%???}.${1#?}s ;;
	???) seconds=0.$1s ;;
	??) seconds=0.0$1s ;;
	*) seconds=$1 ;; # 0
	esac
}

# mine: the lock of the atom names this very process.
mine() {
	owner='' start=''
	{
		read -r owner
		while read -r line; do
			case $line in start=*) start=${line#start=} ;; esac
		done
	} 2>/dev/null <"$ADLOCK_DIR/lock.$program.dax.o.$atom"
	whoami
	[ "$owner" = "$me" ] || return 1
	# Field 22 of its own stat; the name in it has no blank.
	read -r stat </proc/self/stat
	set -- $stat
	shift 21
	[ "$start" = "$1" ]
}

# overlap takes two atoms that share a slot, and releases the first one first.
overlap() {
	n=$((n + 1)) id=$root.$n
	draw "$atoms"
	atom=$family$drawn
	inner=$family$(((drawn + 1) % atoms))
	note call "atom=$atom mode=x elapsed=0 limit=-1 slots=$slots"
	status=0 taken=1
	adlock_with o "$atom" 0 never -- inner || status=$?
	note with "$status ${ADLOCK_VERDICT:-none}"
	[ "$taken" = 0 ] || return 0
	id=$id.k atom=$inner
	hold p 0
	status=0
	adlock_release || status=$?
	note rel "$status ${ADLOCK_VERDICT:-none}"
}

inner() {
	hold q 0
	outer=$id id=$id.k taken=0
	note call "atom=$inner mode=x elapsed=0 limit=-1 slots=$slots"
	adlock_get o "$inner" 0 never || taken=$?
	note got "$taken ${ADLOCK_VERDICT:-none}"
	id=$outer
}

# attempt takes one atom by the library, and releases it.
attempt() {
	n=$((n + 1)) id=$root.$n
	draw "$atoms"
	atom=$family$drawn
	draw 10
	case $drawn in
	0)
		draw 6
		elapsed=$((drawn * 60 + 40))
		;;
	*) elapsed=0 ;;
	esac
	draw 16
	case $drawn in
	0) limit=0 ;;
	1 | 2 | 3 | 4) limit=$((drawn * 250)) ;;
	*) limit=-1 ;;
	esac
	case $limit in -1) expire=never ;; *) seconds "$limit" && expire=$seconds ;; esac
	seconds "$elapsed"
	draw 250
	case $drawn in
	0) body=$hang ;;
	1) body=$stubborn ;;
	[2-9] | ?[02468] | ??[02468]) body=$bodies ;;
	*) body=q ;;
	esac
	note call "atom=$atom mode=$mode elapsed=$elapsed limit=$limit slots=$slots pass=${STORM_PASS:-0}"
	status=0
	draw 3
	if [ "$drawn" = 0 ]; then
		adlock_with o "$atom" "$seconds" "$expire" -- hold "$body" 0 || status=$?
		note with "$status ${ADLOCK_VERDICT:-none}"
		mine && note owns "$owner"
	elif adlock_get o "$atom" "$seconds" "$expire"; then
		note got "0 ${ADLOCK_VERDICT:-none}"
		hold "$body" 0
		adlock_release || status=$?
		note rel "$status ${ADLOCK_VERDICT:-none}"
		[ "$status" -eq 0 ] && mine && note owns "$owner"
	else
		status=$?
		note got "$status ${ADLOCK_VERDICT:-none}"
		mine && note owns "$owner"
	fi
	return 0
}

case $1 in
job)
	id=$2 atom=$3 mode=$4
	case $mode in s) shared=--shared ;; *) shared='' ;; esac
	hold "$5" "$6"
	exit "$6"
	;;
orphan) # a process of its own: no other has a copy of descriptor 9
	atom=$3 mode=$4 shared=''
	case $mode in s) shared=--shared ;; esac
	inside "$2" --expire-after=0 --wait=1s &
	;;
pair) # two atoms, one supervisor in the other
	id=$2 atom=$3 mode=x
	{
		say "$mode $id
$mode $id" >&8
		until read -r first <&8; do :; done
		[ "$first" = "$mode $id" ] || note clash "$first"
		note in 0
		outer=$id outeratom=$atom
		id=$id.w atom=$4
		hold q 0
		id=$outer atom=$outeratom
		note out 0
	} 8<>"$STORM/alive.$atom"
	;;
leave)
	id=$2 atom=$3
	shift 3
	if named; then exec "$@"; else exit 0; fi
	;;
script)
	root=$2 seed=$3 count=$4 family=${5%?} atoms=${5#?} mode=$6 slots=$7 bodies=$8
	case $mode in s) shared=--shared ;; *) shared='' ;; esac
	program=$ADLOCK_PROGRAM n=0
	# shellcheck source=sh/adlock.sh
	. "$ADLOCK_SH"
	case ${STORM_PASS-} in 1) adlock_pass ;; esac
	hang=h stubborn=i
	case $bodies in
	u) # never an exec, which would remove the trap
		# The interrupted call must not report the verdict of the trap's own call.
		trap 'said=${ADLOCK_VERDICT-}; adlock_with o t0 0 never -- : || :; ADLOCK_VERDICT=$said' USR1
		hang=f stubborn=f bodies=f
		;;
	esac
	while [ "$n" -lt "$count" ] && [ ! -e "$STORM/stop" ]; do
		case $bodies in k) overlap ;; *) attempt ;; esac
	done
	;;
esac
