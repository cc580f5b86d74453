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
#	Takes the lock of an atom. Status 0: you have the lock; do the work, and release
#	it. 75: denied; $ADLOCK_VERDICT is busy, too-soon, full, paused or lost. Any other
#	status is an error: one line on standard error says what is wrong, and nothing is
#	taken. For an argument that is missing or empty, the setting below applies. NOW, in
#	seconds since the epoch, is the time at which IfElapsed is judged.
# adlock_release [STATUS]
#	Releases the lock that this shell process took last; locks nest. STATUS, or the
#	status before the call ($?), is recorded in the runlog as that of the atom.
#	0: released, or nothing was held. 75: the lock was lost to a newcomer, or a newcomer
#	is ending this process, or what a killed COMMAND of adlock_with has left may live; if it
#	is gone, or that newcomer dies, the lock can be released again. After any other error too
#	it can be released again as long as it exists. 64: the lock is another process's (a
#	subshell cannot release its parent's).
#	In a trap: trap 's=$?; adlock_release "$s" || :; exit "$s"' EXIT keeps the status of
#	the script in any case, also under set -e. So does trap 'adlock_release || :' EXIT,
#	except in mksh.
# adlock_with OPERATOR OPERAND [IFELAPSED [EXPIREAFTER [HOST [NOW]]]] -- COMMAND [ARG...]
#	adlock_get, COMMAND, adlock_release; returns COMMAND's status. COMMAND runs in this
#	shell and may be a function; as in any `if`, set -e has no effect inside it. If the
#	lock is denied, or COMMAND is not found or not executable (127), COMMAND is not
#	run.
# adlock_guard [IFELAPSED [EXPIREAFTER]]
#	At most one run of this script at a time: the rest of the script is the atom, which
#	is named by the script's path (operator guard), or by ADLOCK_NAME. What the script's job
#	starts of this script is a part of it, and takes no lock. If it is denied, the script exits
#	silently with $ADLOCK_EXIT_DENIED, or 0; if another command depends on the script
#	(backup && upload), set ADLOCK_EXIT_DENIED=75 above the guard. After an error the
#	script exits with the error's status.
#	The guard re-executes the script, with the same shell, options, arguments and
#	environment, as the job of `adlock run`, which takes the place of the first start. So
#	what stands above the guard runs twice: put the guard first. (An EXIT trap set there
#	does not run at the end of the first start.) What stands below it may
#	end by exec and set any traps; when it is ended, so is all that it has started.
#	A script cannot be re-executed if it is read from standard input or -c, in a subshell
#	or an interactive shell, while locks are held, or with locks in a store beyond this
#	machine. Then the guard sets traps on EXIT, INT, TERM and HUP instead, and refuses (64)
#	if one of them is set already, or ADLOCK_DRY_RUN is on. Such a script must call
#	adlock_release if it sets EXIT later, must not end by exec, and without a path needs
#	ADLOCK_NAME.
# adlock_pass
#	One clock reading for the rest of this run (the paper's pass): all its locks are judged
#	by this time, however long the atoms between them take. It also lets an agent answer from
#	the second lock on: one helper process for all locks, which exits when this process is
#	gone or has not asked for a minute.
# adlock_agent
#	Lets an agent answer from now on, without fixing the time: for a script that takes
#	many locks over hours.
# adlock_age OPERATOR OPERAND [HOST]
#	Prints the whole minutes since the atom last completed, or `never`; negative if the
#	last lock's time is in the future.
#
# SETTINGS (variables)
#
# ADLOCK_IF_ELAPSED     a newcomer is denied as too soon until this much time has passed
#                       since the last completion: default 0
# ADLOCK_EXPIRE_AFTER   a newcomer ends an owner that is older: default never
# ADLOCK_ENFORCE=1      for adlock_guard, as for adlock run: the script is ended at its limit
#                       without a newcomer
# ADLOCK_NOTICE         a newcomer reports an owner that is older as overdue: default
#                       learned from past runs, at least 15m, if no limit ends it; never
# ADLOCK_FROM_START=1   IfElapsed, less a tenth (1s to 30s, whole days 1h more), counts from
#                       the start of the last run
# ADLOCK_PAUSE          the time between the signals that end an owner: default 3s
# ADLOCK_WAIT           how long to wait if busy or full: default 0; forever
# ADLOCK_WAIT_ELAPSED=1 wait if too soon as well, within ADLOCK_WAIT
# ADLOCK_SLOTS          at most this many atoms of the program at a time; of program adlock and
#                       operator run: at most this many owners of the atom, without an interval
# ADLOCK_PROGRAM        default: the base name of $0. With adlock, OPERATOR run and
#                       OPERAND NAME are the lock of `adlock run --name NAME`
# ADLOCK_HOST           default: the node name under which this machine first locked in
#                       the lock directory
# ADLOCK_DIR            default: /var/lib/adlock for root, for other users
#                       /var/lib/adlock-UID if it exists and is theirs (adlock init),
#                       else $HOME/.local/state/adlock. A relative directory is not made
# ADLOCK_LOGDIR         the directory of the runlog, which is not made: default the lock
#                       directory
# ADLOCK_LOG_MAX        the size in bytes at which the runlog is rotated: default 10 MiB
# ADLOCK_EXIT_DENIED    the exit status of a script whose guard is denied: default 0
# ADLOCK_NAME           the name of the guard's lock, which is that of adlock run --name NAME
# ADLOCK_OPERAND        the guard's operand in place of the script's path. Not with ADLOCK_NAME;
#                       the guard unsets both
# ADLOCK_BIN            the helper: default the one installed with this file,
#                       else adlock on PATH
# ADLOCK_RETRY_FAILED=1 a status other than 0 at the release does not count for
#                       IfElapsed
# ADLOCK_ONCE_PER       for adlock_guard, as for adlock run: run once in each tick.
#                       adlock_get and adlock_with refuse it (64)
# ADLOCK_QUIET_OK=1     for adlock_guard, as for adlock run; likewise
# ADLOCK_WHOLE_JOB=1
# ADLOCK_REPLACE=1
# ADLOCK_JITTER
# ADLOCK_STARVING       N: a denial as full is reported if it is the N-th denial in a row,
#                       the 10N-th and so on: default 10; 0: none
# ADLOCK_HOOK           a command (for sh -c) that is started when something has
#                       happened that a person should know: adlock-run(1)
# ADLOCK_HOOK_RUNS=1    start it at the start and the success of each run too
# ADLOCK_SYSLOG=1       reports, and failed runs, go to the system's log too
# ADLOCK_STORE          etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR: the locks are in this
#                       store, for several machines; adlock-locksmith holds them, and
#                       adlock_get sets ADLOCK_FENCE. Or a lock directory
# ADLOCK_LEASE          how long the store keeps the lock of an owner that gives no sign of
#                       life: default 15s
# ADLOCK_FLOCK          a file or directory that is locked beside the atom, as by flock(1), for
#                       other users and for programs that lock it: for adlock_guard of a script
#                       that has a path, which unsets it, and adlock_with, whose COMMAND is a
#                       program then. adlock_get refuses it (64)
# ADLOCK_SHARED=1       hold the atom together with others that set this too
# ADLOCK_VERBOSE=1      print denials even if standard error is no terminal
# ADLOCK_AGENT=0        no agent: each question is a helper run
#
# Settings that are not set are read from /etc/adlock.conf and ~/.config/adlock.conf: adlock(7).
#
# A switch is on with 1, yes or true, off with 0, no, false or empty; anything else
# is refused (64).
# A duration has a unit, as 500ms, 90s, 1h30m, 1.5h, 2d, 1w, or is 0 or never. A number without
# a unit is minutes in IFELAPSED, EXPIREAFTER, ADLOCK_IF_ELAPSED and ADLOCK_EXPIRE_AFTER;
# elsewhere it is refused (64).
# IFELAPSED and EXPIREAFTER may be `auto`: learned from the atom's past runs; adlock tune
# shows how.
#
# HOW IT LOCKS
#
# An atom is an operator and an operand, within a program on a host. While the atom
# runs, the active lock lock.PROGRAM.HOST.OPERATOR.OPERAND exists in the lock
# directory; its first line is the owner's pid. The mtime of the last lock, last.NAME,
# is when the atom last completed. The helper looks at both locks and, in the same run,
# either takes the lock or says why not: too-soon, busy, full, or expired. An expired
# owner is ended carefully (CONT, INT, TERM, KILL, to its whole job), and the lock is
# free only once the owner's death is confirmed. A get takes one helper run, and so does
# a release; a get that ends an owner takes two. In a pass, the second question that an agent
# could answer, a get or an age, starts it. The agent answers what needs no wait, no signal
# and no other process's environment. The rest takes helper runs, and so does everything if
# the agent is gone, if standard error is a terminal, with slots, readers, a hook, a store,
# ADLOCK_LOGDIR, ADLOCK_LOG_MAX, ADLOCK_SYSLOG or ADLOCK_NOW, or in a subshell.
#
# The owner is the shell process that took the lock, even if that is a subshell: then the
# lock is reclaimed when the subshell is gone. If an owner has left its lock behind, as
# when it was killed, the next newcomer reclaims the lock at once, unless the script has
# left processes behind in its session: they hold the atom until they are gone. They are
# known by the variable ADLOCK_MARK in their environment.
#
# A lock is held if its file is in place, whatever a helper reported. If a helper died (a
# signal, no process or thread available), the library looks at the lock: a lock that a
# get left is withdrawn, by the next call at the latest; one that a release left can be
# released again. A trap may call any of the functions in the middle of another one,
# except adlock_guard; $ADLOCK_VERDICT is then that of the call that ended last. If a
# second signal can come meanwhile, begin the trap with trap '' SIGNAL, and set it again
# at its end.
#
# WHAT IT RESERVES
#
# Names that begin with adlock_, _adlock_ and ADLOCK_. It sets ADLOCK_VERDICT (acquired,
# too-soon, busy, full, paused, lost, stuck; empty after another error), and ADLOCK_STORE
# if a settings file names one. It exports nothing, except ADLOCK_MARK while a lock is
# held, and ADLOCK_LOGDIR, ADLOCK_LOG_MAX, ADLOCK_HOOK, ADLOCK_HOOK_RUNS and ADLOCK_SYSLOG
# in adlock_guard.
# Options, IFS, traps (unless adlock_guard sets them), positional parameters and
# descriptors stay as they were. If it is sourced twice, the second time does nothing.
#
# WORKAROUNDS: unusual constructs below, and when each may go
#
# W1 no `local`: ksh93 1.0 has none, so a function's own values are positional
#    parameters. ksh93 -c 'f() { local x; }; f'. Goes when POSIX and ksh93 have it.
# W2 `IFS= read`, never bare `read`, and no unquoted ${x:+--option "$x"}, but
#    ${x:+"--option=$x"}: with IFS=x a word is cut at each x. dash -c 'IFS=x; set -- ${a-y}${b-xx}; echo $#'.
#    Stays: IFS is the caller's. An IFS that has only blanks changes no line that is read
#    here. It is not set, as setting a readonly one ends dash: dash -c 'readonly IFS; IFS= read -r x'.
# W3 the pid is found in /proc: $$ is the main shell's in a subshell, and only bash
#    has BASHPID. (echo $$). By a file name if possible: dash, busybox and mksh read
#    a line byte by byte, and /proc/self/stat is 300 bytes long. Not in bash and zsh,
#    where options make a missing name an error that leaves the function and all its
#    callers. Goes when POSIX has a way to ask.
# W4 ksh93 (93u+m 1.0) runs ( ) and $( ) in the same process; only the depth
#    differs. ksh93 -c '(read p _ </proc/self/stat; echo $p $$)'. Goes when
#    every subshell is forked.
# W6 traps are listed into a file: dash 0.5, mksh R59 and zsh 5.9 list none in
#    $(trap). dash -c 'trap : EXIT; echo "$(trap)"'. Goes when they do (POSIX.1-2008).
# W7 command trap >|file: a redirection that fails on a special builtin ends dash,
#    mksh and ksh93; behind `command` it does not. Stays: POSIX has it so.
# W8 ignored signals are looked for in /proc as well: zsh 5.9 lists none that were
#    ignored at its start, and lets a trap take them back (nohup would be undone).
#    sh -c 'trap "" HUP; exec zsh --emulate sh -c "trap : HUP; kill -HUP \$\$; trap"'.
#    The list of traps is read too: ksh93 catches the signals that it is to ignore, so /proc
#    does not show them. Goes when zsh does as POSIX says.
# W9 zsh that does not emulate sh is refused: there an EXIT trap set in a function
#    runs when the function returns. zsh -c 'f() { trap "echo now" EXIT; }; f; sleep 1'.
#    Stays. In a zsh script: emulate sh -c '. adlock.sh'.
# W10 a status above 255 becomes 128 + the signal: a command ended by TERM leaves 271
#    in ksh93 and 399 in yash. yash -c 'sh -c "kill \$\$"; echo $?'. Goes when both print 143.
# W11 `command` before each command that prints, reads, sets a trap or is a program: a function
#    of the script may have its name. bash -c 'read() { return 1; }; . adlock.sh;
#    adlock_get a b'. Not before [, which can be a function only in bash and zsh and is called
#    30 times in a cycle, nor before special builtins; and `command` itself is trusted. Stays.
# W12 the EXIT trap exits with the status that it found: mksh R59 exits with that of the
#    trap's last command if exit was called in another trap. mksh -c
#    'trap : EXIT; trap "exit 3" TERM; kill $$'; echo $?. Goes when that prints 3.
#    In a script's own EXIT trap only an explicit exit helps.
# W13 return "$?", never bare: in a trap that is, in bash, mksh and yash, the status
#    from before the trap, also in functions. bash -c 'f() { false || return; };
#    trap "f && echo 0" USR1; kill -USR1 $$' prints 0. Stays: POSIX has it so.
# W14 a status of 0 counts only if the lock file confirms it: mksh R59 goes on
#    with 0 after a command for which it could not fork. ulimit -u 1 as an
#    ordinary user. Goes when that is an error.
#    And zsh 5.9 takes the status of a program that a CHLD trap has run for that of the program
#    it waits for. zsh -c 'trap /bin/true CHLD; (sleep .02)& sh -c "sleep .02; exit 7"; echo $?'.
#    And ksh93 (93u+m 1.0) leaves a subshell at a signal with a trap, with the signal's number, while the program
#    in it works on, and may take the lock. ksh93 -c 'trap : USR1; (sleep .1; kill -USR1 $$)& (/bin/sleep 1; exit
#    3); echo $?' prints 10. So a lock that is there after a denial is withdrawn, and no denial's status is a
#    signal's number.
# W15 a trap within a trap spoils every status: in dash 0.5.12 and busybox 1.35 $? is
#    afterwards what it was before the outer trap, also for the && and || in the outer
#    trap. dash -c 't() { trap : USR1; sh -c "kill -USR1 $$" || echo "$?"; }; trap t USR1;
#    sh -c "kill -USR1 $$; exit 7"; :' prints 7.
#    This file cannot avoid that; the script's trap can. Goes when both print nothing.
# W16 an answer counts even if its status is that of a stop: in zsh 5.9 $( ) has the status of
#    a signal that stopped its command, even if that went on and has ended since. zsh -c
#    'x=$(sh -c "(sleep 1; kill -CONT \$\$) & kill -STOP \$\$"); echo $?' prints 19.
#    Goes when it prints 0.
# W17 a question is written, and its answer read, by one simple command with a redirection
#    of its own: a trap may print into the redirection of a group. dash -c 'trap "echo trap"
#    USR1; { kill -USR1 $$; } >/dev/null'. bash, ksh93 and zsh run traps inside read, bash and
#    zsh inside printf too: bash and ksh93 read with -u, zsh with sysread and writes with syswrite (its read -u
#    goes on with standard input when a trap has read, and its printf hangs on a trap's).
#    bash -c 'trap "read x; echo $x" USR1; (sleep 1; kill -USR1 $$; sleep 1; echo no) | read y'. Stays.
# W18 the output of a command is read after the mark `adlock:`, and before the mark the trace
#    and the DEBUG trap are turned off: both print into $( ). bash -c 'set -x; BASH_XTRACEFD=1; x=$(date); echo "$x"';
#    zsh prints before a command could turn it off. Stays.
# W19 ksh93 (93u+m 1.0) exits in place of dying of INT in its EXIT trap. ksh93 -c
#    'trap "trap - INT; kill -INT \$\$" EXIT; trap "exit 1" INT; kill -INT $$'; echo $?
#    prints 1. So does zsh 5.9 if no command is running. Goes when they print 130, or 258.
# W20 code after a return must be harmless: yash 2.52 does not return, and forgets the trap, if a
#    signal comes during the return. yash -c 'f() { return "$(kill -USR1
#    $$)"; echo no; }; trap "echo trap" USR1; f' prints no. Goes when it prints trap. So on the
#    usual paths through a function, a return is the last command.
# W21 between a question and its answer, what can be compared literally is: zsh 5.9 fails to match a
#    pattern with * if a trap that matches one runs meanwhile. zsh -c 'trap ": ${t%% *}" USR1;
#    t="1 2"; (while kill -USR1 $$; do :; done) & while [ "${t%% *}" = 1 ]; do :; done' ends.
#    Elsewhere a failed match may make a get or a release fail. Goes when it does not end.

