package command_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rules"
)

// putReport writes the report of an instance that has the documents of a push.
func putReport(t *testing.T, server *etcdtest.Server, r etcd.Report) {
	t.Helper()
	value, err := json.Marshal(r)
	require.NoError(t, err)
	_, err = server.Client().Put(t.Context(), "/penstock/shop.instances/"+r.Instance, string(value))
	require.NoError(t, err)
}

// inspected starts a service with a rule that refuses all calls, and returns its address.
func inspected(t *testing.T) (*core.Engine, string) {
	t.Helper()
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(engine.Close)
	require.NoError(t, engine.Load(rules.Set{Flow: []flow.Rule{{Name: "limit", Resource: "orders", Limit: 7}}}))
	server := httptest.NewServer(inspect.Handler(engine, inspect.Options{}))
	t.Cleanup(server.Close)
	return engine, strings.TrimPrefix(server.URL, "http://")
}

// garbage starts a service that answers something else, and returns its address.
func garbage(t *testing.T, answer string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) }))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestStatusOfAnAppAsksTheInstances(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	engine, address := inspected(t)
	require.NoError(t, engine.Switch(core.Scope{Kind: "flow", Rule: "limit"}, core.SwitchOff, core.Order{By: "alice", Reason: "wrong"}))
	putReport(t, server, etcd.Report{Instance: "a", Inspect: address, Version: "v0.3.0", Digest: etcd.DigestOf(nil)})
	got := u.run(t, "status")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.out, "v0.3.0")
	assert.Contains(t, got.out, "\na: flow \"limit\" is switched off by alice: wrong\n")
	assert.Empty(t, got.err)

	// Those that do not answer, and those that cannot be asked, are named.
	putReport(t, server, etcd.Report{
		Instance: "b", Inspect: garbage(t, "<html>"), Digest: etcd.DigestOf(nil),
		Forced: []etcd.ForcedState{{Kind: "breaker", Rule: "pay\x1b[31m", State: "open"}}, MoreForced: 2,
	})
	putReport(t, server, etcd.Report{Instance: "c", Digest: etcd.DigestOf(nil)})
	got = u.run(t, "status")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.out, "b: breaker \"pay\\x1b[31m\" is forced to be open by somebody\n", "as it has reported")
	assert.Contains(t, got.out, "b: 2 rules more forced or switched\n")
	assert.Contains(t, got.err, "penstock: no answer from b: ")
	assert.Contains(t, got.err, "is it another service?")
	assert.Contains(t, got.err, "c is not asked: it reports no address")

	var answer struct {
		Instances []struct {
			Instance string          `json:"instance"`
			Status   *inspect.Status `json:"status"`
			Error    string          `json:"error"`
		} `json:"instances"`
	}
	got = u.run(t, "status", "-o", "json")
	assert.Equal(t, command.ExitFailed, got.code)
	require.NoError(t, json.Unmarshal([]byte(got.out), &answer))
	require.Len(t, answer.Instances, 3)
	assert.Equal(t, "alice", answer.Instances[0].Status.Switches[0].By)
	assert.NotEmpty(t, answer.Instances[1].Error)

	got = u.run(t, "status", "--stored")
	assert.Equal(t, command.ExitDone, got.code)
	assert.Empty(t, got.err)
	assert.NotContains(t, got.out, "alice", "a has not reported it yet")

	got = u.run(t, "status", "--rule", "nobody")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.out, address+":\n")
}

func TestStatusSaysWhichListsDiffer(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	directory := tree(t, map[string]string{"blocked": "192.0.2.1\n", "partners": "10.0.0.0/8\n"})
	for _, name := range []string{"blocked", "partners"} {
		got := u.run(t, "lists", "push", name, directory+"/"+name, "--yes")
		require.Equal(t, command.ExitDone, got.code, got.err)
	}
	startInstance(t, server, "a")
	require.Eventually(t, func() bool { return u.run(t, "status").code == command.ExitDone }, eventTimeout, 50*time.Millisecond)

	lists := []etcd.ListVersion{{Name: "blocked", Digest: strings.Repeat("1f", 32)}, {Name: "old", Digest: strings.Repeat("2e", 32)}}
	putReport(t, server, etcd.Report{Instance: "b", Digest: etcd.DigestOf(nil), Lists: lists, ListsDigest: etcd.ListsDigestOf(lists)})
	got := u.run(t, "status")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Regexp(t, `\nb .* other lists\n`, got.out)
	assert.Regexp(t, `\nb: list blocked is of digest 1f1f1f1f1f1f, in etcd of [0-9a-f]{12}\n`, got.out)
	assert.Contains(t, got.out, "\nb: list partners is missing\n")
	assert.Contains(t, got.out, "\nb: list old is not in etcd any more\n")
	assert.NotContains(t, got.out, "\na has", "its lists are those in etcd")
	got = u.run(t, "status", "-o", "json")
	assert.Equal(t, 1, strings.Count(got.out, `"otherLists": true`))
}

func TestExplainOfAnAppAsksTheInstances(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	directory := tree(t, map[string]string{"a.yaml": "flow:\n  - {name: limit, resource: orders, limit: 5}\n  - {name: new, resource: orders, limit: 9}\n"})
	require.Equal(t, command.ExitDone, u.run(t, "push", directory, "--yes").code)
	got := u.run(t, "explain", "orders")
	assert.Equal(t, command.ExitDone, got.code)
	assert.NotContains(t, got.out, "In the instances")

	_, address := inspected(t)
	putReport(t, server, etcd.Report{Instance: "a", Inspect: address})
	got = u.run(t, "explain", "orders")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.out, "\na at "+address+":\n- flow rule \"limit\", other than in etcd: resource orders, limit 7\n  now 7 per 1s, 7 remaining\n"+
		"- flow rule \"new\" is not in force\n")

	putReport(t, server, etcd.Report{Instance: "b", Inspect: "127.0.0.1:1"})
	putReport(t, server, etcd.Report{Instance: "c"})
	got = u.run(t, "explain", "orders")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.out, "\nb at 127.0.0.1:1: no answer: ")
	assert.Contains(t, got.out, "\nc: not asked, ")
	assert.Contains(t, got.err, "penstock: no answer from b: ")
	got = u.run(t, "explain", "orders", "-o", "json")
	assert.Contains(t, got.out, `"instance": "b"`)
	got = u.run(t, "explain", "orders", "--stored")
	assert.Equal(t, command.ExitDone, got.code)
	assert.NotContains(t, got.out, address)
}

func TestConsoleSendsATokenOnlyToNamedNetworks(t *testing.T) {
	file := tree(t, map[string]string{"token": "0123456789abcdef\n", "empty": "\n"})
	for line, stderr := range map[string]string{
		"--control-token-file " + file + "/token":                    "needs --dial",
		"--control-token-file " + file + "/empty --dial 10.0.0.0/8":  "is empty",
		"--control-token-file " + file + "/absent --dial 10.0.0.0/8": "--control-token-file: open",
	} {
		got := user{}.run(t, append([]string{"console", "--app", "shop"}, strings.Fields(line)...)...)
		assert.Equal(t, command.ExitUsage, got.code, line)
		assert.Contains(t, got.err, stderr)
		assert.NotContains(t, got.err, "0123456789abcdef")
	}
}
