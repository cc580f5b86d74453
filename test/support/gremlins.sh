#!/bin/sh
# Takes the place of go while gremlins runs (make mutants). It corrects four faults of gremlins:
#  - It changes only code that a coverage profile shows as run by tests, and no profile has the
#    conditions behind case, or what a second process runs. Here the profile has each line of
#    the package.
#  - It gives the tests of a mutant a multiple of the time that the tests for the profile took.
#    Here the latter take 5 s more, so that quick tests are not ended early.
#  - It takes a mutant that does not compile for one that a test has caught, as go test has
#    status 1 for both. Here each mutant is built first, and the status is 2 if that fails.
#  - It keeps its copy of the sources where other users cannot read it, and some tests start
#    programs as another user. Here the directories are opened to them.
set -eu

# tests runs tests in a pid namespace, so that a mutant can signal no process outside. The
# shell is the first process there, and reaps orphans.
tests() {
	"$GREMLINS_GO" test -tags "$TAGS" -vet=off -count=1 \
		-exec "unshare --pid --fork --mount-proc --kill-child=KILL sh -c '\"\$@\"; exit \$?' sh" "$@"
}

for package; do :; done
case "$*" in
*' -coverprofile '*)
	package=${package%/...}
	sleep 5
	tests "$package"
	while [ "$1" != -coverprofile ]; do shift; done
	echo 'mode: set' >"$2"
	"$GREMLINS_GO" list -tags "$TAGS" -f '{{range .GoFiles}}{{$.ImportPath}}/{{.}}:1.1,99999.1 1 1{{"\n"}}{{end}}' "$package" >>"$2"
	;;
*' -failfast '*)
	"$GREMLINS_GO" build -tags "$TAGS" -o /dev/null "$package" || exit 2
	chmod 711 "$GOTMPDIR" "$GOTMPDIR"/wd-*
	while [ "$1" != -timeout ]; do shift; done
	tests "$@"
	;;
*) exec "$GREMLINS_GO" "$@" ;;
esac
