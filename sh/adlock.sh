# shellcheck shell=sh
# adlock.sh: adaptive locks for scripts whose running time nobody can predict.
#
# (sh adlock.sh --help prints this.)
#
# HOW TO USE IT
#
#	. /usr/local/lib/adlock/adlock.sh || exit 69
#
#	if adlock_get editfile /etc/motd 15 90; then
#		...                # the atom: runs at most once at a time,
#		adlock_release     # not within 15 minutes of the last time, and
#	fi                         # is ended and replaced after 90 minutes
#
#	adlock_with copy nightly 15 90 -- rsync -a /src/ /dst/
#
#	adlock_guard               # the one line a legacy cron script needs
#
# THE FUNCTIONS
#
# adlock_get OPERATOR OPERAND [IFELAPSED [EXPIREAFTER [HOST [NOW]]]]
#	Takes the lock of an atom. 0: it is yours, do the work, release it.
#	75: denied; $ADLOCK_VERDICT says busy, too-soon, full or lost. Anything
#	else is trouble, told in one line on standard error, and nothing is
#	taken. An argument left out or empty is the setting below.
# adlock_release [STATUS]
#	Releases the lock this shell process took last; locks nest. STATUS, or the
#	status before it ($?), is noted in the runlog as the atom's. 0: released, or
#	nothing is held. 75: the lock was lost to a newcomer meanwhile; or one
#	stands at it, and where that one dies the lock can be released again. So
#	it can after any other failure, as long as the lock is there. 64: the
#	lock is another process's (a subshell cannot release its parent's).
#	In a trap: trap 's=$?; adlock_release "$s" || :; exit "$s"' EXIT keeps
#	the script's status whatever happens, also under set -e. So does
#	trap 'adlock_release || :' EXIT, save in mksh.
# adlock_with OPERATOR OPERAND [IFELAPSED [EXPIREAFTER [HOST [NOW]]]] -- COMMAND [ARG...]
#	adlock_get, COMMAND, adlock_release; COMMAND's status. COMMAND runs in
#	this shell and may be a function; as in any `if`, set -e does not act
#	inside it. Denied, or not found (127): COMMAND is not run.
# adlock_guard [IFELAPSED [EXPIREAFTER]]
#	At most one of this script at a time: the rest of it is the atom, by the
#	script's path (operator guard). Denied, the script exits with
#	$ADLOCK_EXIT_DENIED, or 0, silently: a script that others wait for
#	(backup && upload) wants ADLOCK_EXIT_DENIED=75 above the guard. Trouble: the
#	error's status. The script is run again, with the same shell, options,
#	arguments and environment, as the job of `adlock run`, which takes the place
#	of the first start. So what stands above the guard runs twice; what stands
#	below it may end by exec, set any traps, and is ended with all that it
#	started. Where a script cannot be run again (it is read from standard input
#	or -c, this is a subshell or an interactive shell, locks are held already, or
#	are kept in a store beyond this machine) the guard is traps on EXIT, INT, TERM
#	and HUP: it refuses (64) where one of them is set already, a script that sets
#	EXIT later calls adlock_release there and does not end by exec, and one that
#	has no path is named by ADLOCK_OPERAND.
# adlock_pass
#	One clock for the rest of this run (the paper's pass): all its locks
#	expire together, whatever the time the atoms before them took. And one
#	helper for all of them, an agent: a process that stays until this one is
#	gone or has not asked for a minute.
# adlock_agent
#	The agent without the clock, from now on: for a script that takes many
#	locks in hours.
# adlock_age OPERATOR OPERAND [HOST]
#	Prints the whole minutes since the atom last completed, or `never`.
#
# SETTINGS (variables)
#
# ADLOCK_IF_ELAPSED     denied as too soon before this much time has passed
#                       since the last completion: default 0
# ADLOCK_EXPIRE_AFTER   a newcomer ends an owner that is older: default never
# ADLOCK_NOTICE         a newcomer says aloud that an owner is older, where no limit
#                       ends it: default what its runs took, 15m at least; never
# ADLOCK_FROM_START=1   IfElapsed, less a tenth (1s to 30s), counts from the start of the
#                       last run
# ADLOCK_PAUSE          between the signals that end an owner: default 3s
# ADLOCK_WAIT           wait this long where busy or full: default 0; forever
# ADLOCK_WAIT_ELAPSED=1 wait where too soon as well, within ADLOCK_WAIT
# ADLOCK_SLOTS          at most so many atoms of this program at a time
# ADLOCK_PROGRAM        default: the base name of $0. With adlock, OPERATOR run and
#                       OPERAND NAME are the lock of `adlock run --name NAME`
# ADLOCK_HOST           default: the node name
# ADLOCK_DIR            default: /var/lib/adlock for root, for others
#                       /var/lib/adlock-UID where it is there and theirs (adlock init),
#                       else $HOME/.local/state/adlock. A relative one is not made
# ADLOCK_LOGDIR         of the runlog: default the lock directory
# ADLOCK_LOG_MAX        bytes past which the runlog is turned over: default 10 MiB
# ADLOCK_EXIT_DENIED    with which adlock_guard exits where it is denied: default 0
# ADLOCK_OPERAND        what adlock_guard locks where the script has no path
# ADLOCK_BIN            the helper: default the one installed with this file,
#                       else adlock on PATH
# ADLOCK_RETRY_FAILED=1 a status other than 0 at the release does not count for
#                       IfElapsed
# ADLOCK_ONCE_PER       for adlock_guard, as for adlock run: run once in each tick.
#                       adlock_get and adlock_with refuse it (64)
# ADLOCK_STARVING       denials in a row (full) that are said aloud, and ten
#                       times, a hundred times as many: default 10; 0: none
# ADLOCK_HOOK           a command (for sh -c) that is started when something has
#                       happened that a person should know: adlock-run(1)
# ADLOCK_HOOK_RUNS=1    and at the start and the success of each run
# ADLOCK_STORE          etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR: the locks are
#                       there, for several machines, and adlock-locksmith tends
#                       them; adlock_get then sets ADLOCK_FENCE. Or a lock directory
# ADLOCK_LEASE          how long the store keeps the lock of one that has fallen
#                       silent: default 15s
# ADLOCK_SHARED=1       hold the atom together with others that say so too
# ADLOCK_VERBOSE=1      say denials (they are said on a terminal in any case)
# ADLOCK_AGENT=0        no agent: each question is a helper run
#
# A switch is on with 1, yes or true, off with 0, no, false or empty; anything else
# is refused (64).
# A duration says its unit, 500ms, 90s, 1h30m, 1.5h, 2d, 1w, or is 0 or never. A bare
# number is minutes in IFELAPSED, EXPIREAFTER, ADLOCK_IF_ELAPSED and ADLOCK_EXPIRE_AFTER;
# elsewhere it is refused (64).
# IFELAPSED and EXPIREAFTER may be `auto`: the atom's own runs decide; adlock tune
# tells how.
#
# HOW IT LOCKS
#
# An atom is an operator and an operand, within a program on a host. While it
# runs, the active lock lock.PROGRAM.HOST.OPERATOR.OPERAND exists in the lock
# directory; its first line is the owner's pid. The last lock, last.NAME, carries
# in its mtime when the atom last completed. The helper looks at both in one go
# and either takes the lock or says why not: too-soon, busy, full, or expired;
# an expired owner is ended carefully (CONT, INT, TERM, KILL, its whole job),
# and only its confirmed death frees the lock. One helper run for a get, one for
# a release; two for the get that ends an owner. In a pass the agent answers what
# needs no wait, no signal and no other process's environment: the rest, and all of
# it where the agent is gone, where standard error is a terminal, with slots, readers,
# a hook, a store, or in a subshell, is left to helper runs.
#
# The owner is the shell process that took the lock, subshells included: a lock
# taken in a subshell is reclaimed when that subshell is gone. A lock that its
# owner left behind, killed say, is reclaimed by the next newcomer at once. A
# script killed with KILL may leave a child running, unlocked: only a script
# that leads its own process group, or `adlock run`, holds the atom until that
# child is gone too.
#
# What is held is what is in place. After a helper that died (a signal, no process
# or thread to be had) the lock is looked at: one that a get left is withdrawn, by
# the next call at the latest, one that a release left can be released again. A
# trap may call any of the functions in the middle of another one, adlock_guard
# excepted; $ADLOCK_VERDICT is then what was called last. Where a second signal can
# come meanwhile, the trap begins with trap '' SIGNAL and sets itself anew.
#
# WHAT IT RESERVES
#
# Names that begin with adlock_, _adlock_ and ADLOCK_. It sets ADLOCK_VERDICT
# (acquired, too-soon, busy, full, lost, stuck; empty where something else is
# wrong) and exports nothing (but ADLOCK_LOGDIR, ADLOCK_LOG_MAX and ADLOCK_HOOK, by
# adlock_guard). Options, IFS, traps (save adlock_guard's where it sets some),
# positional parameters and descriptors stay as they were. Sourced twice it does
# nothing.
#
# WORKAROUNDS: what is odd below, and when it may go
#
# W1 no `local`: ksh93 1.0 has none, so a function's own values are positional
#    parameters. ksh93 -c 'f() { local x; }; f'. Goes when POSIX and ksh93 have it.
# W2 `IFS= read`, never bare `read`, and no unquoted ${x:+--option "$x"}, but
#    ${x:+"--option=$x"}: with IFS=x a word is cut at each x. dash -c 'IFS=x; set -- ${a-y}${b-xx}; echo $#'.
#    Stays: IFS is the caller's. But where it is blanks alone, which change no line that
#    is read here, it may be readonly: dash -c 'readonly IFS; IFS= read -r x; echo' is the end.
# W3 the pid is found in /proc: $$ is the main shell's in a subshell, and only bash
#    has BASHPID. (echo $$). By a file name if possible: dash, busybox and mksh read
#    a line byte by byte, and /proc/self/stat is 300 bytes long. Not in bash and zsh,
#    where options make a missing name an error that leaves the function and all its
#    callers. Goes with a POSIX way to ask.
# W4 ksh93 (93u+m 1.0) runs ( ) and $( ) in the same process; the depth tells
#    them apart. ksh93 -c '(read p _ </proc/self/stat; echo $p $$)'. Goes when
#    every subshell is forked.
# W5 the length that cksum prints is compared: yash 2.52 ignores LC_ALL=C set at
#    run time, mksh has utf8-mode, a readonly LC_ALL stays: there ? may be more
#    than a byte, and the helper builds the name. LC_ALL=C.UTF-8 yash -c
#    'LC_ALL=C; v=$(printf "\303\251"); echo ${#v}' prints 1. Goes when all print 2.
#    The first bytes, too: zsh 5.9 counts letters. LC_ALL=C.UTF-8 zsh -c 'LC_ALL=C;
#    printf %.1s "$(printf "\303\251")"' prints two bytes.
# W6 traps are listed into a file: dash 0.5, mksh R59 and zsh 5.9 list none in
#    $(trap). dash -c 'trap : EXIT; echo "$(trap)"'. Goes when they do (POSIX.1-2008).
# W7 command trap >|file: a redirection that fails on a special builtin ends dash,
#    mksh and ksh93; behind `command` it does not. Stays: POSIX has it so.
# W8 ignored signals are looked for in /proc as well: zsh 5.9 lists none that were
#    ignored at its start, and lets a trap take them back (nohup would be undone).
#    sh -c 'trap "" HUP; exec zsh --emulate sh -c "trap : HUP; kill -HUP \$\$; trap"'.
#    And not only there: ksh93 ignores what it has caught. Goes when zsh does as POSIX.
# W9 zsh that does not emulate sh is refused: there an EXIT trap set in a function
#    runs when the function returns. zsh -c 'f() { trap "echo now" EXIT; }; f; sleep 1'.
#    Stays. In a zsh script: emulate sh -c '. adlock.sh'.
# W10 a status above 255 becomes 128 + the signal: a command ended by TERM leaves 271
#    in ksh93 and 399 in yash. yash -c 'sh -c "kill \$\$"; echo $?'. Goes when both print 143.
# W11 `command` before what prints, reads, traps or is a program: a function of the script
#    may have its name. bash -c 'read() { return 1; }; . adlock.sh; adlock_get a b'. Not
#    before [, which can be a function in bash and zsh alone and stands at 30 places of a
#    cycle, nor before special builtins; and `command` itself is believed. Stays.
# W12 the EXIT trap ends with the status it met: mksh R59 exits with that of the
#    trap's last command where exit was called in another trap. mksh -c
#    'trap : EXIT; trap "exit 3" TERM; kill $$'; echo $?. Goes when that prints 3.
#    In a script's own EXIT trap only an exit of its own can help.
# W13 return "$?", never bare: in a trap that is, in bash, mksh and yash, the status
#    from before the trap, also in functions. bash -c 'f() { false || return; };
#    trap "f && echo 0" USR1; kill -USR1 $$' prints 0. Stays: POSIX has it so.
# W14 a status of 0 is believed where the lock bears it out: mksh R59 goes on
#    with 0 after a command for which it could not fork. ulimit -u 1 as an
#    ordinary user. Goes when that is an error.
#    And zsh 5.9 takes the status of a program that a CHLD trap has run for that of the program
#    it waits for. zsh -c 'trap /bin/true CHLD; (sleep .02)& sh -c "sleep .02; exit 7"; echo $?'.
# W15 a trap within a trap spoils every status: in dash 0.5.12 and busybox 1.35 $? is
#    afterwards what it was before the outer one, also for the && and || of the outer
#    one. dash -c 't() { trap : USR1; sh -c "kill -USR1 $$" || echo "$?"; }; trap t USR1;
#    sh -c "kill -USR1 $$; exit 7"; :' prints 7.
#    Nothing in here can help; the trap can. Goes when both print nothing.
# W16 an answer counts though its status is a stop's: in zsh 5.9 $( ) has that of the
#    signal which once stopped its command, which has gone on and ended since. zsh -c
#    'x=$(sh -c "(sleep 1; kill -CONT \$\$) & kill -STOP \$\$"); echo $?' prints 19.
#    Goes when it prints 0.
# W17 a question is written, and its answer read, by one simple command with a redirection
#    of its own: a trap may print into the redirection of a group. dash -c 'trap "echo trap"
#    USR1; { kill -USR1 $$; } >/dev/null'. bash and zsh run traps inside read and printf as
#    well: so bash reads with -u, and zsh with sysread and writes with syswrite (its read -u
#    goes on with standard input when a trap has read, and its printf hangs on a trap's).
#    bash -c 'trap "read x; echo $x" USR1; (sleep 1; kill -USR1 $$; sleep 1; echo no) | read y'. Stays.
# W18 the output of a command is read after the mark `adlock:`, and before the mark the trace
#    and the DEBUG trap are turned off: both print into $( ). bash -c 'set -x; BASH_XTRACEFD=1; x=$(date); echo "$x"';
#    zsh prints before the first command could forbid it. Stays.
# W19 ksh93 (93u+m 1.0) exits in place of dying of INT in its EXIT trap. ksh93 -c
#    'trap "trap - INT; kill -INT \$\$" EXIT; trap "exit 1" INT; kill -INT $$'; echo $?
#    prints 1. So does zsh 5.9, where no command runs. Goes when they print 130, or 258.

