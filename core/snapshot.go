package core

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/registry"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// Snapshot is what an engine knows at one moment.
type Snapshot struct {
	At        clock.Instant
	Status    Status
	Rejected  uint64             // documents, and sets of owners, that were rejected so far
	Resources []ResourceSnapshot // by name

	// Forgotten is what was counted on resources that the engine has forgotten: those that
	// were not called for a minute and that no rule names. It has no ResponseTimes.
	Forgotten stat.Totals
}

// Snapshot returns what the engine knows now. It slows no call but those that
// are just opening a bucket of a window.
func (e *Engine) Snapshot() Snapshot {
	now := e.clock.Now()
	s := Snapshot{At: now, Status: e.Status(), Rejected: e.rejections.Load()}
	all, forgotten := e.resources.AllAndForgotten(now)
	s.Forgotten = forgotten
	slices.SortFunc(all, func(a, b *registry.Resource[callEnv]) int { return cmp.Compare(a.Name, b.Name) })
	s.Resources = make([]ResourceSnapshot, 0, len(all))
	for _, r := range all {
		if of := (*resource)(r).snapshot(now); of.Name != rule.OtherResources || of.Passed+of.Blocked+of.Waited+uint64(of.Waiting) > 0 {
			s.Resources = append(s.Resources, of)
		}
	}
	return s
}

// Snapshot returns what the engine knows of the resource now.
func (r *Resource) Snapshot() ResourceSnapshot { return r.current().snapshot(r.engine.clock.Now()) }

// Minute returns what happened on the resource in the last 60 seconds, oldest
// first; the last of them is the present one.
func (r *Resource) Minute() []stat.Second { return r.current().Node.Minute(r.engine.clock.Now()) }
