package core

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/counts"
	"github.com/penstock-go/penstock/core/internal/lines"
	"github.com/penstock-go/penstock/core/internal/registry"
	"github.com/penstock-go/penstock/stat"
)

// ResourceSecond is what happened on a resource in one calendar second.
type ResourceSecond struct {
	// Resource is the name of the resource; [rule.OtherResources] for those beyond
	// [Config.MaxResources].
	Resource string
	stat.Second
}

// secondReader reads what happens on the resources of an engine, second by second, see [Engine.Seconds]. It keeps
// a few words for each resource.
type secondReader struct {
	engine    *Engine
	reads     uint64
	resources map[*registry.Stats]*resourceRead
	forgotten counts.Counts // that were returned of resources that the engine has forgotten
}

// resourceRead is what a reader knows of a resource.
type resourceRead struct {
	counts.Counts        // that were returned
	read          uint64 // in which the resource was there last
}

// Seconds returns a function that reads what happens on the resources, second by second, from the calendar second on
// that has the instant, which is at most a minute ago. It is not safe for concurrent use. Every event is in what one call
// of it returns, and in no other: what is counted when its second has been read, as by a goroutine that was delayed, comes
// with the next second. So the counts of all seconds sum up to those of the engine.
//
// The function returns what was counted up to the end of the calendar second that has the instant, and
// was not returned before, by resource. Resources without any are left out. MaxInFlight and
// MaxResponseTime are those of that second alone. Call it with ascending seconds: what happened
// in one that is skipped comes with the next one. The engine knows for a minute in which second
// something happened; what is read later comes with the first second that is read. What was
// counted on resources that the engine has forgotten meanwhile, after they were idle for a
// minute, comes as [rule.OtherResources].
func (e *Engine) Seconds(from clock.Instant) func(at clock.Instant) []ResourceSecond {
	r := &secondReader{engine: e, resources: make(map[*registry.Stats]*resourceRead)}
	r.read(lines.SecondOf(from)-1, func(string, stat.Second) {})
	return r.list
}

// list returns what is new on each resource up to the end of a second.
func (r *secondReader) list(at clock.Instant) (list []ResourceSecond) {
	r.read(lines.SecondOf(at), func(name string, s stat.Second) {
		if s.Passed+s.Blocked+s.Completed+s.Failed+s.Waited > 0 {
			list = append(list, ResourceSecond{name, s})
		}
	})
	slices.SortFunc(list, func(a, b ResourceSecond) int { return cmp.Compare(a.Resource, b.Resource) })
	return list
}

// read calls add with what is new on each resource.
func (r *secondReader) read(second int64, add func(name string, of stat.Second)) {
	resources, forgotten := r.engine.resources.AllAndForgotten(r.engine.clock.Now())
	r.reads++
	more := make([]stat.Second, len(resources))
	for i, of := range resources {
		more[i] = of.Node.Through(second)
		known := r.resources[of.Stats]
		if known == nil {
			known = new(resourceRead)
			r.resources[of.Stats] = known
		}
		known.read = r.reads
		known.Raise(counts.OfSecond(&more[i])).SetSecond(&more[i])
	}
	for stats, known := range r.resources {
		if known.read != r.reads {
			r.forgotten.Add(known.Counts)
			delete(r.resources, stats)
		}
	}
	late := r.forgotten.Raise(counts.Of(&forgotten))
	overflow := &more[len(more)-1]
	late.Add(counts.OfSecond(overflow))
	late.SetSecond(overflow)
	for i, of := range resources {
		add(of.Name, more[i])
	}
}