if [ "${_adlock_loaded-}" = "$$" ] && command -v adlock_get >/dev/null 2>&1; then
	return 0
fi

# If this file is run and not sourced, it prints its help.
case "${0##*/} ${1-}" in
'adlock.sh --help' | 'adlock.sh -h')
	sed -n '1d; /^# WORKAROUNDS/q; s/^# \{0,1\}//p' "$0"
	exit
	;;
esac

# W9. In eval, so that only zsh parses the [[.
if [ -n "${ZSH_VERSION-}" ] && ! eval '[[ -o posixtraps ]]'; then
	command echo "adlock: zsh: must emulate sh: use emulate sh -c '. adlock.sh'" >&2
	return 69
fi

# A script named adlock.sh may source this file.
if [ "${0##*/}" = adlock.sh ] && grep -q '^_adlock_loaded=' "$0" 2>/dev/null; then
	command echo "adlock: $0: is run, and does nothing: a script sources it (--help tells how)" >&2
	exit 64
fi

_adlock_loaded=$$
_adlock_installed='' # @ADLOCK_LIB_BIN@: make install writes the helper's path here
_adlock_version=0.2.0
_adlock_script=${0##*/}
# How the script was called, and from which directory: it may cd before the guard.
_adlock_called=$0
_adlock_from=${PWD-}
_adlock_held=''               # the list of held locks: see _adlock_strike
_adlock_above=${ADLOCK_MARK-} # the locks of the jobs in which this script runs
_adlock_pass=''               # the pass clock, as the helper's --now takes it
_adlock_node=''               # DIR, newline, the host in DIR, once asked for
_adlock_filed=''              # what settings files name, once asked for: see _adlock_locate
_adlock_has_files=''          # not empty: there is a settings file
_adlock_going=''              # the line of the list of held locks whose release began last
_adlock_known=''              # PREFIX LENGTH PROGRAM HOST: what names begin with, once built
_adlock_agent=''              # the state of the agent: see _adlock_want_agent
_adlock_agent_of='' _adlock_agent_at='' _adlock_agent_sign='' _adlock_questions='' _adlock_answers='' _adlock_asking=''
_adlock_number=0 # of the question asked last
# The lock directory, and the settings that it was found for.
_adlock_found='' _adlock_found_for=''
_adlock_nl='
'
_adlock_tab='	'
_adlock_blank=" $_adlock_tab$_adlock_nl"
# In full, as a range means other letters in other locales.
_adlock_alnum=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789

# --- What scripts call -------------------------------------------------------

adlock_get() { _adlock_call _adlock_get "$@"; }
# shellcheck disable=SC2120 # STATUS is for traps; with a second argument it is no number
adlock_release() { _adlock_call _adlock_release "${1-$?}${2+ $2}"; }
adlock_with() { _adlock_call _adlock_with "$@"; }
adlock_guard() { _adlock_call _adlock_guard "$@"; }
# shellcheck disable=SC2120 # arguments are refused
adlock_pass() { _adlock_call _adlock_begin_pass "$@"; }
adlock_agent() { _adlock_call _adlock_want_agent wanted adlock_agent "$@"; }
adlock_age() { _adlock_call _adlock_age "$@"; }

# A trap may call these functions between any two commands of another call, and there are no local
# variables (W1). So a call inside another one restores at its end the variables below, which both
# use. It finds $_adlock_inside set; a call that was interrupted for good leaves it set, which does no
# harm. Each call sets its own verdict at its end, whatever a trap has set meanwhile. The variables
# that outlive a call (above) are changed together in one command, so no trap sees only some of them
# changed.
_adlock_pid='' _adlock_owner='' _adlock_since='' _adlock_dir='' _adlock_bin='' _adlock_program=''
_adlock_host='' _adlock_operator='' _adlock_operand='' _adlock_name='' _adlock_part='' _adlock_status=''
_adlock_line='' _adlock_token='' _adlock_third='' _adlock_lock='' _adlock_file='' _adlock_gone='' _adlock_words=''
_adlock_verdict='' _adlock_fence='' _adlock_beside='' _adlock_inside=''

# _adlock_call FUNCTION [ARG...] runs what the script has called, and sets $ADLOCK_VERDICT at its end.
_adlock_call() {
	case $_adlock_inside in
	?*) _adlock_call_inside "$@" ;;
	*)
		_adlock_inside=yes _adlock_verdict=${ADLOCK_VERDICT-} _adlock_fence=${ADLOCK_FENCE-}
		if "$@"; then set -- 0; else set -- "$?"; fi
		case $_adlock_fence in ?*) ADLOCK_FENCE=$_adlock_fence ;; esac
		ADLOCK_VERDICT=$_adlock_verdict _adlock_inside=''
		return "$1"
		;;
	esac
}

