package core_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

const (
	loadedRoom   = 4              // names that have a slot beside those that rules name
	loadedWindow = 24 * time.Hour // in which nothing that a test counts is forgotten
)

var loadedNames = []string{"a", "b", "c:1", "c:2", "d:1", "d:2", rule.OtherResources}

// loaded is an engine that is given rules in every way there is, and what it should
// make of them: told anew after each step, from what the status says is in force.
type loaded struct {
	t      *rapid.T
	engine *core.Engine
	clock  *clock.Virtual
	most   float64 // MaxRemoval

	sources  []*sourceModel
	code     []flow.Rule
	drawn    []flow.Rule           // so far, to be given again
	versions map[[32]byte][]placed // of documents, by digest
	given    []placed              // by the code and by documents, in their order
	inForce  []placed              // of these
	lives    map[string]int        // of rules, by name
	counts   map[loadedCount]int   // what has passed, as far as it is known
	last     map[loadedCount]clock.Instant
	logged   map[loadedCount]bool  // a queue knows all that has passed
	unsure   map[loadedCount]bool  // a queue was taken out and came back: how much it knows is not modelled
	dropped  map[loadedCount]bool  // the rule was taken out with nothing counted: its log may be gone
	former   map[string]formerRule // rules that are gone and may come back
	allLives int
	known    map[string]bool          // names that are resources
	called   map[string]clock.Instant // when last
	revision uint64
}

// sourceModel is a source and what it holds.
type sourceModel struct {
	*memory
	held     map[string]*[32]byte // digests of documents; nil for one that cannot be read
	revision int64
	running  bool
	stop     func()
}

// placed is a rule and where it stands.
type placed struct {
	flow.Rule
	source, document string
	line             int
	created          int64
}

// precedes says whether a rule is in force rather than another of its name.
func (p placed) precedes(q placed) bool {
	if p.source == "" || q.source == "" {
		return p.source != q.source && p.source == ""
	}
	return cmp.Or(cmp.Compare(p.created, q.created), cmp.Compare(p.source, q.source), cmp.Compare(p.document, q.document)) < 0
}

// loadedCount names what a rule counts of a resource: "" for all together.
type loadedCount struct {
	rule     string
	life     int
	resource string
}

// drawRule draws a rule that lets all calls through, often one that was drawn before.
func (m *loaded) drawRule(name string) flow.Rule {
	if same := slices.DeleteFunc(slices.Clone(m.drawn), func(r flow.Rule) bool { return r.Name != name }); len(same) > 0 &&
		rapid.IntRange(0, 3).Draw(m.t, "again") > 0 {
		return rapid.SampledFrom(same).Draw(m.t, "rule")
	}
	r := flow.Rule{Name: name, Limit: rapid.SampledFrom([]float64{1000, 2000}).Draw(m.t, "limit"), Window: loadedWindow}
	if rapid.Bool().Draw(m.t, "exact") {
		r.Resource = rapid.SampledFrom(loadedNames[:3]).Draw(m.t, "resource")
	} else {
		r.Match = rapid.SampledFrom([]string{"c:*", "*", "~^[cd]:1$"}).Draw(m.t, "match")
		r.Shared = rapid.Bool().Draw(m.t, "shared")
	}
	switch rapid.IntRange(0, 6).Draw(m.t, "kind") {
	case 0, 1:
		if r.Limit, r.Window = 1e6, time.Second; strings.ContainsAny(name, "024") { // the one never becomes the other
			r.Algorithm = flow.Throttle
		} else {
			r.Algorithm = flow.TokenBucket
		}
	case 2:
		r.Algorithm = flow.FixedWindow
	case 3:
		r.Related = rapid.SampledFrom([]string{"a", "c:2", "d:2"}).Filter(func(n string) bool { return n != r.Resource }).Draw(m.t, "related")
	}
	r.Origin = rapid.SampledFrom([]string{"", "", "mobile", rule.OtherOrigins}).Draw(m.t, "origin")
	r.Shadow = rapid.IntRange(0, 3).Draw(m.t, "shadow") == 3
	r = flow.Kind().WithDefaults(r)
	require.Empty(m.t, flow.Kind().Faults(r))
	m.drawn = append(m.drawn, r)
	return r
}

// drawRules draws a few rules of different names.
func (m *loaded) drawRules() (drawn []flow.Rule) {
	names := rapid.Permutation([]string{"r0", "r1", "r2", "r3", "r4", "r5"}).Draw(m.t, "names")
	for _, name := range names[:rapid.IntRange(0, 4).Draw(m.t, "rules")] {
		drawn = append(drawn, m.drawRule(name))
	}
	return drawn
}