if [ "${_adlock_loaded-}" = "$$" ] && command -v adlock_get >/dev/null 2>&1; then
	return 0
fi

# Run, and not sourced, it prints its help.
case "${0##*/} ${1-}" in
'adlock.sh --help' | 'adlock.sh -h')
	sed -n '1d; /^# WORKAROUNDS/q; s/^# \{0,1\}//p' "$0"
	exit
	;;
esac

# W9. Only zsh gets to read the [[.
if [ -n "${ZSH_VERSION-}" ] && ! eval '[[ -o posixtraps ]]'; then
	command echo "adlock: zsh: must emulate sh: use emulate sh -c '. adlock.sh'" >&2
	return 69
fi

# A script of this name may source it.
if [ "${0##*/}" = adlock.sh ] && grep -q '^_adlock_loaded=' "$0" 2>/dev/null; then
	command echo "adlock: $0: is run, and does nothing: a script sources it (--help tells how)" >&2
	exit 64
fi

_adlock_loaded=$$
_adlock_installed='' # @ADLOCK_LIB_BIN@: make install writes the helper's path here
_adlock_version=0.2.0
_adlock_script=${0##*/}
# How the script was called, and from where: it may cd before it is guarded.
_adlock_called=$0
_adlock_from=${PWD-}
_adlock_held=''  # the books: see _adlock_strike
_adlock_pass=''  # the pass clock, in seconds since the epoch
_adlock_node=''  # the node name, once asked for
_adlock_uid=''   # the effective user, once asked for
_adlock_going='' # the entry of the list whose release began last
_adlock_known='' # PREFIX LENGTH PROGRAM HOST: what names begin with, once built
_adlock_agent='' # how far it is: see _adlock_want_agent
_adlock_agent_of='' _adlock_agent_at='' _adlock_agent_sign='' _adlock_questions='' _adlock_answers='' _adlock_asking=''
_adlock_number=0 # of the question asked last
_adlock_nl='
'
_adlock_tab='	'
_adlock_blank=" $_adlock_tab$_adlock_nl"
# In full, for a range means other letters in other locales.
_adlock_alnum=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789

# --- What scripts call -------------------------------------------------------

adlock_get() { _adlock_call _adlock_get "$@"; }
# shellcheck disable=SC2120 # STATUS is for traps
adlock_release() { _adlock_call _adlock_release "${1-$?}"; }
adlock_with() { _adlock_call _adlock_with "$@"; }
adlock_guard() { _adlock_call _adlock_guard "$@"; }
# shellcheck disable=SC2120 # arguments are refused
adlock_pass() { _adlock_call _adlock_begin_pass "$@"; }
adlock_agent() { _adlock_call _adlock_begin_agent "$@"; }
adlock_age() { _adlock_call _adlock_age "$@"; }

# A trap may call them between any two commands of another call, and there are no local
# variables (W1). So a call that finds another one under way ($_adlock_inside; a call that
# was broken off leaves it set, which does no harm) restores the variables in which it
# works. And each sets its own verdict at its end, whatever a trap has set meanwhile.
# Variables that outlive a call (above) are written in one command: no trap sees half of it.
_adlock_pid='' _adlock_owner='' _adlock_since='' _adlock_dir='' _adlock_bin='' _adlock_smith='' _adlock_program=''
_adlock_host='' _adlock_operator='' _adlock_operand='' _adlock_name='' _adlock_part='' _adlock_status=''
_adlock_line='' _adlock_token='' _adlock_third='' _adlock_lock='' _adlock_file='' _adlock_gone='' _adlock_words=''
_adlock_verdict='' _adlock_fence='' _adlock_inside=''

# _adlock_call FUNCTION [ARG...]
_adlock_call() {
	if [ -n "$_adlock_inside" ]; then
		_adlock_call_inside "$@"
		return "$?"
	fi
	_adlock_inside=yes _adlock_verdict=${ADLOCK_VERDICT-} _adlock_fence=${ADLOCK_FENCE-}
	if "$@"; then set -- 0; else set -- "$?"; fi
	[ -z "$_adlock_fence" ] || ADLOCK_FENCE=$_adlock_fence
	ADLOCK_VERDICT=$_adlock_verdict _adlock_inside=''
	return "$1"
}

# _adlock_call_inside FUNCTION [ARG...] is for a call in the middle of another one.
_adlock_call_inside() {
	set -- "$_adlock_pid" "$_adlock_owner" "$_adlock_since" "$_adlock_dir" "$_adlock_bin" "$_adlock_smith" "$_adlock_program" \
		"$_adlock_host" "$_adlock_operator" "$_adlock_operand" "$_adlock_name" "$_adlock_part" "$_adlock_status" \
		"$_adlock_line" "$_adlock_token" "$_adlock_third" "$_adlock_lock" "$_adlock_file" "$_adlock_gone" "$_adlock_words" \
		"$_adlock_verdict" "$_adlock_fence" "$@"
	_adlock_verdict=${ADLOCK_VERDICT-} _adlock_fence=${ADLOCK_FENCE-}
	if _adlock_behind 22 "$@"; then set -- 0 "$@"; else set -- "$?" "$@"; fi
	_adlock_tell
	_adlock_pid=$2 _adlock_owner=$3 _adlock_since=$4 _adlock_dir=$5 _adlock_bin=$6 _adlock_smith=$7 _adlock_program=$8
	_adlock_host=$9 _adlock_operator=${10} _adlock_operand=${11} _adlock_name=${12} _adlock_part=${13} _adlock_status=${14}
	_adlock_line=${15} _adlock_token=${16} _adlock_third=${17} _adlock_lock=${18} _adlock_file=${19} _adlock_gone=${20}
	_adlock_words=${21} _adlock_fence=${23} ADLOCK_VERDICT=$_adlock_verdict _adlock_verdict=${22}
	return "$1"
}

# _adlock_behind N ARG... COMMAND [ARG...] runs the command behind N arguments.
_adlock_behind() {
	shift "$(($1 + 1))"
	"$@"
}

# shellcheck disable=SC2034 # the script reads them
_adlock_tell() {
	ADLOCK_VERDICT=$_adlock_verdict
	[ -z "$_adlock_fence" ] || ADLOCK_FENCE=$_adlock_fence
}

# --- Taking and releasing ----------------------------------------------------

# _adlock_get is figure 3 of the paper. The helper compares the times and sets the lock, in
# one step: no other process comes between.
_adlock_get() {
	_adlock_verdict=''
	case $# in
	2 | 3 | 4 | 5 | 6) ;;
	*) _adlock_wants 2 6 "$#" adlock_get || return "$?" ;;
	esac
	_adlock_can_switch && _adlock_asks_no_tick && _adlock_atom "$1" "$2" "${5-}" || return "$?"
	_adlock_ask_to_take "${3-}" "${4-}" "${6-}" || _adlock_run_to_take "$?" "${3-}" "${4-}" "${6-}" || return "$?"
	case $_adlock_status in
	0) _adlock_hold ;;
	10) _adlock_deny too-soon ;;
	11) _adlock_deny busy ;; # already running
	12) _adlock_deny full ;;
	14) # the owner cannot be ended
		_adlock_verdict=stuck
		return 77
		;;
	*) _adlock_back_off ;; # the helper has reported why, or died
	esac
}