# _adlock_call_inside FUNCTION [ARG...] runs a call inside another one, and restores the other's variables.
_adlock_call_inside() {
	set -- "$_adlock_pid" "$_adlock_owner" "$_adlock_since" "$_adlock_dir" "$_adlock_bin" "$_adlock_program" \
		"$_adlock_host" "$_adlock_operator" "$_adlock_operand" "$_adlock_name" "$_adlock_part" "$_adlock_status" \
		"$_adlock_line" "$_adlock_token" "$_adlock_third" "$_adlock_lock" "$_adlock_file" "$_adlock_gone" "$_adlock_words" \
		"$_adlock_verdict" "$_adlock_fence" "$_adlock_beside" "$_adlock_going" "$@"
	_adlock_verdict=${ADLOCK_VERDICT-} _adlock_fence=${ADLOCK_FENCE-} _adlock_beside=''
	if _adlock_behind 23 "$@"; then set -- 0 "$@"; else set -- "$?" "$@"; fi
	_adlock_tell
	_adlock_pid=$2 _adlock_owner=$3 _adlock_since=$4 _adlock_dir=$5 _adlock_bin=$6 _adlock_program=$7
	_adlock_host=$8 _adlock_operator=$9 _adlock_operand=${10} _adlock_name=${11} _adlock_part=${12} _adlock_status=${13}
	_adlock_line=${14} _adlock_token=${15} _adlock_third=${16} _adlock_lock=${17} _adlock_file=${18} _adlock_gone=${19}
	_adlock_words=${20} _adlock_fence=${22} _adlock_beside=${23} _adlock_going=${24} ADLOCK_VERDICT=$_adlock_verdict _adlock_verdict=${21}
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

# _adlock_get is figure 3 of the paper. One helper run compares the times and sets the lock, so no
# other process can act in between.
_adlock_get() {
	_adlock_verdict=''
	case $# in
	2 | 3 | 4 | 5 | 6) ;;
	*) _adlock_wants 2 6 "$#" adlock_get || return "$?" ;;
	esac
	_adlock_atom "$1" "$2" "${5-}" &&
		_adlock_as_set _adlock_get_atom "${3:-${ADLOCK_IF_ELAPSED-}}" "${4:-${ADLOCK_EXPIRE_AFTER-}}" "${6:-$_adlock_pass}"
}

# _adlock_as_set COMMAND [ARG...] runs the command with what the script has set for its locks, each
# setting as an option. The helper checks the values. A test compares the list with the helper's table.
_adlock_as_set() {
	"$@" ${ADLOCK_FROM_START:+"--setting=ADLOCK_FROM_START=$ADLOCK_FROM_START"} ${ADLOCK_FLOCK:+"--setting=ADLOCK_FLOCK=$ADLOCK_FLOCK"} \
		${ADLOCK_NOTICE:+"--setting=ADLOCK_NOTICE=$ADLOCK_NOTICE"} ${ADLOCK_ONCE_PER:+"--setting=ADLOCK_ONCE_PER=$ADLOCK_ONCE_PER"} \
		${ADLOCK_PAUSE:+"--setting=ADLOCK_PAUSE=$ADLOCK_PAUSE"} ${ADLOCK_RETRY_FAILED:+"--setting=ADLOCK_RETRY_FAILED=$ADLOCK_RETRY_FAILED"} \
		${ADLOCK_SHARED:+"--setting=ADLOCK_SHARED=$ADLOCK_SHARED"} ${ADLOCK_SLOTS:+"--setting=ADLOCK_SLOTS=$ADLOCK_SLOTS"} \
		${ADLOCK_STARVING:+"--setting=ADLOCK_STARVING=$ADLOCK_STARVING"} ${ADLOCK_VERBOSE:+"--setting=ADLOCK_VERBOSE=$ADLOCK_VERBOSE"} \
		${ADLOCK_WAIT:+"--setting=ADLOCK_WAIT=$ADLOCK_WAIT"} ${ADLOCK_WAIT_ELAPSED:+"--setting=ADLOCK_WAIT_ELAPSED=$ADLOCK_WAIT_ELAPSED"}
}

# _adlock_get_atom IFELAPSED EXPIREAFTER NOW [SETTING...] takes the atom that _adlock_atom has found.
_adlock_get_atom() {
	_adlock_ask_to_take "$@" || _adlock_run_to_take "$?" "$@" || return "$?"
	case $_adlock_status in
	0)
		case $_adlock_lock in
		'') _adlock_confirm || return "$?" ;; # no agent took it
		esac
		export ADLOCK_MARK
		_adlock_held=$_adlock_lock$_adlock_nl$_adlock_held ADLOCK_MARK=$_adlock_held$_adlock_above _adlock_verdict=acquired
		;;
	80) _adlock_deny too-soon ;;
	81) _adlock_deny busy ;; # already running
	82) _adlock_deny full ;;
	85) _adlock_deny paused ;;
	84) _adlock_deny stuck 77 ;; # the owner cannot be ended
	*) _adlock_back_off ;;       # the helper has reported why, or died
	esac
}

# _adlock_run_to_take ASKED IFELAPSED EXPIREAFTER NOW [SETTING...] runs a helper to take the lock. ASKED
# is the status of _adlock_ask.
_adlock_run_to_take() {
	_adlock_whoami
	_adlock_read_since "$3"
	_adlock_withdraw || : # it may run the locksmith, so the helper is found after it
	_adlock_find_helper && _adlock_name_atom || return "$?"
	[ "$1" != 2 ] || _adlock_disown 126
	_adlock_lock=''
	shift
	case ${ADLOCK_STORE-} in
	*://*)
		_adlock_find_smith || return "$?"
		_adlock_take lease "$@" "--store=$ADLOCK_STORE" ${ADLOCK_LEASE:+"--lease=$ADLOCK_LEASE"}
		;;
	*) _adlock_take take "$@" ;;
	esac
	case $_adlock_status in
	80 | 82 | 85) # W14; not 81: a busy lock may be this process's own
		set -- "$_adlock_status"
		_adlock_disown 126
		_adlock_status=$1
		;;
	83) _adlock_take takeover "$@" ;; # lock expired
	esac
}

# _adlock_release STATUS releases the lock that was taken last: by the agent, or else by a helper run.
# dash ends at a [ with more digits than it can compare.
_adlock_release() {
	case $1 in
	'' | *[!0-9]* | ??????????*)
		_adlock_say adlock_release "bad status '$1': a number is wanted"
		return 64
		;;
	esac
	_adlock_ask_to_release "${_adlock_held%%"$_adlock_nl"*}" "$1" "$_adlock_going" || _adlock_run_to_release "$1"
}

# _adlock_run_to_release STATUS runs a helper to release the lock that was taken last.
_adlock_run_to_release() {
	_adlock_whoami
	_adlock_withdraw || set -- "$1" "$?"
	case $_adlock_held in
	'' | 'left '*) return "${2-0}" ;;
	"$_adlock_owner "*)
		_adlock_let_go "${_adlock_held%%"$_adlock_nl"*}" "$1"
		;;
	*)
		_adlock_say adlock_release "the lock is held by process ${_adlock_held%%[. ]*}, not by this one"
		return 64
		;;
	esac
}

_adlock_with() {
	_adlock_verdict='' _adlock_beside=''
	_adlock_can_run "$@" || return "$?"
	case ${ADLOCK_FLOCK-} in
	'') _adlock_with_lock "$@" ;;
	*) _adlock_with_file "$@" ;;
	esac
}

# _adlock_with_file OPERATOR... -- COMMAND [ARG...] is _adlock_with_lock beside ADLOCK_FLOCK: this shell
# opens the file, the helper locks it, and COMMAND inherits it, so that it stays locked while COMMAND
# lives.
_adlock_with_file() {
	case ${ADLOCK_STORE-} in
	*://*)
		_adlock_say ADLOCK_FLOCK 'is for locks of this machine: a store keeps its own'
		return 64
		;;
	esac
	_adlock_is_program "$_adlock_words" "$@" && _adlock_find_helper || return "$?"
	"$_adlock_bin" lockable "$ADLOCK_FLOCK" || return "$?"
	_adlock_beside=9
	while [ -e "/proc/self/fd/$_adlock_beside" ] && [ "$_adlock_beside" -gt 3 ]; do
		_adlock_beside=$((_adlock_beside - 1))
	done
	if eval "_adlock_with_lock \"\$@\" $_adlock_beside<\"\$ADLOCK_FLOCK\""; then set -- 0; else set -- "$?"; fi
	_adlock_beside=''
	return "$1"
}

