package report

import (
	"adlock/lib/atom"
	"adlock/lib/insight/history"
	"adlock/lib/limit"
	"adlock/lib/policy"
)

// Object returns the report for encoding/json, with durations in seconds.
func (r *Report) Object() any {
	o := whole{User: r.user, From: limit.Instant(r.from), To: limit.Instant(r.to), Events: r.events, DamagedLines: r.Damaged, Atoms: []atomObject{}}
	for _, a := range r.atoms {
		o.Atoms = append(o.Atoms, r.atomObject(a))
	}
	return o
}

// whole is a Report as a JSON object. Empty lists are [] and not null.
type whole struct {
	User         string       `json:"user,omitempty"`
	From         string       `json:"from,omitempty"`
	To           string       `json:"to,omitempty"`
	Events       int          `json:"events"`
	DamagedLines int          `json:"damaged_lines"`
	Atoms        []atomObject `json:"atoms"`
}

type atomObject struct {
	Atom        atom.Name        `json:"atom"`
	Program     string           `json:"program"`
	Host        string           `json:"host"`
	Operator    string           `json:"operator"`
	Operand     string           `json:"operand"`
	Runs        int              `json:"runs"`
	Outcomes    outcomesObject   `json:"outcomes"`
	Denials     history.Denials  `json:"denials"`
	Longest     seriesObject     `json:"longest_denied_series"`
	Held        limit.Seconds    `json:"held"`
	HeldShare   float64          `json:"held_share"`
	Runtime     *durationsObject `json:"runtime,omitempty"`
	Interval    *durationsObject `json:"interval,omitempty"`
	AskedEvery  *durationsObject `json:"asked_every,omitempty"`
	IfElapsed   *limit.Seconds   `json:"if_elapsed,omitempty"`
	ExpireAfter *limit.Seconds   `json:"expire_after,omitempty"`
	From        policy.Source    `json:"expire_after_from,omitempty"`
	Endings     []endingObject   `json:"endings"`
	Advice      []advice         `json:"advice"`
}

type outcomesObject struct {
	Running  int `json:"running"`
	Success  int `json:"success"`
	Failure  int `json:"failure"`
	Ended    int `json:"ended"`
	Orphaned int `json:"orphaned"`
	Cleared  int `json:"cleared"`
	Stopped  int `json:"stopped"`
	Lost     int `json:"lost"`
	NotRun   int `json:"not-run"`
}

type seriesObject struct {
	Count int    `json:"count"`
	First string `json:"first,omitempty"`
	Last  string `json:"last,omitempty"`
}

type durationsObject struct {
	Min limit.Seconds `json:"min"`
	P50 limit.Seconds `json:"p50"`
	P95 limit.Seconds `json:"p95"`
	Max limit.Seconds `json:"max"`
}

type endingObject struct {
	Time      string        `json:"time"`
	Owner     int           `json:"owner"`
	OwnerNode string        `json:"owner_node,omitempty"`
	By        int           `json:"by"`
	ByNode    string        `json:"by_node,omitempty"`
	Age       limit.Seconds `json:"age"`
}

func (r *Report) atomObject(a *summary) atomObject {
	n := a.Outcomes
	o := atomObject{
		Atom: a.Name(), Program: a.Program, Host: a.Host, Operator: a.Operator, Operand: a.Operand, Runs: a.Runs,
		Outcomes: outcomesObject{
			n[history.Running], n[history.Succeeded], n[history.Failed], n[history.Ended],
			n[history.Orphaned], n[history.Cleared], n[history.Stopped], n[history.Lost], n[history.NotRun],
		},
		Denials: a.Denials,
		Longest: seriesObject{a.Longest.Count, limit.Instant(a.Longest.First), limit.Instant(a.Longest.Last)},
		Held:    limit.Seconds(a.Held), HeldShare: r.share(a),
		Runtime: durationsOf(&a.Runtime), Interval: durationsOf(&a.Interval.Durations), AskedEvery: durationsOf(&a.Asked.Durations),
		IfElapsed: (*limit.Seconds)(a.IfElapsed.Pointer()), ExpireAfter: (*limit.Seconds)(a.ExpireAfter.Pointer()), From: a.ExpireAfterFrom,
		Endings: []endingObject{}, Advice: append([]advice{}, a.Advice...),
	}
	for _, e := range a.Endings {
		o.Endings = append(o.Endings, endingObject{limit.Instant(e.End), e.PID, e.Node, e.By, e.ByNode, limit.Seconds(e.Held)})
	}
	return o
}

func durationsOf(d *history.Durations) *durationsObject {
	if d.Count() == 0 {
		return nil
	}
	return &durationsObject{
		limit.Seconds(d.Min()), limit.Seconds(d.Quantile(0.5)), limit.Seconds(d.Quantile(0.95)), limit.Seconds(d.Max()),
	}
}
