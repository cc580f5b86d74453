# shellcheck shell=bash
# Completion of adlock(1) for bash, with or without bash-completion.
#
# It offers verbs, options and their values, the names of atoms from the lock directory,
# and behind adlock run what the command's own completion offers. It starts no program
# and writes nothing.

# Where the cursor is: the verb is followed by options, each of which may take the next
# word, up to the first word that is no option, or up to --.
_adlock() {
	local -a words=() starts=()
	local options='' args='' kind='' inline='' i last
	COMPREPLY=()
	_adlock_split
	last=$((${#words[@]} - 1))
	if ((last == 1)); then
		_adlock_offer verb "${words[1]}"
		return
	fi
	_adlock_table "${words[1]}" || return
	for ((i = 2; i < last; i++)); do
		case ${words[i]} in
		--) break ;;
		--*=*) ;;
		-?*)
			_adlock_kind "${words[i]}" || continue
			((++i < last)) || {
				_adlock_offer "$kind" "${words[last]}"
				return
			}
			;;
		*) break ;;
		esac
	done
	if ((i < last)) && [ "${words[i]}" = -- ]; then
		_adlock_argument $((i + 1))
		return
	fi
	case $i:${words[i]} in
	"$last":--*=*)
		_adlock_kind "${words[i]%%=*}" || return
		case $COMP_WORDBREAKS in
		*=*) ;;
		*) inline=${words[i]%%=*}= ;;
		esac
		_adlock_offer "$kind" "${words[i]#*=}"
		;;
	"$last":-*) _adlock_offer option "${words[i]}" ;;
	*) _adlock_argument "$i" ;;
	esac
}

# _adlock_split sets words to those up to the cursor. Bash also splits at = and :, so these parts
# are joined again. starts are the numbers in COMP_WORDS at which the words begin.
_adlock_split() {
	local line=$COMP_LINE i piece
	for ((i = 0; i <= COMP_CWORD; i++)); do
		piece=${COMP_WORDS[i]}
		case $i:$line in
		0:* | *:[[:blank:]]* | *:)
			line=${line#"${line%%[![:blank:]]*}"}
			words[${#words[@]}]=$piece
			starts[${#starts[@]}]=$i
			;;
		*) words[${#words[@]} - 1]+=$piece ;;
		esac
		line=${line#"$piece"}
	done
}

# _adlock_kind OPTION sets kind to the kind of the option's value; it fails if it takes no value.
_adlock_kind() {
	local option
	for option in $options; do
		if [ "${option%%:*}" = "$1" ] && [ "$option" != "$1" ]; then
			kind=${option#*:}
			return
		fi
	done
	return 1
}

# _adlock_argument FIRST completes an argument of the verb; FIRST is the index of the first one.
_adlock_argument() {
	local cur=${words[last]}
	case $args in
	command) _adlock_command "$1" ;;
	made)
		case $((last - $1)) in
		0) _adlock_offer file "$cur" ;;
		1) _adlock_match "$cur" -- ;;
		*) _adlock_command $(($1 + 2)) ;;
		esac
		;;
	process)
		case " ${words[*]} " in
		*' --lock '*) _adlock_offer file "$cur" ;;
		*) _adlock_offer process "$cur" ;;
		esac
		;;
	*) _adlock_offer "$args" "$cur" ;;
	esac
}

# _adlock_command INDEX completes a command that begins at that word, with bash-completion if
# that is loaded.
_adlock_command() {
	if declare -F _comp_command_offset >/dev/null; then
		_comp_command_offset "${starts[$1]}"
	elif declare -F _command_offset >/dev/null; then
		_command_offset "${starts[$1]}"
	elif (($1 == last)); then
		_adlock_offer shell "${words[last]}"
	else
		_adlock_offer file "${words[last]}"
	fi
}