# _adlock_is_program N OPERATOR... -- COMMAND [ARG...] refuses a function: in some shells the commands in
# it do not inherit the descriptor.
_adlock_is_program() {
	shift "$(($1 + 2))"
	_adlock_capture command -v "$1" || return "$?"
	set -- "$1" "$_adlock_line"
	_adlock_capture _adlock_find_unset "$1" || [ "$?" -le 128 ] || return "$?"
	[ "$_adlock_line" = "$2" ] || {
		_adlock_say ADLOCK_FLOCK "is for a program, and $1 is a function"
		return 64
	}
}

# _adlock_find_unset FUNCTION prints what the name means without that function; for a subshell.
_adlock_find_unset() {
	command unset -f "$1" 2>/dev/null
	command -v "$1"
}

_adlock_with_lock() {
	eval "_adlock_get $_adlock_third" && _adlock_run_locked "$@"
}

# _adlock_run_locked OPERATOR... -- COMMAND [ARG...] runs the command, and releases the lock.
_adlock_run_locked() {
	shift "$((_adlock_words + 1))"
	# As $1 the lock is safe, whatever the command does with our variables.
	set -- "$_adlock_lock" "$@"
	_adlock_tell
	if _adlock_run_beside "$@"; then set -- "$1" 0; else set -- "$1" "$?"; fi
	if _adlock_is_alone "$1" "$2" --wait; then
		_adlock_ask_to_release "$1" "$2" "$_adlock_going" || _adlock_let_go "$1" "$2" || set -- "$1" "$2" "$?"
	else
		_adlock_say "${1#* * }" 'not released: processes of the command may be left'
	fi
	[ "$_adlock_gone" = yes ] || ! _adlock_booked "$1" || _adlock_strike "$1" "left $2 $1$_adlock_nl"
	[ "$2" = 0 ] || set -- "$1" "$2" "$2"
	return "${3-0}"
}

# _adlock_run_beside LINE COMMAND [ARG...] runs the command with the file that is locked beside the
# atom. mksh and ksh93 pass a descriptor above 2 only where the command itself redirects it.
_adlock_run_beside() {
	shift
	case $_adlock_beside in
	'') "$@" ;;
	*) eval "\"\$@\" $_adlock_beside<&$_adlock_beside" ;;
	esac
}

# _adlock_is_alone LINE STATUS [--wait] is false, and $_adlock_gone no, if the status is that of a command which
# was ended, and processes of the job are, or may be, left. With --wait it returns when they are gone.
_adlock_is_alone() {
	_adlock_status=$2 _adlock_gone=no
	_adlock_plain_status
	case ${1##*/}:$_adlock_status in # a store's locksmith knows the job
	lock.*:129 | lock.*:130 | lock.*:131 | lock.*:137 | lock.*:143)
		_adlock_find_helper || return 0
		set -- "${1#* }" ${3:+"$3"}
		for _adlock_try in 1 2 3 4 5 6 7 8 9; do # a signal to the whole group ends the helper too
			_adlock_help left ${2:+"$2"} "${1%% *}" "${1#* }"
			! _adlock_answered || break
		done
		return "$_adlock_status"
		;;
	esac
}

# _adlock_guard [IFELAPSED [EXPIREAFTER]] guards the script in the way that the helper prints
# ($_adlock_words).
_adlock_guard() {
	_adlock_verdict=''
	_adlock_wants 0 2 "$#" adlock_guard || exit "$?"
	_adlock_find_helper && _adlock_atom guard . '' || exit "$?" # the helper tells the operand
	case ${ADLOCK_NAME:+name}${ADLOCK_OPERAND:+operand} in
	name) _adlock_program=${ADLOCK_PROGRAM:-adlock} _adlock_operator=${ADLOCK_OPERATOR:-run} ;; # as adlock run --name
	nameoperand)
		_adlock_say ADLOCK_NAME 'cannot go with ADLOCK_OPERAND'
		exit 64
		;;
	esac
	_adlock_whoami
	_adlock_read_since ''
	set -- "${1:-${ADLOCK_IF_ELAPSED-}}" "${2:-${ADLOCK_EXPIRE_AFTER-}}"
	_adlock_capture "$_adlock_bin" guard --owner "$_adlock_pid" --script "$_adlock_called" --directory "$_adlock_from" \
		${ADLOCK_EXIT_DENIED:+"--setting=ADLOCK_EXIT_DENIED=$ADLOCK_EXIT_DENIED"} -- "$_adlock_dir" "$_adlock_program" "$_adlock_host" "$_adlock_operator" "${ADLOCK_NAME:-${ADLOCK_OPERAND-}}" || _adlock_unanswered adlock_guard "$_adlock_line" || exit "$?"
	_adlock_words=$_adlock_line
	# `again` marks the second start of this script. What it starts must not inherit that word.
	_adlock_above=${_adlock_above#again } ADLOCK_MARK=$_adlock_held$_adlock_above
	case $_adlock_words in
	held) _adlock_verdict=acquired ;;
	'again '*) _adlock_guard_again "$@" || _adlock_guard_here "$@" ;;
	'here '*) _adlock_guard_here "$@" ;;
	*) exit 71 ;; # cut short
	esac
	[ -z "${ADLOCK_NAME-}" ] || command unset ADLOCK_SLOTS 2>/dev/null || : # of the semaphore of that name
	command unset ADLOCK_NAME ADLOCK_OPERAND ADLOCK_FLOCK 2>/dev/null || :  # they are not for what the script starts
}

_adlock_age() {
	_adlock_wants 2 3 "$#" adlock_age || return "$?"
	_adlock_atom "$1" "$2" "${3-}" ask && _adlock_find_helper && _adlock_name_atom || return "$?"
	set -- "$_adlock_dir/last.$_adlock_name"
	case ${ADLOCK_STORE-} in
	*://*)
		_adlock_find_smith || return "$?"
		_adlock_capture "$_adlock_bin" age --store "$ADLOCK_STORE" -- \
			"$_adlock_program" "$_adlock_host" "$_adlock_operator" "$_adlock_operand"
		;;
	*)
		_adlock_line=age$_adlock_tab$1$_adlock_tab
		if _adlock_ask; then
			_adlock_line=${_adlock_line#0 }
		else
			_adlock_capture "$_adlock_bin" last-age "$1"
		fi
		;;
	esac || _adlock_unanswered "$1" "$_adlock_line" || return "$?"
	case $_adlock_line in
	??????????*) command echo never ;; # ten digits of seconds: an mtime of 0, or no file
	*) command echo "$((_adlock_line / 60))" ;;
	esac || return 74
}

# --- Between the shell and the helper ----------------------------------------

# _adlock_help VERB [ARG...] runs the helper. The helper reads some settings from its environment. env(1)
# sets them: an assignment before the command would fail if a variable is readonly, and a subshell that
# exports them would end at a signal in ksh93, before its helper (W14). GOMAXPROCS=1 spares the helper its
# own first step (lib/lean), a tenth of a helper run. The helper's status is $_adlock_status.
# shellcheck disable=SC2016 # $ is for /bin/sh
_adlock_help() {
	_adlock_status=0
	case ${ADLOCK_LOGDIR-}${ADLOCK_LOG_MAX-}${ADLOCK_HOOK-}${ADLOCK_HOOK_RUNS-}${ADLOCK_SYSLOG-}$_adlock_beside in
	'') GOMAXPROCS=1 "$_adlock_bin" "$@" ;;
	*)
		case $_adlock_bin in
		*=*) set -- /bin/sh -c 'exec "$0" "$@"' "$_adlock_bin" "$@" ;; # env would take it for an assignment
		*) set -- "$_adlock_bin" "$@" ;;
		esac
		set -- ${ADLOCK_LOGDIR:+"ADLOCK_LOGDIR=$ADLOCK_LOGDIR"} ${ADLOCK_LOG_MAX:+"ADLOCK_LOG_MAX=$ADLOCK_LOG_MAX"} \
			${ADLOCK_HOOK:+"ADLOCK_HOOK=$ADLOCK_HOOK"} ${ADLOCK_HOOK_RUNS:+"ADLOCK_HOOK_RUNS=$ADLOCK_HOOK_RUNS"} \
			${ADLOCK_SYSLOG:+"ADLOCK_SYSLOG=$ADLOCK_SYSLOG"} GOMAXPROCS=1 "$@"
		eval "\\command -p \\env \"\$@\" ${_adlock_beside:+$_adlock_beside<&$_adlock_beside}"
		;;
	esac || _adlock_status=$?
	_adlock_plain_status
}

# _adlock_take VERB IFELAPSED EXPIREAFTER NOW [SETTING...] runs the helper on the atom. Never call it in
# $( ): the helper has to be a child of this shell.
_adlock_take() {
	set -- "$@" ${2:+"--if-elapsed=$2"} ${3:+"--expire-after=$3"} ${4:+"--now=$4"} \
		${_adlock_since:+"--since=$_adlock_since"} ${_adlock_beside:+"--beside=$_adlock_beside:$ADLOCK_FLOCK"}
	_adlock_third=$1
	shift 4
	case $_adlock_third in
	guarded) _adlock_restart "$@" ;;
	*) _adlock_help "$_adlock_third" --owner "$_adlock_pid" "$@" -- \
		"$_adlock_dir/lock.$_adlock_name" "$_adlock_program" "$_adlock_host" "$_adlock_operator" "$_adlock_operand" ;;
	esac
}

# _adlock_capture COMMAND [ARG...] sets $_adlock_line to what the command prints; its status is the
# command's (W18). Before the mark only standard error is redirected: if standard output is closed,
# dash would lose the pipe, which has become descriptor 1.
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

# _adlock_answered reports whether the helper exited by itself, having printed its messages.
# Otherwise it was killed, or got no thread or memory.
_adlock_answered() {
	case $_adlock_status in
	0 | 8[0-5] | 64 | 69 | 71 | 73 | 74 | 75 | 77) ;;
	*) return 1 ;;
	esac
}