# _adlock_run_to_take ASKED IFELAPSED EXPIREAFTER NOW has a helper take the lock; ASKED is
# what _adlock_ask has returned.
_adlock_run_to_take() {
	_adlock_find_helper && _adlock_name_atom || return "$?"
	_adlock_whoami
	[ "$1" != 2 ] || _adlock_disown 126
	_adlock_withdraw || :
	_adlock_lock=''
	case ${ADLOCK_STORE-} in
	*://*) _adlock_find_smith && _adlock_take lease "$2" "$3" "$4" || return "$?" ;;
	*) _adlock_take take "$2" "$3" "$4" ;;
	esac
	if [ "$_adlock_status" = 13 ]; then # lock expired
		_adlock_take takeover "$2" "$3" "$4"
	fi
}

# _adlock_release STATUS
_adlock_release() {
	case $1 in
	'' | *[!0-9]*)
		_adlock_say adlock_release "bad status '$1': a number is wanted"
		return 64
		;;
	esac
	_adlock_lock=${_adlock_held%%"$_adlock_nl"*}
	case $_adlock_held in
	*"left "*) ;;
	"$_adlock_agent_of "*) ! _adlock_ask_to_release "$_adlock_lock" "$1" || return 0 ;;
	esac
	_adlock_run_to_release "$1"
}

# _adlock_run_to_release STATUS has a helper release the lock that was taken last.
_adlock_run_to_release() {
	_adlock_whoami
	_adlock_withdraw || set -- "$1" "$?"
	case $_adlock_held in
	'' | 'left '*) return "${2-0}" ;;
	"$_adlock_owner "*) ;;
	*)
		_adlock_say adlock_release "the lock is held by process ${_adlock_held%% *}, not by this one"
		return 64
		;;
	esac
	_adlock_lock=${_adlock_held%%"$_adlock_nl"*}
	_adlock_let_go "$_adlock_lock" "$1"
}

_adlock_with() {
	_adlock_verdict=''
	_adlock_can_run "$@" || return "$?"
	case $_adlock_words in
	2) _adlock_get "$1" "$2" ;;
	3) _adlock_get "$1" "$2" "$3" ;;
	4) _adlock_get "$1" "$2" "$3" "$4" ;;
	5) _adlock_get "$1" "$2" "$3" "$4" "$5" ;;
	6) _adlock_get "$1" "$2" "$3" "$4" "$5" "$6" ;;
	esac || return "$?"
	shift "$_adlock_words"
	# In place of the --: as $1 the lock survives whatever the command does with our
	# variables.
	shift
	set -- "$_adlock_lock" "$@"
	_adlock_tell
	if _adlock_behind 1 "$@"; then set -- "$1" 0; else set -- "$1" "$?"; fi
	_adlock_ask_to_release "$1" "$2" || _adlock_let_go "$1" "$2" || set -- "$1" "$2" "$?"
	[ "$_adlock_gone" = yes ] || _adlock_strike "$1" "left $2 $1$_adlock_nl"
	[ "$2" = 0 ] || return "$2"
	return "${3-0}"
}

# _adlock_guard [IFELAPSED [EXPIREAFTER]]: the helper says how ($_adlock_words).
_adlock_guard() {
	_adlock_verdict=''
	_adlock_wants 0 2 "$#" adlock_guard && _adlock_can_switch && _adlock_can_deny || exit "$?"
	_adlock_find_helper && _adlock_find_dir || exit "$?"
	_adlock_host=${ADLOCK_HOST-} _adlock_program=${ADLOCK_PROGRAM:-$_adlock_script}
	[ -n "$_adlock_host" ] || _adlock_find_node || exit "$?"
	_adlock_whoami
	set -- "${1-}" "${2-}"
	_adlock_capture "$_adlock_bin" guard --owner "$_adlock_pid" --script "$_adlock_called" --directory "$_adlock_from" \
		-- "$_adlock_dir" "$_adlock_program" "$_adlock_host" guard || _adlock_unanswered adlock_guard "$_adlock_line" || exit "$?"
	_adlock_words=$_adlock_line
	unset ADLOCK_GUARD
	case $_adlock_words in
	held) _adlock_verdict=acquired ;;
	'again '*) _adlock_guard_again "$@" || _adlock_guard_here "$@" ;;
	'here '*) _adlock_guard_here "$@" ;;
	*) exit 71 ;; # cut short
	esac
}

_adlock_age() {
	_adlock_wants 2 3 "$#" adlock_age || return "$?"
	_adlock_atom "$1" "$2" "${3-}" && _adlock_find_helper && _adlock_name_atom || return "$?"
	set -- "$_adlock_dir/last.$_adlock_name"
	case ${ADLOCK_STORE-} in
	*://*)
		_adlock_find_smith || return "$?"
		_adlock_capture "$_adlock_smith" age --store "$ADLOCK_STORE" -- \
			"$_adlock_program" "$_adlock_host" "$_adlock_operator" "$_adlock_operand"
		;;
	*)
		if [ ! -e "$1" ]; then
			_adlock_may_look "$_adlock_dir" || return "$?"
			_adlock_line=0000000000
		elif _adlock_ask age "$1"; then
			_adlock_line=${_adlock_line#0 }
		else
			_adlock_capture "$_adlock_bin" stat-age -- "$1"
		fi
		;;
	esac || _adlock_unanswered "$1" "$_adlock_line" || return "$?"
	case $_adlock_line in
	??????????*) command echo never ;; # ten digits of seconds: an mtime of 0
	*) command echo "$((_adlock_line / 60))" ;;
	esac
}

