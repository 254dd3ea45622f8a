package penstockotel

import (
	"maps"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/stat"
)

// counts are the counters of a resource.
type counts struct{ passed, blocked, failed uint64 }

func countsOf(t *stat.Totals) counts { return counts{t.Passed, t.Blocked, t.Failed} }

// since returns how much was counted since an earlier snapshot, or since the engine forgot
// the resource after it.
func (c counts) since(earlier counts) counts {
	if c.passed < earlier.passed || c.blocked < earlier.blocked || c.failed < earlier.failed {
		return c
	}
	return counts{c.passed - earlier.passed, c.blocked - earlier.blocked, c.failed - earlier.failed}
}

// series are those of one resource, or of all that have none of their own.
type series struct {
	counts            counts
	inFlight, waiting int64

	resource, acquired, refused attribute.Set
	named, present              bool // by a rule; in the present snapshot
}

func newSeries(name string) *series {
	resource := ResourceKey.String(name)
	return &series{
		resource: attribute.NewSet(resource),
		acquired: attribute.NewSet(resource, ResultKey.String(Acquired)),
		refused:  attribute.NewSet(resource, ResultKey.String(Refused)),
	}
}

// table has the series of the resources of an engine. What happens on resources without one of
// their own is summed up as [core.Overflow]. Every call is counted once.
type table struct {
	most     int // resources that no rule names
	own      map[string]*series
	other    *series
	previous map[string]counts
}

func newTable(most int) *table {
	return &table{most: most, own: make(map[string]*series), other: newSeries(core.Overflow)}
}

// update adds what has happened since the last snapshot.
func (t *table) update(resources []core.ResourceSnapshot) {
	for _, s := range t.own {
		s.present = false
	}
	t.other.inFlight, t.other.waiting = 0, 0
	for i := range resources {
		r := &resources[i]
		if s := t.own[valid(r.Name)]; s != nil {
			s.present, s.named, s.inFlight, s.waiting = true, isNamed(r), 0, 0
		}
	}
	maps.DeleteFunc(t.own, func(_ string, s *series) bool { return !s.present })
	free := t.most
	for _, s := range t.own {
		if !s.named {
			free--
		}
	}
	now := make(map[string]counts, len(resources))
	for i := range resources {
		r := &resources[i]
		now[r.Name] = countsOf(&r.Totals)
		s := t.of(r, &free)
		more := now[r.Name].since(t.previous[r.Name])
		s.counts.passed += more.passed
		s.counts.blocked += more.blocked
		s.counts.failed += more.failed
		s.inFlight += r.InFlight
		s.waiting += r.Waiting
	}
	t.previous = now
}

// of returns the series of a resource, and makes them if so many more may be.
func (t *table) of(r *core.ResourceSnapshot, free *int) *series {
	name := valid(r.Name)
	switch s := t.own[name]; {
	case r.Name == core.Overflow:
		return t.other
	case s != nil:
		return s
	case isNamed(r):
	case *free <= 0:
		return t.other
	default:
		*free--
	}
	s := newSeries(name)
	s.named = isNamed(r)
	t.own[name] = s
	return s
}

// isNamed says whether a rule names the resource: the number of names that match a pattern is
// not bounded.
func isNamed(r *core.ResourceSnapshot) bool {
	for i := range r.Rules {
		if r.Rules[i].Rule.Target().Resource != "" {
			return true
		}
	}
	return false
}

// valid returns the name as valid UTF-8.
func valid(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
