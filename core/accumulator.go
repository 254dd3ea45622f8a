package core

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// Accumulator makes of snapshots of an engine, whose resources come and go, counters that
// never go down, of a bounded number of resources: what collectors of metrics need. Every
// event is counted once. [NewAccumulator] returns one; it is not safe for concurrent use.
type Accumulator struct {
	most      int
	resources map[string]*accumulated    // by name, that were in the last snapshot
	series    map[string]*ResourceTotals // by valid name
	forgotten counts                     // that are in the series of Overflow
	snapshots uint64
}

// ResourceTotals is what was counted on a resource, or on all that have no totals of their
// own together.
type ResourceTotals struct {
	// Name of the resource, as valid UTF-8; [Overflow] for those without totals of their own.
	Name string
	stat.Totals
	// Refusals are those by rules in force. Names are valid UTF-8. Of resources without totals
	// of their own, rules that name one resource are summed up, by kind, as [Overflow].
	Refusals map[rule.Key]*RuleRefusals

	times stat.Histogram
	seen  uint64 // the last snapshot with a resource that counts here
}

// RuleRefusals is what a rule refused on a resource.
type RuleRefusals struct {
	Reason     rule.Reason
	Shadow     bool   // it is a shadow now
	Blocked    uint64 // calls that it refused
	WouldBlock uint64 // calls that it would have refused while it was a shadow

	seen uint64
}

// accumulated is what was read of a resource.
type accumulated struct {
	stats    *resourceStats
	counted  counts // that are in the totals
	times    stat.Distribution
	rules    []ruleCounts
	named    bool // by a rule in force
	separate bool // has totals of its own
	seen     uint64
}

// ruleCounts is what was read of a rule on a resource.
type ruleCounts struct {
	key                 rule.Key
	blocked, wouldBlock uint64
}

// NewAccumulator returns an accumulator in which so many resources have totals of their own:
// first those that rules name, then others, and of both first those that had them before.
func NewAccumulator(maxResources int) *Accumulator {
	return &Accumulator{most: maxResources, resources: make(map[string]*accumulated), series: make(map[string]*ResourceTotals)}
}

// IsSeparate says whether a resource of the last snapshot has totals of its own.
func (a *Accumulator) IsSeparate(resource string) bool {
	r := a.resources[resource]
	return r != nil && r.separate
}

// Add adds the next snapshot of the engine, and returns the totals by name. They change with the
// next one. Those of [Overflow] are among them once anything counts there. Calls that were
// counted after the last snapshot on resources that the engine has forgotten since count there,
// too; in ResponseTimes as if each had taken as long as the mean.
func (a *Accumulator) Add(s *Snapshot) []*ResourceTotals {
	a.snapshots++
	for i := range s.Resources {
		a.find(&s.Resources[i])
	}
	for name, r := range a.resources {
		if r.seen != a.snapshots {
			a.forgotten.add(r.counted)
			delete(a.resources, name)
		}
	}
	a.chooseSeparate(s.Resources)
	for i := range s.Resources {
		a.count(&s.Resources[i])
	}
	a.countForgotten(&s.Forgotten)
	return a.end()
}

// find marks a resource as present. One that the engine has made anew since the last snapshot
// starts over.
func (a *Accumulator) find(of *ResourceSnapshot) {
	r := a.resources[of.Name]
	if r == nil || r.stats != of.stats {
		if r != nil {
			a.forgotten.add(r.counted)
		}
		had := r != nil && r.separate
		r = &accumulated{stats: of.stats, separate: had}
		a.resources[of.Name] = r
	}
	r.seen = a.snapshots
	r.named = of.Named()
}

// chooseSeparate chooses the resources with totals of their own.
func (a *Accumulator) chooseSeparate(resources []ResourceSnapshot) {
	remaining := a.most
	chosen := make([]bool, len(resources))
	for _, named := range []bool{true, false} {
		for _, had := range []bool{true, false} {
			for i := range resources {
				r := a.resources[resources[i].Name]
				if remaining > 0 && r.named == named && r.separate == had && resources[i].Name != Overflow {
					chosen[i] = true
					remaining--
				}
			}
		}
	}
	for i := range resources {
		a.resources[resources[i].Name].separate = chosen[i]
	}
}