# _adlock_may_look DIR: a file that is not seen there does not exist. For a directory that
# does not exist itself, look at the one above it.
_adlock_may_look() {
	while [ ! -e "${1:-/}" ]; do set -- "${1%/*}"; done # $_adlock_dir is absolute
	if [ ! -d "${1:-/}" ]; then
		_adlock_say "$1" 'not a directory'
		return 73
	elif [ ! -x "${1:-/}" ]; then
		_adlock_say "$1" 'permission denied'
		return 77
	fi
}

# --- Between the shell and the helper ----------------------------------------

# _adlock_help VERB [ARG...] runs the helper. It reads some settings from the environment
# itself; an assignment before the command would fail if they are readonly, so they take a
# subshell. GOMAXPROCS=1: a Go program then starts fewer threads; there is nothing to run in
# parallel, and a lock costs a seventh less. Its answer is $_adlock_status.
_adlock_help() {
	_adlock_status=0
	case ${ADLOCK_LOGDIR-}${ADLOCK_LOG_MAX-}${ADLOCK_HOOK-} in
	'') GOMAXPROCS=1 "$_adlock_bin" "$@" ;;
	*) (
		export ADLOCK_LOGDIR ADLOCK_LOG_MAX ADLOCK_HOOK ADLOCK_HOOK_RUNS
		GOMAXPROCS=1 exec "$_adlock_bin" "$@"
	) ;;
	esac || _adlock_status=$?
}

# _adlock_take VERB IFELAPSED EXPIREAFTER NOW runs the helper on the atom, or asks the agent
# to take it. --owner comes first: it shows the helper that no person is the caller.
_adlock_take() {
	set -- "$1" "${2:-${ADLOCK_IF_ELAPSED-}}" "${3:-${ADLOCK_EXPIRE_AFTER-}}" "${4:-$_adlock_pass}"
	set -- "$1" --owner "$_adlock_pid" ${2:+"--if-elapsed=$2"} ${3:+"--expire-after=$3"} ${4:+"--now=$4"}
	case $1-${ADLOCK_PAUSE-}${ADLOCK_SLOTS-}${ADLOCK_WAIT-}${ADLOCK_STARVING-}${ADLOCK_NOTICE-}${ADLOCK_WAIT_ELAPSED-}${ADLOCK_FROM_START-}${ADLOCK_SHARED-}${ADLOCK_VERBOSE-} in
	ask-) _adlock_question "$@" ;;
	*) _adlock_take_as_set "$@" ;;
	esac
}

# _adlock_take_as_set VERB OPTION... adds the settings that are rarely made.
_adlock_take_as_set() {
	set -- "$@" ${ADLOCK_PAUSE:+"--pause=$ADLOCK_PAUSE"} ${ADLOCK_SLOTS:+"--slots=$ADLOCK_SLOTS"} ${ADLOCK_WAIT:+"--wait=$ADLOCK_WAIT"} \
		${ADLOCK_STARVING:+"--starving=$ADLOCK_STARVING"} ${ADLOCK_NOTICE:+"--notice=$ADLOCK_NOTICE"} ${_adlock_since:+"--since=$_adlock_since"}
	if _adlock_on "${ADLOCK_WAIT_ELAPSED-}"; then set -- "$@" --wait-elapsed; fi
	if _adlock_on "${ADLOCK_FROM_START-}"; then set -- "$@" --from-start; fi
	if _adlock_on "${ADLOCK_SHARED-}"; then set -- "$@" --shared; fi
	if _adlock_on "${ADLOCK_VERBOSE-}"; then set -- "$@" --verbose; fi
	case $1 in
	ask) _adlock_question "$@" ;;
	guarded) _adlock_restart "$@" ;;
	lease)
		_adlock_bin=$_adlock_smith
		_adlock_help_to_take "$@" "--store=$ADLOCK_STORE" ${ADLOCK_LEASE:+"--lease=$ADLOCK_LEASE"}
		;;
	*) _adlock_help_to_take "$@" ;;
	esac
}

# _adlock_question ask OPTION... is what the agent is asked; it makes the name.
_adlock_question() {
	shift
	_adlock_ask take "$@" -- "$_adlock_dir" "$_adlock_program" "$_adlock_host" "$_adlock_operator" "$_adlock_operand"
}

# _adlock_help_to_take VERB OPTION... never in $( ): the helper has to be our child.
_adlock_help_to_take() {
	_adlock_help "$@" -- "$_adlock_dir/lock.$_adlock_name" "$_adlock_program" "$_adlock_host" "$_adlock_operator" "$_adlock_operand"
}

# _adlock_on VALUE: the switch is on, if it is one.
_adlock_on() {
	case $1 in
	1 | yes | true) ;;
	*) return 1 ;;
	esac
}

# _adlock_asks_no_tick refuses a setting without effect: an atom meant to run once in each
# tick would run as often as it is asked for.
_adlock_asks_no_tick() {
	case ${ADLOCK_ONCE_PER-} in
	'' | 0) ;;
	*)
		_adlock_say ADLOCK_ONCE_PER 'is for adlock run: a lock that a script takes by itself counts no ticks (unset it)'
		return 64
		;;
	esac
}

# _adlock_can_switch refuses what is neither on nor off, with the helper's message.
_adlock_can_switch() {
	case ${ADLOCK_WAIT_ELAPSED-}${ADLOCK_FROM_START-}${ADLOCK_SHARED-}${ADLOCK_VERBOSE-}${ADLOCK_RETRY_FAILED-} in
	'') return 0 ;;
	esac
	_adlock_is_switch ADLOCK_WAIT_ELAPSED "${ADLOCK_WAIT_ELAPSED-}" &&
		_adlock_is_switch ADLOCK_FROM_START "${ADLOCK_FROM_START-}" &&
		_adlock_is_switch ADLOCK_SHARED "${ADLOCK_SHARED-}" &&
		_adlock_is_switch ADLOCK_VERBOSE "${ADLOCK_VERBOSE-}" &&
		_adlock_is_switch ADLOCK_RETRY_FAILED "${ADLOCK_RETRY_FAILED-}"
}

_adlock_is_switch() {
	case $2 in
	1 | yes | true | 0 | no | false | '') ;;
	*)
		_adlock_say "$1" "\"$2\": want 1 or 0"
		return 64
		;;
	esac
}

# _adlock_capture COMMAND [ARG...] sets $_adlock_line to what the command prints; its
# status is the command's (W18). Before the marker only standard error is turned away: with
# standard output closed, dash would lose the pipe that has become descriptor 1.
_adlock_capture() {
	if _adlock_line=$(
		{ _adlock_hush; } 2>/dev/null
		command echo adlock:
		"$@"
	); then set -- 0; else set -- "$?"; fi
	_adlock_line=${_adlock_line#*adlock:}
	_adlock_line=${_adlock_line#"$_adlock_nl"}
	return "$1"
}

# _adlock_quietly COMMAND [ARG...] runs the command without standard error; for a subshell.
_adlock_quietly() {
	command exec 2>/dev/null
	export GOMAXPROCS=1 # see _adlock_help
	"$@"
}

# _adlock_hush keeps the script's trace and traps from printing; for a subshell.
# shellcheck disable=SC3047 # DEBUG, ERR and RETURN are for shells that have them
_adlock_hush() {
	case ${BASH_VERSION:+bash}${ZSH_VERSION:+zsh}${KSH_VERSION-} in
	bash) command trap - DEBUG ERR RETURN ;;
	zsh | *' 93'*) command trap - DEBUG ERR ;;
	esac
	set +x
}

# _adlock_answered: the helper ended by itself, and has printed its messages. Else it was
# killed, or got no thread or memory.
_adlock_answered() {
	case $_adlock_status in
	0 | 1[0-4] | 64 | 69 | 71 | 73 | 74 | 75 | 77) ;;
	*) return 1 ;;
	esac
}

# _adlock_unanswered OBJECT ANSWER returns the status of a helper that should print an
# answer, and reports its death if it could not report an error itself.
_adlock_unanswered() {
	_adlock_status=$?
	_adlock_plain_status
	case ${ZSH_VERSION:+$_adlock_status-$2} in
	19-?* | 2[0-2]-?*) return 0 ;; # W16
	esac
	_adlock_answered || _adlock_say "$1" "the helper died, with status $_adlock_status"
	return "$_adlock_status"
}

# _adlock_hold notes the lock just taken as held by this process. What the lock
# file says is believed, not the helper's status alone.
_adlock_hold() {
	if [ -n "$_adlock_lock" ]; then # the agent's word
		_adlock_third=''
	elif ! _adlock_find_own; then
		_adlock_say "$_adlock_dir/lock.$_adlock_name" 'lost to a newcomer at once'
		_adlock_verdict=lost
		return 75
	fi
	case $_adlock_third in
	fence=*) _adlock_fence=${_adlock_third#fence=} ;;
	esac
	_adlock_held=$_adlock_lock$_adlock_nl$_adlock_held
	_adlock_verdict=acquired
}

# _adlock_back_off: the helper failed, or died and may have set the lock, without
# having seen whether it may. Such a lock is withdrawn; if that fails too, the
# books have it, and the next call withdraws it.
_adlock_back_off() {
	_adlock_plain_status
	set -- "$_adlock_status"
	_adlock_answered || _adlock_say "$_adlock_dir/lock.$_adlock_name" "not taken: the helper died, with status $1"
	_adlock_compare "$1"
	_adlock_disown "$1"
	_adlock_withdraw || :
	return "$1"
}