# _adlock_offer KIND WORD
_adlock_offer() {
	local option
	case $1 in
	verb)
		# shellcheck disable=SC2086 # words
		_adlock_match "$2" $_adlock_verbs
		case $2 in -*) _adlock_match "$2" --help --version ;; esac
		;;
	option) for option in $options; do _adlock_match "$2" "${option%%:*}"; done ;;
	file) compopt -o default 2>/dev/null || _adlock_lines "$2" "$(compgen -f -- "$2")" ;;
	shell)
		_adlock_lines "$2" "$(compgen -c -- "$2")"
		case $2 in */*) compopt -o default 2>/dev/null ;; esac
		;;
	store)
		compopt -o nospace 2>/dev/null
		_adlock_lines "$2" "$(compgen -d -S / -- "$2")"
		_adlock_match "$2" etcd:// ftp:// ftps://
		;;
	when) _adlock_match "$2" today yesterday now ;;
	event) _adlock_events "$2" ;;
	process) _adlock_lines "$2" "$(cd /proc 2>/dev/null && compgen -G '[1-9]*')" ;;
	atom | held | name)
		_adlock_lines "$2" "$(_adlock_names "$1" operand)"
		((${#COMPREPLY[@]})) || _adlock_lines "$2" "$(_adlock_names "$1" name)"
		;;
	esac
}

# _adlock_events WORD: a list with commas, whose last element is completed.
_adlock_events() {
	local event before=''
	case $1 in *,*) before=${1%,*}, ;; esac
	for event in $_adlock_events; do
		_adlock_match "$1" "$before$event"
	done
}

# _adlock_lines WORD LINES
_adlock_lines() {
	local line
	while IFS= read -r line; do
		[ -z "$line" ] || _adlock_match "$1" "$line"
	done <<<"$2"
}

# _adlock_match WORD CANDIDATE... offers the candidates that begin with the word as it was typed.
# Bash replaces only the part behind the last = or :. Within quotes it offers only candidates that
# need no escape there.
_adlock_match() {
	local word=$1 typed=$1 text strip=''
	shift
	for text; do
		case $word:$text in
		\"*:*[\"\$\`\\!]* | \'*:*\'*) continue ;;
		[\"\']*:*) typed=${word:1} ;;
		*:*) case $text in *[!A-Za-z0-9_./:,=-]*) printf -v text %q "$text" ;; esac ;;
		esac
		case $word:$COMP_WORDBREAKS in
		[\"\']*) ;;
		*:*:*) case $word in *:*) strip=${word%"${word##*:}"} ;; esac ;;
		esac
		case $text in
		"$typed"*) COMPREPLY[${#COMPREPLY[@]}]=$inline${text#"$strip"} ;;
		esac
	done
}

# _adlock_names KIND WHAT prints the operands of the atoms in the lock directory, or their
# NAMEs, one a line: of all atoms, of those that are held, or of those that adlock run
# --name names. It reads only regular files whose name does not give the operand.
_adlock_names() (
	set +f +u
	shopt -u failglob nocaseglob
	dir=${ADLOCK_STORE-}
	case $dir in '' | *://*) dir=${ADLOCK_DIR-} ;; esac
	if [ -z "$dir" ] && [ "$EUID" = 0 ]; then dir=/var/lib/adlock; fi
	if [ -z "$dir" ] && [ -O "/var/lib/adlock-$EUID" ]; then dir=/var/lib/adlock-$EUID; fi
	[ -n "$dir" ] || dir=${HOME-}/.local/state/adlock
	for file in "$dir"/last.* "$dir"/lock.*; do
		name=${file##*/}
		case $1:$name in
		*.*.*.*.*.*) continue ;;
		name:l???.adlock.*.run.* | atom:*.*.*.*.* | held:lock.*.*.*.*) [ -f "$file" ] || continue ;;
		*) continue ;;
		esac
		operand=${name##*.}
		case $operand in
		*-*) _adlock_operand "$file" 2>/dev/null ;;
		_*) operand=${operand//_//} ;;
		*) operand=${operand//_/.} ;;
		esac
		case $2 in
		operand) printf '%s\n' "$operand" ;;
		*) printf '%s\n' "${name#*.}" ;;
		esac
	done
)

