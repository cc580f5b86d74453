package cron

import (
	"strings"
	"testing"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// unguarded has lines as people write them. Each line stores its input and arguments, once complete, in a file of $OUT.
const unguarded = `SHELL=/bin/sh
{when}cat >$OUT/input.part; mv $OUT/input.part $OUT/input%first%second \% third \\ x%%fifth
{when}{dir}/note $OUT/plain 'it'\''s' "100\%" $HOME {dir}/not* a\ b ~
{when}{dir}/note $OUT/backslash 'a\\b' "c\\d"; exit 3
{when}cat <<E >$OUT/here.part; wc -c >>$OUT/here.part; mv $OUT/here.part $OUT/here%body $HOME%E%rest
{when}(exit 3) || printf '\%s' "$? $SHELL" >$OUT/status.part; mv $OUT/status.part $OUT/status # a comment
SHELL=/bin/bash
{when}[[ $SHELL == *bash ]] && echo {a,b} >$OUT/bash.part; mv $OUT/bash.part $OUT/bash
{when}{dir}/note $OUT/plain-bash "x  y"
`

const files = 7

// inPlace runs a script of the examples on root's crontab: on a copy, not on this machine's own.
const inPlace = `
set -e
mount --bind "$1/spool" /var/spool/cron
crontab "$1/table"
PATH=$1:$PATH HOME=$1
export PATH HOME
sh "$2"
crontab -l >"$1/wrapped"
{ crontab -l; echo '@daily added'; } | crontab -
sh "$2" --undo
crontab -l >"$1/undone"
PATH=/usr/bin:/bin sh "$2" --undo || : # without adlock
mkdir "$1/fails"
printf '#!/bin/sh\n[ "$1" != -l ] && exec %s "$@"' "$(command -v crontab)" >"$1/fails/crontab"
chmod +x "$1/fails/crontab"
! PATH=$1/fails:$PATH sh "$2" --undo
echo 'no crontab' | adlock wrap 2>&1 | crontab - 2>&1 || echo refused
crontab -l >"$1/still"
`

func TestACrontabIsWrappedInPlaceAndUnwrapped(t *testing.T) {
	w := newWorld(t)
	need.Namespaces(t, "--mount")
	need.Tools(t, "crontab")
	w.copy(helper.Binary(t)+"-report", "adlock-report")
	text := strings.ReplaceAll(strings.ReplaceAll(unguarded, "{dir}", "/srv"), "{when}", "@hourly ") + "@reboot warm-up\n\n"
	w.write("table", text+"\n", 0o644)
	r := helper.Command{Args: []string{"unshare", "--mount", "sh", "-c", inPlace, "sh", w.dir, helper.Root() + "/test/examples/wrap-crontab"}}.Run(t)
	if r.Status != 0 || !strings.HasSuffix(r.Out, "refused\n") || !strings.Contains(r.Out, "\n-@hourly cat") {
		t.Fatalf("status %d: %s%s", r.Status, r.Out, r.Err)
	}
	if wrapped := w.read("wrapped"); strings.Count(wrapped, w.path("adlock")+" run --name") != files+1 || w.read("crontab.before") != text+"\n" {
		t.Errorf("wrapped it is\n%s", wrapped)
	}
	for _, name := range []string{"undone", "still"} {
		check.Equal(t, name, w.read(name), text+"\n@daily added\n")
	}
}
