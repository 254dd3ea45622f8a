package sourcetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/rules"
)

func firstChangeIsComplete(f *fixture) {
	for i := range 20 {
		f.put(fmt.Sprintf("document-%d.yaml", i), limited("r", i))
	}
	r := f.follow()
	f.await(r)
	first := r.Changes()[0]
	assert.True(f.t, first.Complete)
	assert.Len(f.t, first.Documents, 20, "all documents are in the first change")
	assert.Empty(f.t, first.Removed)
}

func emptyStoreIsComplete(f *fixture) {
	r := f.follow()
	f.await(r)
	assert.True(f.t, r.Changes()[0].Complete)
	assert.Empty(f.t, r.Changes()[0].Documents)

	f.put("a.yaml", limited("a", 1))
	f.await(r)
}

func documentsAreAddedChangedAndRemoved(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	r := f.follow()
	f.await(r)
	for i := range 3 {
		for _, step := range []func(){
			func() { f.put("a.yaml", limited("a", 10*i+2)) },
			func() { f.put("b.yaml", limited("b", 10*i+1)) },
			func() { f.put("a.yaml", limited("a", 10*i+3)); f.remove("b.yaml") },
			func() { f.remove("a.yaml"); f.put("c.yaml", limited("c", i)) },
			func() { f.put("a.yaml", limited("a", 10*i+4)); f.remove("c.yaml") },
		} {
			step()
			f.await(r)
		}
	}
	assert.Empty(f.t, r.Errors())
}

func lastDocumentCanBeRemoved(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	f.put("b.yaml", limited("b", 1))
	r := f.follow()
	f.await(r)
	f.remove("a.yaml")
	f.await(r)
	f.remove("b.yaml")
	f.await(r)
	f.put("a.yaml", limited("a", 2))
	f.await(r)
}

func namesArriveAsWritten(f *fixture) {
	f.checkNames("a.yaml", "a.b.yaml", "with-dash.yaml", "with_underscore.yaml", "Mixed.yaml", "1.yaml",
		"long-"+strings.Repeat("x", 100)+".yaml")
}

func namesOfAnyCharactersArriveAsWritten(f *fixture) {
	f.checkNames("größe.yaml", "規則.yaml", "with space.yaml", "a+b&c=d.yaml", "percent%41.yaml", "hash#1.yaml", "what?.yaml",
		"colon:1.yaml", "star*.yaml", "[0-9].yaml", "UPPER.yaml", "upper.yaml", `quote"1.yaml`)
}

func namesWithSlashesArriveAsWritten(f *fixture) {
	f.checkNames("top.yaml", "team/a.yaml", "team/b.yaml", "team/deeper/a.yaml", "team-2/a.yaml", "größe/規則 1.yaml")
}

// checkNames checks documents with these names, both of the first read and of later
// changes.
func (f *fixture) checkNames(names ...string) {
	f.t.Helper()
	for _, name := range names[:len(names)/2] {
		f.put(name, limited("a", 1))
	}
	r := f.follow()
	f.await(r)
	for _, name := range names {
		f.put(name, limited("a", 2))
	}
	f.await(r)
	for _, name := range names[1:] {
		f.remove(name)
	}
	f.await(r)
}

func emptyDocumentIsNotARemoval(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	f.put("b.yaml", "")
	r := f.follow()
	f.await(r)
	f.put("a.yaml", "")
	f.await(r)
	for _, change := range r.Changes() {
		assert.Empty(f.t, change.Removed)
	}
	f.put("a.yaml", limited("a", 2))
	f.await(r)
}

func tooLongDocumentIsFaultyAlone(f *fixture) {
	longest := "#" + strings.Repeat("x", rules.MaxDocumentSize-1)
	f.put("longest.yaml", longest)
	f.put("longer.yaml", limited("a", 1))
	r := f.follow()
	f.await(r)

	f.store.Put("longer.yaml", longest+"x")
	require.ErrorContains(f.t, r.AwaitFault(f.t, "longer.yaml"), fmt.Sprint(rules.MaxDocumentSize))
	assert.Equal(f.t, f.want, r.Documents(), "the last good version stays, and so do the others")
	assert.Empty(f.t, r.Errors())

	f.put("longer.yaml", limited("a", 2))
	f.await(r)
}

func manyDocumentsAreOneChange(f *fixture) {
	for i := range f.harness.Documents {
		f.put(fmt.Sprintf("document-%05d.yaml", i), limited("r", i))
	}
	r := f.follow()
	f.await(r)
	assert.Len(f.t, r.Changes()[0].Documents, f.harness.Documents)

	f.put("document-00007.yaml", limited("r", 1_000_000))
	f.remove("document-00008.yaml")
	f.await(r)
}

// writesArriveInOrder writes two documents as fast as the store takes it. The source may
// skip versions but never goes back to an earlier one.
func writesArriveInOrder(f *fixture) {
	r := f.follow()
	f.await(r)
	names := []string{"a.yaml", "b.yaml"}
	var written []string
	for i := range 100 {
		written = append(written, limited("r", i))
		for _, name := range names {
			f.put(name, written[i])
		}
		if i%10 == 9 { // otherwise a slow source might see the last one only
			f.await(r)
		}
	}
	f.await(r)
	for _, name := range names {
		requireSubsequence(f.t, r.History(name), written)
	}
}

// hiddenChangesArrive changes documents while the store says that nothing has changed. A
// source that believes it for ever would never deliver them, and say that it is connected.
func hiddenChangesArrive(f *fixture) {
	f.put("a.yaml", limited("a", 1))
	f.put("b.yaml", limited("b", 1))
	r := f.follow()
	f.await(r)
	hider, ok := f.store.(Hider)
	require.True(f.t, ok, "the store is no Hider: implement it, or say in Harness.Lacks why not")
	hider.PutHidden("a.yaml", limited("a", 2))
	f.want["a.yaml"] = limited("a", 2)
	f.await(r)
	f.put("b.yaml", limited("b", 2))
	f.await(r)
}

// requireSubsequence fails if what was delivered is not what was written, in its order,
// with some left out.
func requireSubsequence(t require.TestingT, delivered, written []string) {
	rest := written
	for _, content := range delivered {
		i := slices.Index(rest, content)
		require.GreaterOrEqual(t, i, 0, "%q was never written, or was delivered after a later version:\ndelivered %q", content, delivered)
		rest = rest[i:]
	}
}

// documents returns n documents.
func documents(n, limit int) map[string]string {
	all := make(map[string]string, n)
	for i := range n {
		all[fmt.Sprintf("document-%02d.yaml", i)] = limited("r", limit)
	}
	return all
}

// putAll writes documents in the order of their names.
func (f *fixture) putAll(all map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f.put(name, all[name])
	}
}