// count adds what is new on a resource.
func (a *Accumulator) count(of *ResourceSnapshot) {
	r := a.resources[of.Name]
	name := Overflow
	if r.separate {
		name = validName(of.Name)
	}
	t := a.totalsOf(name)
	r.counted.raise(countsOf(&of.Totals)).addTo(&t.Totals)
	t.InFlight += of.InFlight
	t.Waiting += of.Waiting
	t.times.Add(of.ResponseTimes, r.times)
	r.times = of.ResponseTimes
	read := r.rules
	r.rules = make([]ruleCounts, len(of.Rules))
	for i := range of.Rules {
		by := &of.Rules[i]
		r.rules[i] = ruleCounts{rule.Key{Kind: by.Kind, Name: by.Name}, by.Blocked, by.WouldBlock}
		t.countRefusals(by, r.rules[i].since(read, i), a.snapshots)
	}
}

// countForgotten adds what was counted on resources after they were read last.
func (a *Accumulator) countForgotten(now *stat.Totals) {
	late := a.forgotten.raise(countsOf(now))
	if late == (counts{}) {
		return
	}
	t := a.totalsOf(Overflow)
	late.addTo(&t.Totals)
	if n := late[countCompleted]; n > 0 {
		t.times.RecordN(time.Duration(late[countResponseTime]/n), n)
	}
}

// totalsOf returns the totals of a name, those that are not in this snapshot yet without the
// calls under way.
func (a *Accumulator) totalsOf(name string) *ResourceTotals {
	t := a.series[name]
	if t == nil {
		t = &ResourceTotals{Name: name, Refusals: make(map[rule.Key]*RuleRefusals)}
		a.series[name] = t
	}
	if t.seen != a.snapshots {
		t.seen, t.InFlight, t.Waiting = a.snapshots, 0, 0
	}
	return t
}

// end drops what is not in this snapshot and returns the rest.
func (a *Accumulator) end() []*ResourceTotals {
	maps.DeleteFunc(a.series, func(name string, t *ResourceTotals) bool { return t.seen != a.snapshots && name != Overflow })
	if t := a.series[Overflow]; t != nil && t.seen != a.snapshots {
		t.InFlight, t.Waiting = 0, 0
	}
	for _, t := range a.series {
		t.ResponseTimes = t.times.Snapshot()
		maps.DeleteFunc(t.Refusals, func(_ rule.Key, r *RuleRefusals) bool { return r.seen != a.snapshots })
	}
	return slices.SortedFunc(maps.Values(a.series), func(a, b *ResourceTotals) int { return cmp.Compare(a.Name, b.Name) })
}

// countRefusals adds what a rule has refused since the last snapshot.
func (t *ResourceTotals) countRefusals(by *RuleSnapshot, more ruleCounts, snapshot uint64) {
	key := rule.Key{Kind: by.Kind, Name: validName(by.Name)}
	if t.Name == Overflow && by.Rule.Target().Resource != "" {
		key.Name = Overflow
	}
	of := t.Refusals[key]
	if of == nil {
		of = &RuleRefusals{Reason: by.Rule.Type().Reason()}
		t.Refusals[key] = of
	}
	if of.seen != snapshot {
		of.seen, of.Shadow = snapshot, false
	}
	of.Shadow = of.Shadow || by.Shadow
	of.Blocked += more.blocked
	of.WouldBlock += more.wouldBlock
}

// since returns by how much the counts have risen since they were read. They start over when
// the rule was replaced. It looks at a likely place in the list first.
func (c ruleCounts) since(list []ruleCounts, likely int) ruleCounts {
	i := likely
	if i >= len(list) || list[i].key != c.key {
		i = slices.IndexFunc(list, func(r ruleCounts) bool { return r.key == c.key })
	}
	if i < 0 || list[i].blocked > c.blocked || list[i].wouldBlock > c.wouldBlock {
		return c
	}
	return ruleCounts{c.key, c.blocked - list[i].blocked, c.wouldBlock - list[i].wouldBlock}
}

// validName returns the name as valid UTF-8.
func validName(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
