package core_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

// Whoever is told that a rule begins to refuse calls is told why: the observer, the log, and who
// looks at the rule.
func TestChangeOfStateSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var mu sync.Mutex
		var changes []core.StateChange
		e := core.New(core.Config{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Observer: core.Observer{StateChanged: func(c core.StateChange) {
				mu.Lock()
				defer mu.Unlock()
				changes = append(changes, c)
			}},
		})
		defer e.Close()
		require.NoError(t, e.Load(rules.Set{Adaptive: []adaptive.Rule{{Name: "shed"}}}))
		workers := make(chan struct{}, 4)
		var all sync.WaitGroup
		call := func() {
			_ = e.Do(t.Context(), "page", func(context.Context) error {
				workers <- struct{}{}
				time.Sleep(10 * time.Millisecond)
				<-workers
				return nil
			}, core.Inbound())
		}
		for range 600 {
			all.Go(call)
			time.Sleep(5 * time.Millisecond)
		}
		for range 2000 {
			all.Go(call)
			time.Sleep(time.Millisecond)
		}
		rule := e.Resource("page").Snapshot().Rules[0]
		require.Equal(t, adaptive.Limited, rule.State)
		require.Len(t, rule.Notes, 1)
		assert.Regexp(t, `^limited to \d+ calls, as .+`, rule.Notes[0].Text)
		all.Wait()
		require.NotEmpty(t, changes)
		first := changes[0]
		assert.Regexp(t, `^limited to \d+ calls, as .+`, first.Because)
		first.At, first.Because = 0, ""
		assert.Equal(t, core.StateChange{Resource: "*", Kind: "adaptive", Rule: "shed", From: "normal", To: "limited"}, first)
		assert.Contains(t, log.String(), `from=normal to=limited because="limited to `)
	})
}
