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
