package core_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rules"
)

func TestDocumentCreatedFirstKeepsItsNamesWhenItIsEdited(t *testing.T) {
	source := newMemory("memory")
	e, rejected := follow(t, source)
	put := func(name string, created, revision int64, names string) {
		source.put(core.Change{Revision: revision, Documents: []core.Document{
			{Name: name, Created: created, Revision: revision, Data: []byte(text(names, revision))},
		}})
	}
	put("b", 1, 1, "x")
	put("a", 2, 2, "x")
	assert.Equal(t, map[string]float64{"x": 1}, active(e))
	require.Len(t, *rejected, 1)
	put("b", 1, 3, "x")
	assert.Equal(t, map[string]float64{"x": 3}, active(e), "an edit takes effect")
	require.Len(t, *rejected, 1)

	put("b", 4, 4, "x") // deleted and made again, with another limit
	assert.Equal(t, map[string]float64{"x": 2}, active(e))
	require.Len(t, *rejected, 2)
	assert.Equal(t, "b", (*rejected)[1].Document)
	status := e.Status().Sources[0].Documents
	assert.NoError(t, status[0].Rejected)
	assert.EqualValues(t, 4, status[1].RejectedRevision)
	assert.EqualValues(t, 4, status[1].Created)
}

func TestDocumentMadeAgainWithTheSameBytesIsANewOne(t *testing.T) {
	source := newMemory("memory")
	e, rejected := follow(t, source)
	same := []byte(text("x", 1))
	source.put(complete(
		core.Document{Name: "a", Created: 1, Revision: 1, Data: same},
		core.Document{Name: "b", Created: 2, Revision: 2, Data: []byte(text("x", 2))}))
	assert.Equal(t, map[string]float64{"x": 1}, active(e))
	source.put(core.Change{Documents: []core.Document{{Name: "a", Created: 3, Revision: 3, Data: same}}})
	assert.Equal(t, map[string]float64{"x": 2}, active(e))
	require.Len(t, *rejected, 2)
}

// What is in force depends on what the sources hold now and on the rules of the
// code, and on nothing that was there before or in which order it came.
func TestSameDocumentsThroughDifferentHistoriesAreTheSameRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"etcd", "files"}
		final := map[string][]core.Document{}
		for _, source := range names {
			for _, name := range []string{"a", "b", "c"} {
				if rapid.IntRange(0, 3).Draw(t, "there") > 0 {
					final[source] = append(final[source], drawDocument(t, source, name))
				}
			}
		}
		code := drawFlow(t)
		want := historyOf(t, names, final, code, 0)
		for range 2 {
			require.Equal(t, want, historyOf(t, names, final, code, rapid.IntRange(0, 8).Draw(t, "steps")))
		}
	})
}

// historyOf has an engine go through some changes until its sources hold the
// documents and its code the rules, and returns what is in force then, and what
// is not.
func historyOf(t *rapid.T, names []string, final map[string][]core.Document, code []flow.Rule, steps int) [2]any {
	e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet})
	defer e.Close()
	sources := map[string]*memory{}
	for _, name := range names { // in the order of the program
		sources[name] = newMemory(name)
		require.NoError(t, e.Follow(t.Context(), sources[name]))
	}
	for range steps {
		source := rapid.SampledFrom(names).Draw(t, "source")
		switch rapid.IntRange(0, 3).Draw(t, "step") {
		case 0:
			require.NoError(t, e.Load(rules.Set{Flow: drawFlow(t)}))
		case 1:
			sources[source].put(core.Change{Complete: true})
		case 2:
			sources[source].put(core.Change{Complete: true, Documents: final[source]})
		default:
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "document")
			sources[source].put(core.Change{Documents: []core.Document{drawDocument(t, source, name)}})
		}
	}
	ends := []func(){func() { require.NoError(t, e.Load(rules.Set{Flow: code})) }}
	for _, name := range names {
		ends = append(ends, func() { sources[name].put(core.Change{Complete: true, Documents: final[name]}) })
	}
	for _, end := range rapid.Permutation(ends).Draw(t, "ends") {
		end()
	}
	inForce, waiting := map[string]string{}, map[string]string{}
	for _, r := range "uvw" {
		for _, of := range e.Explain(string(r)) {
			inForce[of.Name] += fmt.Sprint(of.Rule.Value(), of.Source, of.Document, of.Line)
		}
	}
	for _, source := range e.Status().Sources {
		for _, d := range source.Documents {
			waiting[source.Name+"/"+d.Name] = fmt.Sprint(d.Rejected)
		}
	}
	return [2]any{inForce, waiting}
}

func drawDocument(t *rapid.T, source, name string) core.Document {
	names := rapid.SampledFrom([]string{"", "u", "v", "w", "uv", "vw", "uvw"}).Draw(t, "rules")
	d := doc(name, 0, text(names, rapid.Int64Range(1, 3).Draw(t, "limit")))
	if source == "etcd" {
		d.Created = rapid.Int64Range(0, 3).Draw(t, "created")
		d.Revision = d.Created + rapid.Int64Range(0, 3).Draw(t, "revision")
	}
	return d
}