# _adlock_unanswered OBJECT ANSWER returns the status ($?) of a helper that should print an answer: 0 if
# it has printed ANSWER all the same (W16). It reports the helper's death, which the helper could not.
_adlock_unanswered() {
	_adlock_status=$?
	_adlock_plain_status
	case ${ZSH_VERSION:+$_adlock_status-$2} in
	19-?* | 2[0-2]-?*) return 0 ;; # W16
	esac
	_adlock_answered || _adlock_say "$1" "the helper died, with status $_adlock_status"
	return "$_adlock_status"
}

# _adlock_confirm looks at the lock that a helper says it has taken, as the status alone proves nothing (W14).
_adlock_confirm() {
	_adlock_find_own || {
		_adlock_say "$_adlock_dir/lock.$_adlock_name" 'lost to a newcomer at once'
		_adlock_verdict=lost
		return 75
	}
	case $_adlock_third in
	fence=*) _adlock_fence=${_adlock_third#fence=} ;;
	esac
}

# _adlock_back_off withdraws a lock that a helper may have set before it failed or died.
_adlock_back_off() {
	set -- "$_adlock_status"
	_adlock_answered || _adlock_say "$_adlock_dir/lock.$_adlock_name" "not taken: the helper died, with status $1"
	_adlock_compare "$1"
	_adlock_disown "$1"
	return "$1"
}

# _adlock_disown STATUS withdraws the atom's lock, if it is there, as the script does not use it. If
# that fails, the lock stays in the list of held locks, and the next call withdraws it.
_adlock_disown() {
	if _adlock_find_own; then
		_adlock_held="${_adlock_held}left -$1 $_adlock_lock$_adlock_nl"
	fi
	_adlock_withdraw || :
}

# _adlock_let_go LINE STATUS [ENTRY] releases the lock of a line of the list of held locks, or withdraws
# it if STATUS is negative. ENTRY is the whole line, if it begins with `left`. If the helper dies, it
# runs another one. If the lock is still in place then, it stays in the list ($_adlock_gone: no), to be
# released again. A lock that is gone after a release that a trap interrupted is no error (--again).
_adlock_let_go() {
	_adlock_gone=no
	_adlock_find_helper || return "$?"
	_adlock_pid=${1%%[!0-9]*}
	set -- "${3-$1}" "${1#* }" "$2"
	_adlock_file=${2#* } _adlock_status=${3#-}
	_adlock_plain_status
	set -- "$1" "${2%% *}" "$3" _adlock_help release --token "${2%% *}" --status "$_adlock_status" \
		${ADLOCK_RETRY_FAILED:+"--setting=ADLOCK_RETRY_FAILED=$ADLOCK_RETRY_FAILED"} ${_adlock_beside:+"--beside=$_adlock_beside"}
	case $3 in -*) set -- "$@" --withdraw ;; esac
	case $_adlock_file in
	*/smith.*)
		_adlock_find_smith || return "$?"
		;;
	*) set -- "$@" ${ADLOCK_PAUSE:+"--pause=$ADLOCK_PAUSE"} ;;
	esac
	for _adlock_try in 1 2 3; do # a trap may change it, which does no harm
		_adlock_booked "$1" || break
		[ "$_adlock_going" != "$1" ] || set -- "$@" --again
		_adlock_going=$1
		case $_adlock_try in
		1) _adlock_behind 3 "$@" -- "$_adlock_file" ;;
		*) _adlock_once_more "$@" -- "$_adlock_file" ;;
		esac
		case $_adlock_status-$_adlock_file in
		0-*/smith.* | 75-*/smith.* | 86-*)
			_adlock_gone=yes
			break
			;;
		0-*) _adlock_status=126 ;; # a failure, unless the lock is gone: W14
		esac
		if ! _adlock_there "$2"; then
			if _adlock_hidden; then _adlock_going=''; else _adlock_gone=yes; fi
			break
		fi
		! _adlock_answered || break
	done
	if ! _adlock_booked "$1"; then # a trap has released it meanwhile
		_adlock_gone=yes
		return 0
	fi
	[ "$_adlock_status" != 75 ] || _adlock_verdict=lost
	if [ "$_adlock_gone" = yes ]; then
		_adlock_strike "$1"
		_adlock_answered || _adlock_status=0 # the helper died after the release
	elif ! _adlock_answered; then
		_adlock_say "$_adlock_file" "not released: the helper died, with status $_adlock_status"
	fi
	_adlock_compare "$_adlock_status"
	return "$_adlock_status"
}

# _adlock_once_more ENTRY TOKEN STATUS _adlock_help VERB... runs a helper after one that died. It
# ignores signals: if a newcomer is ending the whole job, a signal would end this helper too, before
# it has reported the newcomer.
_adlock_once_more() {
	_adlock_status=0
	(
		command trap '' INT TERM
		_adlock_behind 3 "$@"
		exit "$_adlock_status"
	) || _adlock_status=$?
	_adlock_plain_status
}

# _adlock_withdraw releases the locks that this process has left behind: no other process will do so
# while this one lives. A lock that a killed command may still need stays.
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
			{ _adlock_is_alone "${_adlock_line#* }" "${_adlock_line%% *}" && _adlock_let_go "${_adlock_line#* }" "${_adlock_line%% *}" "$3"; } || set -- "$1" "$?"
			;;
		esac
	done
	return "$2"
}

# The list of held locks ($_adlock_held) has a line for each, the last one taken first: OWNER TOKEN
# FILE. Below are the locks that were left behind: left STATUS OWNER TOKEN FILE.

# _adlock_strike LINE [INSTEAD] removes a line from the list, if it is there, and appends INSTEAD. It
# does so in one command: if a trap has removed the line before, none is removed. No pattern begins
# with *: with it shells take quadratic time, a second for 200 locks.
_adlock_strike() {
	_adlock_line=${_adlock_held%%"$1$_adlock_nl"*} _adlock_third=${_adlock_held##"$_adlock_line$1$_adlock_nl"} \
		_adlock_held=${_adlock_line%%"$_adlock_third"}$_adlock_third${2-} ADLOCK_MARK=$_adlock_held$_adlock_above
}

_adlock_booked() {
	case $_adlock_held in
	*"$1$_adlock_nl"*) ;;
	*) return 1 ;;
	esac
}

# _adlock_find_own looks for a lock of the atom that this process owns and that is not in the list of
# held locks. If there is one, $_adlock_lock is its line.
_adlock_find_own() {
	case ${ADLOCK_STORE-} in
	*://*)
		_adlock_file=$_adlock_dir/smith.$_adlock_pid # its lock is in the store
		_adlock_owns "$_adlock_file"
		;;
	*)
		_adlock_file=$_adlock_dir/lock.$_adlock_name
		_adlock_reader "$_adlock_name"
		_adlock_owns "$_adlock_file" || _adlock_owns "$_adlock_dir/$_adlock_part"
		;;
	esac
}

# _adlock_owns FILE reports whether the file is a lock that this process owns and has not in the list.
_adlock_owns() {
	_adlock_read "$1" || :
	case $_adlock_line-$_adlock_token in
	"$_adlock_pid-"?*)
		_adlock_lock="$_adlock_owner $_adlock_token $_adlock_file"
		! _adlock_booked "$_adlock_token $_adlock_file" # under any owner: W4
		;;
	*) return 1 ;;
	esac
}

# _adlock_there TOKEN reports whether the lock $_adlock_file, or the file that stands for it, still
# belongs to this acquisition.
_adlock_there() {
	case $_adlock_file in
	*/smith.*) [ -e "${_adlock_file%/*}/smith.$1" ] ;;
	*)
		_adlock_reader "${_adlock_file##*/lock.}"
		_adlock_bears "$_adlock_file" "$1" || _adlock_bears "${_adlock_file%/*}/$_adlock_part" "$1"
		;;
	esac
}

# _adlock_bears FILE TOKEN reports whether the lock has the token. A file that exists but cannot be read
# counts as having it.
_adlock_bears() {
	if _adlock_read "$1"; then
		[ "$_adlock_token" = "$2" ]
	else
		[ -e "$1" ]
	fi
}

# _adlock_hidden reports whether the lock $_adlock_file, which is not there after a helper has failed,
# may only be hidden, by a mount, say: a lock that was removed leaves the atom's last lock. 126: the
# helper has released it.
_adlock_hidden() {
	case $_adlock_status-$_adlock_file in
	126-* | *-*/smith.*) return 1 ;;
	esac
	[ ! -e "${_adlock_file%/*}/last.${_adlock_file##*/lock.}" ]
}

# _adlock_read FILE reads the pid, the token and the third line ($_adlock_line, $_adlock_token,
# $_adlock_third; empty if missing). It fails if the file cannot be read.
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

# _adlock_first NAME FILE reads the first line of a file. It uses one command for that: a trap in a
# group would have no standard error. Blanks around the line are lost under any IFS. zsh 5.9 reports a missing
# file all the same, so that is looked for.
_adlock_first() {
	[ -r "$2" ] && case ${IFS-} in
	*[!$_adlock_blank]*) IFS=$_adlock_blank command read -r "$1" 2>/dev/null <"$2" ;;
	*) command read -r "$1" 2>/dev/null <"$2" ;;
	esac
}

_adlock_plain_status() {
	[ "$_adlock_status" -le 255 ] || _adlock_status=$((128 + (_adlock_status & 127))) # W10
}

# _adlock_deny VERDICT [STATUS] sets the verdict of a denial. The messages for a person have been printed.
_adlock_deny() {
	_adlock_verdict=$1
	return "${2:-75}"
}

# _adlock_compare STATUS reports a helper of another version than this file. It asks the helper only
# after a usage error (64), which another version may cause.
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
		_adlock_say "$_adlock_bin" 'helper not found: no lock is taken or released'
		return 69
	}
}

_adlock_has_helper() {
	_adlock_bin=${ADLOCK_BIN:-${_adlock_installed:-adlock}}
	_adlock_is_command "$_adlock_bin"
}

