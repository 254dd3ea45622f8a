package core

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/core/internal/counts"
	"github.com/penstock-go/penstock/core/internal/registry"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// Accumulator makes of snapshots of an engine, whose resources come and go, counters that
// never go down, of a bounded number of resources: what collectors of metrics need. Every
// event is counted once. It is not safe for concurrent use.
type Accumulator struct {
	// MaxResources is how many resources have totals of their own: first those that rules name, then others,
	// and of both first those that had them before. It is not to be changed after the first Add.
	MaxResources int

	resources map[string]*accumulated    // by name, that were in the last snapshot
	inOrder   []*accumulated             // the same in the order of the snapshot
	totals    map[string]*ResourceTotals // by valid name
	byName    []*ResourceTotals          // the same in order
	forgotten counts.Counts              // that are in the totals of Overflow
	snapshots uint64
}

// ResourceTotals is what was counted on a resource, or on all that have no totals of their
// own together.
type ResourceTotals struct {
	// Name of the resource, as valid UTF-8; [rule.OtherResources] for those without totals of their own.
	Name string
	// Completed agrees with ResponseTimes.
	stat.Totals
	// Refusals are those by rules in force. Names are valid UTF-8. Of resources without totals
	// of their own, rules that name one resource are summed up, by kind, as [rule.OtherResources].
	Refusals map[rule.Key]*RuleRefusals

	// Resources is how many resources of the last snapshot count here.
	Resources int
	// Index is where in the last snapshot the resource of this name is: the first of those
	// whose names are the same as valid UTF-8. It is -1 if there is none.
	Index int
	// Data is for the collector, such as labels. It stays as long as the totals do.
	Data any

	rules int    // in force, of those in Refusals
	seen  uint64 // the last snapshot with a resource that counts here
}

// RuleRefusals is what a rule refused on a resource.
type RuleRefusals struct {
	Reason     rule.Reason
	Shadow     bool   // it is a shadow now
	Blocked    uint64 // calls that it refused
	WouldBlock uint64 // calls that it would have refused while it was a shadow
	Demotes    bool   // it demotes calls in place of refusing them
	Demoted    uint64 // calls that it demoted, see [RuleSnapshot.Demoted]

	// Data is for the collector, such as labels. It stays as long as the rule is in force.
	Data any

	seen uint64
}

// accumulated is what was read of a resource.
type accumulated struct {
	stats    *registry.Stats
	counted  counts.Counts // that are in the totals
	times    stat.Distribution
	rules    []ruleCounts
	named    bool // by a rule in force
	separate bool // has totals of its own
	chosen   bool // to have them from this snapshot on
	seen     uint64
}

// ruleCounts is what was read of a rule on a resource.
type ruleCounts struct {
	key                          rule.Key
	blocked, wouldBlock, demoted uint64
}

// Add adds the next snapshot of the engine, and returns the totals by name. The next one changes
// the list and all that is in it, the buckets of ResponseTimes, too. The totals of [rule.OtherResources] are
// among them once anything counts there. Calls that were counted after the last snapshot on
// resources that the engine has forgotten since count there, too; in ResponseTimes as if each had
// taken as long as the mean. A call that a snapshot saw pass, but that was taken back because the
// engine was just forgetting its resource, counts in place of the next one.
func (a *Accumulator) Add(s *Snapshot) []*ResourceTotals {
	if a.resources == nil {
		a.resources, a.totals = make(map[string]*accumulated), make(map[string]*ResourceTotals)
	}
	a.snapshots++
	clear(a.inOrder)
	a.inOrder = a.inOrder[:0]
	for i := range s.Resources {
		a.inOrder = append(a.inOrder, a.find(&s.Resources[i]))
	}
	if len(a.resources) > len(s.Resources) {
		a.dropForgotten()
	}
	a.chooseSeparate(s.Resources)
	for i := range s.Resources {
		a.count(&s.Resources[i], i)
	}
	a.countForgotten(&s.Forgotten)
	return a.end()
}

// find returns what was read of a resource, and marks it as present. One that the engine has made
// anew since the last snapshot starts over.
func (a *Accumulator) find(of *ResourceSnapshot) *accumulated {
	r := a.resources[of.Name]
	if r == nil || r.stats != of.stats {
		if r != nil {
			a.forgotten.Add(r.counted)
		}
		had := r != nil && r.separate
		r = &accumulated{stats: of.stats, separate: had}
		a.resources[of.Name] = r
	}
	r.seen = a.snapshots
	r.named = of.named()
	return r
}

// dropForgotten drops the resources that the engine has forgotten.
func (a *Accumulator) dropForgotten() {
	for name, r := range a.resources {
		if r.seen != a.snapshots {
			a.forgotten.Add(r.counted)
			delete(a.resources, name)
		}
	}
}

// chooseSeparate chooses the resources with totals of their own.
func (a *Accumulator) chooseSeparate(resources []ResourceSnapshot) {
	remaining := a.MaxResources
	for _, named := range []bool{true, false} {
		for _, had := range []bool{true, false} {
			for i, r := range a.inOrder {
				if remaining > 0 && r.named == named && r.separate == had && resources[i].Name != rule.OtherResources {
					r.chosen = true
					remaining--
				}
			}
		}
	}
	for _, r := range a.inOrder {
		r.separate, r.chosen = r.chosen, false
	}
}

