package core_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// library is what a source holds: the names of the rules in each document, or
// "!" for a document that is broken.
type library map[string]string

// text returns the document of a revision, which is the limit of its rules.
func text(names string, revision int64) string {
	if names == "!" {
		return "flow: ["
	}
	var b strings.Builder
	b.WriteString("flow: [")
	for _, name := range names {
		fmt.Fprintf(&b, "{resource: %c, limit: %d},", name, revision)
	}
	return b.String() + "]"
}

// version is what is in force of a document: the names of its rules and the
// revisions at which it was written and created.
type version struct {
	names             string
	revision, created int64
}

// Whatever documents say, a rule is in force if its name is not that of a rule in a
// document that was created before, or at the same revision under a lesser name. A
// document that is broken stays as it was.
func TestDocumentsThatCompeteForNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet})
		defer e.Close()
		source := newMemory("memory")
		require.NoError(t, e.Follow(context.Background(), source))

		tells := rapid.Bool().Draw(t, "source tells when documents were created")
		held, inForce := library{}, map[string]version{}
		created := map[string]int64{}
		for revision := range rapid.Int64Range(1, 12).Draw(t, "changes") {
			revision++
			change := core.Change{Revision: revision}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 4, rapid.ID).
				Draw(t, "documents") {
				if _, there := held[name]; there && rapid.IntRange(0, 4).Draw(t, "remove") == 0 {
					change.Removed = append(change.Removed, name)
					delete(held, name)
					delete(inForce, name)
					delete(created, name)
					continue
				}
				names := rapid.SampledFrom([]string{"!", "", "u", "v", "w", "uv", "vw", "uvw"}).Draw(t, "rules")
				d := doc(name, revision, text(names, revision))
				if _, there := created[name]; !there || !tells {
					created[name] = revision
				}
				if tells {
					d.Created = created[name]
				}
				change.Documents = append(change.Documents, d)
				held[name] = names
				if names != "!" {
					inForce[name] = version{names, revision, created[name]}
				}
			}
			source.put(change)
			assertFirstHasTheName(t, e, held, inForce)
		}
	})
}

func assertFirstHasTheName(t *rapid.T, e *core.Engine, held library, inForce map[string]version) {
	want, owners := map[string]float64{}, map[string]string{}
	order := slices.SortedFunc(maps.Keys(inForce), func(a, b string) int {
		return cmp.Or(cmp.Compare(inForce[a].created, inForce[b].created), cmp.Compare(a, b))
	})
	for _, document := range order {
		for _, name := range inForce[document].names {
			if _, taken := want[string(name)]; !taken {
				want[string(name)], owners[string(name)] = float64(inForce[document].revision), document
			}
		}
	}
	require.Equal(t, want, active(e))
	status := e.Status()
	require.Equal(t, len(want), status.Rules)
	var seen []string
	for _, d := range status.Sources[0].Documents {
		seen = append(seen, d.Name)
		has := 0
		for _, name := range inForce[d.Name].names {
			if owners[string(name)] == d.Name {
				has++
			}
		}
		require.Equal(t, has, d.Rules)
		require.Equal(t, held[d.Name] == "!" || has < len(inForce[d.Name].names), d.Rejected != nil, "%s: %v", d.Name, d.Rejected)
		require.Equal(t, inForce[d.Name].revision, d.Revision)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(held)), seen)
}
