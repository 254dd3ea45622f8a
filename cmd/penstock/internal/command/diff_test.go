package command_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// before and after are rules in which everything changes that can.
func before(t *testing.T) string {
	t.Helper()
	return tree(t, map[string]string{
		"shop.yaml": `flow:
  - {name: create, resource: orders:create, limit: 1000}
  - {resource: orders:pay, limit: 5, algorithm: throttle, maxWait: 500ms}
  - {resource: search, limit: 100}
  - {resource: login, limit: 3}
`,
		"gone.yaml":  "flow: [{resource: old, limit: 1}]\n",
		"words.yaml": "flow: [] # a comment\n",
		"same.yaml":  "flow: [{resource: same, limit: 1}]\n",
	})
}

func after(t *testing.T) string {
	t.Helper()
	return tree(t, map[string]string{
		"shop.yaml": `flow:
  - {resource: orders:pay, limit: 5, warmUp: {period: 10s}}
  - {name: create, resource: orders:create, limit: 800, window: 1s}
`,
		"eu/new.yaml": "flow: [{resource: search, limit: 100}, {resource: login, limit: 4}, {resource: new, limit: 0.5, window: 1m}]\n",
		"words.yaml":  "flow: [] # another comment\n",
		"same.yaml":   "flow: [{resource: same, limit: 1}]\n",
	})
}

func TestDiffOfDirectories(t *testing.T) {
	from, to := before(t), after(t)
	got := user{}.run(t, "diff", to, "--against", from)
	assert.Equal(t, command.ExitDone, got.code)
	assert.Empty(t, got.err)
	golden(t, "diff.txt", got.out, "")

	assert.Equal(t, answer{got.out, "", command.ExitNo}, user{}.run(t, "diff", to, "--against", from, "--exit-code"))
	assert.Equal(t, answer{"no differences\n", "", command.ExitDone}, user{}.run(t, "diff", to, "--against", to, "--exit-code"))
}

func TestDiffForMachines(t *testing.T) {
	got := user{}.run(t, "diff", after(t), "--against", before(t), "--output", "json", "--exit-code")
	assert.Equal(t, command.ExitNo, got.code)
	golden(t, "diff.json", got.out, "")
	assert.True(t, json.Valid([]byte(got.out)))

	same := before(t)
	got = user{}.run(t, "diff", same, "--against", same, "-o", "json")
	assert.JSONEq(t, `{"revision": 0, "rules": [], "documents": []}`, got.out)
}

func TestDiffIsColouredOnATerminalUnlessUnwanted(t *testing.T) {
	from, to := before(t), after(t)
	plain := user{}.run(t, "diff", to, "--against", from).out
	assert.NotContains(t, plain, "\x1b")
	coloured := user{terminal: true}.run(t, "diff", to, "--against", from).out
	assert.Contains(t, coloured, "\x1b[32m+ flow new\x1b[0m")
	assert.Contains(t, coloured, "\x1b[31m- flow old\x1b[0m")
	for _, env := range []map[string]string{{"NO_COLOR": "1"}, {"TERM": "dumb"}} {
		assert.Equal(t, plain, user{terminal: true, env: env}.run(t, "diff", to, "--against", from).out)
	}
}

func TestDiffAgainstEtcd(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", before(t), "--yes").code)
	got := u.run(t, "diff", after(t))
	assert.Equal(t, command.ExitDone, got.code)
	golden(t, "diff.txt", got.out, "")
	assert.Equal(t, "compared with etcd at revision 2\n", got.err)

	// Somebody else has broken a document.
	_, err := server.Client().Do(t.Context(), clientv3.OpPut("/penstock/shop/shop.yaml", "flow: ["))
	require.NoError(t, err)
	got = u.run(t, "diff", after(t))
	assert.Equal(t, command.ExitDone, got.code)
	assert.Contains(t, got.err, "warning: etcd holds documents with mistakes, whose rules are left out here: 1 mistake in 1 of 4 documents")
	assert.Contains(t, got.err, "shop.yaml:1:8")
	assert.Contains(t, got.out, "+ flow create (shop.yaml)")
}

func TestDiffOfMistakenDocuments(t *testing.T) {
	for _, args := range [][]string{{before(t), "--against", mistaken(t)}, {mistaken(t), "--against", before(t)}} {
		got := user{}.run(t, append([]string{"diff"}, args...)...)
		assert.Equal(t, command.ExitNo, got.code)
		assert.Contains(t, got.err, "penstock: 8 mistakes in 4 of 6 documents")
		assert.Empty(t, got.out)
	}
}
