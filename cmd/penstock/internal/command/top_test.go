package command_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

// busyService returns the address of a service that has had traffic for a minute, and its engine.
func busyService(t *testing.T) (address string, engine *core.Engine) {
	t.Helper()
	c := clock.NewVirtual(time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC))
	engine = core.New(core.Config{Clock: c, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{
		{Name: "orders", Resource: "orders:create", Limit: 20},
		{Name: "carts", Resource: "carts", Limit: 1000},
	}}))
	for second := range 70 {
		for i := range 2 * second {
			if guard, err := engine.Entry(t.Context(), "orders:create"); err == nil {
				c.Advance(time.Millisecond)
				guard.Exit()
			}
			if i%8 == 0 {
				guard, err := engine.Entry(t.Context(), "carts\t\x1b[31m\u202e<script>"+strings.Repeat("x", 50))
				require.NoError(t, err)
				guard.Exit()
			}
		}
		c.Advance(time.Second - time.Duration(c.Now().Time().Nanosecond()))
	}
	guard, err := engine.Entry(t.Context(), "carts")
	require.NoError(t, err)
	t.Cleanup(guard.Exit)
	server := httptest.NewServer(inspect.Handler(engine, inspect.Options{}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), engine
}

func TestTopShowsTheTrafficOfAService(t *testing.T) {
	address, _ := busyService(t)
	got := user{}.run(t, "top", "--engine", address, "--once")
	require.Equal(t, command.ExitDone, got.code, got.err)
	golden(t, "top.txt", got.out, "")
	for _, control := range []string{"\x1b", "\u202e", "\t"} {
		assert.NotContains(t, got.out, control)
	}
	got = user{}.run(t, "top", "--engine", address, "--sort", "name", "-n", "1", "--match", "carts*")
	require.Equal(t, command.ExitDone, got.code, got.err)
	lines := strings.Split(got.out, "\n")
	require.Len(t, lines, 4, got.out)
	assert.Contains(t, lines[2], "carts   ")
}

func TestTopAddsUpServicesAndNamesThoseThatDoNotAnswer(t *testing.T) {
	first, _ := busyService(t)
	second, _ := busyService(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	nobody := strings.TrimPrefix(gone.URL, "http://")
	got := user{}.run(t, "top", "--engine", first, "--engine", nobody, "--engine", second, "-o", "json")
	assert.Equal(t, command.ExitFailed, got.code)
	var answer struct {
		Engines   []struct{ Engine, Error string }
		Resources []inspect.Resource
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &answer))
	require.Len(t, answer.Engines, 3)
	assert.Equal(t, nobody, answer.Engines[1].Engine)
	assert.Contains(t, answer.Engines[1].Error, "connection refused")
	assert.Empty(t, answer.Engines[0].Error+answer.Engines[2].Error)
	require.Len(t, answer.Resources, 3)
	orders := answer.Resources[0]
	assert.Equal(t, "orders:create", orders.Name)
	assert.Equal(t, uint64(40), orders.Second.Passed)
	assert.Equal(t, uint64(2*(138-20)), orders.Second.Refused)
	assert.Equal(t, uint64(2*(138-20)), *orders.Rules[0].Second)
	assert.Equal(t, []uint64{40, 0}, orders.Seconds.Passed[58:])
	assert.Equal(t, int64(2), answer.Resources[2].InFlight)

	got = user{}.run(t, "top", "--engine", first, "--engine", nobody)
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.out, "no answer from "+nobody+": ")
	assert.Contains(t, got.out, "1 service ")
	assert.Contains(t, got.out, "orders:create")
	got = user{}.run(t, "top", "--engine", nobody)
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "asking the engine at "+nobody)
}

func TestTopWithAWrongCommandLine(t *testing.T) {
	for says, args := range map[string][]string{
		"--sort is \"size\": it is one of refused, passed, name, p99, inFlight": {"--engine", "h:1", "--sort", "size"},
		"--limit is 101: it is a number from 1 to 100":                          {"--engine", "h:1", "-n", "101"},
		"two places to look at":                                                 {"--engine", "h:1", "--app", "shop"},
		"must be HOST:PORT or a URL":                                            {"--engine", ""},
		"which rules are meant?":                                                {},
	} {
		got := user{}.run(t, append([]string{"top"}, args...)...)
		assert.Equal(t, command.ExitUsage, got.code, says)
		assert.Contains(t, got.err, says)
	}
}

