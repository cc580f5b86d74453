# adlock.mk: locks in recipes.
# bats file_tags=once
load common

makes() {
	{
		echo "include $root/sh/adlock.mk"
		cat
	} >"$T/Makefile"
}

# recipe LINE writes a Makefile whose target all runs adlock.mk's command with these arguments.
recipe() { makes <<<$'all:\n\t@$(ADLOCK) '"$1"; }

# builds [ARG...] runs make, which must succeed.
builds() {
	run timeout 60 make -C "$T" --no-print-directory "$@"
	assert_success
}

# fails STATUS [ARG...] runs make, which must fail as a recipe ends with the status.
fails() {
	run timeout 60 make -C "$T" --no-print-directory "${@:2}"
	assert_failure 2
	assert_output --partial "Error $1"
}

# needs MAKE skips the test where there is no such make.
needs() { command -v "$1" >/dev/null || skip "no $1"; }

setup_file() { needs make; }

@test "a recipe runs its command under the lock" {
	makes <<'E'
all:
	@$(ADLOCK) copy site 0 90 -- sh -c 'ls "$$ADLOCK_DIR"; echo "a,b  $$1"' sh 'c;d'
E
	builds
	assert_line --regexp '^lock\.(.*Makefile.*|.{48}-[0-9]+)\.dax\.copy\.site$' # the test's directory may have a long path
	assert_line 'a,b  c;d'
	run ls "$ADLOCK_DIR"
	refute_output --regexp '^lock\.'
}

@test "a recipe that is too soon counts as done" {
	makes <<'E'
all:
	@$(ADLOCK) copy site 15 90 -- echo ran
	@echo next
E
	expect 0 $'ran\nnext' make -C "$T" --no-print-directory
	builds
	assert_output next
}

@test "a Makefile sets limits for all recipes or for a target" {
	makes <<'E'
ADLOCK_EXPIRE_AFTER = 7h
all: plain one two
one: ADLOCK_IF_ELAPSED = 15
two: export ADLOCK_IF_ELAPSED = 15
two: ADLOCK_EXPIRE_AFTER := 8h
plain one two:
	@$(ADLOCK) build $@ -- sh -c 'grep -h "^if_el\|^expire_after=" "$$ADLOCK_DIR"/lock.*.$@' | tr '\n' ' '; echo $@
E
	builds
	assert_output $'if_elapsed=0s expire_after=7h plain\nif_elapsed=15m expire_after=7h one\nif_elapsed=15m expire_after=8h two'
	builds
	assert_output $'if_elapsed=0s expire_after=7h plain\none\ntwo'
	expect 0 'if_elapsed=0s expire_after=7h one' make -C "$T" --no-print-directory one ADLOCK_IF_ELAPSED=0
}

@test "BSD make reads limits of the environment and the Makefile" {
	needs bmake
	makes <<'E'
ADLOCK_IF_ELAPSED = 15
all:
	@$(ADLOCK) build $@ -- echo ran
E
	expect 0 ran bmake -C "$T"
	expect 0 '' bmake -C "$T"
	expect 0 ran bmake -C "$T" ADLOCK_IF_ELAPSED=0
	recipe 'build $@ -- echo ran'
	ADLOCK_IF_ELAPSED=15 expect 0 '' bmake -C "$T"
}

@test "make --warn-undefined-variables reports nothing" {
	makes <<'E'
ADLOCK_EXPIRE_AFTER = 7h
all: plain a.out
plain: ADLOCK_IF_ELAPSED = 0
plain:
	@$(ADLOCK) build $@ -- echo $@
%.out:
	@$(ADLOCK) build $@ -- echo $@
E
	builds --warn-undefined-variables
	assert_output $'plain\na.out'
}

# made_again MAKE... checks that make builds a removed file again.
made_again() {
	needs "$1"
	makes <<'E'
.SUFFIXES: .in .out
.in.out:
	@$(ADLOCK) make $@ -- cp $< $@
all: a.out
E
	echo >"$T/a.in"
	"$@" -C "$T" all
	rm "$T/a.out"
	"$@" -C "$T" all
	assert [ -e "$T/a.out" ]
}

@test "GNU make rebuilds a deleted target of a pattern rule" { made_again make; }
@test "BSD make rebuilds a deleted target of a suffix rule" { made_again bmake -r; }

