package inspect

import (
	"time"

	"github.com/penstock-go/penstock/core"
)

// Readiness tells whether an engine has the rules of every source that it follows.
type Readiness struct {
	Ready bool `json:"ready"`

	// Missing are the sources that were not read yet.
	Missing []Missing `json:"missing,omitempty"`

	// OnCopy are the sources whose rules are those of a copy, because they could
	// not be read since the process was started. They count as ready.
	OnCopy []OnCopy `json:"onCopy,omitempty"`
}

// Missing is a source that was not read yet.
type Missing struct {
	Source string `json:"source"`
	Error  string `json:"error,omitempty"` // why it cannot be read; "" when nothing is known
}

// OnCopy is a source whose rules are those of a copy.
type OnCopy struct {
	Source   string    `json:"source"`
	CopiedAt time.Time `json:"copiedAt"`        // when the source held them
	Error    string    `json:"error,omitempty"` // why it cannot be read
}

// ReadinessOf returns whether the engine is ready: whether the rules of every
// source that it follows are in force, be it from a copy. Documents that were
// rejected do not matter, nor does a source that was lost later: the rules in force
// stay. Without sources an engine is ready.
func ReadinessOf(engine *core.Engine) Readiness {
	var r Readiness
	for _, s := range engine.Status().Sources {
		switch {
		case !s.Ready:
			r.Missing = append(r.Missing, Missing{Source: s.Name, Error: textOf(s.Err)})
		case s.CopiedAt != 0:
			r.OnCopy = append(r.OnCopy, OnCopy{Source: s.Name, CopiedAt: s.CopiedAt.Time(), Error: textOf(s.Err)})
		}
	}
	r.Ready = len(r.Missing) == 0
	return r
}
