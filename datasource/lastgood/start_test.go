package lastgood_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/lastgood"
)

const later = 90 * time.Minute // from the time of the copy to the start of a service

// restart starts a service some time after a copy of the documents was saved.
func restart(t *testing.T, change core.Change, do func(t *testing.T, s *service)) {
	t.Helper()
	path := copyPath(t)
	savedBy(t, path, change)
	synctest.Test(t, func(t *testing.T) { do(t, start(t, path, begin().Add(later))) })
}

func twoDocuments() core.Change { return all(7, rule("a", "1", 5), rule("b", "2", 7)) }

func TestServiceStartsFromTheCopyWhenTheSourceIsSilent(t *testing.T) {
	restart(t, twoDocuments(), func(t *testing.T, s *service) {
		s.pass(2*time.Second - 1)
		require.Empty(t, s.limits())
		require.False(t, s.status().Ready)
		s.pass(1)
		require.Equal(t, map[string]float64{"a": 1, "b": 2}, s.limits())

		status := s.status()
		assert.True(t, status.Ready)
		assert.False(t, status.Connected)
		assert.EqualValues(t, 7, status.Revision)
		assert.Equal(t, begin(), status.CopiedAt.Time())
		assert.Equal(t, begin(), status.KnownUntil(s.clock.Now()).Time())
		assert.EqualValues(t, 5, status.Documents[0].Revision)
		assert.Equal(t, 1, s.log.count("its last good copy is used", "source=script", "age=1h30m2s"))
		require.NoError(t, s.Ready(t.Context()))
	})
}

func TestServiceStartsFromTheCopyAtOnceWhenTheSourceFails(t *testing.T) {
	restart(t, twoDocuments(), func(t *testing.T, s *service) {
		s.lose("no route")
		require.Equal(t, map[string]float64{"a": 1, "b": 2}, s.limits())
		require.EqualError(t, s.status().Err, "no route")

		s.lose("still no route")
		s.pass(time.Minute)
		assert.Equal(t, 1, s.log.count("its last good copy is used"), "once")
	})
}

func TestServiceStartsFromTheCopyWhenTheSourceReturns(t *testing.T) {
	restart(t, twoDocuments(), func(t *testing.T, s *service) {
		s.source.end = errors.New("pointless")
		s.do(nil)
		require.Equal(t, map[string]float64{"a": 1, "b": 2}, s.limits())
		require.ErrorIs(t, s.status().Err, s.source.end)
	})
}

func TestDeliveryReplacesTheCopy(t *testing.T) {
	restart(t, twoDocuments(), func(t *testing.T, s *service) {
		s.lose("no route")
		s.deliver(all(9, rule("b", "3", 8), rule("c", "4", 9)))
		require.Equal(t, map[string]float64{"b": 3, "c": 4}, s.limits())
		assert.True(t, s.status().Connected)
		assert.Zero(t, s.status().CopiedAt)

		s.lose("no route")
		s.pass(time.Minute)
		assert.Zero(t, s.status().CopiedAt, "the copy has had its turn")
		assert.Equal(t, map[string]float64{"b": 3, "c": 4}, s.limits())
	})
}

func TestCopyIsNotAppliedOnceTheSourceHasDelivered(t *testing.T) {
	restart(t, twoDocuments(), func(t *testing.T, s *service) {
		s.pass(time.Second)
		s.deliver(all(9))
		s.lose("no route")
		s.pass(time.Minute)
		require.Empty(t, s.limits())
		assert.Zero(t, s.log.count("its last good copy is used"))
	})
}

// The source may deliver just when the wait for it ends: in either order, what the
// source delivers is in force in the end.
func TestDeliveryDuringTheReadOfTheCopyWins(t *testing.T) {
	path := copyPath(t)
	savedBy(t, path, twoDocuments())
	copies := 0
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, path, begin().Add(later))
			go func() { s.source.steps <- func(sink core.Sink) { sink.Apply(twoDocuments()) } }()
			s.pass(2 * time.Second)
			require.Equal(t, map[string]float64{"a": 1, "b": 2}, s.limits())
			require.True(t, s.status().Connected)
			require.Zero(t, s.status().CopiedAt)
			copies += s.log.count("its last good copy is used")
		})
	}
	t.Logf("%d of 200 went by the copy first", copies)
}

func TestCopyIsNotAppliedAfterTheContextEnds(t *testing.T) {
	restart(t, twoDocuments(), func(t *testing.T, s *service) {
		s.drain()
		s.pass(time.Minute)
		require.Empty(t, s.limits())
		require.Zero(t, s.clock.Timers())
	})
}

func TestEngineThatHasRulesOfTheSourceGetsNoCopy(t *testing.T) {
	path := copyPath(t)
	synctest.Test(t, func(t *testing.T) {
		s := start(t, path, begin())
		s.deliver(twoDocuments())
		s.drain()
		s.follow()
		s.lose("no route")
		s.pass(time.Minute)
		require.Zero(t, s.status().CopiedAt)

		// The second run still has the documents of the first.
		s.deliver(all(8, core.Document{Name: "a", Data: []byte("flow: [")}, rule("b", "3", 8)))
		s.pass(time.Second)
		require.Equal(t, map[string]float64{"a": 1, "b": 3}, s.limits())
		assert.Equal(t, map[string]string{
			"a": string(rule("a", "1", 0).Data), "b": string(rule("b", "3", 0).Data),
		}, saved(t, path))
	})
}

func TestRejectedDocumentOfTheCopyIsReportedByTheEngine(t *testing.T) {
	path := copyPath(t)
	c := lastgood.Copy{App: "shop", Source: "script", At: begin(), Documents: []core.Document{
		rule("a", "1", 0), {Name: "b", Data: []byte("flow: [{resource: b, limit: -1}]")},
	}}
	require.NoError(t, c.Save(path))
	before := saved(t, path)
	synctest.Test(t, func(t *testing.T) {
		s := start(t, path, begin())
		s.lose("no route")
		require.Equal(t, map[string]float64{"a": 1}, s.limits())
		require.Error(t, s.status().Documents[1].Rejected)
		assert.Equal(t, 1, s.log.count("rule document rejected", "document=b"))
		s.drain()
		assert.Equal(t, before, saved(t, path), "on a copy nothing is known that is worth saving")
	})
}

func TestMissingCopyIsNotAnError(t *testing.T) {
	path := copyPath(t)
	synctest.Test(t, func(t *testing.T) {
		s := start(t, path, begin())
		s.lose("no route")
		assert.Equal(t, 1, s.log.count("level=INFO", "no last good copy of the source yet", path))
		assert.Zero(t, s.log.count("level=WARN"))
		s.drain()
		assert.Nil(t, saved(t, path))
	})
}

func TestNameIsThatOfTheWrappedSource(t *testing.T) {
	kept, err := lastgood.Keep(newScript(), lastgood.Options{Path: copyPath(t), App: "shop"})
	require.NoError(t, err)
	assert.Equal(t, "script", kept.Name())
}

func TestSecondConcurrentRunIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, copyPath(t), begin())
		err := s.kept.Run(context.Background(), nil)
		require.ErrorContains(t, err, "script is run already")
	})
}