# _adlock_operand FILE sets operand to the operand in a lock; to nothing if it is not plain
# text.
_adlock_operand() {
	local line
	operand=''
	while IFS= read -r line; do
		case $line in
		*\\*) ;;
		'operand="'*'"')
			operand=${line#'operand="'}
			operand=${operand%'"'}
			return
			;;
		esac
	done <"$1"
}

# From here on made by go test ./test/cli -run TheCompletions -update.
_adlock_verbs='run shell hold status log report timeline metrics tune check wrap init pause resume config doctor stop clear stat-age mkatomic kill-carefully release help version'
_adlock_events='acquire deny release expire signal takeover reclaim stuck lost clock clear stop empty hook starved overdue pause resume paused missing wait cancel not-run'

_adlock_table() {
	case $1 in
	run)
		args=command options='--name:name --program:none --host:none --operator:none --operand:none --exit-denied:none -E:none --replace --enforce --whole-job --quiet-ok --retry-failed --once-per:none --jitter:none --dry-run --store:store --flock:file --if-elapsed:none --expire-after:none --notice:none --pause:none --wait:none --wait-elapsed --slots:none --shared --from-start --starving:none --now:none --verbose --hook:shell --hook-runs --syslog --help -h'
		;;
	shell)
		args=none options='--help -h'
		;;
	hold)
		args=name options='--program:none --host:none --operator:none --retry-failed --store:store --owner:process --if-elapsed:none --expire-after:none --notice:none --pause:none --wait:none --wait-elapsed --slots:none --shared --from-start --starving:none --now:none --verbose --hook:shell --hook-runs --syslog --help -h'
		;;
	status)
		args=atom options='--atom:atom --store:store --all-users --json --failed --exit-code --watch --help -h'
		;;
	log)
		args=atom options='--since:when --until:when --atom:atom --all-users --event:event --lines:none -n:none --follow -f --json --help -h'
		;;
	report)
		args=atom options='--since:when --atom:atom --all-users --json --csv --html:file --help -h'
		;;
	timeline)
		args=atom options='--since:when --until:when --atom:atom --svg:file --help -h'
		;;
	metrics)
		args=atom options='--output:file -o:file --atom:atom --all-users --help -h'
		;;
	tune)
		args=atom options='--atom:atom --store:store --explain --json --reset:atom --help -h'
		;;
	check)
		args=file options='--system --json --user-column -u --help -h'
		;;
	wrap)
		args=file options='--user-column -u --expire-after:none --flock --shell --diff --unwrap --help -h'
		;;
	init)
		args=none options='--help -h'
		;;
	pause)
		args=atom options='--all --for:none --why:atom --json --help -h'
		;;
	resume)
		args=atom options='--all --help -h'
		;;
	config)
		args=atom options='--json --check:file --help -h'
		;;
	doctor)
		args=none options='--json --help -h'
		;;
	stop)
		args=held options='--pause:none --dry-run --store:store --hook:shell --hook-runs --syslog --help -h'
		;;
	clear)
		args=held options='--last --older:none --store:store --help -h'
		;;
	stat-age)
		args=file options='--at-least:none --now:none --help -h'
		;;
	mkatomic)
		args=made options='--replace --help -h'
		;;
	kill-carefully)
		args=process options='--pause:none --dry-run --lock --help -h'
		;;
	release)
		args=file options='--token:none --status:none --retry-failed --pause:none --hook:shell --hook-runs --syslog --help -h'
		;;
	help)
		args=verb options=''
		;;
	version)
		args=none options=''
		;;
	*) return 1 ;;
	esac
}
# Up to here.

complete -F _adlock adlock
