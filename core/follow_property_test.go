package core_test

import (
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

// Whatever documents say, no name stands for two rules, a document is in force
// as a whole in one of the versions that it had, and one that stands in nobody's
// way is in force as it is.
func TestDocumentsThatCompeteForNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := core.New(core.Config{Clock: clock.NewVirtual(begin), Logger: quiet})
		defer e.Close()
		source := newMemory("memory")
		require.NoError(t, e.Follow(context.Background(), source))

		held, versions := library{}, map[string][]string{}
		for revision := range rapid.Int64Range(1, 12).Draw(t, "changes") {
			revision++
			change := core.Change{Revision: revision}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 4, rapid.ID).
				Draw(t, "documents") {
				if _, there := held[name]; there && rapid.IntRange(0, 4).Draw(t, "remove") == 0 {
					change.Removed = append(change.Removed, name)
					delete(held, name)
					delete(versions, name)
					continue
				}
				names := rapid.SampledFrom([]string{"!", "", "u", "v", "w", "uv", "vw", "uvw"}).Draw(t, "rules")
				change.Documents = append(change.Documents, doc(name, revision, text(names, revision)))
				held[name] = names
				versions[name] = append(versions[name], names)
			}
			source.put(change)
			assertFairShare(t, e, held, versions)
		}
	})
}

func assertFairShare(t *rapid.T, e *core.Engine, held library, versions map[string][]string) {
	rules, revisions := map[string]int{}, map[int64]int{}
	status := e.Status()
	for _, d := range status.Sources[0].Documents {
		names, others := held[d.Name], map[rune]bool{}
		for other, theirs := range held {
			if other != d.Name {
				for _, version := range append(slices.Clone(versions[other]), theirs) {
					for _, name := range version {
						others[name] = true
					}
				}
			}
		}
		free := !slices.ContainsFunc([]rune(names), func(name rune) bool { return others[name] })
		if names != "!" && free {
			require.NoError(t, d.Rejected, "%s holds %q, which nobody else ever had", d.Name, names)
			require.Equal(t, len(names), d.Rules)
		}
		if names == "!" {
			require.Error(t, d.Rejected)
		}
		rules[d.Name] = d.Rules
		revisions[d.Revision] += d.Rules
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(held)), slices.Collect(maps.Keys(rules)))
	total := 0
	for _, n := range rules {
		total += n
	}
	require.Equal(t, status.Rules, total)
	require.Len(t, active(e), total, "a name for each rule")
	for _, limit := range active(e) {
		revisions[int64(limit)]--
	}
	for revision, missing := range revisions {
		require.Zero(t, missing, "calls are held against other versions than revision %d, which the status tells", revision)
	}
}
