package lastgood_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// event is something that happens to a service or its source.
type event struct {
	Kind     string
	Document string
	Rules    string        // the names of the rules in a document or in the code
	Pause    time.Duration // after the event
}

func events() *rapid.Generator[[]event] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event {
		return event{
			Kind: rapid.SampledFrom([]string{
				"write", "write", "write", "break", "hide", "remove", "reread", "lose", "code", "restart", "kill",
			}).Draw(t, "kind"),
			Document: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "document"),
			Rules:    rapid.SampledFrom([]string{"", "u", "v", "w", "uv"}).Draw(t, "rules"),
			Pause:    rapid.SampledFrom([]time.Duration{0, 0, time.Second / 2, time.Second, time.Minute, 2 * time.Hour}).Draw(t, "pause"),
		}
	}), 1, 30)
}

// faults collects failures, because a synctest bubble cannot fail the check around it.
type faults []string

func (f *faults) Errorf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// model executes events. It derives what was in force at the last save only from
// the rules of the engine.
type model struct {
	*service
	faults    faults
	documents map[string]core.Document // documents of the source
	edition   int                      // makes each rule differ from those before
	read      bool                     // the source was read in this run
	code      rules.Set                // loaded from code
	file      os.FileInfo              // of the copy at the last check; nil if there is none
	saved     map[string]string        // what was in force at the last save
}

// After any events, a service that starts without its source enforces what was in
// force at the last save, which is at most half a minute old.
func TestServiceStartsWithTheRulesOfTheLastSave(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := events().Draw(rt, "events")
		path := copyPath(t)
		var found faults
		synctest.Test(t, func(t *testing.T) {
			m := &model{service: start(t, path, begin()), documents: map[string]core.Document{}}
			for _, e := range append(plan, event{Kind: "restart"}) {
				m.execute(e)
				m.pass(e.Pause)
				m.recordSave(e)
			}
			found = m.faults
		})
		require.Empty(rt, found)
	})
}

func (m *model) execute(e event) {
	switch e.Kind {
	case "write":
		m.edition++
		var text strings.Builder
		text.WriteString("flow: [")
		for _, name := range e.Rules {
			fmt.Fprintf(&text, "{name: %c, resource: %s, limit: %d},", name, e.Document, m.edition)
		}
		m.put(core.Document{Name: e.Document, Data: []byte(text.String() + "]")})
	case "break":
		m.put(core.Document{Name: e.Document, Data: []byte("flow: [")})
	case "hide":
		m.put(core.Document{Name: e.Document, Err: os.ErrPermission})
	case "remove":
		delete(m.documents, e.Document)
		m.deliverChange(core.Change{Removed: []string{e.Document}})
	case "reread":
		m.read = false
		m.deliverChange(core.Change{})
	case "lose":
		m.lose("no route")
	case "code":
		var set rules.Set
		for _, name := range e.Rules {
			set.Flow = append(set.Flow, flow.Rule{Name: string(name), Resource: "code", Limit: 1})
		}
		m.code = set
		require.NoError(m.t, m.Load(set))
	default:
		m.restart(e.Kind)
	}
}

func (m *model) put(d core.Document) {
	m.documents[d.Name] = d
	m.deliverChange(core.Change{Documents: []core.Document{d}})
}

// deliverChange delivers a change, or all documents if nothing was delivered before.
func (m *model) deliverChange(change core.Change) {
	if !m.read {
		change = core.Change{Complete: true, Documents: slices.Collect(maps.Values(m.documents))}
	}
	m.read = true
	m.deliver(change)
}

// recordSave records whether there was a save. Nothing changes while the clock is advanced,
// so the save has what is in force now.
func (m *model) recordSave(e event) {
	info, err := os.Stat(m.path)
	if err == nil && (m.file == nil || !os.SameFile(m.file, info)) {
		m.file, m.saved = info, m.inForce()
	}
	if e.Pause >= time.Minute && m.read {
		assert.Equal(&m.faults, m.inForce(), m.saved, "it was not saved in time")
	}
}

// restart stops the service, gracefully or not, and starts another one while the
// source is down.
func (m *model) restart(how string) {
	before := contentsOf(m.t, m.path)
	m.drain()
	switch {
	case how == "kill" && before == nil:
		require.NoError(m.t, removeIfThere(m.path))
	case how == "kill":
		require.NoError(m.t, os.WriteFile(m.path, before, 0o600))
	case m.read:
		m.saved = m.inForce()
	}
	m.Close()
	m.service, m.read = start(m.t, m.path, m.clock.Now().Time()), false
	require.NoError(m.t, m.Load(m.code))
	m.lose("no route")
	assert.Equal(&m.faults, m.saved != nil, m.status().Ready)
	if m.saved != nil {
		assert.Equal(&m.faults, m.saved, m.inForce())
	}
	m.file = nil
	if contentsOf(m.t, m.path) != nil {
		m.file = identity(m.t, m.path)
	}
}

// inForce returns the limits of the source's rules that are in force when the code
// has no rules with their names, and which of its documents have versions in force.
func (m *model) inForce() map[string]string {
	require.NoError(m.t, m.Load(rules.Set{}))
	defer func() { require.NoError(m.t, m.Load(m.code)) }()
	found := map[string]string{}
	for _, d := range m.status().Documents {
		if d.AppliedAt != 0 {
			found[d.Name] = fmt.Sprint(d.Rules)
		}
	}
	for _, r := range m.Snapshot().Resources {
		for _, f := range r.Rules {
			if r.Name != "code" {
				found[r.Name+" "+f.Name] = fmt.Sprint(f.Quota.Limit)
			}
		}
	}
	return found
}

func contentsOf(t *testing.T, path string) []byte {
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return data
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !os.IsNotExist(err) {
		return err
	}
	return nil
}
