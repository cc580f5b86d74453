#!/bin/sh
# Of the tools and modules that adlock is built, packed and tested with, prints those that have a
# newer version: the file that names each, its name, its version and the newest. Versions that
# are held back on purpose are printed too, with the reason that the file gives.
#
#	sh test/support/outdated.sh        or make outdated
#
# It asks the module proxy and npm's registry, and changes nothing. The status is 0, whether
# there are newer versions or not; 69 if the proxy or the registry gives no answer.
set -eu
cd "$(dirname "$0")/../.."
said=$(mktemp)
trap 'rm -f "$said"' EXIT

# unanswered FILE prints why there was no answer about FILE: the system's message, if the output
# has one.
unanswered() {
	why=$(sed -n -e 's/.*reason: //p' -e 's/.*": //p' "$said" | tail -n 1)
	printf 'adlock: %s: no answer about newer versions: %s\n' "$1" "${why:-$(tail -n 1 "$said")}" >&2
	exit 69
}

# newer MODULE... prints name, version and newest version of outdated modules.
newer() {
	go list -m -u -f '{{with .Update}}{{$.Path}} {{$.Version}} {{.Version}}{{end}}' "$@"
}

# reason FILE NAME prints the comment that FILE has behind NAME.
reason() {
	awk -v name="$2" '(index($0 " ", name " ") || index($0, name "/cmd/")) && sub(/.*(\/\/|# ) *(indirect;? *)?/, "") && $0 != "" { print "  (" $0 ")" }' "$1"
}

# behind FILE prints the names and versions on standard input as lines of FILE.
behind() {
	while read -r name is newest; do
		printf '%-20s %s %s -> %s%s\n' "$1" "$name" "$is" "$newest" "$(reason "$1" "$name")"
	done
}

# Without a proxy go list finds nothing newer, and reports no error.
if [ "$(go env GOPROXY)" = off ]; then
	echo 'GOPROXY is off' >"$said"
	unanswered go.mod
fi
# modules FILE prints the modules that FILE requires, or runs in a given version.
modules() {
	case $1 in
	go.mod) awk '$1 == "require" && $2 != "(" { print $2 } /^\t/ { print $1 }' "$1" ;;
	*) sed -n 's/.*tool) \(.*\)\/cmd\/[^@]*\(@[^ ]*\).*/\1\2/p' "$1" ;;
	esac
}

for file in go.mod Makefile; do
	# shellcheck disable=SC2046 # no module has a space in its name
	found=$(newer $(modules $file) 2>"$said") || unanswered $file
	printf '%s' "${found:+$found
}" | behind $file
done

sed -n '/"devDependencies"/,/}/s/.*"\(.*\)": "\([0-9].*\)".*/\1 \2/p' bats/package.json | while read -r name is; do
	newest=$(npm view --fetch-retries=0 "$name" version 2>"$said") || unanswered bats/package.json
	[ "$newest" = "$is" ] || echo "$name $is $newest" | behind bats/package.json
done