@test "a pattern rule whose file is missing fails when too soon" {
	local directory target
	for directory in "$T" "$T/it's here"; do
		mkdir -p "$directory/sub"
		for target in a.out sub/a.out "$T/b.out"; do
			makes <<'E'
all: $(target)
%.out:
	@cd "$(@D)" && $(ADLOCK) make site 15 -- touch "$(@F)"
E
			cp "$T/Makefile" "$directory/Makefile" 2>/dev/null || true
			rm -rf "$ADLOCK_DIR"
			make -C "$directory" --no-print-directory "target=$target"
			make -B -C "$directory" --no-print-directory "target=$target"
			(cd "$directory" && rm "$target")
			run make -C "$directory" --no-print-directory "target=$target"
			assert_failure 2
			assert_line --regexp "^adlock: /.*/[ab]\\.out: is not there, and it is too soon to make it$"
			assert_output --partial 'Error 75'
		done
	done
}

# settings sets a variable for each option of run, to a value that changes nothing here, and
# prints their names.
settings() {
	local name
	for name in $("$ADLOCK_BIN" run --help | grep -o '\[\$ADLOCK_[A-Z_]*' | tr -d '[$'); do
		case $name in
		ADLOCK_STORE | ADLOCK_NAME | ADLOCK_REPLACE) continue ;; # they exclude others of the list
		ADLOCK_IF_ELAPSED | ADLOCK_JITTER | ADLOCK_WAIT | ADLOCK_PAUSE) export "$name=1ms" ;;
		ADLOCK_EXPIRE_AFTER) export "$name=1h" ;;
		ADLOCK_SLOTS | ADLOCK_EXIT_DENIED | ADLOCK_STARVING) export "$name=9" ;;
		ADLOCK_NOW) export "$name=$(date +%s)" ;;
		ADLOCK_FLOCK) export "$name=$T" ;; # which is there
		ADLOCK_HOST | ADLOCK_PROGRAM | ADLOCK_OPERATOR | ADLOCK_OPERAND | ADLOCK_HOOK) export "$name=true" ;;
		*) export "$name=0" ;;
		esac
		echo "$name" >>"$T/settings"
	done
}

variables() { sed -n 's/^\(ADLOCK_[A-Z_]*\)=.*/\1/p' | sort; }

@test "a recipe's command inherits where locks are, and no limit" {
	recipe 'copy site -- env'
	settings
	assert [ "$(wc -l <"$T/settings")" -gt 15 ]
	"$ADLOCK_BIN" run -- env | variables >"$T/run"
	make -C "$T" --no-print-directory | variables >"$T/make"
	expect 0 '' diff "$T/run" "$T/make"
	for name in DIR HOST BIN VERBOSE; do
		assert grep -qx "ADLOCK_$name" "$T/make"
	done
	for name in PROGRAM WAIT RETRY_FAILED IF_ELAPSED SLOTS; do
		refute grep -qx "ADLOCK_$name" "$T/make"
	done
}

@test "guarded scripts nest in a recipe" {
	for name in one two; do
		# shellcheck disable=SC2016 # for the script to expand
		echo '. "$ADLOCK_SH" || exit 69; adlock_guard; echo "$0"; [ ! -e "$1" ] || sh "$@"' >"$T/$name"
	done
	recipe 'guard one -- sh ./one ./two ./none'
	expect 0 $'./one\n./two' timeout 60 make -C "$T" --no-print-directory
}

@test "a failed command fails the recipe and counts as not done" {
	for code in 5 75; do
		recipe "copy site 15 90 -- sh -c 'exit $code'"
		fails "$code"
		fails "$code"
	done
}

@test "make -j runs the recipes of one atom one after the other" {
	makes <<'E'
all: one two three
one two three:
	@$(ADLOCK) copy site 0 -- sh -c 'mkdir "$$T/in" && sleep 0.2 && rmdir "$$T/in"'
E
	builds -j3
	assert_output ''
}

@test "a make within a recipe does not wait for that recipe" {
	makes <<'E'
all:
	@$(ADLOCK) copy site 0 -- $(MAKE) $(within)
other:
	@$(ADLOCK) copy $@ 0 -- echo ran
site:
	@$(ADLOCK) copy site 0 -- echo ran
E
	fails 75 within=site
	builds within=other
	assert_line ran
	ADLOCK_SLOTS=1 builds within=other # a limit of the outer lock only
	assert_line ran
}

# GNU make runs a line with $(MAKE) under these options too.
@test "a make that only shows, asks or touches locks nothing" {
	makes <<'E'
.PHONY: all
all:
	@$${FLAGS+env MAKEFLAGS=$$FLAGS} $(ADLOCK) build all 15 -- $(MAKE) sub
sub: Makefile
	@echo built
E
	builds -kn
	assert_line 'echo built'
	run timeout 60 make -C "$T" -q
	assert_failure 1
	builds -t
	rm "$T/sub"
	refute [ -e "$ADLOCK_DIR" ]
	FLAGS=A=nqt builds A=nqt # the flags as GNU make 3.81 tells them
	[ -e "$ADLOCK_DIR" ]
}