# _adlock_is_command NAME reports whether the shell can run NAME. For dash and busybox a path that is there is a
# command.
_adlock_is_command() {
	case $1 in
	*/*) [ -f "$1" ] && [ -x "$1" ] ;;
	*) command -v "$1" >/dev/null 2>&1 ;;
	esac
}

# _adlock_find_smith puts the program that holds locks in a store in place of the helper: the one
# beside it, else on PATH.
_adlock_find_smith() {
	set -- adlock-locksmith
	case $_adlock_bin in
	*/*) [ ! -x "${_adlock_bin%/*}/$1" ] || set -- "${_adlock_bin%/*}/$1" ;;
	esac
	command -v "$1" >/dev/null 2>&1 || {
		_adlock_say "$1" 'is not installed: it is needed for a store beyond this machine'
		return 69
	}
	_adlock_bin=$1
}

# --- The agent ------------------------------------------------------------------

# An agent is a helper process that stays (cmd/adlock/agent_protocol.go has the protocol). What it does not answer, a
# helper run does; and a helper run can do all that an agent does.

_adlock_begin_pass() {
	_adlock_want_agent later adlock_pass "$@" || return "$?"
	_adlock_line='' # it stays empty without such a file, or if a trap cuts the read short
	_adlock_first _adlock_line /proc/uptime
	case $_adlock_line in
	*.*' '*)
		_adlock_pass=uptime:${_adlock_line%% *}
		;;
	*)
		_adlock_capture command date +%s || return "$?"
		_adlock_pass=$_adlock_line
		;;
	esac
}

# _adlock_want_agent STATE FUNCTION makes a question start an agent for this process. $_adlock_agent is
# `later` if that is the question after the next, as one lock is not worth an agent; `wanted` if it is
# the next; `tried` once the agent is started, and `serves` when it has answered. It is empty if there
# is no agent, and none shall be started.
_adlock_want_agent() {
	if [ "$#" -gt 2 ]; then
		_adlock_say "$2" 'wants no arguments'
		return 64
	fi
	case ${ADLOCK_AGENT-1} in
	1 | yes | true)
		_adlock_whoami
		[ -n "$_adlock_agent" ] && [ "$_adlock_agent_of" = "$_adlock_owner" ] || _adlock_agent=$1 _adlock_agent_of=$_adlock_owner
		;;
	0 | no | false | '') _adlock_agent='' ;;
	*)
		_adlock_say ADLOCK_AGENT "\"$ADLOCK_AGENT\": want 1 or 0"
		return 64
		;;
	esac
}

# _adlock_start_agent starts the agent, and leaves the question in $_adlock_line. If it fails, it is not
# tried again, and the question may be lost.
_adlock_start_agent() {
	set -- "$_adlock_line"
	_adlock_agent=''
	_adlock_has_helper || return 1 # a helper run reports that
	_adlock_whoami
	[ "$_adlock_owner" = "$_adlock_agent_of" ] && _adlock_make_exchange || return 1
	_adlock_capture _adlock_quietly exec "$_adlock_bin" agent --owner "$_adlock_pid" || return 1
	# The agent's variables are set in one command: a trap may start a pass, and so another agent,
	# meanwhile, and a question to one agent must not wait for an answer of the other.
	case $_adlock_line in
	'_adlock_agent_sign='*' _adlock_agent=tried') eval "$_adlock_line _adlock_line=\$1" ;;
	*) return 1 ;; # no greeting
	esac
}

# _adlock_ask asks the agent the question in $_adlock_line: the words of a helper run, with a tab
# after each. 0: the answer is $_adlock_status, and its words are in $_adlock_line. 1: a helper run
# has to do it; nothing was changed. 2: a helper run has to do it; the agent died meanwhile, and may
# have done it.
_adlock_ask() {
	# The agent has no terminal, and not this process's environment: all settings must be in the
	# question.
	[ ! -t 2 ] || return 1
	case ${#_adlock_line}:$_adlock_line in
	*"$_adlock_nl"* | [0-9][0-9][0-9][0-9]*) return 1 ;; # 1000 characters or more, of up to 4 bytes each: see cmd/adlock/agent_protocol.go
	esac
	case $_adlock_agent-$_adlock_asking${ADLOCK_LOGDIR-}${ADLOCK_LOG_MAX-}${ADLOCK_HOOK-}${ADLOCK_SYSLOG-}${ADLOCK_NOW-} in
	serves- | tried-) ;;
	later-)
		_adlock_agent=wanted
		return 1
		;;
	wanted-) _adlock_start_agent || return 1 ;;
	*) return 1 ;;
	esac
	_adlock_asking=yes _adlock_number=$((_adlock_number + 1))
	_adlock_exchange || _adlock_ask_in_vain "$?" || return "$?"
	_adlock_asking='' _adlock_agent=serves
	case $_adlock_line in
	*"$_adlock_tab"*) _adlock_relay ;;
	esac
	_adlock_status=${_adlock_line%% *}
	[ "${#_adlock_status}" -le 6 ] || _adlock_status=${_adlock_line%% *} # W21
	[ "$_adlock_status" != helper ]
}

# _adlock_ask_in_vain STATUS handles an exchange that brought no answer and has returned STATUS. It
# returns what _adlock_ask is to return.
_adlock_ask_in_vain() {
	_adlock_asking=''
	case $1-$_adlock_agent in
	1-serves)
		# It left after a time without questions. An agent that never answered is not started again.
		_adlock_agent=wanted
		;;
	3-*)
		# The script has taken a descriptor meanwhile.
		_adlock_make_exchange || _adlock_agent=''
		;;
	4-*)
		# A trap took or closed a descriptor after the question.
		until _adlock_settle "$((_adlock_number += 1))"; do
			# shellcheck disable=SC3013 # as in _adlock_start_agent
			[ "$_adlock_agent_at" -ef /proc/self ] || break
		done
		_adlock_agent=''
		;;
	*) _adlock_agent='' ;;
	esac
	case $1 in
	2 | 4) return 2 ;;
	*) return 1 ;;
	esac
}

# _adlock_make_exchange defines two functions for two descriptors that are free, as no shell takes
# the digits of a redirection from a variable: _adlock_exchange NUMBER WORD..., and _adlock_await
# for an answer that does not come with the first read. They return 0 with the answer in
# $_adlock_line; 1: there is no agent; 2: the agent has gone meanwhile; 3: a descriptor is not free
# any more; 4: since the question, a descriptor was closed, or the script has taken it.
#
# An agent that is about to leave has closed $_adlock_agent_sign. The first descriptor is opened on
# the answers for reading and writing, so that the opening does not wait for the other end. The
# second is opened by way of the first for reading only, so that the answers end when the agent
# dies. Then the first is opened on the questions, for reading too, so that writing raises no
# SIGPIPE when the agent dies. A read that a trap interrupts looks like an end of the answers: while
# the agent lives, the read is repeated.
#
# Each descriptor is opened, written and read by a simple command, without a group, a function or a
# redirection around it: a trap would use that as its own standard input or output (W17). The
# functions are defined while the script runs, so a backslash keeps the script's aliases out.
# shellcheck disable=SC2016 # $ is for the function
_adlock_make_exchange() {
	set --
	for _adlock_line in 9 8 7 6 5 4 3; do
		[ -e "/proc/self/fd/$_adlock_line" ] || set -- "$@" "$_adlock_line"
	done
	[ "$#" -ge 2 ] || return 1
	# $3 writes the question, $4 reads a line; $5: see W4.
	set -- "$1" "$2" '\command printf "%s\n" "$_adlock_tab$_adlock_number$_adlock_tab$_adlock_line" >&'"$1" '\command read -r _adlock_line <&'"$2"
	case ${ZSH_VERSION:+zsh}${BASH_VERSION:+bash}${KSH_VERSION-} in
	zsh)
		builtin zmodload -F zsh/system b:sysread b:syswrite 2>/dev/null || return 1
		set -- "$1" "$2" '\builtin syswrite -o '"$1"' "$_adlock_tab$_adlock_number$_adlock_tab$_adlock_line$_adlock_nl"' \
			'_adlock_line= && \builtin sysread -i '"$2"' _adlock_line && _adlock_line=${_adlock_line%"$_adlock_nl"} _adlock_line=${_adlock_line##*"$_adlock_nl"}'
		;;
	bash) set -- "$1" "$2" "$3" '\command read -r -u '"$2"' _adlock_line' ;;
	*' 93'*) set -- "$1" "$2" "$3" '\command read -r -u '"$2"' _adlock_line' '[ "${_adlock_agent_of#*.}" = "${.sh.subshell}" ] || \return 1;' ;;
	*MIRBSD*) set -- "$1" "$2" '\command print -r -u'"$1"' -- "$_adlock_tab$_adlock_number$_adlock_tab$_adlock_line"' "$4" ;; # its printf is a program
	esac
	case $4 in
	*' read '*)
		set -- "$1" "$2" "$3" 'case ${IFS-} in
			*[!$_adlock_blank]*) IFS= '"$4"' ;;
			*) '"$4"' ;;
			esac' "${5-}"
		;;
	esac
	set -- "$1" "$2" "$3" "$4"' && [ "${_adlock_line#"$_adlock_number "}" != "$_adlock_line" ]' "${5-}" # W21
	eval '_adlock_exchange() {
		'"$5"'[ "$_adlock_agent_sign" -ef /proc/self ] || \return 1
		[ ! -e /proc/self/fd/'"$1"' ] && [ ! -e /proc/self/fd/'"$2"' ] || \return 3
		_adlock_status=1
		\command exec '"$1"'<>"$_adlock_answers" '"$2"'</proc/self/fd/'"$1 $1"'<>"$_adlock_questions" &&
			[ "$_adlock_agent_at" -ef /proc/self ] && _adlock_status=4 && '"$3"' && _adlock_line= _adlock_status=0 && '"$4"' &&
			\command exec '"$1"'>&- '"$2"'<&- || _adlock_await
		_adlock_line=${_adlock_line#"$_adlock_number "}
		\return "$_adlock_status"
	}
	_adlock_await() {
		while [ "$_adlock_status" = 0 ]; do
			if [ ! "$_adlock_agent_at" -ef /proc/self ]; then
				[ -n "$_adlock_line" ] || _adlock_status=2
			elif [ ! /proc/self/fd/'"$2"' -ef "$_adlock_answers" ] && [ "$_adlock_agent_at" -ef /proc/self ]; then
				_adlock_status=4
			fi
			[ "$_adlock_status" != 0 ] || ! { '"$4"'; } || \break
		done
		if [ "$_adlock_status" != 4 ]; then
			\command exec '"$1"'>&- '"$2"'<&-
		else
			[ ! /proc/self/fd/'"$1"' -ef "$_adlock_questions" ] || \command exec '"$1"'>&-
			[ ! /proc/self/fd/'"$2"' -ef "$_adlock_answers" ] || \command exec '"$2"'<&-
		fi
	}'
}