// count adds what is new on the resource at an index of the snapshot.
func (a *Accumulator) count(of *ResourceSnapshot, index int) {
	r := a.inOrder[index]
	name := rule.OtherResources
	if r.separate {
		name = validName(of.Name)
	}
	t := a.totalsOf(name)
	t.Resources++
	if t.Index < 0 && (r.separate || of.Name == rule.OtherResources) {
		t.Index = index
	}
	now := counts.Of(&of.Totals)
	now[counts.Completed] = of.ResponseTimes.Count // calls that end meanwhile may be in one and not yet in the other
	r.counted.Raise(now).AddTo(&t.Totals)
	t.InFlight += of.InFlight
	t.Waiting += of.Waiting
	t.ResponseTimes.Add(of.ResponseTimes, r.times)
	r.times = of.ResponseTimes
	r.alignRules(of.Rules)
	for i := range of.Rules {
		more := r.rules[i].raise(&of.Rules[i])
		refusals := t.refusalsBy(&of.Rules[i])
		refusals.Blocked += more.blocked
		refusals.WouldBlock += more.wouldBlock
		refusals.Demoted += more.demoted
	}
}

// countForgotten adds what was counted on resources after they were read last.
func (a *Accumulator) countForgotten(now *stat.Totals) {
	late := a.forgotten.Raise(counts.Of(now))
	if late == (counts.Counts{}) {
		return
	}
	t := a.totalsOf(rule.OtherResources)
	late.AddTo(&t.Totals)
	if n := late[counts.Completed]; n > 0 {
		var times leap.Histogram
		times.RecordN(time.Duration(late[counts.ResponseTime]/n), n)
		t.ResponseTimes.Add(times.Snapshot(), stat.Distribution{})
	}
}

// totalsOf returns the totals of a name, ready for this snapshot.
func (a *Accumulator) totalsOf(name string) *ResourceTotals {
	t := a.totals[name]
	if t == nil {
		t = &ResourceTotals{Name: name, Refusals: make(map[rule.Key]*RuleRefusals)}
		a.totals[name] = t
	}
	if t.seen != a.snapshots {
		t.start(a.snapshots)
	}
	return t
}

// end drops what is not in this snapshot and returns the rest.
func (a *Accumulator) end() []*ResourceTotals {
	ordered := len(a.byName) == len(a.totals)
	for _, t := range a.byName {
		switch {
		case t.seen == a.snapshots:
		case t.Name == rule.OtherResources:
			t.start(a.snapshots)
		default:
			delete(a.totals, t.Name)
			ordered = false
		}
	}
	if !ordered {
		a.byName = slices.SortedFunc(maps.Values(a.totals), func(a, b *ResourceTotals) int { return cmp.Compare(a.Name, b.Name) })
	}
	for _, t := range a.byName {
		if t.rules < len(t.Refusals) {
			maps.DeleteFunc(t.Refusals, func(_ rule.Key, r *RuleRefusals) bool { return r.seen != a.snapshots })
		}
	}
	return a.byName
}

// start prepares the totals for another snapshot, of which nothing was added yet.
func (t *ResourceTotals) start(snapshot uint64) {
	t.seen, t.InFlight, t.Waiting, t.Resources, t.Index, t.rules = snapshot, 0, 0, 0, -1, 0
}

// refusalsBy returns the refusals by a rule, ready for this snapshot.
func (t *ResourceTotals) refusalsBy(by *RuleSnapshot) *RuleRefusals {
	key := rule.Key{Kind: by.Kind, Name: validName(by.Name)}
	if t.Name == rule.OtherResources && by.Rule.Target().Resource != "" {
		key.Name = rule.OtherResources
	}
	of := t.Refusals[key]
	if of == nil {
		of = &RuleRefusals{Reason: by.Rule.Type().Reason()}
		t.Refusals[key] = of
	}
	if of.seen != t.seen {
		of.seen, of.Shadow, of.Demotes = t.seen, false, false
		t.rules++
	}
	of.Demotes = of.Demotes || by.Rule.Demotes()
	of.Shadow = of.Shadow || by.Shadow
	return of
}

// alignRules brings what was read of rules into the order of a snapshot. Nothing was read of those
// that are new.
func (r *accumulated) alignRules(rules []RuleSnapshot) {
	aligned := len(r.rules) == len(rules)
	for i := 0; aligned && i < len(rules); i++ {
		aligned = r.rules[i].key.Name == rules[i].Name && r.rules[i].key.Kind == rules[i].Kind
	}
	if aligned {
		return
	}
	read := r.rules
	r.rules = make([]ruleCounts, len(rules))
	for i := range rules {
		r.rules[i].key = rule.Key{Kind: rules[i].Kind, Name: rules[i].Name}
		if at := slices.IndexFunc(read, func(c ruleCounts) bool { return c.key == r.rules[i].key }); at >= 0 {
			r.rules[i] = read[at]
		}
	}
}

// raise raises the counts to what they are now, and returns by how much. They start over when the
// rule was replaced.
func (c *ruleCounts) raise(now *RuleSnapshot) (more ruleCounts) {
	if now.Blocked < c.blocked || now.WouldBlock < c.wouldBlock || now.Demoted < c.demoted {
		c.blocked, c.wouldBlock, c.demoted = 0, 0, 0
	}
	more.blocked, more.wouldBlock, more.demoted = now.Blocked-c.blocked, now.WouldBlock-c.wouldBlock, now.Demoted-c.demoted
	c.blocked, c.wouldBlock, c.demoted = now.Blocked, now.WouldBlock, now.Demoted
	return more
}

// validName returns the name as valid UTF-8.
func validName(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }
