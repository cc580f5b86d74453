#!/bin/sh
# Takes the place of go while gremlins runs (make mutants). It mends that gremlins
#  - tries only what a profile shows as run by tests, and no profile has conditions behind
#    case, or what a second process runs: here the profile has each line of the package;
#  - gives the tests of a mutant a multiple of the time that those of the profile took:
#    here they take 5 s more, so that quick tests are not ended early;
#  - takes a mutant that does not compile for one that a test has caught, as go test has
#    status 1 for both: here such a mutant is built first, and the status is 2;
#  - keeps its copy of the sources where other users cannot read it, and some tests start
#    programs as another user.
set -eu

# tests runs tests in a pid namespace, so that a mutant can signal no process outside. The
# shell is the first process there, and reaps.
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
