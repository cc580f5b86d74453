package cli

import (
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// machine makes shell functions: named NODE COMMAND... runs a command on this machine under another
// node name; hosts prints the hosts whose locks are in the directory.
const machine = `named() { node=$1; shift; unshare --uts sh -c 'hostname "$0" && exec "$@"' "$node" "$@"; }
hosts() { (cd "$ADLOCK_DIR" && ls last.*) | sed 's/^last\.[^.]*\.\([^.]*\).*/\1/' | sort -u | tr '\n' ' '; }
unset ADLOCK_HOST
`

// onMachine runs a script with these functions, behind a command with mounts of its own.
func onMachine(t *testing.T, mounts, script string) helper.Result {
	t.Helper()
	need.Root(t)
	need.MachineID(t)
	need.Tools(t, "hostname")
	need.Namespaces(t, "--mount", "--uts")
	a := helper.NewAtom(t)
	r := a.Shell(t, machine+script, "unshare", "--mount", "sh", "-c", mounts+` exec "$@"`, "sh")
	if r.Status == 99 {
		need.Skip(t, "no such mounts to be had: ", r.Err)
	}
	return r
}

func TestOnlyARecognisedMachineKeepsItsHostWhenRenamed(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct{ mounts, script, want string }{
		"one machine": {"", `for node in one two one; do named $node $adlock run --name n true; done; hosts`, "one "},
		"two machines": {
			`echo 00000000000000000000000000000001 >"$ADLOCK_DIR/id" && mount --bind "$ADLOCK_DIR/id" /etc/machine-id || exit 99;`,
			`named one $adlock run --name n true; echo 00000000000000000000000000000002 >"$ADLOCK_DIR/id"
for node in two three; do named $node $adlock run --name n true; done; hosts`, "one two ",
		},
		"no machine id": {
			`for id in /etc/machine-id /var/lib/dbus/machine-id; do [ ! -e $id ] || mount --bind /dev/null $id || exit 99; done;`,
			`for node in one two; do named $node $adlock run --name n true; done; hosts; ls "$ADLOCK_DIR" | grep host. || :`, "one two ",
		},
		"a first boot": {
			`echo uninitialized >"$ADLOCK_DIR/id" && mount --bind "$ADLOCK_DIR/id" /etc/machine-id || exit 99;`,
			`for node in one two; do named $node $adlock run --name n true; done; hosts; ls "$ADLOCK_DIR" | grep host. || :`, "one two ",
		},
		"clones on a shared file system": {
			`mount -t tmpfs none /mnt && mkdir -m 700 /mnt/lower /mnt/upper /mnt/work &&
mount -t overlay -o lowerdir=/mnt/lower,upperdir=/mnt/upper,workdir=/mnt/work none "$ADLOCK_DIR" || exit 99;`,
			`for node in one two; do named $node $adlock run --name n true; done; hosts; cat "$ADLOCK_DIR"/host.*`, "one two *\n",
		},
		"a job that runs": {
			"", `mkfifo "$ADLOCK_DIR/go"
named before $adlock run --name n -- sh -c 'echo >"$0"; read -r x <"$0"' "$ADLOCK_DIR/go" & read -r x <"$ADLOCK_DIR/go"
named after $adlock run --name n -- echo ran || echo "$?"; named after $adlock hold n </dev/null | cut -c 1-5
echo >"$ADLOCK_DIR/go"; wait; hosts`, "75\nbusy \nbefore ",
		},
		"a store":              {"", `for node in one two; do named $node $adlock run --store "$ADLOCK_DIR/other" --name n true; done; ADLOCK_DIR=$ADLOCK_DIR/other; hosts`, "one "},
		"a host that was said": {"", `for node in one two; do ADLOCK_HOST=both named $node $adlock run --name n true; done; hosts; ls "$ADLOCK_DIR" | grep host. || :`, "both "},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			onMachine(t, c.mounts, c.script).Is(t, 0, c.want, "")
		})
	}
}

func TestStatusAndDoctorReportThatTheMachineWasRenamed(t *testing.T) {
	t.Parallel()
	r := onMachine(t, "", `named one $adlock run --name n true
for node in one two; do
	named $node $adlock status | grep "node name" || :
	named $node $adlock doctor | grep "^[a-z]* *host: " || :
	named $node $adlock log --event release | wc -l
done
named two $adlock status --failed`)
	want := "1\nthis machine's node name is two now; its locks here keep the host one\n" +
		"ok   host: one, as this machine's node name was when it first locked here (now it is two)\n1\n"
	r.Is(t, 0, want, "")
}
