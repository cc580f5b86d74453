# Lock names are readable, and the shell builds the same ones as the helper.
load common

# vectors checks the names of the cases in names.tsv that this shell can pass on.
vectors() {
	local program host operator operand name
	while IFS=$'\t' read -r program host operator operand name; do
		case $program in '#'*) continue ;; esac
		printf -v operand %b "$operand"
		# yash passes an argument that it cannot decode as an empty one.
		[[ ${shell[0]}$LC_ALL = yashC && $operand = *[^[:ascii:]]* ]] && continue
		quietly vector "$program" "$host" "$operator" "$operand" "$name"
	done <"$BATS_TEST_DIRNAME/../test/support/names.tsv"
}

vector_script() {
	script vector <<-'E'
		ADLOCK_PROGRAM=$1 ADLOCK_IF_ELAPSED=0
		adlock_get "$3" "$4" '' '' "$2"
		[ -e "$ADLOCK_DIR/lock.$5" ] || ls "$ADLOCK_DIR"
		adlock_release
		[ -e "$ADLOCK_DIR/last.$5" ] || ls "$ADLOCK_DIR"
	E
}

# bats test_tags=core:mksh,core:yash,core:zsh
@test "a script makes each name of names.tsv in a UTF-8 locale" {
	vector_script
	vectors
}

@test "a script makes each name of names.tsv in the C locale" {
	LC_ALL=C
	vector_script
	vectors
}

# bats test_tags=core
@test "library and helper agree on long names that are not ASCII" {
	script long <<-'E'
		ADLOCK_AGENT=$1
		adlock_pass
		adlock_get a "$2" 0 || note "$?"
		adlock_release || note "$?"
		note "$(adlock_age a "$2")"
		[ -e "$ADLOCK_DIR/last.long.dax.$3" ] || ls "$ADLOCK_DIR"
	E
	local x text name agent
	printf -v x '%46s' ''
	x=${x// /x}
	for text in "${x}日本語" "${x}xé" "${x}xxé" "é${x}é" "$(printf 'é%.0s' {1..47})"; do
		name=$("$ADLOCK_BIN" name long dax a "$text")
		for agent in 0 1; do
			: >"$T/notes"
			quietly long "$agent" "$text" "${name#long.dax.}"
			assert_notes <<<0
		done
	done
}

@test "library and helper give a reader lock the same name" {
	script reader <<-'E'
		_adlock_pid=$2
		_adlock_reader "$1"
		[ "$_adlock_part" = "$3" ] || echo "$_adlock_part"
	E
	local name pid file cases=0
	while IFS=$'\t' read -r name pid file; do
		case $name in '#'*) continue ;; esac
		quietly reader "$name" "$pid" "$file"
		cases=$((cases + 1))
	done <"$BATS_TEST_DIRNAME/../test/support/readers.tsv"
	assert [ "$cases" -gt 5 ]
}

# kills VERB: a helper is killed when it is asked for VERB.
kills() { in_between <<<"[ \"\$1\" != $1 ] || kill -TERM \"\$\$\""; }

@test "a get whose helper is killed returns 143 without a lock" {
	script job <<<'adlock_get copy josé || echo "status $?"'
	kills name
	run launch job
	assert_line --regexp '^adlock: copy jos.*: the helper died, with status 143$'
	assert_line 'status 143'
	refute [ -e "$ADLOCK_DIR" ]
}

@test "adlock_age returns 143 if its helper is killed" {
	script job <<<'adlock_age a b || echo "status $?"'
	kills last-age
	run launch job
	assert_line --regexp '^adlock: .*/last\.job\.dax\.a\.b: the helper died, with status 143$'
	assert_line 'status 143'
}