# _adlock_disown STATUS adds the atom's lock, which no caller knows of, to the list, for
# _adlock_withdraw.
_adlock_disown() {
	if _adlock_find_own; then
		_adlock_held="${_adlock_held}left -$1 $_adlock_lock$_adlock_nl"
	fi
}

# _adlock_let_go LINE STATUS [ENTRY] releases the lock of a line, or withdraws it if STATUS
# is negative. If a helper died, another follows. A lock that is still in place then stays
# in the list ($_adlock_gone: no), to be released again. If a trap interrupted a release, it
# is normal that the lock is gone (--again).
_adlock_let_go() {
	_adlock_gone=no
	_adlock_is_switch ADLOCK_RETRY_FAILED "${ADLOCK_RETRY_FAILED-}" || return "$?"
	_adlock_find_helper || return "$?"
	_adlock_pid=${1%%[!0-9]*}
	set -- "${3-$1}" "${1#* }" "$2"
	_adlock_file=${2#* } _adlock_status=${3#-}
	_adlock_plain_status
	set -- "$1" "${2%% *}" "$3" _adlock_help release --token "${2%% *}" --status "$_adlock_status"
	case $3 in -*) set -- "$@" --withdraw ;; esac
	if _adlock_on "${ADLOCK_RETRY_FAILED-}"; then set -- "$@" --retry-failed; fi
	case $_adlock_file in
	*/smith.*)
		_adlock_find_smith || return "$?"
		_adlock_bin=$_adlock_smith
		;;
	*) [ -z "${ADLOCK_PAUSE-}" ] || set -- "$@" --pause "$ADLOCK_PAUSE" ;;
	esac
	for _adlock_try in 1 2 3; do # only counted: a trap may change it
		_adlock_booked "$1" || break
		[ "$_adlock_going" != "$1" ] || set -- "$@" --again
		_adlock_going=$1
		case $_adlock_try in
		1) _adlock_behind 3 "$@" -- "$_adlock_file" ;;
		*) _adlock_once_more "$@" -- "$_adlock_file" ;;
		esac
		case $_adlock_status-$_adlock_file in
		0-*/smith.*) break ;;
		0-*) _adlock_status=126 ;; # unless it is gone: W14
		esac
		if ! _adlock_there "$2"; then
			_adlock_gone=yes
			break
		fi
		if _adlock_answered; then break; fi
	done
	_adlock_plain_status
	if ! _adlock_booked "$1"; then # a trap has released it meanwhile
		_adlock_gone=yes
		return 0
	fi
	case $_adlock_status-$_adlock_file in
	0-* | 75-*/smith.*) _adlock_gone=yes ;;
	esac
	[ "$_adlock_status" != 75 ] || _adlock_verdict=lost
	if [ "$_adlock_gone" = yes ]; then
		_adlock_strike "$1"
		_adlock_answered || return 0 # it died when it was done
	elif ! _adlock_answered; then
		_adlock_say "$_adlock_file" "not released: the helper died, with status $_adlock_status"
	fi
	_adlock_compare "$_adlock_status"
	return "$_adlock_status"
}

# _adlock_once_more ENTRY TOKEN STATUS _adlock_help VERB... is for a helper after one that
# died: if the whole job is being ended, a signal would end this one too, before it has
# reported the newcomer.
_adlock_once_more() {
	_adlock_status=0
	(
		command trap '' INT TERM
		_adlock_behind 3 "$@"
		exit "$_adlock_status"
	) || _adlock_status=$?
}

# _adlock_withdraw releases the locks of this process that were left behind, as no other
# process will.
_adlock_withdraw() {
	case $_adlock_held in
	*"left "*) ;;
	*) return 0 ;;
	esac
	set -- "$_adlock_held" 0
	while [ -n "$1" ]; do
		set -- "${1#*"$_adlock_nl"}" "$2" "${1%%"$_adlock_nl"*}"
		_adlock_line=${3#left }
		case $3/${_adlock_line#* } in
		"left "*"/$_adlock_owner "*)
			_adlock_let_go "${_adlock_line#* }" "${_adlock_line%% *}" "$3" || set -- "$1" "$?"
			;;
		esac
	done
	return "$2"
}

# The books are the locks held, last first, a line each: OWNER TOKEN FILE; and
# below them those that were left behind: left STATUS OWNER TOKEN FILE.

# _adlock_strike LINE [INSTEAD] takes a line out of the books, if it is there. In
# one command: a trap that has struck it out before has made no difference.
_adlock_strike() {
	_adlock_line=$_adlock_held$1$_adlock_nl _adlock_third=${_adlock_line#*"$1$_adlock_nl"} \
		_adlock_held=${_adlock_line%%"$1$_adlock_nl"*}${_adlock_third%"$1$_adlock_nl"}${2-}
}

_adlock_booked() {
	case $_adlock_held in
	*"$1$_adlock_nl"*) ;;
	*) return 1 ;;
	esac
}

# _adlock_find_own finds the lock of the atom that is in place in the name of this
# process and not in the books: $_adlock_lock is its line.
_adlock_find_own() {
	_adlock_file=$_adlock_dir/lock.$_adlock_name
	_adlock_reader "$_adlock_name"
	set -- "$_adlock_file" "$_adlock_dir/$_adlock_part"
	case ${ADLOCK_STORE-} in
	*://*)
		_adlock_file=$_adlock_dir/smith.$_adlock_pid # its lock is in the store
		set -- "$_adlock_file"
		;;
	esac
	while [ "$#" -gt 0 ]; do
		_adlock_read "$1" || :
		case $_adlock_line-$_adlock_token in
		"$_adlock_pid-"?*)
			_adlock_lock="$_adlock_owner $_adlock_token $_adlock_file"
			_adlock_booked "$_adlock_lock" || return 0
			;;
		esac
		shift
	done
	return 1
}

# _adlock_there TOKEN: the lock $_adlock_file, or the file that stands for it, is still this
# acquisition's, as far as can be read.
_adlock_there() {
	set -- "$1" "${_adlock_file%/*}"
	case $_adlock_file in
	*/smith.*)
		[ -e "$2/smith.$1" ]
		return "$?"
		;;
	esac
	_adlock_reader "${_adlock_file##*/lock.}"
	set -- "$1" "$_adlock_file" "$2/$_adlock_part"
	while [ "$#" -gt 1 ]; do
		if ! _adlock_read "$2"; then
			[ ! -e "$2" ] || return 0
		elif [ "$_adlock_token" = "$1" ]; then
			return 0
		fi
		set -- "$1" ${3+"$3"}
	done
	return 1
}

# _adlock_read FILE reads the pid, the token and the third line; it fails where the
# file cannot be read.
_adlock_read() {
	_adlock_line='' _adlock_token='' _adlock_third=''
	[ -f "$1" ] && [ -r "$1" ] || return 1 # opening a pipe would wait for a writer
	{ _adlock_input _adlock_line && _adlock_input _adlock_token && _adlock_input _adlock_third || :; } <"$1" || return "$?"
	_adlock_token=${_adlock_token#token=}
}

# _adlock_input NAME reads a line into that variable (W2).
_adlock_input() {
	case ${IFS-} in
	*[!$_adlock_blank]*) IFS= command read -r "$1" ;;
	*) command read -r "$1" ;;
	esac
}

# _adlock_first NAME FILE reads the first line of a file, by one command: in a group a trap
# would have no standard error.
_adlock_first() {
	case ${IFS-} in
	*[!$_adlock_blank]*) IFS= command read -r "$1" 2>/dev/null <"$2" ;;
	*) command read -r "$1" 2>/dev/null <"$2" ;;
	esac
}

_adlock_plain_status() {
	[ "$_adlock_status" -le 255 ] || _adlock_status=$((128 + (_adlock_status & 127))) # W10
}

# _adlock_deny VERDICT: the helper has printed the messages for a person.
_adlock_deny() {
	_adlock_verdict=$1
	return 75
}

# _adlock_compare STATUS: a helper that does not understand (64) may be of another
# version than this file. Only then is it asked.
_adlock_compare() {
	[ "$1" = 64 ] || return 0
	_adlock_capture _adlock_quietly "$_adlock_bin" --version || :
	case "$_adlock_line " in
	*" version $_adlock_version "*) ;;
	*) _adlock_say "$_adlock_bin" "is not of the version of adlock.sh, $_adlock_version, but says '$_adlock_line': install both together" ;;
	esac
}

_adlock_find_helper() {
	_adlock_has_helper || {
		_adlock_say "$_adlock_bin" 'helper not found: nothing is locked'
		return 69
	}
}