// document writes rules as a document, and remembers what it says.
func (m *loaded) document(source, name string, revision int64) (doc core.Document, digest *[32]byte) {
	doc = core.Document{Name: name, Revision: revision}
	switch rapid.IntRange(0, 9).Draw(m.t, "broken") {
	case 0:
		doc.Data = []byte("flow: [")
		return doc, nil
	case 1:
		doc.Err = fmt.Errorf("not readable")
		return doc, nil
	}
	head := fmt.Sprintf("# %s of %s\n", name, source) + rapid.SampledFrom([]string{"", "# more\n"}).Draw(m.t, "head")
	text := head + "flow:\n"
	var here []placed
	for i, r := range m.drawRules() {
		text += "- " + ruleText(r) + "\n"
		here = append(here, placed{r, source, name, strings.Count(head, "\n") + i + 2, 0})
	}
	if len(here) == 0 {
		text = head + "flow: []"
	}
	doc.Data = []byte(text)
	sum := sha256.Sum256(doc.Data)
	m.versions[sum] = here
	return doc, &sum
}

func ruleText(r flow.Rule) string {
	var fields []string
	add := func(format string, value any) { fields = append(fields, fmt.Sprintf(format, value)) }
	add("name: %q", r.Name)
	if r.Match != "" {
		add("match: %q", r.Match)
		add("perResource: %v", !r.Shared)
	} else {
		add("resource: %q", r.Resource)
	}
	add("limit: %v", int(r.Limit))
	add("window: %v", r.Window)
	add("algorithm: %v", r.Algorithm)
	if r.Origin != "" {
		add("origin: %v", r.Origin)
	}
	if r.Related != "" {
		add("related: %q", r.Related)
	}
	add("shadow: %v", r.Shadow)
	return "{" + strings.Join(fields, ", ") + "}"
}

// load gives the engine rules from code.
func (m *loaded) load(set []flow.Rule) {
	require.NoError(m.t, m.engine.Load(rules.Set{Flow: set}))
	m.code = set
	m.judge()
}

// apply has a source find other documents.
func (m *loaded) apply(s *sourceModel) {
	revision := max(0, s.revision+rapid.SampledFrom([]int64{1, 1, 1, 0, -3}).Draw(m.t, "revision step"))
	change := core.Change{Revision: revision, Complete: rapid.IntRange(0, 3).Draw(m.t, "complete") == 0}
	confirmed := m.most == 0
	if rapid.IntRange(0, 5).Draw(m.t, "confirmed") == 0 {
		change.ConfirmedAt = revision
		confirmed = true
	}
	held := maps.Clone(s.held)
	if change.Complete {
		clear(held)
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "z"}), 0, 3, rapid.ID).Draw(m.t, "documents") {
		if !change.Complete && rapid.IntRange(0, 3).Draw(m.t, "removed") == 0 {
			change.Removed = append(change.Removed, name)
			delete(held, name)
			continue
		}
		doc, digest := m.document(s.name, name, revision)
		change.Documents = append(change.Documents, doc)
		held[name] = digest
	}
	s.held, s.revision = held, revision // all is drawn: nothing of this is skipped any longer
	before := m.namesOf(s)
	count := 0
	for _, n := range before {
		count += n
	}
	s.put(change)
	m.judge()
	if after := m.namesOf(s); !confirmed {
		gone := len(before)
		for name := range after {
			if before[name] > 0 {
				gone--
			}
		}
		require.LessOrEqual(m.t, float64(gone), m.most*float64(count), "rules that are gone at once, unconfirmed")
	}
}

// namesOf returns the names of the rules that a source gives, and how often.
func (m *loaded) namesOf(s *sourceModel) map[string]int {
	names := map[string]int{}
	for _, r := range m.given {
		if r.source == s.name {
			names[r.Name]++
		}
	}
	return names
}

// call makes a call, which passes, and counts it.
func (m *loaded) call(name, origin string) {
	m.clock.Advance(time.Millisecond)
	guard, err := m.engine.Entry(m.t.Context(), name, core.Origin(origin))
	require.NoError(m.t, err)
	guard.Exit()
	own := m.resourceOf(name, true)
	m.called[own] = m.clock.Now()
	all := m.rulesInForce()
	for _, r := range applying(all, name, origin) {
		if r.Related == "" {
			m.counts[m.countOf(r, own)]++
			m.last[m.countOf(r, own)] = m.clock.Now()
		}
	}
	for _, r := range all {
		if r.Related == own {
			m.counts[m.countOf(r, own)]++
		}
	}
}

// resourceOf returns under which name calls of that name are counted; of one that is
// not called and not known yet, what would be counted of it when it comes.
func (m *loaded) resourceOf(name string, called bool) string {
	named := m.named()
	room := 0
	for known := range m.known {
		if !named[known] {
			room++
		}
	}
	if name == rule.OtherResources || !m.known[name] && room >= loadedRoom {
		return rule.OtherResources
	}
	switch {
	case m.known[name]:
	case called:
		m.meet(name)
	default:
		return rule.OtherResources
	}
	return name
}

