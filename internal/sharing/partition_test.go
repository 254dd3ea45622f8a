package sharing_test

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/sharing/lease"
)

// partitioned is a store on two servers, either of which can fail. A limit is on the server whose
// number its key begins with, and values are on the one of the last digit. Server 0 has the instances.
type partitioned struct {
	*memory.Store
	failing atomic.Int32 // server0, server1 or both
	refuses atomic.Bool  // it fails at once, like one that was killed; else it hangs
	mixed   atomic.Int64 // exchanges with both servers
}

const none, server0, server1, both = 0, 1, 2, 3

func (p *partitioned) Partitions() int { return 2 }

func (p *partitioned) Partition(key string) int {
	if strings.HasPrefix(key, "values/") {
		return strings.Index("0123456789abcdef", key[len(key)-1:]) & 1
	}
	return int(key[0] - '0')
}

func (p *partitioned) reach(ctx context.Context, server int) error {
	if p.failing.Load()&(1<<server) == 0 {
		return nil
	}
	if !p.refuses.Load() {
		<-ctx.Done()
	}
	return fleet.ErrUnavailable
}

func (p *partitioned) Exchange(ctx context.Context, requests []fleet.Request, replies []fleet.Reply) {
	for i := range requests {
		if p.Partition(requests[i].Terms.Key) != p.Partition(requests[0].Terms.Key) {
			p.mixed.Add(1)
		}
		if err := p.reach(ctx, p.Partition(requests[i].Terms.Key)); err != nil {
			replies[i].Err = err
			continue
		}
		p.Store.Exchange(ctx, requests[i:i+1], replies[i:i+1])
	}
}

func (p *partitioned) Announce(ctx context.Context, self fleet.Instance, all bool) (fleet.Fleet, error) {
	if err := p.reach(ctx, 0); err != nil {
		return fleet.Fleet{}, err
	}
	return p.Store.Announce(ctx, self, all)
}

// partitionedMember is a member that runs on a partitioned store, on a fake clock.
type partitionedMember struct {
	*sharing.Member
	clock  clock.Clock
	store  *partitioned
	log    logText
	limits map[string]*lease.Budget
	passed map[string]int // by the last calls
}

func newPartitionedMember(t *testing.T, keys ...string) *partitionedMember {
	m := &partitionedMember{clock: clock.System(), limits: map[string]*lease.Budget{}, passed: map[string]int{}}
	m.store = &partitioned{Store: memory.New(m.clock)}
	m.Member = sharing.NewMember(fleet.Config{Backend: m.store, Instance: "one"}, m.clock, slog.New(slog.NewTextHandler(&m.log, nil)), 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
	for _, key := range keys {
		terms := bucketOf(1000)
		terms.Key = key
		m.limits[key] = m.Budget(terms, fleet.ModeLease, fleet.OutageClosed, m.clock.Now())
	}
	return m
}

// calls makes calls of all limits for a time, with a pause between two of a limit.
func (m *partitionedMember) calls(d, pause time.Duration) {
	clear(m.passed)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(pause) {
		for key, b := range m.limits {
			if b.Take(m.clock.Now(), 1) {
				m.passed[key]++
			}
		}
	}
}

// A server that fails is an outage of its limits alone, and delays no answer of another one.
func TestServerThatFailsIsAnOutageOfItsLimitsAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		failing int32
		refuses bool
		pause   time.Duration
	}{
		"hangs, busy limits":                         {server1, false, 5 * time.Millisecond},
		"hangs, has the instances, busy limits":      {server0, false, 5 * time.Millisecond},
		"hangs, calls now and then":                  {server1, false, 700 * time.Millisecond},
		"hangs, has the instances, now and then":     {server0, false, 700 * time.Millisecond},
		"hangs, has the instances, rare calls":       {server0, false, 3 * time.Second},
		"was killed, busy limits":                    {server1, true, 5 * time.Millisecond},
		"was killed, had the instances, busy limits": {server0, true, 5 * time.Millisecond},
		"was killed, had the instances, rare calls":  {server0, true, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newPartitionedMember(t, "0/a", "1/a", "0/b", "1/b")
				m.calls(5*time.Second, test.pause)
				m.store.refuses.Store(test.refuses)
				m.store.failing.Store(test.failing)
				m.calls(5*time.Second, test.pause)
				failing := map[int32]byte{server0: '0', server1: '1'}[test.failing]
				const counted = 10 * time.Second
				m.calls(counted, test.pause)
				status := m.Status(m.clock.Now())
				require.Len(t, status.Limits, 4)
				for _, limit := range status.Limits {
					if limit.Key[0] == failing {
						if test.pause < time.Second { // three requests were made
							assert.True(t, limit.Outage, limit.Key)
							require.ErrorIs(t, limit.Err, fleet.ErrUnavailable)
						}
						continue
					}
					assert.False(t, limit.Outage, limit.Key)
					assert.GreaterOrEqual(t, m.passed[limit.Key], int(counted/test.pause)*9/10, limit.Key)
				}
				assert.True(t, status.Connected)
				assert.Zero(t, status.Outages, "the other server answers")
				assert.Less(t, status.Latency, 10*time.Millisecond)
				assert.Zero(t, m.store.mixed.Load())
				assert.Equal(t, test.failing == server0, status.Err != nil, "announcements have no answer")
				m.store.failing.Store(none)
				m.calls(8*time.Second, test.pause)
				status = m.Status(m.clock.Now())
				require.NoError(t, status.Err)
				for _, limit := range status.Limits {
					assert.False(t, limit.Outage, limit.Key)
				}
				assert.Equal(t, test.failing == server0, strings.Contains(m.log.String(), "takes announcements again"))
				assert.LessOrEqual(t, strings.Count(m.log.String(), "does not count for limits"), 1, m.log.String())
			})
		})
	}
}

