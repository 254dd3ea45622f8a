package etcdtest_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

func TestRepeatedEventsAreAppliedOnce(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := follow(t, newSource(t, server.Endpoint(), shortBackoff(), repeated()))
	s.AwaitDocuments(t, map[string]string{})
	var want []string
	for i := range 20 {
		text := fmt.Sprint(i)
		put(t, server, "a", text)
		s.AwaitDocuments(t, map[string]string{"a": text})
		want = append(want, text)
	}
	remove(t, server, "a")
	s.AwaitDocuments(t, map[string]string{})
	put(t, server, "b", "1")
	s.AwaitDocuments(t, map[string]string{"b": "1"})
	assert.Equal(t, want, s.History("a"))
	assert.Len(t, s.Changes(), 1+20+1+1)
}

// slowSink blocks in Apply until the test releases it.
type slowSink struct {
	sourcetest.Recorder
	entered, leave chan struct{}
}

func (s *slowSink) Apply(change core.Change) {
	s.Recorder.Apply(change)
	s.entered <- struct{}{}
	<-s.leave
}

func TestEventsDuringAChangeAreMergedIntoOne(t *testing.T) {
	server := start(t, etcdtest.Options{})
	s := &slowSink{entered: make(chan struct{}, 100), leave: make(chan struct{})}
	var events atomic.Int64
	run(t, newSource(t, server.Endpoint(), shortBackoff(), onResponse(func(r *pb.WatchResponse) {
		events.Add(int64(len(r.Events)))
	})), s)
	<-s.entered
	s.leave <- struct{}{}
	put(t, server, "a", "0")
	<-s.entered         // and blocks the changes that follow
	for i := range 15 { // as many as the queue holds
		put(t, server, "a", fmt.Sprint(i))
		put(t, server, fmt.Sprint(i), "x")
		remove(t, server, fmt.Sprint(i))
	}
	put(t, server, "b", "1")
	last := put(t, server, "a", "last")
	require.Eventually(t, func() bool { return events.Load() == 1+15*3+2 }, eventTimeout, time.Millisecond)
	close(s.leave)
	s.AwaitDocuments(t, map[string]string{"a": "last", "b": "1"})
	changes := s.Changes()
	assert.Equal(t, last, changes[len(changes)-1].Revision)
	assert.LessOrEqual(t, len(changes), 2+2, "47 changes are applied in one, or two if the last came late")
	inOrder(t, &s.Recorder)
}

// A member with stale data may go on sending: one whose disk hangs still has a
// leader, and answers.
func TestLaggingWatchIsReported(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "a", "1")
	var lagging atomic.Bool
	var frozen atomic.Int64
	opts := shortBackoff()
	opts.WatchTimeout = 300 * time.Millisecond
	s := follow(t, newSource(t, server.Endpoint(), opts, onResponse(func(r *pb.WatchResponse) {
		if lagging.Load() {
			r.Events, r.Header.Revision = []*mvccpb.Event{}, frozen.Load()
		}
	})))
	s.AwaitDocuments(t, map[string]string{"a": "1"})
	frozen.Store(put(t, server, "a", "2"))
	s.AwaitDocuments(t, map[string]string{"a": "2"})
	lagging.Store(true)

	put(t, server, "a", "3")
	s.AwaitError(t, says("the watch has brought nothing for 300ms"))
	s.AwaitDocuments(t, map[string]string{"a": "3"})
	lagging.Store(false)
	put(t, server, "a", "4")
	s.AwaitDocuments(t, map[string]string{"a": "4"})
}

func TestHangingReadsDoNotDelayTheWatch(t *testing.T) {
	server := start(t, etcdtest.Options{})
	var watching atomic.Bool
	hung, release := make(chan struct{}, 10), make(chan struct{})
	defer close(release)
	hang := onRequest(func(request any) {
		if r, ok := request.(*pb.RangeRequest); ok && watching.Load() && r.CountOnly {
			hung <- struct{}{}
			<-release
		}
	})
	opts := shortBackoff()
	opts.WatchTimeout = time.Second
	opts.RequestTimeout = eventTimeout
	s := follow(t, newSource(t, server.Endpoint(), opts, hang))
	s.AwaitDocuments(t, map[string]string{})
	watching.Store(true)
	<-hung
	put(t, server, "a", "1")
	s.AwaitDocuments(t, map[string]string{"a": "1"})
	assert.Empty(t, s.Errors())
	watching.Store(false)
}

func TestRunLeaksNothingWheneverItEnds(t *testing.T) {
	server := start(t, etcdtest.Options{})
	put(t, server, "a", "1")
	before := goleak.IgnoreCurrent()
	for i := range 40 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*500*time.Microsecond)
		s := &sourcetest.Recorder{}
		err := open(t, reporting("shop-1"), server.Endpoint()).Run(ctx, s)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.Eventually(t, func() bool { return goleak.Find(before) == nil }, eventTimeout, 10*time.Millisecond)
}