func drawFlow(t *rapid.T) (drawn []flow.Rule) {
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"u", "v", "w"}), rapid.ID).Draw(t, "code") {
		drawn = append(drawn, flow.Rule{Resource: name, Limit: 9})
	}
	return drawn
}

// A rule that lets nothing through moves from the code to a document, to another
// one, and back: no call passes meanwhile.
func TestRuleMovesBetweenCodeAndDocumentsWithoutAGap(t *testing.T) {
	first, second := newMemory("first"), newMemory("second")
	e, _ := follow(t, first, second)
	blocking := []core.Document{doc("d", 1, "flow: [{name: shut, resource: r, limit: 0}]")}
	load(t, e, flow.Rule{Name: "shut", Resource: "r", Limit: 0})
	var passed, calls atomic.Int64
	stop := make(chan struct{})
	var calling sync.WaitGroup
	for range 4 {
		calling.Go(func() {
			for {
				passed.Add(int64(enter(e, "r", 1)))
				calls.Add(1)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 200 {
		first.put(core.Change{Complete: true, Documents: blocking})
		load(t, e) // from the code to a document
		second.put(core.Change{Complete: true, Documents: blocking})
		first.put(core.Change{Complete: true}) // to a document of another source
		load(t, e, flow.Rule{Name: "shut", Resource: "r", Limit: 0})
		second.put(core.Change{Complete: true}) // and back
	}
	close(stop)
	calling.Wait()
	assert.Zero(t, passed.Load(), "of %d calls", calls.Load())
	assert.Equal(t, 1, e.Status().Rules)
}

func TestRuleKeepsItsCountsWhenItMovesBetweenCodeAndDocuments(t *testing.T) {
	source := newMemory("memory")
	e, _ := follow(t, source)
	rule := flow.Rule{Name: "quota", Resource: "r", Limit: 10, Window: time.Hour}
	document := func(limit int) core.Change {
		return complete(doc("d", 1, fmt.Sprintf("flow: [{name: quota, resource: r, limit: %d, window: 1h}]", limit)))
	}
	load(t, e, rule)
	require.Equal(t, 4, enter(e, "r", 4))
	source.put(document(12))
	assert.Equal(t, map[string]float64{"quota": 10}, active(e), "the code comes first")
	load(t, e)
	assert.Equal(t, map[string]float64{"quota": 12}, active(e))
	assert.Equal(t, 8, enter(e, "r", 20))
	load(t, e, rule)
	assert.Zero(t, enter(e, "r", 5))
	source.put(document(14))
	assert.Zero(t, enter(e, "r", 5))
	load(t, e)
	assert.Equal(t, 2, enter(e, "r", 5))
}

// One change takes a name from a document, gives it another limit there and has
// others want it.
func TestContestedNamesInOneChange(t *testing.T) {
	source := newMemory("memory")
	e, rejected := follow(t, source)
	source.put(complete(doc("b", 2, text("x", 2)), doc("c", 2, text("x", 2)), doc("d", 1, text("y", 1))))
	assert.Equal(t, map[string]float64{"x": 2, "y": 1}, active(e))
	source.put(core.Change{Documents: []core.Document{
		doc("a", 3, text("xy", 3)), doc("b", 3, text("x", 3)), doc("c", 3, text("x", 3)), doc("d", 3, text("yx", 3)),
	}})
	assert.Equal(t, map[string]float64{"x": 3, "y": 3}, active(e))
	for _, d := range e.Status().Sources[0].Documents {
		assert.Equal(t, d.Name == "a", d.Rejected == nil, d.Name)
	}
	require.Len(t, *rejected, 4)
	source.put(core.Change{Removed: []string{"a", "b"}, Documents: []core.Document{doc("c", 4, text("z", 4))}})
	assert.Equal(t, map[string]float64{"x": 3, "y": 3, "z": 4}, active(e))
	assert.Len(t, *rejected, 4)
}

// Each of many documents gives way to the one before it, again and again.
func TestNamesPassFromDocumentToDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	source := newMemory("memory")
	e, _ := follow(t, source)
	change := core.Change{Complete: true}
	count := longtest.Of(60, 300)
	for i := range count {
		change.Documents = append(change.Documents, doc(fmt.Sprintf("%04d", i), int64(i+1), text("uvwxyz", int64(i+1))))
	}
	source.put(change)
	for i := range count - 1 {
		source.put(core.Change{Removed: []string{fmt.Sprintf("%04d", i)}})
		limits := active(e)
		require.Len(t, limits, 6)
		require.Equal(t, []float64{float64(i + 2)}, slices.Compact(slices.Collect(maps.Values(limits))))
	}
	source.put(core.Change{Complete: true})
	require.Empty(t, active(e))
}