# behind_a_link MAKE... checks that two releases behind one link are one program, and a PWD that leads
# elsewhere names none.
behind_a_link() {
	needs "$1"
	local link="$T/it's \$(current)"
	makes <<'E'
all:
	@cd / && $(ADLOCK) copy site 15 -- sh -c 'sed -n s/^program=//p "$$ADLOCK_DIR"/lock.*'
E
	mkdir -p "$T/releases/1" "$T/releases/2"
	cp "$T/Makefile" "$T/releases/1"
	cp "$T/Makefile" "$T/releases/2"
	ln -s releases/1 "$link"
	cd "$link" || return
	run "$@"
	assert_output "\"$link/Makefile\""
	ln -sfn releases/2 "$link"
	cd / || return
	cd "$link" || return
	expect 0 '' "$@"
	local elsewhere
	for elsewhere in . "$T" /proc/none ''; do
		rm -rf "$ADLOCK_DIR"
		run env PWD="$elsewhere" "$@"
		assert_output "\"$T/releases/2/Makefile\""
	done
	expect 0 '' "$@" ADLOCK_PROGRAM="$T/releases/2/Makefile"
}

@test "two checkouts behind one link are one program" { behind_a_link make; }
@test "two checkouts behind one link are one program for BSD make" { behind_a_link bmake -r; }

@test "a missing helper fails the recipe" {
	recipe 'copy site -- echo ran'
	ADLOCK_BIN=$T/none fails 69
	refute_line ran
}

# odd_names DIRECTORY... makes directories whose names a shell would run or expand.
odd_names() {
	local name
	for name in "a 'quote" 'two "quotes"  and spaces' '$HOME $$ $(touch ran)' '`touch ran`' \
		"a;touch ran;'; touch ran; '" 'a|b&c>d<e(f)#g' '${x:!touch ran!}' $'a\ttab' $'a\ntouch ran\nb' 'a\b%c,d:e=f'; do
		mkdir -p "$T/odd/$name"
		printf '%s\0' "$T/odd/$name"
	done
}

# odd_directories MAKE... checks that the recipe ran and no part of the directory's name did, that
# the atom is named after the directory, and that its lock's settings are not in the environment.
odd_directories() {
	needs "$1"
	local directory programs=0
	makes <<'E'
all:
	@$(ADLOCK) copy site 15 -- sh -c 'sed -n s/^program=//p "$$ADLOCK_DIR"/lock.*; env' >out
E
	while IFS= read -r -d '' directory; do
		cp "$T/Makefile" "$directory"
		"$@" -C "$directory"
		assert [ -s "$directory/out" ]
		refute grep -q "^ADLOCK_PROGRAM=\|^ADLOCK_WAIT=" "$directory/out"
		head -n 1 "$directory/out" >>"$T/programs"
		programs=$((programs + 1))
	done < <(odd_names)
	expect 0 '' find "$T" -name ran
	run sort -u "$T/programs"
	assert_equal "${#lines[@]}" "$programs"
	assert_line "\"$T/odd/a 'quote/Makefile\""
}

@test "make runs in a directory of any name" { odd_directories make; }
@test "BSD make runs in a directory of any name" { odd_directories bmake -r; }

# inclusion DIRECTORY MAKE prints the line by which that make includes adlock.mk.
inclusion() {
	local name=${1//\$/\$\$}
	case $2 in
	make) echo "include ${name// /\\ }/adlock.mk" ;;
	bmake) echo ".include \"$name/adlock.mk\"" ;;
	esac
}

included_from_odd_directories() {
	needs "$1"
	local directory name names=("a 'quote" 'two  spaces' '`touch ran`' ";'touch ran;'")
	[ "$1" = bmake ] || names+=("\$(touch ran)'; touch ran; '") # bmake expands a $ in .PARSEDIR
	for name in "${names[@]}"; do
		directory="$T/lib/$name"
		mkdir -p "$directory"
		cp "$root/sh/adlock.mk" "$root/sh/adlock.sh" "$directory"
		{
			inclusion "$directory" "$1"
			printf 'all:\n\t@$(ADLOCK) copy site 0 -- echo ran\n'
		} >"$T/Makefile"
		run "$@" -C "$T"
		assert_success
		assert_line ran
	done
	expect 0 '' find "$T" -name ran
}

@test "adlock.mk may lie in a directory of any name" { included_from_odd_directories make; }
@test "BSD make includes adlock.mk from a directory of any name" { included_from_odd_directories bmake -r; }

@test "adlock.mk is found by a relative name" {
	cp "$root/sh/adlock.mk" "$root/sh/adlock.sh" "$T"
	printf 'include adlock.mk\nall:\n\t@$(ADLOCK) copy site 0 -- echo ran\n' >"$T/Makefile"
	builds
	assert_output ran
}