# _adlock_settle NUMBER asks a question and returns at its answer, or fails if the agent is gone: the
# agent answers in order, so it has then done with all questions before NUMBER. It runs in a subshell,
# where it may use any descriptor.
_adlock_settle() (
	_adlock_hush
	command trap '' HUP INT QUIT TERM USR1 USR2 # a subshell does not have the script's traps
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

# _adlock_ask_to_take IFELAPSED EXPIREAFTER NOW [SETTING...] asks the agent for the lock. If the lock was
# taken, $_adlock_lock is then its line in the list of held locks.
_adlock_ask_to_take() {
	case $_adlock_agent-${_adlock_beside:+left }${ADLOCK_STORE-}$*$_adlock_held in
	-* | *"left "* | *://* | *"$_adlock_tab"*) return 1 ;;
	esac
	_adlock_pid=${_adlock_agent_of%%.*}
	_adlock_line=take$_adlock_tab--owner$_adlock_tab$_adlock_pid$_adlock_tab${1:+--if-elapsed=$1$_adlock_tab}${2:+--expire-after=$2$_adlock_tab}${3:+--now=$3$_adlock_tab}
	shift 3
	for _adlock_third; do _adlock_line=$_adlock_line$_adlock_third$_adlock_tab; done
	_adlock_line=$_adlock_line--$_adlock_tab$_adlock_dir$_adlock_tab$_adlock_program$_adlock_tab$_adlock_host$_adlock_tab$_adlock_operator$_adlock_tab$_adlock_operand$_adlock_tab
	_adlock_ask && case $_adlock_status in
	0) _adlock_lock=$_adlock_agent_of' '${_adlock_line#0 } ;;
	esac # W20: a denial often needs a helper
}

# _adlock_ask_to_release LINE STATUS GOING asks the agent to release the lock of the first line of the
# list. GOING is $_adlock_going: if this call is in a trap that interrupted the same release, that
# release stays marked as begun.
_adlock_ask_to_release() {
	case $_adlock_agent-${ADLOCK_RETRY_FAILED-}$_adlock_beside-$_adlock_held in
	*"left "*) return 1 ;;
	serves--"$1$_adlock_nl"*) ;;
	*) return 1 ;;
	esac
	_adlock_going=$1 _adlock_gone=yes _adlock_line=release$_adlock_tab$2$_adlock_tab$1$_adlock_tab
	if _adlock_ask; then
		_adlock_strike "$1"
	else
		set -- "$?" "$3"
		[ "$1" = 2 ] || _adlock_going=$2
		return "$1"
	fi
}

# --- The owner, the atom, the directory --------------------------------------

# _adlock_atom OPERATOR OPERAND HOST [keep|ask] finds the atom's parts and the lock directory.
# _adlock_name_atom then builds its name.
_adlock_atom() {
	case ${1:+1}${2:+2} in
	12) ;;
	*)
		_adlock_say "'$1' '$2'" 'operator and operand must not be empty'
		return 64
		;;
	esac
	_adlock_operator=$1 _adlock_operand=$2 _adlock_host=${3:-${ADLOCK_HOST-}} _adlock_program=${ADLOCK_PROGRAM:-$_adlock_script}
	case ${ADLOCK_DIR:-$_adlock_nl${HOME-}}$_adlock_nl${ADLOCK_STORE-} in
	"$_adlock_found_for") _adlock_dir=$_adlock_found ;;
	*) _adlock_find_dir || return "$?" ;;
	esac
	case $_adlock_host in
	'') _adlock_find_host "${4-keep}" ;;
	esac
}

# _adlock_name_atom builds PROGRAM.HOST.OPERATOR.OPERAND, each part made canonical. If one of them needs a
# checksum, the helper builds the name.
# shellcheck disable=SC2015 # so it does whichever part fails
_adlock_name_atom() {
	set -- "${#_adlock_program} $_adlock_program $_adlock_host" "$_adlock_known"
	_adlock_name=${2%% *}
	if [ "$2" != "$_adlock_name $1" ]; then
		_adlock_name=''
		_adlock_part "$_adlock_program" && _adlock_part "$_adlock_host"
	fi && _adlock_part "$_adlock_operator" && _adlock_part "$_adlock_operand" || {
		_adlock_capture "$_adlock_bin" name "$_adlock_program" "$_adlock_host" "$_adlock_operator" "$_adlock_operand" ||
			_adlock_unanswered "$_adlock_operator $_adlock_operand" "$_adlock_line" || return "$?"
		_adlock_name=$_adlock_line
	}
	_adlock_name=${_adlock_name#.}
	_adlock_known="${_adlock_name%.*.*} $1"
}

# _adlock_whoami finds the pid of this process ($_adlock_pid); what distinguishes it from subshells
# that have no pid of their own ($_adlock_owner). (W3, W4)
_adlock_whoami() {
	set -- ''
	case ${BASH_VERSION-}${ZSH_VERSION-} in
	'') set -- /proc/self/task/* ;; # a shell has one thread, which bears its pid
	esac
	_adlock_pid=${1+${1##*/}}
	case $#-$_adlock_pid in
	1-*[!0-9]* | 1- | [!1]*) # not asked, noglob, or no such directory
		_adlock_first _adlock_pid /proc/self/stat || {
			# shellcheck disable=SC2016 # the parent of that sh is this process
			_adlock_capture exec sh -c 'echo "$PPID"'
			_adlock_pid=$_adlock_line
		}
		_adlock_pid=${_adlock_pid%% *}
		;;
	esac
	_adlock_owner=$_adlock_pid
	case ${KSH_VERSION-} in
	*' 93'*) eval '_adlock_owner=$_adlock_pid.${.sh.subshell}' ;;
	esac
}

# _adlock_read_since EXPIREAFTER sets the time from which a wait counts, if there may be one: a settings file may
# set it. With ExpireAfter 0, an owner that was asked for before that time is replaced.
_adlock_read_since() {
	_adlock_since=''
	case $1-${ADLOCK_WAIT-}$_adlock_has_files in
	0* | *-?*) _adlock_first _adlock_since /proc/uptime ;;
	esac
	_adlock_since=${_adlock_since%% *}
}

