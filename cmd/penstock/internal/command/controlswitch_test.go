package command_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/inspect"
)

func TestControlSwitchesRulesOffAndOn(t *testing.T) {
	s := newService(t)
	for args, said := range map[string]string{
		"rule broken":              `rule "broken"`,
		"rule broken --kind fault": `rule "broken"`,
		"kind fault":               `kind "fault"`,
		"resource pay":             `resource "pay"`,
		"engine":                   "the engine",
	} {
		words := strings.Fields(args)
		at := min(len(words), 2)
		run := func(state string, more ...string) answer {
			line := append([]string{"control"}, words[:at]...)
			line = append(append(append(line, state), words[at:]...), "--engine", s.address)
			return user{}.run(t, append(line, more...)...)
		}
		got := run("off", "--for", "10m", "--reason", "wrong\x1b[31m", "--by", "alice")
		require.Equal(t, command.ExitDone, got.code, got.err)
		assert.Equal(t, s.host()+": "+said+" is switched off for 10m0s\n", got.out)
		require.True(t, s.passes(t), args)
		got = user{}.run(t, "status", "--engine", s.address)
		assert.Contains(t, got.out, "alice at 127.0.0.1  wrong [31m")
		got = user{}.run(t, "explain", "pay", "--engine", s.address)
		assert.Contains(t, got.out, "switched off: it refuses nothing")
		got = run("on")
		assert.Equal(t, s.host()+": "+said+" is switched on\n", got.out)
		require.False(t, s.passes(t), args)
		got = run("release")
		assert.Equal(t, s.host()+": "+said+" is released\n", got.out)
		require.False(t, s.passes(t), args)
	}
}

func TestSwitchesOnTheCommandLineThatCannotBe(t *testing.T) {
	s := newService(t)
	for line, want := range map[string]struct {
		code   int
		stderr string
	}{
		"rule broken":                      {command.ExitUsage, "which rule, and off, on or release?"},
		"kind off":                         {command.ExitUsage, "which kind, and off, on or release?"},
		"rule broken open":                 {command.ExitUsage, `"open" is no switch`},
		"engine pay off":                   {command.ExitUsage, "has no name"},
		"kind fault off --kind fault":      {command.ExitUsage, "--kind is for"},
		"fault off --all --kind fault":     {command.ExitUsage, "--kind is for"},
		"rule broken off --all":            {command.ExitUsage, "are not for rule"},
		"rule broken off --for -1m":        {command.ExitUsage, "--for is -1m0s"},
		"rule broken off --app shop":       {command.ExitUsage, "two places"},
		"rule nobody off":                  {command.ExitNo, `"nobody"`},
		"resource nobody off":              {command.ExitNo, `"nobody"`},
		"rule broken off --kind isolation": {command.ExitNo, `isolation "broken"`},
		"kind flaw off":                    {command.ExitNo, `"flaw"`},
	} {
		got := user{}.run(t, append(append([]string{"control"}, strings.Fields(line)...), "--engine", s.address)...)
		assert.Equal(t, want.code, got.code, line)
		assert.Contains(t, got.err, want.stderr, line)
		assert.False(t, s.passes(t), line)
	}
}

// A service that answers with a redirect does not have the request sent elsewhere.
func TestControlFollowsNoRedirect(t *testing.T) {
	s := newService(t)
	elsewhere := httptest.NewServer(http.RedirectHandler(s.address+"/control", http.StatusTemporaryRedirect))
	defer elsewhere.Close()
	got := user{}.run(t, "control", "engine", "off", "--engine", elsewhere.URL)
	assert.Equal(t, command.ExitFailed, got.code)
	assert.False(t, s.passes(t))
}

// All instances that report an address are asked, and those are named that did not do it.
func TestControlAsksTheInstancesOfAnApplication(t *testing.T) {
	server, operator := startEtcd(t, etcdtest.Options{})
	s := newService(t)
	mux := http.NewServeMux()
	mux.Handle("/control", inspect.ControlHandler(s.engine, inspect.Options{}))
	handler := httptest.NewServer(mux)
	defer handler.Close()
	source, err := etcd.Open(clientv3.Config{Endpoints: []string{server.Endpoint()}}, etcd.Prefix("shop"),
		etcd.Options{Instance: "one", Inspect: handler.Listener.Addr().String(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, s.engine.Follow(t.Context(), source))
	off := []string{"control", "rule", "broken", "off", "--app", "shop"}
	require.Eventually(t, func() bool {
		return operator.run(t, off...).code == command.ExitDone
	}, eventTimeout, 10*time.Millisecond)
	assert.True(t, s.passes(t))

	startInstance(t, server, "silent")
	got := operator.run(t, off...)
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.out, "is switched off")
	assert.Contains(t, got.err, "silent: its report in etcd has no address")
	s.engine.Close()
}
