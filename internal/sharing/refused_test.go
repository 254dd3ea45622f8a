package sharing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
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
	"github.com/penstock-go/penstock/internal/sharing/lease"
)

// refusing is a store that refuses what is asked of some limits.
type refusing struct {
	*memory.Store
	mu    sync.Mutex
	errs  map[string]error // by the key of the limit
	asked map[string]int   // requests, by the key of the limit
	down  bool             // nothing is answered
}

func (s *refusing) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

func (s *refusing) Announce(ctx context.Context, self fleet.Instance, all bool) (fleet.Fleet, error) {
	if s.isDown() {
		return fleet.Fleet{}, fleet.ErrUnavailable
	}
	return s.Store.Announce(ctx, self, all)
}

func (s *refusing) Exchange(ctx context.Context, requests []fleet.Request, replies []fleet.Reply) {
	if s.isDown() {
		for i := range replies {
			replies[i] = fleet.Reply{Err: fleet.ErrUnavailable}
		}
		return
	}
	s.Store.Exchange(ctx, requests, replies)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range requests {
		s.asked[requests[i].Terms.Key]++
		if err := s.errs[requests[i].Terms.Key]; err != nil {
			replies[i] = fleet.Reply{Err: err}
		}
	}
}

// refuse has the store refuse these limits, and no others, and count anew.
func (s *refusing) refuse(errs map[string]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs, s.asked = errs, map[string]int{}
}

// Limits that the store refuses for good are asked again every 150 to 250 ms, however many calls
// come. All others go on, the log says it once, and that it has ended once.
func TestLimitsThatAreRefusedAreAskedAgainAtABoundedRate(t *testing.T) {
	t.Parallel()
	errWrongType := errors.New("WRONGTYPE somebody else uses the key")
	errNoPermission := fmt.Errorf("NOPERM: %w", fleet.ErrUnavailable)
	for name, test := range map[string]struct {
		err    error
		others bool // other limits are busy, in the same batches
	}{
		"wrong type, others are busy":       {errWrongType, true},
		"wrong type, the only busy ones":    {errWrongType, false},
		"no permission, others are busy":    {errNoPermission, true},
		"no permission, the only busy ones": {errNoPermission, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log logText
				c := clock.System()
				store := &refusing{Store: memory.New(c), asked: map[string]int{}}
				m := sharing.NewMember(fleet.Config{Backend: store, Instance: "one"}, c, slog.New(slog.NewTextHandler(&log, nil)), 1)
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { m.Run(ctx) })
				defer func() { cancel(); wg.Wait() }()
				terms := func(key string) fleet.Terms {
					terms := bucketOf(1000)
					terms.Key = key
					return terms
				}
				leased := m.Budget(terms("lease"), fleet.ModeLease, fleet.OutageClosed, c.Now())
				window := m.Budget(terms("window"), fleet.ModeWindow, fleet.OutageClosed, c.Now())
				asker := m.Asker(terms("ask"), fleet.AskTokenBucket, fleet.OutageClosed)
				other := m.Budget(terms("other"), fleet.ModeLease, fleet.OutageClosed, c.Now())
				calls := func(d time.Duration) (ofRefused, others int) {
					var passed atomic.Int32 // of limits that are refused
					for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
						for _, b := range []*lease.Budget{leased, window} {
							if b.Take(c.Now(), 1) {
								passed.Add(1)
							}
						}
						asker.Ask(c.Now(), 1, func(a ask.Answer) {
							if a.Allowed {
								passed.Add(1)
							}
						})
						if test.others && other.Take(c.Now(), 1) {
							others++
						}
					}
					synctest.Wait()
					return int(passed.Load()), others
				}
				calls(3 * time.Second)
				errs := map[string]error{"lease": test.err, "window": test.err, "ask": test.err}
				store.refuse(errs)
				calls(time.Second)
				status := m.Status(c.Now())
				assert.Equal(t, 3, status.Refusing)
				for _, limit := range status.Limits {
					require.ErrorIs(t, limit.Err, errs[limit.Key], limit.Key)
					assert.Equal(t, errs[limit.Key] != nil, limit.Outage, limit.Key)
				}
				store.refuse(errs)
				const seconds = 20
				refused, others := calls(seconds * time.Second)
				assert.Zero(t, refused, "they are closed")
				if test.others {
					assert.InDelta(t, seconds*500, others, seconds*25)
				}
				for key := range errs {
					assert.LessOrEqual(t, store.asked[key], seconds*7, key)
					assert.GreaterOrEqual(t, store.asked[key], seconds*3, key)
				}
				status = m.Status(c.Now())
				assert.True(t, status.Connected)
				assert.Zero(t, status.Outages)
				assert.Equal(t, 1, strings.Count(log.String(), "does not count for limits"), log.String())

				// An outage of everything does not end that of these limits.
				store.mu.Lock()
				store.down = true
				store.mu.Unlock()
				calls(time.Second)
				assert.False(t, m.Status(c.Now()).Connected)
				store.mu.Lock()
				store.down = false
				store.mu.Unlock()
				calls(time.Second)
				status = m.Status(c.Now())
				assert.True(t, status.Connected)
				assert.Equal(t, 3, status.Refusing)
				assert.Zero(t, strings.Count(log.String(), "counts for all limits again"), log.String())

				store.refuse(nil)
				calls(2 * time.Second)
				passed, _ := calls(time.Second)
				assert.InDelta(t, 1500, passed, 75)
				assert.Zero(t, m.Status(c.Now()).Refusing)
				assert.Equal(t, 1, strings.Count(log.String(), "does not count for limits"), log.String())
				assert.Equal(t, 1, strings.Count(log.String(), "counts for all limits again"), log.String())
			})
		})
	}
}
