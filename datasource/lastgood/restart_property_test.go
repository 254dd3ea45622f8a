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
	Pause    time.Duration // after it
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

// faults are what was found to be wrong: a bubble cannot fail the check around it.
type faults []string

func (f *faults) Errorf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// theatre plays events. It knows what was in force at the last save from the
// rules of the engine alone.
type theatre struct {
	*service
	faults  faults
	world   map[string]core.Document // what the source holds
	edition int                      // makes each rule differ from those before
	read    bool                     // the source was, in this run
	code    rules.Set                // loaded
	file    os.FileInfo              // the copy as it was seen last; nil if there is none
	saved   map[string]string        // what was in force then
}

// Whatever happens, a service that starts without its source has in force what
// was in force when the copy was saved last, and that is what there was half a
// minute before at the latest.
func TestServiceStartsWithWhatWasInForceAtTheLastSave(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		plan := events().Draw(rt, "events")
		path := copyPath(t)
		var found faults
		synctest.Test(t, func(t *testing.T) {
			th := &theatre{service: start(t, path, begin()), world: map[string]core.Document{}}
			for _, e := range append(plan, event{Kind: "restart"}) {
				th.play(e)
				th.pass(e.Pause)
				th.look(e)
			}
			found = th.faults
		})
		require.Empty(rt, found)
	})
}

func (th *theatre) play(e event) {
	switch e.Kind {
	case "write":
		th.edition++
		var text strings.Builder
		text.WriteString("flow: [")
		for _, name := range e.Rules {
			fmt.Fprintf(&text, "{name: %c, resource: %s, limit: %d},", name, e.Document, th.edition)
		}
		th.put(core.Document{Name: e.Document, Data: []byte(text.String() + "]")})
	case "break":
		th.put(core.Document{Name: e.Document, Data: []byte("flow: [")})
	case "hide":
		th.put(core.Document{Name: e.Document, Err: os.ErrPermission})
	case "remove":
		delete(th.world, e.Document)
		th.tell(core.Change{Removed: []string{e.Document}})
	case "reread":
		th.read = false
		th.tell(core.Change{})
	case "lose":
		th.lose("no route")
	case "code":
		var set rules.Set
		for _, name := range e.Rules {
			set.Flow = append(set.Flow, flow.Rule{Name: string(name), Resource: "code", Limit: 1})
		}
		th.code = set
		require.NoError(th.t, th.Load(set))
	default:
		th.restart(e.Kind)
	}
}

func (th *theatre) put(d core.Document) {
	th.world[d.Name] = d
	th.tell(core.Change{Documents: []core.Document{d}})
}

// tell delivers a change, or everything if nothing was delivered before.
func (th *theatre) tell(change core.Change) {
	if !th.read {
		change = core.Change{Complete: true, Documents: slices.Collect(maps.Values(th.world))}
	}
	th.read = true
	th.deliver(change)
}

// look notes whether there was a save. Nothing changes while the clock is moved,
// so what was in force then is what is now.
func (th *theatre) look(e event) {
	info, err := os.Stat(th.path)
	if err == nil && (th.file == nil || !os.SameFile(th.file, info)) {
		th.file, th.saved = info, th.inForce()
	}
	if e.Pause >= time.Minute && th.read {
		assert.Equal(&th.faults, th.inForce(), th.saved, "it was not saved in time")
	}
}

// restart ends the service, in order or not, and starts another one while the
// source is away.
func (th *theatre) restart(how string) {
	before := contentsOf(th.t, th.path)
	th.drain()
	switch {
	case how == "kill" && before == nil:
		require.NoError(th.t, removeIfThere(th.path))
	case how == "kill":
		require.NoError(th.t, os.WriteFile(th.path, before, 0o600))
	case th.read:
		th.saved = th.inForce()
	}
	th.Close()
	th.service, th.read = start(th.t, th.path, th.clock.Now().Time()), false
	require.NoError(th.t, th.Load(th.code))
	th.lose("no route")
	assert.Equal(&th.faults, th.saved != nil, th.status().Ready)
	if th.saved != nil {
		assert.Equal(&th.faults, th.saved, th.inForce())
	}
	th.file = nil
	if contentsOf(th.t, th.path) != nil {
		th.file = identity(th.t, th.path)
	}
}

// inForce returns the limits of the rules that are in force of the source when the
// code has none of their names, and which of its documents have versions in force.
func (th *theatre) inForce() map[string]string {
	require.NoError(th.t, th.Load(rules.Set{}))
	defer func() { require.NoError(th.t, th.Load(th.code)) }()
	found := map[string]string{}
	for _, d := range th.status().Documents {
		if d.AppliedAt != 0 {
			found[d.Name] = fmt.Sprint(d.Rules)
		}
	}
	for _, r := range th.Snapshot().Resources {
		for _, f := range r.Flow {
			if r.Name != "code" {
				found[r.Name+" "+f.Rule.Name] = fmt.Sprint(f.Rule.Limit)
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
