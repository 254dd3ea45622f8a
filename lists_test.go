package penstock_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/file"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/simulate"
)

// noScrapers refuses the orders of users in the list of scrapers.
func noScrapers(t *testing.T) rules.Set {
	t.Helper()
	set, err := rules.Parse("a.yaml", []byte(`
access: [{name: no-scrapers, resource: orders, attribute: user, list: scrapers}]
flow: [{resource: orders, limit: 1000}]
`))
	require.NoError(t, err)
	return set
}

// scrapers returns a directory with the list of scrapers.
func scrapers(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scrapers.txt"), []byte("eve\n"), 0o600))
	return dir
}

func TestRulesTellWhichListsTheyReferTo(t *testing.T) {
	found := map[string][]string{}
	for r := range noScrapers(t).All() {
		found[r.Key().Name] = r.Lists()
	}
	assert.Equal(t, map[string][]string{"no-scrapers": {"scrapers"}, "orders": nil}, found)
}

func TestSimulationsHaveLists(t *testing.T) {
	load := simulate.Load{Streams: []simulate.Stream{{
		Resource: "orders", Times: []time.Duration{0}, Attrs: []simulate.Attr{{Name: "user", Values: []any{"eve"}}},
	}}}
	passed := func(lists *list.Registry) int {
		result, err := simulate.Run(t.Context(), noScrapers(t), load, simulate.Options{Lists: lists})
		require.NoError(t, err)
		return result.Seconds[0].Passed
	}
	lists := list.NewRegistry()
	assert.Equal(t, 1, passed(nil))
	assert.Equal(t, 1, passed(lists))
	require.NoError(t, file.ReadLists(t.Context(), lists, scrapers(t)))
	assert.Zero(t, passed(lists))
}

// A list of a file decides the calls of an engine, for as long as the file is there.
func TestListOfAFileDecidesCalls(t *testing.T) {
	silent := slog.New(slog.DiscardHandler)
	engine := core.New(core.Config{Logger: silent})
	defer engine.Close()
	require.NoError(t, engine.Load(noScrapers(t)))
	enter := func() error {
		guard, err := engine.Entry(t.Context(), "orders", core.String("user", "eve"))
		guard.Exit()
		return err
	}
	require.NoError(t, enter())

	dir := scrapers(t)
	watch, err := file.WatchLists(t.Context(), engine.Lists(), dir, file.Options{Interval: time.Millisecond, Logger: silent})
	require.NoError(t, err)
	defer watch.Close()
	require.NoError(t, watch.Ready(t.Context()))
	require.ErrorIs(t, enter(), core.ErrBlocked)

	require.NoError(t, os.Remove(filepath.Join(dir, "scrapers.txt")))
	require.Eventually(t, func() bool { return enter() == nil }, 2*time.Minute, time.Millisecond)
}