// meet notes that a name has become a resource: what the overflow has counted counts
// for it too.
func (m *loaded) meet(name string) {
	m.known[name] = true
	for _, r := range m.rulesInForce() {
		if own, shared := m.countOf(r, name), m.countOf(r, rule.OtherResources); own.resource != "" {
			m.counts[own], m.last[own] = m.counts[shared], m.last[shared]
			m.logged[own], m.unsure[own] = m.logged[shared], m.unsure[shared]
		}
	}
}

func (m *loaded) countOf(r flow.Rule, resource string) loadedCount {
	if r.Match == "" || r.Shared || r.Related != "" {
		resource = ""
	}
	return loadedCount{r.Name, m.lives[r.Name], resource}
}

// named returns the names that rules in force name.
func (m *loaded) named() map[string]bool {
	named := map[string]bool{}
	for _, r := range m.inForce {
		if r.Resource != "" {
			named[r.Resource] = true
		}
		if r.Related != "" {
			named[r.Related] = true
		}
	}
	return named
}

func (m *loaded) rulesInForce() (all []flow.Rule) {
	for _, r := range m.inForce {
		all = append(all, r.Rule)
	}
	return all
}

// rest lets time pass until names that nobody called are forgotten.
func (m *loaded) rest() {
	m.clock.Advance(2 * time.Minute)
	m.engine.Snapshot()
	named := m.named()
	maps.DeleteFunc(m.known, func(name string, _ bool) bool {
		counted := slices.ContainsFunc(m.inForce, func(r placed) bool {
			remembers := limiterOf(r.Rule) == byWindow || m.logged[m.countOf(r.Rule, name)]
			return targets(r.Rule, name) && remembers && m.counts[m.countOf(r.Rule, name)] > 0 &&
				m.countOf(r.Rule, name).resource != ""
		})
		if named[name] || counted {
			return false
		}
		maps.DeleteFunc(m.logged, func(key loadedCount, _ bool) bool { return key.resource == name })
		return true
	})
	m.judge()
}

// formerRule is a rule that is gone.
type formerRule struct {
	flow.Rule
	life int
}

// succeed notes what becomes of the counts of rules that were in force before.
func (m *loaded) succeed(before []placed) {
	for _, was := range before {
		i := slices.IndexFunc(m.inForce, func(r placed) bool { return r.Name == was.Name })
		switch {
		case i < 0:
			m.keep(was.Rule, m.lives[was.Name])
		case !countsLike(was.Rule, m.inForce[i].Rule):
			old := m.lives[was.Name]
			m.takeUp(m.inForce[i].Rule)
			m.keep(was.Rule, old)
		case limiterOf(was.Rule) != limiterOf(m.inForce[i].Rule):
			m.handOver(was.Rule)
		}
	}
	for _, is := range m.inForce {
		if !slices.ContainsFunc(before, func(r placed) bool { return r.Name == is.Name }) {
			m.takeUp(is.Rule)
		}
	}
}

// keep notes that a rule may come back.
func (m *loaded) keep(was flow.Rule, life int) {
	if (was.Match == "" || was.Shared) && was.Related == "" {
		m.former[was.Name] = formerRule{was, life}
	}
}

// takeUp gives a rule that comes the life of one that it takes up, or another.
func (m *loaded) takeUp(is flow.Rule) {
	was, ok := m.former[is.Name]
	if !ok || !countsLike(was.Rule, is) {
		m.allLives++
		m.lives[is.Name] = m.allLives
		return
	}
	delete(m.former, is.Name)
	m.lives[is.Name] = was.life
	key := m.countOf(was.Rule, "")
	m.unsure[key] = m.unsure[key] || limiterOf(was.Rule) != byWindow && !m.logged[key]
	m.handOver(was.Rule)
	m.dropped[key] = m.counts[key] == 0
}

// handOver notes that another limiter goes on where that of a rule stopped. Of a
// queue it knows what is not over yet only, which is a call of this very moment,
// unless that one knew more itself.
func (m *loaded) handOver(was flow.Rule) {
	for name := range m.known {
		m.handOverOf(was, name)
	}
	m.handOverOf(was, rule.OtherResources)
}

func (m *loaded) handOverOf(was flow.Rule, name string) {
	key := m.countOf(was, name)
	m.unsure[key] = m.unsure[key] || limiterOf(was) != byWindow && m.dropped[key]
	if limiterOf(was) != byWindow && !m.logged[key] {
		m.counts[key] = 0
		if m.last[key] == m.clock.Now() {
			m.counts[key] = 1
		}
	}
	m.logged[key], m.dropped[key] = true, false
}