_adlock_find_dir() {
	[ -n "$_adlock_filed" ] || _adlock_locate || return "$?"
	_adlock_dir=${ADLOCK_DIR:-${_adlock_filed%"$_adlock_nl"*}}
	[ -n "${ADLOCK_STORE-}" ] || [ "$_adlock_filed" = "$_adlock_nl" ] || ADLOCK_STORE=${_adlock_filed##*"$_adlock_nl"}
	case ${ADLOCK_STORE-} in
	'' | *://*) ;;
	etcd:* | ftp:* | ftps:*)
		_adlock_say "$ADLOCK_STORE" 'is no store: want a directory, etcd://HOST:PORT/PREFIX or ftp://USER@HOST/DIR'
		return 64
		;;
	*) _adlock_dir=$ADLOCK_STORE ;;
	esac
	[ -n "$_adlock_dir" ] || _adlock_find_usual_dir || return "$?"
	case $_adlock_dir in
	*"$_adlock_nl"*)
		_adlock_say ADLOCK_DIR 'must not hold a newline'
		return 64
		;;
	/*) _adlock_dir=${_adlock_dir%"${_adlock_dir##*[!/]}"} _adlock_dir=${_adlock_dir:-/} _adlock_found=$_adlock_dir _adlock_found_for=${ADLOCK_DIR:-$_adlock_nl${HOME-}}$_adlock_nl${ADLOCK_STORE-} ;;
	*)
		[ -d "$_adlock_dir" ] || {
			_adlock_say "$_adlock_dir" 'no such directory, and a relative one is not made (give its full path)'
			return 73
		}
		_adlock_dir=$PWD/${_adlock_dir%/} # the script may cd before it releases
		;;
	esac
}

# _adlock_locate sets $_adlock_filed to the lock directory and the store that settings files
# name, with a newline between. The helper reads them, as the shell cannot find out which users may
# write a file.
_adlock_locate() {
	if _adlock_is_none /etc && _adlock_is_none "${HOME-}/.config"; then
		_adlock_filed=$_adlock_nl
		return 0
	fi
	_adlock_find_helper || return "$?"
	_adlock_capture "$_adlock_bin" locations || _adlock_unanswered adlock.conf "$_adlock_line" || return "$?"
	case $_adlock_line in
	*"$_adlock_nl"*"$_adlock_nl".) _adlock_filed=${_adlock_line%"$_adlock_nl".} _adlock_has_files=yes ;;
	*) return 71 ;; # cut short
	esac
}

# _adlock_is_none DIR reports whether DIR certainly has no settings file.
_adlock_is_none() {
	if [ -e "$1" ] || [ -h "$1" ]; then
		[ -x "$1" ] && [ ! -e "$1/adlock.conf" ] && [ ! -h "$1/adlock.conf" ]
	fi
}

# _adlock_find_usual_dir is usualDir of lib/config. A test compares them.
# shellcheck disable=SC3067 # -O: all of these shells have it
_adlock_find_usual_dir() {
	if _adlock_proc Uid; then
		_adlock_line=${_adlock_line#*[0-9]*[!0-9]} # real effective saved, with tabs between
	else
		_adlock_capture command id -u
	fi
	set -- "${_adlock_line%%[!0-9]*}"
	_adlock_dir=/var/lib/adlock-$1 # adlock init has made it
	if [ "$1" = 0 ]; then
		_adlock_dir=/var/lib/adlock
	elif [ ! -d "$_adlock_dir" ] || [ -h "$_adlock_dir" ] || [ ! -O "$_adlock_dir" ]; then
		case ${HOME-} in
		/*) _adlock_dir=$HOME/.local/state/adlock ;;
		*)
			_adlock_say ADLOCK_DIR "is not set, and HOME is no absolute path (as root: adlock init $1)"
			return 69
			;;
		esac
	fi
}

# _adlock_find_host keep|ask sets $_adlock_host to the node name under which this machine first
# locked in the lock directory (lib/protocol.md, 1). If that is not recorded, the helper records it
# (keep), or it is the present one (ask).
_adlock_find_host() {
	set -- "$1" "$_adlock_dir"
	case ${ADLOCK_STORE-} in *://*) set -- "$1" '' ;; esac
	case $_adlock_node in
	"$2$_adlock_nl"*) _adlock_host=${_adlock_node#*"$_adlock_nl"} ;;
	*)
		_adlock_recall_host "$@" || return "$?"
		_adlock_host=$_adlock_line
		[ "$1" = ask ] || _adlock_node=$2$_adlock_nl$_adlock_line
		;;
	esac
}

# _adlock_recall_host keep|ask DIR sets $_adlock_line to the host. Without a machine id
# (machine-id(5)), or DIR, it is the node name.
_adlock_recall_host() {
	_adlock_line=''
	_adlock_first _adlock_line /etc/machine-id
	[ -n "$_adlock_line" ] || _adlock_first _adlock_line /var/lib/dbus/machine-id
	case ${2:+in}-${#_adlock_line}-$_adlock_line in
	in-32-*[!0123456789abcdef]*) _adlock_line='*' ;;
	in-32-*) _adlock_read_host "$@" "$2/host.$_adlock_line" || return "$?" ;;
	*) _adlock_line='*' ;;
	esac
	[ "$_adlock_line" != '*' ] || _adlock_first _adlock_line /proc/sys/kernel/hostname || _adlock_capture command uname -n || return 71
}

# _adlock_read_host keep|ask DIR FILE reads the host; *: it is the node name. The helper deals with all but a
# good file of this user: opening another could block.
# shellcheck disable=SC3067,SC2015 # -O: all of these shells have it; an empty answer is one of a dead helper
_adlock_read_host() {
	[ -f "$3" ] && [ ! -h "$3" ] && [ -O "$3" ] && _adlock_first _adlock_line "$3" || _adlock_line=''
	case $_adlock_line in
	'*') ;;
	'' | *[!$_adlock_alnum._-]*)
		_adlock_find_helper || return "$?"
		_adlock_capture "$_adlock_bin" host "$1" "$2" && [ -n "$_adlock_line" ] || _adlock_unanswered "$3" "$_adlock_line"
		;;
	esac
}

# _adlock_proc KEY sets $_adlock_line to the line of KEY in /proc/self/status; it fails if there is none.
_adlock_proc() {
	[ -r /proc/self/status ] || return 1
	while _adlock_input _adlock_line; do
		case $_adlock_line in
		"$1:"*) return 0 ;;
		esac
	done </proc/self/status
	return 1
}

# --- Names ---------------------------------------------------------------------

# _adlock_reader NAME sets $_adlock_part to the name of this process's lock as a reader, at most
# 255 bytes long.
_adlock_reader() {
	_adlock_part=read.$1.$_adlock_pid
	[ "${#_adlock_part}" -le 255 ] || _adlock_part=r.$1.$_adlock_pid
}

# _adlock_part TEXT adds a dot and TEXT, made canonical, to $_adlock_name: CanonifyName of the paper, for text
# that can be read back, which is a path of letters and digits, or such words with dots, of at most 60
# bytes. It fails for other text.
_adlock_part() {
	case $1 in
	*[!$_adlock_alnum./]* | .* | /*.* | [!/]*/*) return 1 ;;
	esac
	[ "${#1}" -le 60 ] || return 1
	set -- "$1" ''
	until [ "$1" = "${1#*[./]}" ]; do
		set -- "${1#*[./]}" "$2${1%%[./]*}_"
	done
	_adlock_name=$_adlock_name.$2$1
}

# --- The guard of a script --------------------------------------------------------

# _adlock_guard_again IFELAPSED EXPIREAFTER replaces this shell by a supervisor, which runs the script
# again from its beginning, in the directory in which it was started. If that is impossible, it fails
# before it has changed anything.
_adlock_guard_again() {
	case ${ADLOCK_STORE-}$_adlock_nl$- in
	*"$_adlock_nl"*i* | *://*) return 1 ;; # for a lock in a store, no file shows the second start its owner
	esac
	case $_adlock_owner$_adlock_held in
	"$$" | "$$.0") ;;
	*) return 1 ;; # a subshell; or locks are held, which the supervisor would not release
	esac
	[ "${PWD-}" = "$_adlock_from" ] || command cd "$_adlock_from" 2>/dev/null || return 1
	_adlock_as_set _adlock_take guarded "$1" "$2" "$_adlock_pass"
}

# _adlock_restart OPTION... does not return. It exports the settings that have no option: the second start
# sets them too, if the script has set them above the guard.
_adlock_restart() {
	for _adlock_third in LOGDIR LOG_MAX HOOK HOOK_RUNS SYSLOG; do
		eval "[ -z \"\${ADLOCK_$_adlock_third-}\" ] || export ADLOCK_$_adlock_third"
	done
	for _adlock_third in ENFORCE QUIET_OK WHOLE_JOB REPLACE JITTER DRY_RUN; do
		eval "set -- \"\$@\" \${ADLOCK_$_adlock_third:+\"--setting=ADLOCK_$_adlock_third=\$ADLOCK_$_adlock_third\"}"
	done
	set -- guarded --owner "$_adlock_pid" "$@" --exit-denied "${ADLOCK_EXIT_DENIED:-0}" --store "$_adlock_dir" \
		--program "$_adlock_program" --host "$_adlock_host" --operator "$_adlock_operator"
	eval "exec \"\$_adlock_bin\" \"\$@\" -- ${_adlock_words#again }"
}

# _adlock_guard_here IFELAPSED EXPIREAFTER guards the script in its own process, by traps. If the lock is
# denied or cannot be taken, it exits.
_adlock_guard_here() {
	eval "set -- \"\$1\" \"\$2\" ${_adlock_words#* }"
	case ${3:+named}${ADLOCK_DRY_RUN-} in
	named | named0 | namedno | namedfalse) ;;
	named*)
		_adlock_say ADLOCK_DRY_RUN 'only a script that can be re-executed can be tried: unset it to run this one'
		exit 64
		;;
	*)
		_adlock_say adlock_guard 'the script has no path, or a cd stands above: name it with ADLOCK_NAME'
		exit 64
		;;
	esac
	_adlock_operand=$3
	if _adlock_as_set _adlock_get_atom "$1" "$2" "$_adlock_pass"; then
		_adlock_guarded=$_adlock_lock
		_adlock_guard_alone || exit "$?"
		_adlock_guard_traps
	else
		case $? in
		75) exit "${ADLOCK_EXIT_DENIED:-0}" ;;
		*) exit "$?" ;;
		esac
	fi
}

# _adlock_guard_alone checks that no trap of the script would be replaced. Signals that the script
# ignores ($_adlock_ignored) stay ignored. (W6, W7)
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

# _adlock_guard_traps sets the traps. The mask SigIgn is hexadecimal: HUP is its bit 0, INT bit 1,
# TERM bit 14. (W8)
# shellcheck disable=SC3049 # behind `command`, shellcheck takes the action for a signal's name
_adlock_guard_traps() {
	_adlock_proc SigIgn || _adlock_line=''
	_adlock_typed=''
	command trap '_adlock_guard_end "$?"' EXIT
	case $_adlock_ignored:$_adlock_line in *HUP*:* | *:*[13579bdf]) ;; *) command trap 'exit 129' HUP ;; esac
	case $_adlock_ignored:$_adlock_line in *INT*:* | *:*[2367abef]) ;; *) command trap '_adlock_typed="1 "; exit 130' INT ;; esac
	case $_adlock_ignored:$_adlock_line in *TERM*:* | *:*[4567cdef]???) ;; *) command trap 'exit 143' TERM ;; esac
}

# _adlock_guard_end STATUS keeps the script's status (W12). After Ctrl-C this shell dies of INT, as
# without the guard: otherwise a bash that has started it would continue with its own script (W19).
# What a signal has left of the job holds the atom on, under the lock of the dead shell.
# In a subshell it only exits, as $$ is another process.
_adlock_guard_end() {
	! _adlock_is_alone "$_adlock_guarded" "$1" || _adlock_let_go "$_adlock_guarded" "$1" || :
	case $_adlock_typed$_adlock_owner in
	"1 $$" | "1 $$.0")
		command trap - INT
		command kill -s INT "$$" || :
		;;
	esac
	return "$1"
}

# --- Small things ------------------------------------------------------------------

# _adlock_can_run checks the arguments of adlock_with before a lock is taken: two to six words
# (their number $_adlock_words; $_adlock_third refers to them), the `--`, and a command that exists.
_adlock_can_run() {
	_adlock_words=0 _adlock_third=''
	while [ "$#" -gt 0 ] && { [ "$1" != -- ] || [ "$_adlock_words" -lt 2 ]; }; do
		_adlock_words=$((_adlock_words + 1)) _adlock_third="$_adlock_third \"\${$_adlock_words}\""
		shift
	done
	if [ "$#" -lt 2 ] || [ "$_adlock_words" -gt 6 ]; then
		_adlock_say adlock_with 'usage: operator operand [ifelapsed [expireafter [host [now]]]] -- command'
		return 64
	fi
	_adlock_is_command "$2" || {
		_adlock_say "$2" 'command not found, or not executable'
		return 127
	}
}

# _adlock_wants MIN MAX COUNT FUNCTION refuses (64) a COUNT of arguments outside of MIN to MAX.
_adlock_wants() {
	if [ "$3" -lt "$1" ] || [ "$3" -gt "$2" ]; then
		_adlock_say "$4" "wants $1 to $2 arguments, got $3"
		return 64
	fi
}

_adlock_say() {
	command printf '%s\n' "adlock: $1: $2" >&2
}
