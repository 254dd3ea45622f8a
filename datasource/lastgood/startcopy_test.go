package lastgood_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lastgood"
)

// restartWithMaxRemoval starts a service with a copy of the documents that holds back
// changes that remove more than half of the rules. It records whether the engine was
// ready at each swap.
func restartWithMaxRemoval(t *testing.T, change core.Change, do func(t *testing.T, s *service, ready *[]bool)) {
	t.Helper()
	path := copyPath(t)
	savedBy(t, path, change)
	synctest.Test(t, func(t *testing.T) {
		s := prepare(t, path, begin().Add(later))
		var ready []bool
		s.Engine = core.New(core.Config{
			Clock: s.clock, Logger: slog.New(slog.NewTextHandler(s.log, nil)), MaxRemoval: 0.5,
			Observer: core.Observer{Swapped: func(core.Swap) { ready = append(ready, s.status().Ready) }},
		})
		t.Cleanup(s.Close)
		s.follow()
		do(t, s, &ready)
	})
}

func TestBrokenDocumentKeepsItsLastGoodVersionAcrossARestart(t *testing.T) {
	restartWithMaxRemoval(t, twoDocuments(), func(t *testing.T, s *service, ready *[]bool) {
		s.deliver(all(9, broken("a"), rule("b", "3", 9)))
		require.Equal(t, map[string]float64{"a": 1, "b": 3}, s.limits())
		require.Error(t, s.status().Documents[0].Rejected)
		assert.True(t, s.status().Connected)
		assert.Zero(t, s.status().CopiedAt)
		assert.Equal(t, []bool{false, true}, *ready, "what was is not enough to be ready")
		assert.Zero(t, s.log.count("its last good copy is used"))
		s.pass(time.Second)
		s.requireSaved(map[string]string{"a": "1", "b": "3"})
	})
}

func TestChangeIsHeldBackAcrossARestart(t *testing.T) {
	restartWithMaxRemoval(t, twoDocuments(), func(t *testing.T, s *service, _ *[]bool) {
		s.deliver(all(9))
		require.Equal(t, map[string]float64{"a": 1, "b": 2}, s.limits())
		require.NotNil(t, s.status().HeldBack)
		require.NoError(t, s.Ready(t.Context()))
		s.pass(time.Second)
		s.requireSaved(map[string]string{"a": "1", "b": "2"})

		require.NoError(t, s.Confirm("script"))
		require.Empty(t, s.limits())
		s.pass(time.Minute)
		s.requireSaved(map[string]string{})
	})
}

func TestChangeConfirmedWhileTheServiceWasDownIsNotHeldBack(t *testing.T) {
	for at, goes := range map[int64]bool{8: true, 7: false, 0: false} { // the copy is of revision 7
		restartWithMaxRemoval(t, twoDocuments(), func(t *testing.T, s *service, _ *[]bool) {
			change := all(9)
			change.ConfirmedAt = at
			s.deliver(change)
			require.Equal(t, goes, len(s.limits()) == 0, at)
		})
	}
}

func TestEngineWithRulesOfTheSourceIgnoresTheCopy(t *testing.T) {
	restartWithMaxRemoval(t, twoDocuments(), func(t *testing.T, s *service, ready *[]bool) {
		s.deliver(all(9, rule("a", "5", 9), rule("b", "6", 9)))
		s.drain()
		s.follow()
		s.deliver(all(9, rule("a", "5", 9), rule("b", "6", 9)))
		require.Equal(t, map[string]float64{"a": 5, "b": 6}, s.limits())
		require.Len(t, *ready, 2, "the copy, and what was delivered")
	})
}

func TestHangingDiskDoesNotBlockTheRules(t *testing.T) {
	path := copyPath(t)
	savedBy(t, path, twoDocuments())
	synctest.Test(t, func(t *testing.T) {
		s := prepare(t, path, begin())
		require.NoError(t, s.Follow(t.Context(), s.source))
		go func() {
			s.source.steps <- func(sink core.Sink) {
				lastgood.NeverRead(s.kept, sink).Apply(all(9, rule("c", "3", 9)))
			}
		}()
		synctest.Wait()
		s.pass(2*time.Second - 1)
		require.Empty(t, s.limits())
		s.pass(1)
		require.Equal(t, map[string]float64{"c": 3}, s.limits())
	})
}
