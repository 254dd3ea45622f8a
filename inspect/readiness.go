package inspect

import (
	"time"

	"github.com/penstock-go/penstock/core"
)

// readiness tells whether an engine has the rules of every source that it follows, and the
// lists that they name.
type readiness struct {
	Ready bool `json:"ready"`

	// Missing are the sources that were not read yet.
	Missing []missingSource `json:"missing,omitempty"`

	// MissingLists are the lists that keep the engine from being ready, since rules in force
	// name them: see [core.Status.AwaitedLists].
	MissingLists []missingList `json:"missingLists,omitempty"`

	// AwaitsFleet says that the backend of the fleet has not answered yet, and that the engine
	// waits for it: see [core.Status.AwaitsFleet].
	AwaitsFleet bool `json:"awaitsFleet,omitempty"`

	// OnCopy are the sources whose rules are those of a copy, because they could
	// not be read since the process was started. They count as ready.
	OnCopy []sourceOnCopy `json:"onCopy,omitempty"`

	// ListsOnCopy are the lists in force that are those of a copy. They count as there.
	ListsOnCopy []listOnCopy `json:"listsOnCopy,omitempty"`
}

// missingSource is a source that was not read yet.
type missingSource struct {
	Source string `json:"source"`
	Error  string `json:"error,omitempty"` // why it cannot be read; "" when nothing is known
}

// missingList is a list that rules in force name and that is not there.
type missingList struct {
	Name  string   `json:"name"`
	Rules []string `json:"rules"` // that name it, by kind and name: the first ten
}

// listOnCopy is a list that is in force as a copy has it.
type listOnCopy struct {
	Name     string    `json:"name"`
	Source   string    `json:"source"`
	CopiedAt time.Time `json:"copiedAt"` // when the source had it
}

// sourceOnCopy is a source whose rules are those of a copy.
type sourceOnCopy struct {
	Source   string    `json:"source"`
	CopiedAt time.Time `json:"copiedAt"`        // when the source held them
	Error    string    `json:"error,omitempty"` // why it cannot be read
}

// readinessOf returns whether the engine is ready: whether the rules of every
// source that it follows are in force, be it from a copy, and the lists that they name.
// Documents that were rejected do not matter, nor does a source that was lost later: the
// rules in force stay. Nor does a list that goes missing when the engine was ready before.
// Without sources, and rules that name lists, an engine is ready, unless it awaits its fleet.
func readinessOf(engine *core.Engine) readiness {
	var r readiness
	status := engine.Status()
	for _, s := range status.Sources {
		switch {
		case !s.Ready:
			r.Missing = append(r.Missing, missingSource{Source: s.Name, Error: textOf(s.Err)})
		case s.CopiedAt != 0:
			r.OnCopy = append(r.OnCopy, sourceOnCopy{Source: s.Name, CopiedAt: s.CopiedAt.Time(), Error: textOf(s.Err)})
		}
	}
	for _, l := range status.AwaitedLists {
		r.MissingLists = append(r.MissingLists, missingList(l))
	}
	for _, l := range engine.Lists().Status() {
		if l.InForce && l.CopiedAt != 0 {
			r.ListsOnCopy = append(r.ListsOnCopy, listOnCopy{Name: l.Name, Source: l.Source, CopiedAt: l.CopiedAt.Time()})
		}
	}
	r.AwaitsFleet = status.AwaitsFleet
	r.Ready = len(r.Missing) == 0 && len(r.MissingLists) == 0 && !r.AwaitsFleet
	return r
}
