# adlock.mk: locks in recipes.
# bats file_tags=once
load common

makes() {
	{
		echo "include $root/sh/adlock.mk"
		cat
	} >"$T/Makefile"
}

setup_file() { command -v make >/dev/null || skip 'no make'; }

@test "a recipe runs its command under the lock" {
	makes <<'E'
all:
	@$(ADLOCK) copy site 0 90 -- sh -c 'ls "$$ADLOCK_DIR"; echo "a,b  $$1"' sh 'c;d'
E
	run make -C "$T" --no-print-directory
	assert_success
	assert_line --regexp '^lock\..*Makefile.*copy\.site$'
	assert_line 'a,b  c;d'
	run ls "$ADLOCK_DIR"
	refute_output --regexp '^lock\.'
}

@test "too soon counts as done" {
	makes <<'E'
all:
	@$(ADLOCK) copy site 15 90 -- echo ran
	@echo next
E
	run make -C "$T" --no-print-directory
	assert_output $'ran\nnext'
	run make -C "$T" --no-print-directory
	assert_success
	assert_output next
}

@test "a failed command does not count as done" {
	makes <<'E'
all:
	@$(ADLOCK) copy site 15 90 -- sh -c 'exit 5'
E
	run make -C "$T" --no-print-directory
	assert_failure 2
	run make -C "$T" --no-print-directory
	assert_failure 2
}

@test "the command's status fails the recipe, 75 too" {
	makes <<'E'
all:
	@$(ADLOCK) copy site 0 -- sh -c 'exit 75'
E
	run make -C "$T" --no-print-directory
	assert_failure 2
	assert_output --partial 'Error 75'
}

@test "busy waits: make -j runs the same atom one after the other" {
	makes <<'E'
all: one two three
one two three:
	@$(ADLOCK) copy site 0 -- sh -c 'mkdir "$$T/in" && sleep 0.2 && rmdir "$$T/in"'
E
	run make -C "$T" --no-print-directory -j3
	assert_success
	assert_output ''
}

@test "a make within a recipe does not wait for what that recipe holds" {
	makes <<'E'
all:
	@$(ADLOCK) copy site 0 -- $(MAKE) $(within)
other:
	@$(ADLOCK) copy $@ 0 -- echo ran
site:
	@$(ADLOCK) copy site 0 -- echo ran
E
	run timeout 20 make -C "$T" --no-print-directory within=site
	assert_failure 2
	assert_output --partial 'Error 75'
	run timeout 20 make -C "$T" --no-print-directory within=other
	assert_success
	assert_line ran
	ADLOCK_SLOTS=1 run timeout 20 make -C "$T" --no-print-directory within=other
	assert_failure 2
	assert_output --partial 'Error 75'
}

@test "two directories are two programs" {
	makes <<'E'
all:
	@$(ADLOCK) copy site 15 -- echo ran
E
	mkdir "$T/other dir"
	cp "$T/Makefile" "$T/other dir"
	run make -C "$T" --no-print-directory
	assert_output ran
	run make -C "$T/other dir" --no-print-directory
	assert_output ran
}

@test "a missing helper fails the recipe" {
	makes <<'E'
all:
	@$(ADLOCK) copy site -- echo ran
E
	ADLOCK_BIN=$T/none run make -C "$T" --no-print-directory
	assert_failure 2
	refute_line ran
	assert_output --partial 'Error 69'
}

@test "BSD make reads the same fragment" {
	command -v bmake >/dev/null || skip 'no bmake'
	makes <<'E'
all:
	@$(ADLOCK) copy site 15 90 -- echo ran
	@echo next
E
	run bmake -C "$T"
	assert_success
	assert_line ran
	run bmake -C "$T"
	assert_success
	refute_line ran
	assert_line next
}

# odd_names DIRECTORY... makes directories whose names a shell would act on.
odd_names() {
	local name
	for name in "a 'quote" 'two "quotes"  and spaces' '$HOME $$ $(touch ran)' '`touch ran`' \
		"a;touch ran;'; touch ran; '" 'a|b&c>d<e(f)#g' '${x:!touch ran!}' $'a\ttab' $'a\ntouch ran\nb' 'a\b%c,d:e=f'; do
		mkdir -p "$T/odd/$name"
		printf '%s\0' "$T/odd/$name"
	done
}

# odd_directories MAKE...: the recipe ran, no part of the directory's name did, and the
# atom is the directory's own. What it was locked with is not in its environment.
odd_directories() {
	local directory programs=0
	makes <<'E'
all:
	@$(ADLOCK) copy site 15 -- sh -c 'sed -n s/^program=//p "$$ADLOCK_DIR"/lock.*; env' >out
E
	while IFS= read -r -d '' directory; do
		cp "$T/Makefile" "$directory"
		run "$@" -C "$directory"
		assert_success
		assert [ -s "$directory/out" ]
		run grep -q "^ADLOCK_PROGRAM=\|^ADLOCK_WAIT=" "$directory/out"
		assert_failure
		head -n 1 "$directory/out" >>"$T/programs"
		programs=$((programs + 1))
	done < <(odd_names)
	run find "$T" -name ran
	assert_output ''
	run sort -u "$T/programs"
	assert_equal "${#lines[@]}" "$programs"
	assert_line "\"$T/odd/a 'quote/Makefile\""
}

@test "make runs in a directory of any name" {
	odd_directories make
}

@test "BSD make runs in a directory of any name" {
	command -v bmake >/dev/null || skip 'no bmake'
	odd_directories bmake -r
}

# inclusion DIRECTORY MAKE is how that make reads adlock.mk there.
inclusion() {
	local name=${1//\$/\$\$}
	case $2 in
	make) echo "include ${name// /\\ }/adlock.mk" ;;
	bmake) echo ".include \"$name/adlock.mk\"" ;;
	esac
}

included_from_odd_directories() {
	local directory name names=("a 'quote" 'two  spaces' '`touch ran`' ";'touch ran;'")
	[ "$1" = bmake ] || names+=("\$(touch ran)'; touch ran; '") # .PARSEDIR would be expanded
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
	run find "$T" -name ran
	assert_output ''
}

@test "adlock.mk may lie in a directory of any name" {
	included_from_odd_directories make
}

@test "adlock.mk may lie in a directory of any name for BSD make" {
	command -v bmake >/dev/null || skip 'no bmake'
	included_from_odd_directories bmake -r
}

@test "adlock.mk is found by a relative name" {
	cp "$root/sh/adlock.mk" "$root/sh/adlock.sh" "$T"
	printf 'include adlock.mk\nall:\n\t@$(ADLOCK) copy site 0 -- echo ran\n' >"$T/Makefile"
	run make -C "$T" --no-print-directory
	assert_success
	assert_output ran
}
