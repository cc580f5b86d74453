package process

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// Two users that share an atom, for a job of root's and one of www-data's, would share a directory that a group may
// write, as mail spools are. These tests show what a member of the group could do there, and that none of it reaches
// root: adlock refuses such a directory, however it came to be.

// ofGroup is what a directory of a group looks like: root:group, 2770.
func ofGroup(path string) error {
	return errors.Join(os.Chown(path, 0, nobody), os.Chmod(path, os.ModeSetgid|0o770))
}

// ofRoot gives the directory back to root alone.
func ofRoot(path string) error { return errors.Join(os.Chmod(path, 0o700), os.Chown(path, 0, 0)) }

// inGroup is an atom of root's in a directory that is still root's alone. No directory above it
// keeps members of the group out.
func inGroup(t *testing.T) *helper.Atom {
	t.Helper()
	need.Root(t)
	a := &helper.Atom{Dir: filepath.Join(public(t), "locks"), Bin: program(t, 0o755)}
	must.Do(t, os.Mkdir(a.Dir, 0o700))
	return a
}

// member runs a script as a member of the group, in the lock directory.
func member(t *testing.T, a *helper.Atom, script string) {
	t.Helper()
	c := helper.Command{Args: []string{"sh", "-c", script}, Dir: a.Dir, UID: nobody, Env: a.Env()}
	if r := c.Run(t); r != (helper.Result{}) {
		t.Fatalf("the member could not: %+v", r)
	}
}

// mustBeRefused expects a newcomer and every verb to be refused with this word, and no signal.
func mustBeRefused(t *testing.T, a *helper.Atom, word string) {
	t.Helper()
	a.Newcomer(t, "--expire-after=0").Refused(t, 77, word)
	a.Newcomer(t, "--expire-after=0", "--dry-run").Refused(t, 77, word)
	for verb, script := range verbs {
		t.Log(verb)
		a.Shell(t, script).Refused(t, 77, word)
	}
	mustHaveSignalledNone(t, a)
}

func TestALockDirectoryThatAGroupMayWriteIsRefused(t *testing.T) {
	t.Parallel()
	a := inGroup(t)
	must.Do(t, ofGroup(a.Dir))
	mustBeRefused(t, a, "lock directory is writable by others (chmod go-w '"+a.Dir+"')")
	a.UID = nobody
	mustBeRefused(t, a, "lock directory is writable by others")
}

// The next newcomer is refused. Once the rights are restored, all goes on.
func TestALockDirectoryOpenedToAGroupIsRefusedUntilClosed(t *testing.T) {
	t.Parallel()
	a := inGroup(t)
	gate := filepath.Join(public(t), "gate")
	script := a.Owner(t, "until [ -e "+gate+" ]; do sleep 0.01; done; $adlock release \"$ADLOCK_DIR\"/lock.p.dax.o.x")
	must.Do(t, ofGroup(a.Dir))
	a.Newcomer(t).Refused(t, 77, "lock directory is writable by others")
	must.Do(t, os.WriteFile(gate, nil, 0o600))
	script.Is(t, 77, "…writable by others…")
	must.Do(t, ofRoot(a.Dir))
	a.Newcomer(t).Ran(t) // its owner is dead
}

// The newcomer checked the directory when it began to wait, before the group could write to it.
func TestAWaiterRefusesALockThatAGroupMemberPlanted(t *testing.T) {
	t.Parallel()
	a := inGroup(t)
	spared := victim(t, 0)
	forged := filepath.Join(public(t), "forged")
	must.Do(t, os.WriteFile(forged, condemning(spared), 0o644))
	owner := a.Owner(t, "exec sleep 1000")
	newcomer := helper.Command{Args: []string{"sh", "-c", "exec $run --wait 1h echo ran"}, Env: a.Env()}.Start(t)
	helper.Eventually(t, "the newcomer waits", func() bool { return helper.Watches(newcomer.PID) })
	must.Do(t, ofGroup(a.Dir))
	member(t, a, "cp "+forged+" mine; mv -f mine lock."+helper.AtomName)
	newcomer.Is(t, 77, "…belongs to another user…")
	owner.Lives(t)
}

// acl sets entries of an access control list, for user 65534.
func acl(t *testing.T, entries, path string) {
	t.Helper()
	need.Tools(t, "setfacl")
	if r := (helper.Command{Args: []string{"setfacl", "-m", entries, path}}).Run(t); r.Status != 0 {
		need.Skip(t, "no access control lists here: "+r.Err)
	}
}

func TestAnAccessListThatLetsAnotherUserWriteIsRefused(t *testing.T) {
	t.Parallel()
	above := func(a *helper.Atom) string { return filepath.Dir(a.Dir) }
	dir := func(a *helper.Atom) string { return a.Dir }
	for claim, opened := range map[string]struct {
		path func(*helper.Atom) string
		says string
	}{
		"of the lock directory":       {dir, "lock directory is writable by others"},
		"of the lock":                 {(*helper.Atom).Lock, "is writable by others"},
		"of a directory above of 755": {above, "is above the lock directory and writable by others"},
	} {
		t.Run(claim, func(t *testing.T) {
			a := inGroup(t)
			a.Owner(t, "exec sleep 1000")
			acl(t, "u:65534:rwx", opened.path(a))
			mustBeRefused(t, a, opened.says)
		})
	}
}

// Files in a directory with a default list still belong to their owner alone.
func TestADefaultAccessListGivesOthersNoRightsToNewFiles(t *testing.T) {
	t.Parallel()
	a := inGroup(t)
	must.Do(t, os.Remove(a.Dir))
	acl(t, "d:u:65534:rwx,u:65534:x", filepath.Dir(a.Dir))
	a.Newcomer(t).Ran(t)
	acl(t, "u:65534:x", a.Dir)
	a.Owner(t, "exec sleep 1000")
	member(t, a, `for file in "$ADLOCK_DIR"/* `+a.Lock()+` `+a.Last()+`; do
		[ ! -r "$file" ] && [ ! -w "$file" ] || echo "$file is open"
	done; if true 2>/dev/null >"$ADLOCK_DIR/mine"; then echo entered; fi`)
	a.Newcomer(t).Denied(t)
}