_adlock_has_helper() {
	_adlock_bin=${ADLOCK_BIN:-${_adlock_installed:-adlock}}
	case $_adlock_bin in
	*/*) [ -f "$_adlock_bin" ] && [ -x "$_adlock_bin" ] ;;
	*) command -v "$_adlock_bin" >/dev/null 2>&1 ;;
	esac
}

# _adlock_find_smith finds the program that tends locks in a store: the one
# beside the helper, else on PATH.
_adlock_find_smith() {
	_adlock_smith=adlock-locksmith
	case $_adlock_bin in
	*/*) [ ! -x "${_adlock_bin%/*}/$_adlock_smith" ] || _adlock_smith=${_adlock_bin%/*}/$_adlock_smith ;;
	esac
	command -v "$_adlock_smith" >/dev/null 2>&1 || {
		_adlock_say "$_adlock_smith" 'is not installed: it is needed for a store beyond this machine'
		return 69
	}
}

# --- The agent ------------------------------------------------------------------

# An agent is a helper that stays (lib/agent has the protocol). What it does not do, a
# helper run does; and a helper run can always do its work instead.

_adlock_begin_pass() {
	_adlock_wants 0 0 "$#" adlock_pass && _adlock_want_agent || return "$?"
	if _adlock_ask clock; then
		_adlock_pass=${_adlock_line#0 }
	else
		_adlock_capture command date +%s || return "$?"
		_adlock_pass=$_adlock_line
	fi
}

_adlock_begin_agent() {
	_adlock_wants 0 0 "$#" adlock_agent && _adlock_want_agent
}

# _adlock_want_agent has the next question start an agent for this process. $_adlock_agent
# is `wanted`, then `tried`, and `serves` when the agent has answered; it is empty if there
# is no agent, and none shall be started.
_adlock_want_agent() {
	_adlock_is_switch ADLOCK_AGENT "${ADLOCK_AGENT-}" || return "$?"
	case ${ADLOCK_AGENT-1} in
	1 | yes | true) ;;
	*)
		_adlock_agent=''
		return 0
		;;
	esac
	_adlock_whoami
	[ "$_adlock_agent_of" = "$_adlock_owner" ] || _adlock_agent=''
	[ -n "$_adlock_agent" ] || _adlock_agent=wanted _adlock_agent_of=$_adlock_owner
}

# _adlock_start_agent: one that cannot be started is not tried again.
_adlock_start_agent() {
	_adlock_agent=''
	_adlock_has_helper || return 1 # a helper run will say it
	_adlock_whoami
	[ "$_adlock_owner" = "$_adlock_agent_of" ] && _adlock_make_exchange || return 1
	_adlock_capture _adlock_quietly exec "$_adlock_bin" agent --owner "$_adlock_pid" || return 1
	case $_adlock_line in
	*[!0-9\ ]* | *' '*' '*' '*' '*' '*) return 1 ;; # no greeting
	*' '*' '*' '*' '*) ;;
	*) return 1 ;;
	esac
	set -- "/proc/${_adlock_line%% *}/fd/" "${_adlock_line#* }"
	_adlock_agent_sign=$1${2%% *}
	set -- "$1" "${2#* }"
	_adlock_agent_at=$1${2%% *}
	set -- "$1" "${2#* }"
	_adlock_questions=$1${2%% *} _adlock_answers=$1${2#* } _adlock_agent=tried
}

# _adlock_ask VERB [ARG...] asks the agent what a helper run would be told. 0: the answer
# is $_adlock_status, with what goes with it in $_adlock_line. 1: a helper run has to do
# it, nothing was changed. 2: so it has, and the agent died on it, done or not.
_adlock_ask() {
	case $_adlock_agent in
	serves | tried) ;;
	'') return 1 ;;
	*) _adlock_start_agent || return 1 ;;
	esac
	# Its settings are in what it is asked; and it has no terminal, nor this process's
	# environment.
	case $_adlock_asking${ADLOCK_LOGDIR-}${ADLOCK_LOG_MAX-}${ADLOCK_HOOK-}${ADLOCK_NOW-} in ?*) return 1 ;; esac
	[ ! -t 2 ] || return 1
	case ${KSH_VERSION-} in
	*' 93'*) eval '[ "${_adlock_agent_of#*.}" = "${.sh.subshell}" ]' || return 1 ;;
	esac
	_adlock_asking=yes
	_adlock_exchange "$((_adlock_number += 1))" "$@" || _adlock_ask_in_vain "$?" || return "$?"
	_adlock_asking='' _adlock_agent=serves
	case $_adlock_line in
	*"$_adlock_tab"*) _adlock_relay ;;
	esac
	_adlock_status=${_adlock_line%% *}
	[ "$_adlock_status" != helper ]
}

# _adlock_ask_in_vain STATUS is for an exchange that brought no answer.
_adlock_ask_in_vain() {
	_adlock_asking=''
	case $1 in
	3) # a descriptor is the script's by now
		_adlock_make_exchange || _adlock_agent=''
		return 1
		;;
	4) # a trap took it in the middle
		until _adlock_settle "$((_adlock_number += 1))"; do
			# shellcheck disable=SC3013 # as in _adlock_start_agent
			[ "$_adlock_agent_at" -ef /proc/self ] || break
		done
		_adlock_agent=''
		return 2
		;;
	1)
		# An agent that has served left after a time without questions; one that never answered
		# is not started again.
		if [ "$_adlock_agent" = serves ]; then _adlock_agent=wanted; else _adlock_agent=''; fi
		return 1
		;;
	*)
		_adlock_agent=''
		return "$1"
		;;
	esac
}

# _adlock_make_exchange makes _adlock_exchange NUMBER WORD... for two descriptors that are
# free, and _adlock_await for an answer that does not come with the first read: no shell
# takes their digits from a variable. They return 0 with the answer in
# $_adlock_line; 1: there is no agent; 2: there is none any more; 3: a descriptor is not
# free any more; 4: one was closed or is the script's since the question.
#
# An agent that is about to leave has taken its sign down. The first descriptor is opened on
# the answers for reading and writing, so that the opening waits for no other end. The second
# is opened by way of the first for reading only, so that the answers end when the agent dies.
# Then the first is opened on the questions, for reading too, so that writing raises no SIGPIPE
# when the agent dies. A read that a trap cut short looks like an end: while the agent lives,
# it is repeated.
#
# Each descriptor is opened, written and read by a simple command, without a group, a function
# or a redirection around it: a trap would have that for its own standard input or output.
# (W17) The functions are made while the script runs, so a backslash keeps its aliases out.
# shellcheck disable=SC2016 # $ is for the function
_adlock_make_exchange() {
	set --
	for _adlock_line in 9 8 7 6 5 4 3; do
		[ -e "/proc/self/fd/$_adlock_line" ] || set -- "$@" "$_adlock_line"
	done
	[ "$#" -ge 2 ] || return 1
	# $3 writes the question, $4 reads a line.
	set -- "$1" "$2" '\command printf "$_adlock_tab%s" "$@" "$_adlock_nl" >&'"$1" '\command read -r _adlock_line <&'"$2"
	case ${ZSH_VERSION:+zsh}${BASH_VERSION:+bash}${KSH_VERSION-} in
	zsh)
		builtin zmodload -F zsh/system b:sysread b:syswrite 2>/dev/null || return 1
		set -- "$1" "$2" '\builtin syswrite -o '"$1"' "$_adlock_line$_adlock_tab$_adlock_nl"' \
			'_adlock_line= && \builtin sysread -i '"$2"' _adlock_line && _adlock_line=${_adlock_line%"$_adlock_nl"} _adlock_line=${_adlock_line##*"$_adlock_nl"}'
		;;
	bash) set -- "$1" "$2" "$3" '\command read -r -u '"$2"' _adlock_line' ;;
	*MIRBSD*) set -- "$1" "$2" '\command print -r -u'"$1"' -- "$_adlock_line$_adlock_tab"' "$4" ;; # its printf is a program
	esac
	case $3 in
	*_adlock_line*) set -- "$1" "$2" 'for _adlock_third do _adlock_line=$_adlock_line$_adlock_tab$_adlock_third; done; '"$3" "$4" ;;
	esac
	case $4 in
	*' read '*)
		set -- "$1" "$2" "$3" 'case ${IFS-} in
			*[!$_adlock_blank]*) IFS= '"$4"' ;;
			*) '"$4"' ;;
			esac'
		;;
	esac
	set -- "$1" "$2" "$3" "$4"' && case $_adlock_line in "$1 "*) ;; *) false ;; esac'
	eval '_adlock_exchange() {
		[ "$_adlock_agent_sign" -ef /proc/self ] || \return 1
		if [ -e /proc/self/fd/'"$1"' ] || [ -e /proc/self/fd/'"$2"' ]; then \return 3; fi
		\command exec '"$1"'<>"$_adlock_answers" '"$2"'</proc/self/fd/'"$1 $1"'<>"$_adlock_questions" && [ "$_adlock_agent_at" -ef /proc/self ] || {
			\command exec '"$1"'>&- '"$2"'<&-
			\return 1
		}
		_adlock_line=
		if '"$3"'; then \set -- "$1" 0; else \set -- "$1" 4; fi
		[ "$2" = 0 ] && '"$4"' || _adlock_await "$@" || \set -- "$1" "$?"
		[ "$2" != 4 ] || \return 4
		\command exec '"$1"'>&- '"$2"'<&-
		_adlock_line=${_adlock_line#"$1 "}
		\return "$2"
	}
	_adlock_await() {
		until [ "$2" = 4 ]; do
			if [ ! "$_adlock_agent_at" -ef /proc/self ]; then
				[ -n "$_adlock_line" ] || \return 2
			elif [ ! /proc/self/fd/'"$2"' -ef "$_adlock_answers" ] && [ "$_adlock_agent_at" -ef /proc/self ]; then
				\break
			fi
			if '"$4"'; then \return 0; fi
		done
		[ ! /proc/self/fd/'"$1"' -ef "$_adlock_questions" ] || \command exec '"$1"'>&-
		[ ! /proc/self/fd/'"$2"' -ef "$_adlock_answers" ] || \command exec '"$2"'<&-
		\return 4
	}'
}

# _adlock_settle NUMBER returns once the agent has done with the questions before NUMBER:
# it answers one by one. Only in a subshell all descriptors may be had.
_adlock_settle() (
	_adlock_hush
	command trap '' HUP INT QUIT TERM USR1 USR2 # the script's traps are not here
	exec 8<>"$_adlock_answers" 9</proc/self/fd/8 8<>"$_adlock_questions" || exit 1
	command printf "$_adlock_tab%s" "$1" settle "$_adlock_nl" >&8
	while _adlock_input _adlock_third <&9; do
		case $_adlock_third in "$1 "*) exit 0 ;; esac
	done
	exit 1
) 2>/dev/null

# _adlock_relay prints the agent's messages.
_adlock_relay() {
	set -- "${_adlock_line#*"$_adlock_tab"}$_adlock_tab"
	_adlock_line=${_adlock_line%%"$_adlock_tab"*}
	while [ -n "$1" ]; do
		command printf '%s\n' "${1%%"$_adlock_tab"*}" >&2
		set -- "${1#*"$_adlock_tab"}"
	done
}

# _adlock_ask_to_take IFELAPSED EXPIREAFTER NOW asks for the lock: $_adlock_lock is then its
# line of the books.
_adlock_ask_to_take() {
	[ -n "$_adlock_agent" ] || return 1
	case ${ADLOCK_STORE-} in *://*) return 1 ;; esac
	case $_adlock_held in *"left "*) return 1 ;; esac
	_adlock_third=$_adlock_program$_adlock_host$_adlock_operator$_adlock_operand$_adlock_dir$1$2$3
	_adlock_third=$_adlock_third${ADLOCK_IF_ELAPSED-}${ADLOCK_EXPIRE_AFTER-}${ADLOCK_PAUSE-}${ADLOCK_SLOTS-}${ADLOCK_WAIT-}${ADLOCK_STARVING-}${ADLOCK_NOTICE-}
	case $_adlock_third in *"$_adlock_nl"* | *"$_adlock_tab"*) return 1 ;; esac
	[ "${#_adlock_third}" -le 800 ] || return 1 # of up to 4 bytes each: see lib/agent
	_adlock_pid=${_adlock_agent_of%%.*}
	_adlock_since=''
	[ -z "${ADLOCK_WAIT-}" ] || _adlock_find_since
	_adlock_take ask "$@" || return "$?"
	[ "$_adlock_status" != 0 ] || _adlock_lock="$_adlock_agent_of ${_adlock_line#0 }"
}

# _adlock_ask_to_release LINE STATUS asks to release the lock of a line of the books.
_adlock_ask_to_release() {
	case $_adlock_agent-$1-${ADLOCK_RETRY_FAILED-} in
	serves-"$_adlock_agent_of "*-) ;;
	*) return 1 ;;
	esac
	_adlock_booked "$1" || return 1
	set -- "$1" "$2" "${1#* }" "$_adlock_going"
	_adlock_going=$1
	if _adlock_ask release --token "${3%% *}" --status "$2" -- "${3#* }"; then
		_adlock_strike "$1"
		_adlock_gone=yes
		return 0
	else
		set -- "$?" "$4"
		# In a trap that cut this very release short it stays begun.
		[ "$1" = 2 ] || _adlock_going=$2
		return "$1"
	fi
}

# --- The owner, the atom, the directory --------------------------------------

# _adlock_atom OPERATOR OPERAND HOST finds the atom's parts and the lock directory;
# _adlock_name_atom then its name.
_adlock_atom() {
	_adlock_operator=$1 _adlock_operand=$2 _adlock_host=${3:-${ADLOCK_HOST-}}
	_adlock_program=${ADLOCK_PROGRAM:-$_adlock_script}
	if [ -z "$1" ] || [ -z "$2" ]; then
		_adlock_say "'$1' '$2'" 'operator and operand must not be empty'
		return 64
	fi
	_adlock_find_dir || return "$?"
	if [ -z "$_adlock_host" ]; then
		_adlock_find_node || return "$?"
	fi
}

_adlock_name_atom() {
	# Where the shell cannot build the name (W5), the helper can.
	_adlock_build_name || _adlock_have_named ||
		_adlock_unanswered "$_adlock_operator $_adlock_operand" "$_adlock_name"
}

_adlock_have_named() {
	if _adlock_capture "$_adlock_bin" name "$_adlock_program" "$_adlock_host" "$_adlock_operator" "$_adlock_operand"; then
		set -- 0
	else
		set -- "$?"
	fi
	_adlock_name=$_adlock_line
	return "$1"
}

# _adlock_whoami finds the pid of this process ($_adlock_pid), and what tells
# it from the subshells that do not have one of their own ($_adlock_owner); and
# when the waiting begins, should it come to that. (W3, W4)
_adlock_whoami() {
	set -- ''
	case ${BASH_VERSION-}${ZSH_VERSION-} in
	'') set -- /proc/self/task/* ;; # a shell has one thread, which bears its pid
	esac
	_adlock_pid=${1-}
	_adlock_pid=${_adlock_pid##*/}
	case $#-$_adlock_pid in
	1-*[!0-9]* | 1- | [!1]*) # not asked, noglob, or no such directory
		if _adlock_first _adlock_pid /proc/self/stat; then
			_adlock_pid=${_adlock_pid%% *}
		else
			# shellcheck disable=SC2016 # the parent of that sh is this process
			_adlock_capture exec sh -c 'echo "$PPID"'
			_adlock_pid=$_adlock_line
		fi
		;;
	esac
	_adlock_owner=$_adlock_pid
	case ${KSH_VERSION-} in
	*' 93'*) eval '_adlock_owner=$_adlock_pid.${.sh.subshell}' ;;
	esac
	_adlock_find_since
}

