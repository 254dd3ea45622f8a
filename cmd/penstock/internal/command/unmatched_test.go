package command_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// startBusy starts an instance that a user calls all the time.
func startBusy(t *testing.T, server *etcdtest.Server, name string, resources ...string) {
	t.Helper()
	silent := slog.New(slog.DiscardHandler)
	source, err := etcd.Open(clientv3.Config{Endpoints: []string{server.Endpoint()}}, etcd.Prefix("shop"), etcd.Options{Instance: name, Logger: silent})
	require.NoError(t, err)
	engine := core.New(core.Config{Logger: silent})
	require.NoError(t, engine.Follow(t.Context(), source))
	ctx, cancel := context.WithTimeout(t.Context(), eventTimeout)
	defer cancel()
	require.NoError(t, engine.Ready(ctx))
	stop, stopped := make(chan struct{}), make(chan struct{})
	call := func() {
		for _, resource := range resources {
			if guard, err := engine.Entry(context.Background(), resource, core.Origin("web"), core.String("user", "alice")); err == nil {
				guard.Exit()
			}
		}
	}
	call()
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
				call()
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
		engine.Close()
	})
}

func TestPushWarnsOfRulesThatNoInstanceHasSeenACallFor(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	startBusy(t, server, "a", "GET:/products/:id")
	startBusy(t, server, "b", "GET:/orders")
	right := tree(t, map[string]string{"shop.yaml": `
flow: [{name: products, resource: "GET:/products/:id", limit: 900}, {name: orders, match: "GET:/order*", origin: web, limit: 900}]
hotParam: [{name: per-user, resource: "GET:/orders", param: user, limit: 900}]
`})
	got := u.run(t, "push", right, "--yes", "--wait", "--strict", "--min-instances=2")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.NotContains(t, got.err, "warning")

	wrong := tree(t, map[string]string{"shop.yaml": `
flow: [{name: products, resource: "GET:/product/{id}", limit: 900}, {name: orders, match: "GET:/order*", origin: wed, limit: 900}]
hotParam: [{name: per-user, resource: "GET:/orders", param: usr, limit: 900}]
`})
	const resource = `warning: flow rule "products" of shop.yaml: no instance has seen a call of GET:/product/{id}` + "\n"
	const origin = `warning: flow rule "orders" of shop.yaml: no instance has seen a call that matches "GET:/order*" by origin "wed"` + "\n"
	const attribute = `warning: hotParam rule "per-user" of shop.yaml: no instance has seen a call of GET:/orders with attribute usr, which it looks at` + "\n"
	got = u.run(t, "push", wrong, "--yes", "--wait")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	for _, want := range []string{resource, origin, attribute} {
		assert.Contains(t, got.err, want)
	}
	got = u.run(t, "status")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.err, resource)
	got = u.run(t, "status", "--strict", "-o", "json")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "penstock: 3 rules without calls, and --strict is given\n")
	assert.Contains(t, got.out, `"missing": "attribute"`)
	assert.Contains(t, got.out, `"unmatched": [`)

	got = u.run(t, "push", right, "--yes", "--wait", "--strict")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Equal(t, command.ExitUsage, u.run(t, "push", right, "--yes", "--strict").code)
}

func TestPushWaitsForCallsWhenARuleLooksAtAnotherAttribute(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	startBusy(t, server, "a", "GET:/orders")
	push := func(attribute string) answer {
		return u.run(t, "push", tree(t, map[string]string{"shop.yaml": `hotParam: [{name: per-user, resource: "GET:/orders", limit: 900, param: ` +
			attribute + `}]`}), "--yes", "--wait", "--strict", "--min-instances=1")
	}
	got := push("user")
	require.Equal(t, command.ExitDone, got.code, got.err)
	got = push("usr")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, `no instance has seen a call of GET:/orders with attribute usr, which it looks at`+"\n")
}

func TestPushWarnsThatNamesAreNotKnownWhereNoCallComes(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	guard, err := startCarefulEngine(t, server, "a", 0).Entry(t.Context(), "orders")
	require.NoError(t, err)
	guard.Exit()
	wrong := tree(t, map[string]string{"shop.yaml": `flow: [{resource: orders, origin: wed, limit: 9}, {name: all, resource: orders, limit: 9}]`})
	got := u.run(t, "push", wrong, "--yes", "--wait", "--strict", "--timeout=1m")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.err, `warning: flow rule "orders" of shop.yaml: no instance has seen a call of orders since it is in force: `+
		"whether its origin, attributes and exceptions exist is not known yet\n")
	assert.NotContains(t, got.err, `"all"`)
}

func TestStatusAndPushTellOfExceptionsThatNoInstanceHas(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	startBusy(t, server, "a", "GET:/orders", "GET:/live")
	startBusy(t, server, "b", "GET:/orders", "GET:/ready")
	except := func(names string) string {
		return tree(t, map[string]string{"shop.yaml": `flow: [{name: reads, match: "GET:/*", limit: 900, except: [` + names + `]}]`})
	}
	got := u.run(t, "push", except(`"GET:/live", "GET:/ready", "GET:/helth"`), "--yes", "--wait", "--strict", "--min-instances=2")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, `warning: flow rule "reads" of shop.yaml: no instance has seen a call of GET:/helth, which it is not for (except)`+"\n")
	got = u.run(t, "push", except(`"GET:/live", "GET:/read*"`), "--yes", "--wait", "--strict", "--min-instances=2")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.NotContains(t, got.err, "no instance has seen")
}

func TestStatusAndPushTellOfListsAndRelatedResourcesThatNoInstanceHas(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	startBusy(t, server, "a", "GET:/orders")
	startBusy(t, server, "b", "GET:/orders/all")
	wrong := tree(t, map[string]string{"shop.yaml": `
flow: [{name: reads, resource: "GET:/orders", limit: 900, related: "POST:/order"}]
access: [{name: deny, match: "*", attribute: user, list: bad, listAction: deny}]
`})
	const missing = "\na, b: list bad, which rules in force name, is missing\n"
	const related = `warning: flow rule "reads" of shop.yaml: no instance has seen a call of POST:/order, whose passes it counts` + "\n"
	got := u.run(t, "push", wrong, "--yes", "--wait", "--min-instances=2")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.out, missing)
	assert.Contains(t, got.err, related)
	got = u.run(t, "status")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Regexp(t, `\na .* 1 list missing\n`, got.out)
	assert.Contains(t, got.out, missing)

	right := tree(t, map[string]string{"shop.yaml": `
flow: [{name: reads, resource: "GET:/orders", limit: 900, related: "GET:/orders/all"}]
access: [{name: deny, match: "*", attribute: user, list: bad, listAction: deny}]
`})
	got = u.run(t, "push", right, "--yes", "--wait", "--strict", "--min-instances=2")
	assert.Equal(t, command.ExitNo, got.code)
	assert.NotContains(t, got.err, "no instance has seen")
	assert.Contains(t, got.err, "lists are missing at 2 instances, and --strict is given")
}