// screen is a terminal whose keys a test presses.
type screen struct {
	mu            sync.Mutex
	written       strings.Builder
	columns, rows int
	raw           bool
}

func (s *screen) Raw() (func(), error) {
	s.set(func() { s.raw = true })
	return func() { s.set(func() { s.raw = false }) }, nil
}

func (s *screen) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *screen) Size() (columns, lines int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.columns, s.rows
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.written.Write(p)
}

// frame returns the lines that were drawn last.
func (s *screen) frame() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	frames := strings.Split(s.written.String(), "\x1b[H")
	if len(frames) < 2 {
		return nil
	}
	return strings.Split(frames[len(frames)-1], "\x1b[K\r\n")
}

func (s *screen) await(t *testing.T, shown func(lines []string) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return shown(s.frame()) }, eventTimeout, 5*time.Millisecond, "%q", s.frame())
}

func TestTopRefreshesAndLeavesTheTerminalAsItWas(t *testing.T) {
	t.Parallel()
	address, engine := busyService(t)
	s := &screen{columns: 60, rows: 4}
	in, keys := io.Pipe()
	t.Cleanup(func() { _ = keys.Close() })
	ended := make(chan int, 1)
	go func() {
		ended <- command.Run(t.Context(), command.Env{
			In: in, Out: s, Err: s, Getenv: func(string) string { return "" }, InIsTerminal: true, OutIsTerminal: true, Terminal: s,
		}, []string{"top", "--engine", address})
	}()
	press := func(key string) {
		_, err := io.WriteString(keys, key)
		require.NoError(t, err)
	}
	has := func(line int, text string) func([]string) bool {
		return func(lines []string) bool { return len(lines) > line && strings.Contains(lines[line], text) }
	}
	s.await(t, has(3, "orders:create"))
	for _, line := range s.frame() {
		assert.LessOrEqual(t, len([]rune(strings.NewReplacer("\x1b[33m", "", "\x1b[0m", "", "\x1b[K", "", "\x1b[J", "").Replace(line))), 60)
	}
	assert.Len(t, s.frame(), 4, "as many lines as the terminal has")

	press("n")
	s.await(t, has(3, "carts "))
	s.set(func() { s.columns, s.rows = 200, 30 })
	guard, err := engine.Entry(t.Context(), "other")
	require.NoError(t, err)
	guard.Exit()
	s.await(t, func(lines []string) bool { return len(lines) == 7 })
	assert.True(t, s.raw)

	press("q")
	assert.Equal(t, command.ExitDone, <-ended)
	assert.False(t, s.raw)
	written := s.written.String()
	assert.True(t, strings.HasPrefix(written, "\x1b[?1049h\x1b[?25l"), "%q", written[:20])
	assert.True(t, strings.HasSuffix(written, "\x1b[?25h\x1b[?1049l"))
}

func TestTopFindsTheInstancesOfAnApplication(t *testing.T) {
	server, operator := startEtcd(t, etcdtest.Options{})
	got := operator.run(t, "top", "--once")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "no instance reports to /penstock/shop.instances/")

	startInstance(t, server, "silent")
	got = operator.run(t, "top", "--once")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "no instance reports where its inspect handler is: set Options.Inspect")

	address, engine := busyService(t)
	source, err := etcd.Open(clientv3.Config{Endpoints: []string{server.Endpoint()}}, etcd.Prefix("shop"),
		etcd.Options{Instance: "busy", Inspect: address, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, engine.Follow(t.Context(), source))
	require.Eventually(t, func() bool {
		got = operator.run(t, "top", "--once")
		return got.code == command.ExitDone
	}, eventTimeout, 10*time.Millisecond)
	assert.Contains(t, got.out, "no address is known of silent")
	assert.Contains(t, got.out, "orders:create")
	engine.Close()
}