_adlock_find_since() {
	_adlock_since=''
	if [ -n "${ADLOCK_WAIT-}" ]; then
		_adlock_first _adlock_since /proc/uptime || :
		_adlock_since=${_adlock_since%% *}
	fi
}

_adlock_find_dir() {
	_adlock_dir=${ADLOCK_DIR-}
	case ${ADLOCK_STORE-} in
	'' | *://*) ;;
	etcd:* | ftp:* | ftps:*)
		_adlock_say "$ADLOCK_STORE" 'is no store: want a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR'
		return 64
		;;
	*) _adlock_dir=$ADLOCK_STORE ;;
	esac
	if [ -z "$_adlock_dir" ]; then
		[ -n "$_adlock_uid" ] || _adlock_find_uid
		_adlock_find_usual_dir || return "$?"
	fi
	case $_adlock_dir in
	*"$_adlock_nl"*)
		_adlock_say ADLOCK_DIR 'must not hold a newline'
		return 64
		;;
	/*) ;;
	*)
		if [ ! -d "$_adlock_dir" ]; then
			_adlock_say "$_adlock_dir" 'no such directory, and a relative one is not made (give its full path)'
			return 73
		fi
		_adlock_dir=$PWD/$_adlock_dir # the script may cd before it releases
		;;
	esac
}

# _adlock_find_usual_dir is usualDir of lib/config. A test compares them.
# shellcheck disable=SC3067 # -O: all of these shells have it
_adlock_find_usual_dir() {
	_adlock_dir=/var/lib/adlock
	[ "$_adlock_uid" != 0 ] || return 0
	_adlock_dir=/var/lib/adlock-$_adlock_uid # adlock init has made it
	[ ! -d "$_adlock_dir" ] || [ -h "$_adlock_dir" ] || [ ! -O "$_adlock_dir" ] || return 0
	case ${HOME-} in
	/*) _adlock_dir=$HOME/.local/state/adlock ;;
	*)
		_adlock_say ADLOCK_DIR "is not set, and HOME is no absolute path (as root: adlock init $_adlock_uid)"
		return 69
		;;
	esac
}

_adlock_find_uid() {
	if _adlock_proc Uid; then # real effective saved, with tabs between
		set -- "${_adlock_line#*[0-9]*[!0-9]}"
		set -- "${1%%[!0-9]*}"
	else
		_adlock_capture command id -u
		set -- "$_adlock_line"
	fi
	_adlock_uid=$1
}

_adlock_find_node() {
	if [ -z "$_adlock_node" ]; then
		if ! _adlock_first _adlock_line /proc/sys/kernel/hostname; then
			_adlock_capture command uname -n || return 71
		fi
		_adlock_node=$_adlock_line
	fi
	_adlock_host=$_adlock_node
}

# _adlock_proc KEY reads what /proc/self/status says of this process.
_adlock_proc() {
	_adlock_line=''
	[ -r /proc/self/status ] || return 1
	while _adlock_input _adlock_line; do
		case $_adlock_line in
		"$1:"*) return 0 ;;
		esac
	done </proc/self/status
	return 1
}

# --- Names ---------------------------------------------------------------------

# _adlock_build_name: PROGRAM.HOST.OPERATOR.OPERAND, each part made canonical.
_adlock_build_name() {
	set -- "${#_adlock_program} $_adlock_program $_adlock_host" "$_adlock_known"
	if [ "$2" != "${2%% *} $1" ]; then
		_adlock_part "$_adlock_program" || return "$?"
		set -- "$1" "$_adlock_part"
		_adlock_part "$_adlock_host" || return "$?"
		set -- "$1" "$2.$_adlock_part"
		_adlock_known="$2 $1"
	fi
	_adlock_part "$_adlock_operator" || return "$?"
	_adlock_name=${2%% *}.$_adlock_part
	_adlock_part "$_adlock_operand" || return "$?"
	_adlock_name=$_adlock_name.$_adlock_part
}

# _adlock_reader NAME sets $_adlock_part: the file that is this process's lock as a reader,
# with a name no longer than a file's may be.
_adlock_reader() {
	_adlock_part=read.$1.$_adlock_pid
	[ "${#_adlock_part}" -le 255 ] || _adlock_part=r.$1.$_adlock_pid
}

# _adlock_part TEXT is the paper's CanonifyName for what can be read back: a
# path of letters and digits, or such words with dots, of at most 60 bytes.
# Other text gets a checksum, and costs forks.
_adlock_part() {
	case $1 in
	*[!$_adlock_alnum./]* | .* | /*.* | [!/]*/*) _adlock_have_summed "$1" ;;
	*)
		if [ "${#1}" -gt 60 ]; then
			_adlock_have_summed "$1"
			return "$?"
		fi
		set -- "$1" ''
		while :; do
			case $1 in
			*[./]*) set -- "${1#*[./]}" "$2${1%%[./]*}_" ;;
			*) break ;;
			esac
		done
		_adlock_part=$2$1
		;;
	esac
}

