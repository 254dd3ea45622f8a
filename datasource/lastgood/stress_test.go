package lastgood_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lastgood"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// A copy that is read at any time is complete and consistent: both documents are
// always changed together.
func TestCopiesAreConsistentUnderConcurrentChanges(t *testing.T) {
	path := copyPath(t)
	source := newScript()
	quiet := slog.New(slog.DiscardHandler)
	kept, err := lastgood.Keep(source, lastgood.Options{Path: path, App: "shop", Interval: time.Microsecond, Logger: quiet})
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: quiet})
	defer engine.Close()
	require.NoError(t, engine.Follow(t.Context(), kept))

	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	others.Go(func() {
		for ctx.Err() == nil {
			assert.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{{Resource: "code", Limit: 1}}}))
			engine.Status()
			assert.NoError(t, engine.Load(rules.Set{}))
		}
	})
	copies := map[int64]bool{}
	others.Go(func() {
		for ctx.Err() == nil {
			c, err := lastgood.Load(path)
			if errors.Is(err, fs.ErrNotExist) || !assert.NoError(t, err) {
				continue // there is none yet
			}
			want := fmt.Sprint(c.Revision)
			assert.Equal(t, []core.Document{rule("a", want, c.Revision), rule("b", want, c.Revision)}, c.Documents)
			copies[c.Revision] = true
		}
	})
	const changes = 200
	for n := range int64(changes) {
		limit, broken := fmt.Sprint(n+1), core.Document{Name: "broken", Data: fmt.Appendf(nil, "flow: [%d", n)}
		source.steps <- func(sink core.Sink) { sink.Apply(all(n+1, rule("a", limit, n+1), rule("b", limit, n+1), broken)) }
		if n%10 == 0 {
			source.steps <- func(sink core.Sink) { sink.Disconnected(errors.New("no route")) }
		}
	}
	source.steps <- func(core.Sink) {} // the last change is applied
	cancel()
	others.Wait()
	engine.Close()
	c, err := lastgood.Load(path)
	require.NoError(t, err)
	require.EqualValues(t, changes, c.Revision)
	t.Logf("%d of %d changes were seen in a copy", len(copies), changes)
}
