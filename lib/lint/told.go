package lint

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

type sink int

const (
	mail      sink = iota // to cron, which mails it
	discarded             // /dev/null, or a closed descriptor
	elsewhere
)

// untold reports a lock whose trouble goes neither to a mail or a file nor to a hook or the system's log.
func (j *job) untold(v *invocation) {
	hook, whole := literal(j.option(v, "hook"))
	if hook != "" || j.option(v, "hook") != nil && !whole || j.mayBeOn(v, "syslog") || j.environment(v) == nil || j.isFiled("ADLOCK_HOOK") {
		return
	}
	const other = "name a hook (ADLOCK_HOOK), or say ADLOCK_SYSLOG=1"
	mailTo := j.set["MAILTO"]
	switch to := j.errorsOf(v); {
	case to == discarded:
		j.add(j.Number, "told to nobody", "trouble with the lock is reported on standard error, which is discarded here", "redirect the job alone (-- sh -c 'job >/dev/null 2>&1'), or "+other)
	case to == mail && mailTo != nil && mailTo.Value == "":
		j.once(mailTo.Number, "told to nobody", "trouble with the locks below is reported on standard error, which cron then mails to nobody", other)
	}
}

// errorsOf returns where adlock's errors go. Below adlock's SHELL they go to cron: redirections there are the job's.
func (j *job) errorsOf(v *invocation) sink {
	if v.text != "" {
		return mail
	}
	if slices.ContainsFunc(v.call.Args, func(w *syntax.Word) bool { return pathIs(w, "systemd-cat") }) {
		return elsewhere
	}
	var above []syntax.Node
	var found sink
	syntax.Walk(j.file, func(n syntax.Node) bool {
		if n == nil {
			above = above[:len(above)-1]
			return true
		}
		above = append(above, n)
		if n == v.call {
			found = errorsBelow(above)
		}
		return true
	})
	return found
}

// errorsBelow returns where the standard error of the last of these nodes goes; each contains the next.
func errorsBelow(nodes []syntax.Node) sink {
	var to [3]sink // by descriptor
	for i, n := range nodes {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			return elsewhere // the call of the function decides
		case *syntax.CmdSubst:
			to[1] = elsewhere
		case *syntax.BinaryCmd:
			if isPipe := n.Op == syntax.Pipe || n.Op == syntax.PipeAll; isPipe && nodes[i+1] == n.X {
				to[1] = elsewhere
				if n.Op == syntax.PipeAll {
					return elsewhere
				}
			}
		case *syntax.Stmt:
			for _, r := range n.Redirs {
				redirect(&to, r)
			}
		}
	}
	return to[2]
}

func redirect(to *[3]sink, r *syntax.Redirect) {
	target := elsewhere
	word, _ := literal(r.Word)
	descriptor := 1
	if r.N != nil && r.N.Value == "2" {
		descriptor = 2
	} else if r.N != nil && r.N.Value != "1" {
		return
	}
	switch {
	case word == "/dev/null", r.Op == syntax.DplOut && word == "-":
		target = discarded
	case r.Op == syntax.DplOut && (word == "1" || word == "2"):
		target = to[word[0]-'0']
	}
	switch {
	case r.Op == syntax.RdrAll, r.Op == syntax.AppAll:
		to[1], to[2] = target, target
	case slices.Contains([]syntax.RedirOperator{syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.DplOut}, r.Op):
		to[descriptor] = target
	}
}
