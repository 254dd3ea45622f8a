//go:build unix

package redis

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/redis/redistest"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// logText is what was logged.
type logText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logText) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logText) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// A server that refuses everything for good is one outage, asked again a few times a second, and
// over as soon as that is corrected. One that refuses a limit is an outage of that limit. The log
// says each once, and why.
func TestWhatAServerRefusesIsAskedAgainAndLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		refuse, correct func(server, primary *redistest.Server)
		of              string // the limit that is refused; all, if empty
		say             string
	}{
		"memory is full": {
			refuse:  func(server, _ *redistest.Server) { server.Do("CONFIG", "SET", "maxmemory", "1") },
			correct: func(server, _ *redistest.Server) { server.Do("CONFIG", "SET", "maxmemory", "0") },
			say:     "memory is full",
		},
		"a replica": {
			refuse: func(server, primary *redistest.Server) {
				_, port, _ := strings.Cut(primary.Addr(), ":")
				server.Do("REPLICAOF", "127.0.0.1", port)
			},
			correct: func(server, _ *redistest.Server) { server.Do("REPLICAOF", "NO", "ONE") },
			say:     "replica",
		},
		"no permission": {
			refuse:  func(server, _ *redistest.Server) { server.Do("ACL", "SETUSER", "fleet", "-evalsha") },
			correct: func(server, _ *redistest.Server) { server.Do("ACL", "SETUSER", "fleet", "+evalsha") },
			say:     "NOPERM",
		},
		"no permission for one limit": {
			refuse: func(server, _ *redistest.Server) {
				server.Do("ACL", "SETUSER", "fleet", "resetkeys", "~{ps:test:}*", "~{ps:test:flow/one}*")
			},
			correct: func(server, _ *redistest.Server) { server.Do("ACL", "SETUSER", "fleet", "~*") },
			of:      "flow/two",
			say:     "NOPERM",
		},
		"wrong type of one key": {
			refuse: func(server, _ *redistest.Server) {
				server.Do("EVAL", "redis.call('DEL', KEYS[1]) redis.call('RPUSH', KEYS[1], 'x')", "1", "{ps:test:flow/two}")
			},
			correct: func(server, _ *redistest.Server) { server.Do("DEL", "{ps:test:flow/two}") },
			of:      "flow/two",
			say:     "somebody else uses the key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, primary := redistest.Start(t, redistest.Options{}), redistest.Start(t, redistest.Options{})
			server.Do("ACL", "SETUSER", "fleet", "on", ">secret-of-fleet", "~*", "+@all")
			var log logText
			engine := core.New(core.Config{
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Fleet: fleet.Config{
					Backend: open(t, Options{Addresses: []string{server.Addr()}, User: "fleet", Password: "secret-of-fleet"}),
					Timeout: patience, // a busy machine is no outage
				},
			})
			defer engine.Close()
			var set rules.Set
			for _, name := range []string{"one", "two"} {
				set.Flow = append(set.Flow, flow.Rule{
					Name: name, Resource: name, Limit: 1000, Scope: rule.ScopeFleet, Fleet: rule.Fleet{OnOutage: fleet.OutageClosed},
				})
			}
			require.NoError(t, engine.Load(set))
			passed := map[string]int{}
			calls := func(d time.Duration) {
				clear(passed)
				for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
					for _, name := range []string{"one", "two"} {
						if guard, err := engine.Entry(t.Context(), name); err == nil {
							passed[name]++
							guard.Exit()
						}
					}
				}
			}
			// is says whether exactly the refused limits are in an outage.
			is := func(outage bool) bool {
				calls(20 * time.Millisecond)
				status := engine.Status().Fleet
				for _, limit := range status.Limits {
					if limit.Outage != (outage && (test.of == "" || test.of == limit.Key)) {
						return false
					}
				}
				return len(status.Limits) == 2 && status.Connected != (outage && test.of == "")
			}
			require.Eventually(t, func() bool { return is(false) && passed["one"] > 0 && passed["two"] > 0 }, patience, time.Millisecond)
			test.refuse(server, primary)
			require.Eventually(t, func() bool { return is(true) }, patience, time.Millisecond)
			began, before := time.Now(), engine.Status().Fleet
			probed := func() int64 { return engine.Status().Fleet.Batches - before.Batches }
			require.Eventually(t, func() bool { // once what was leased is used
				calls(time.Second)
				return probed() > 3 && passed["two"] == 0 && (passed["one"] == 0) == (test.of == "")
			}, patience, time.Millisecond, "it is closed, and asked again")
			if test.of == "" {
				assert.LessOrEqual(t, probed(), int64(time.Since(began).Seconds()*8)+1, "probes every 150 to 250 ms")
			}
			test.correct(server, primary)
			require.Eventually(t, func() bool { return is(false) }, patience, time.Millisecond)
			require.Eventually(t, func() bool { calls(20 * time.Millisecond); return passed["two"] > 0 }, patience, time.Millisecond)
			assert.Positive(t, log.count(test.say), log.text.String())
			// An announcement that is refused before the limits has a line of its own.
			assert.Equal(t, 1, log.count("level=ERROR")-log.count("does not take announcements"), log.text.String())
			all, one := 1, 0
			if test.of != "" {
				all, one = 0, 1
			}
			assert.Equal(t, all, log.count("does not answer"), log.text.String())
			assert.Equal(t, all, log.count("answers again"), log.text.String())
			assert.Equal(t, one, log.count("does not count for limits"), log.text.String())
			assert.Equal(t, one, log.count("counts for all limits again"), log.text.String())
		})
	}
}