// Servers that all fail are an outage of everything, within the timeout, which ends when one of
// them answers.
func TestServersThatAllFailAreAnOutage(t *testing.T) {
	t.Parallel()
	for name, refuses := range map[string]bool{"hang": false, "were killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newPartitionedMember(t, "0/a", "1/a", "1/b")
				m.calls(5*time.Second, 2*time.Millisecond)
				m.store.refuses.Store(refuses)
				m.store.failing.Store(both)
				m.calls(exchange.DefaultTimeout+100*time.Millisecond, 2*time.Millisecond)
				status := m.Status(m.clock.Now())
				assert.False(t, status.Connected)
				assert.Equal(t, int64(1), status.Outages)
				batches := status.Batches
				m.calls(2*time.Second, 2*time.Millisecond)
				status = m.Status(m.clock.Now())
				assert.LessOrEqual(t, status.Batches-batches, int64(3*30), "probes of two servers, and announcements")
				assert.Equal(t, int64(1), status.Outages)
				for _, limit := range status.Limits {
					assert.True(t, limit.Outage, limit.Key)
				}
				m.store.failing.Store(server0)
				m.calls(5*time.Second, 2*time.Millisecond)
				m.calls(5*time.Second, 2*time.Millisecond)
				status = m.Status(m.clock.Now())
				assert.True(t, status.Connected)
				assert.Equal(t, int64(1), status.Outages)
				for _, limit := range status.Limits {
					assert.Equal(t, limit.Key[0] == '0', limit.Outage, limit.Key)
				}
			})
		})
	}
}

// Calls that ask a server that hangs hold up none that ask another one, however many they are.
func TestCallsThatAskAServerThatHangsDelayNoOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newPartitionedMember(t)
		asker := func(key string) *ask.Asker {
			terms := bucketOf(1000)
			terms.Key = key
			return m.Asker(terms, fleet.AskTokenBucket, fleet.OutageClosed)
		}
		var hung []*ask.Asker
		for i := range 1000 {
			hung = append(hung, asker("1/"+strconv.Itoa(i)))
		}
		other := asker("0/a")
		m.store.failing.Store(server1)
		var decided atomic.Int32
		for i, a := range hung {
			a.Ask(m.clock.Now(), 1, func(ask.Answer) { decided.Add(1) })
			if i%10 == 0 { // more batches than may be under way
				synctest.Wait()
			}
		}
		began, answered := time.Now(), time.Duration(-1)
		other.Ask(m.clock.Now(), 1, func(a ask.Answer) {
			if a.Allowed && !a.Outage {
				answered = time.Since(began)
			}
		})
		synctest.Wait()
		assert.Zero(t, answered, "the other server answers at once")
		assert.Zero(t, decided.Load())
		time.Sleep(exchange.DefaultTimeout)
		synctest.Wait()
		assert.EqualValues(t, len(hung), decided.Load(), "decided by the timeout")
	})
}

// A share is in an outage when the server with the instances is, whatever other servers answer.
func TestShareIsInAnOutageWithTheServerOfTheInstances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newPartitionedMember(t, "1/a")
		terms := bucketOf(1000)
		terms.Key = "0/shared"
		share := m.NewShare(terms, fleet.OutageClosed, m.clock.Now())
		m.calls(5*time.Second, 2*time.Millisecond)
		require.Positive(t, share.Limit())
		m.store.failing.Store(server0)
		m.calls(5*time.Second, 2*time.Millisecond)
		assert.Zero(t, share.Limit(), "closed")
		assert.True(t, share.Status(m.clock.Now()).Outage)
		assert.True(t, m.Status(m.clock.Now()).Connected)
		m.store.failing.Store(none)
		m.calls(5*time.Second, 2*time.Millisecond)
		assert.Positive(t, share.Limit())
	})
}