_adlock_have_summed() {
	_adlock_capture _adlock_quietly _adlock_summed "$1" || return "$?"
	_adlock_part=$_adlock_line
}

# _adlock_summed TEXT prints the first 48 canonical bytes of it, `-`, and its
# checksum; fails where this shell does not go byte by byte (W5). In a subshell.
_adlock_summed() {
	LC_ALL=C
	set -- "$1" "$1" ''
	if [ "${#1}" -gt 48 ]; then # of 100 kB the loop would take a minute
		set -- "$1" "$(command printf %.48s. "$1")" ''
		[ "${#2}" = 49 ] || return 1
		set -- "$1" "${2%?}" ''
	fi
	while :; do
		set -- "$1" "$2" "$3${2%%[!"$_adlock_alnum"]*}"
		set -- "$1" "${2#"${2%%[!"$_adlock_alnum"]*}"}" "$3"
		[ -n "$2" ] || break
		set -- "$1" "${2#?}" "$3"_
	done
	set -- "$(command printf %s "$1" | command cksum)" "${#1}" "$3"
	set -- "${1%% *}" "${1#* }" "$2" "$3"
	[ "${2%% *}" = "$3" ] || return 1
	command echo "$4-$1"
}

# --- The guard of a script --------------------------------------------------------

# _adlock_guard_again IFELAPSED EXPIREAFTER puts a supervisor in the place of this shell,
# which runs the script again from its beginning, in the directory in which it began. If
# that is impossible it fails, with nothing done.
_adlock_guard_again() {
	case $-${ADLOCK_STORE-} in
	*i* | *://*) return 1 ;; # a store has no file that shows the second start its owner
	esac
	case $_adlock_owner$_adlock_held in
	"$$" | "$$.0") ;;
	*) return 1 ;; # a subshell; or locks are held, which the supervisor would not release
	esac
	[ "${PWD-}" = "$_adlock_from" ] || command cd "$_adlock_from" 2>/dev/null || return 1
	_adlock_take guarded "$1" "$2" ''
}

# _adlock_restart guarded OPTION... does not return. What it exports the
# script has set, above the guard: the second start will set it too.
_adlock_restart() {
	[ -z "${ADLOCK_LOGDIR-}" ] || export ADLOCK_LOGDIR
	[ -z "${ADLOCK_LOG_MAX-}" ] || export ADLOCK_LOG_MAX
	[ -z "${ADLOCK_HOOK-}" ] || export ADLOCK_HOOK
	[ -z "${ADLOCK_HOOK_RUNS-}" ] || export ADLOCK_HOOK_RUNS
	if _adlock_on "${ADLOCK_RETRY_FAILED-}"; then set -- "$@" --retry-failed; fi
	set -- "$@" --exit-denied "${ADLOCK_EXIT_DENIED:-0}" --store "$_adlock_dir" \
		--program "$_adlock_program" --host "$_adlock_host" --operator guard
	eval "exec \"\$_adlock_bin\" \"\$@\" -- ${_adlock_words#again }"
}

# _adlock_can_deny refuses what is no exit status, with the helper's message.
_adlock_can_deny() {
	case ${ADLOCK_EXIT_DENIED-} in
	'' | [0-9] | [0-9][0-9] | 1[0-9][0-9] | 2[0-4][0-9] | 25[0-5]) ;;
	*)
		_adlock_say ADLOCK_EXIT_DENIED "\"$ADLOCK_EXIT_DENIED\": want a whole number from 0 to 255"
		return 64
		;;
	esac
}

# _adlock_guard_here IFELAPSED EXPIREAFTER guards the script in its own process, by
# traps.
_adlock_guard_here() {
	eval "set -- \"\$1\" \"\$2\" ${_adlock_words#* }"
	set -- "$1" "$2" "${3:-${ADLOCK_OPERAND-}}"
	if [ -z "$3" ]; then
		_adlock_say adlock_guard 'the script has no path, or a cd stands above: name it with ADLOCK_OPERAND'
		exit 64
	fi
	if _adlock_get guard "$3" "$1" "$2"; then
		_adlock_guarded=$_adlock_lock
		_adlock_guard_alone || exit "$?"
		_adlock_guard_traps
	else
		set -- "$?"
		[ "$1" != 75 ] || exit "${ADLOCK_EXIT_DENIED:-0}"
		exit "$1"
	fi
}

# _adlock_guard_alone: no trap of the script's may be replaced, and what it
# ignores ($_adlock_ignored) stays ignored. (W6, W7)
# shellcheck disable=SC2094 # $2 is no file
_adlock_guard_alone() {
	_adlock_ignored=''
	set -- "${_adlock_guarded#* }"
	set -- "$_adlock_dir/temp.${1%% *}" # a draft's name: what a crash leaves is swept
	command trap >|"$1" || return 73
	while _adlock_input _adlock_line; do
		case $_adlock_line in
		"trap -- '' "* | 'trap --  '*) _adlock_ignored="$_adlock_ignored ${_adlock_line##* }" ;;
		*' EXIT' | *' INT' | *' TERM' | *' HUP' | *' SIGINT' | *' SIGTERM' | *' SIGHUP')
			set -- "$1" "${_adlock_line##* }"
			;;
		esac
	done <"$1" || return 73
	command rm -f "$1"
	if [ "$#" -gt 1 ]; then
		_adlock_say adlock_guard "a trap on $2 is set already: use adlock_get and adlock_release"
		_adlock_let_go "$_adlock_guarded" -64 || :
		return 64
	fi
}

# _adlock_guard_traps sets them. The mask is hexadecimal: HUP is its bit 0, INT
# bit 1, TERM bit 14. (W8)
# shellcheck disable=SC3049 # it takes the command for a signal's name, behind `command`
_adlock_guard_traps() {
	_adlock_proc SigIgn || _adlock_line=''
	case $_adlock_line in *[13579bdf]) _adlock_ignored="$_adlock_ignored HUP" ;; esac
	case $_adlock_line in *[2367abef]) _adlock_ignored="$_adlock_ignored INT" ;; esac
	case $_adlock_line in *[4567cdef]???) _adlock_ignored="$_adlock_ignored TERM" ;; esac
	_adlock_typed=''
	command trap '_adlock_guard_end "$?"' EXIT
	case $_adlock_ignored in *HUP*) ;; *) command trap 'exit 129' HUP ;; esac
	case $_adlock_ignored in *INT*) ;; *) command trap '_adlock_typed="1 "; exit 130' INT ;; esac
	case $_adlock_ignored in *TERM*) ;; *) command trap 'exit 143' TERM ;; esac
}

# _adlock_guard_end STATUS keeps the script's status (W12). At Ctrl-C the shell itself dies
# of INT, as without the guard; otherwise a bash that has started it continues with its own
# script (W19). A subshell does not, as $$ is another process.
_adlock_guard_end() {
	_adlock_let_go "$_adlock_guarded" "$1" || :
	case $_adlock_typed$_adlock_owner in
	"1 $$" | "1 $$.0")
		command trap - INT
		command kill -s INT "$$" || :
		;;
	esac
	return "$1"
}

# --- Small things ------------------------------------------------------------------

# _adlock_can_run has the checks of adlock_with before it takes a lock: two to six words
# ($_adlock_words), the `--`, and a command that exists.
_adlock_can_run() {
	_adlock_words=$#
	while [ "$#" -gt 0 ] && { [ "$1" != -- ] || [ "$((_adlock_words - $#))" -lt 2 ]; }; do
		shift
	done
	_adlock_words=$((_adlock_words - $#))
	if [ "$#" -lt 2 ] || [ "$_adlock_words" -gt 6 ]; then
		_adlock_say adlock_with 'usage: operator operand [ifelapsed [expireafter [host [now]]]] -- command'
		return 64
	fi
	if ! command -v "$2" >/dev/null 2>&1; then
		_adlock_say "$2" 'command not found'
		return 127
	fi
}

# _adlock_wants MIN MAX COUNT FUNCTION
_adlock_wants() {
	if [ "$3" -lt "$1" ] || [ "$3" -gt "$2" ]; then
		case $2 in
		0) _adlock_say "$4" 'wants no arguments' ;;
		*) _adlock_say "$4" "wants $1 to $2 arguments, got $3" ;;
		esac
		return 64
	fi
}

_adlock_say() {
	command printf '%s\n' "adlock: $1: $2" >&2
}
