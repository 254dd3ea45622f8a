package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// foreign is a document with rules of a kind that penstock does not know.
const foreign = "# by the team of shop\nquota:\n  - {name: a-day, resource: orders, perDay: 500}\nflow: [{resource: orders, limit: 10}]\n"

const foreignWarning = `penstock: warning: document "quota.yaml" has rules of the kind quota, which this penstock does not know: `

func TestPushWritesRulesOfUnknownKindsAsTheyAre(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	files := map[string]string{"quota.yaml": foreign, "shop.yaml": "flow: [{resource: pay, limit: 1}]\n"}
	got := u.run(t, "push", tree(t, files), "--yes")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Equal(t, foreignWarning+"they are left as they are, and not checked\n", got.err)
	assert.Contains(t, got.out, "+ flow orders (quota.yaml): resource orders, limit 10\n")
	assert.Equal(t, files, u.stored(t))

	files["shop.yaml"] = "flow: [{resource: pay, limit: 2}]\n"
	got = u.run(t, "push", tree(t, files), "--yes")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.out, "1 rule changed; 1 document changed\n", "etcd's own is read, too")
	assert.Equal(t, files, u.stored(t))

	files["quota.yaml"] = strings.Replace(foreign, "500", "600", 1)
	got = u.run(t, "diff", tree(t, files))
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.out, "rules do not change; 1 document changed\n")
	assert.Contains(t, got.err, foreignWarning)
	require.Equal(t, command.ExitDone, u.run(t, "push", tree(t, files), "--yes").code)
	assert.Equal(t, files, u.stored(t))

	got = u.run(t, "rollback", "2", "--yes")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.err, foreignWarning+"they are left as they are, and not checked\n")
	assert.Equal(t, foreign, u.stored(t)["quota.yaml"], "byte for byte")
}

func TestDocumentsOfUnknownKindsAreDeletedAsAnyOther(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", tree(t, map[string]string{"quota.yaml": foreign}), "--yes").code)
	rest := tree(t, map[string]string{"shop.yaml": "flow: []\n"})
	u.terminal, u.types = true, "n\n"
	got := u.run(t, "push", rest)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, foreignWarning+"they are removed\nThis deletes 1 document. ")
	assert.Len(t, u.stored(t), 1, "nobody said yes")

	got = u.run(t, "push", rest, "--yes")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Equal(t, map[string]string{"shop.yaml": "flow: []\n"}, u.stored(t))
	got = u.run(t, "rollback", "2", "--yes")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Equal(t, foreign, u.stored(t)["quota.yaml"])
}

func TestPushAsksAboutUnknownKinds(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	directory := tree(t, map[string]string{"quota.yaml": foreign, "z.yaml": "deny: [{resource: a}]\nquota: [{resource: b}]\n"})
	u.terminal, u.types = true, "n\n"
	got := u.run(t, "push", directory)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "Rules of unknown kinds (deny, quota) are not checked. Write it to ")
	assert.Empty(t, u.stored(t))
	u.types = "y\n"
	assert.Equal(t, command.ExitDone, u.run(t, "push", directory).code)
	assert.Equal(t, read(t, directory), u.stored(t))
}

func TestStrictPushRefusesUnknownKinds(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	directory := tree(t, map[string]string{"quota.yaml": foreign})
	for _, flags := range [][]string{{"--strict"}, {"--strict", "--wait"}, {"--strict", "--allow-unknown-kinds"}} {
		got := u.run(t, append([]string{"push", directory, "--yes"}, flags...)...)
		assert.Equal(t, command.ExitNo, got.code, flags)
		assert.Contains(t, got.err, `document "quota.yaml" has rules of the kind quota, which this penstock does not know, and --strict is given: nothing was written`)
		assert.Empty(t, u.stored(t))
	}
	require.Equal(t, command.ExitDone, u.run(t, "push", directory, "--yes").code)
	require.Equal(t, command.ExitDone, u.run(t, "push", one(t, 1), "--yes").code)
	got := u.run(t, "rollback", "2", "--yes", "--strict", "--wait")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "--strict is given: nothing was written")
}

func TestMisspelledKindsAreMistakes(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	directory := tree(t, map[string]string{"a.yaml": "brekaer: [{resource: a, threshold: 0.5}]\n"})
	for _, args := range [][]string{{"push", directory, "--yes"}, {"diff", directory}} {
		got := u.run(t, args...)
		assert.Equal(t, command.ExitNo, got.code)
		assert.Contains(t, got.err, `a.yaml:1:1: unknown kind "brekaer": did you mean "breaker"?`)
		assert.Contains(t, got.err, "--allow-unknown-kinds leaves its rules unchecked")
		assert.Empty(t, u.stored(t))
	}
	got := u.run(t, "push", directory, "--yes", "--allow-unknown-kinds")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.err, "the kind brekaer, which this penstock does not know")
	assert.Equal(t, read(t, directory), u.stored(t))
}

func TestMistakesBesideUnknownKindsAreFound(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	directory := tree(t, map[string]string{"a.yaml": "quota: [{resource: a}]\nflow: [{resource: a, limit: -1}]\n"})
	got := u.run(t, "push", directory, "--yes")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "limit is -1")
	assert.NotContains(t, got.err, "quota: ")
	got = u.run(t, "validate", directory, "--allow-unknown-kinds")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.out, "1 mistake in 1 of 1 document\n")
	got = u.run(t, "validate", directory)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.out, "2 mistakes in 1 of 1 document\n")
}

func TestValidateTakesUnknownKindsIfToldTo(t *testing.T) {
	directory := tree(t, map[string]string{"quota.yaml": foreign, "b.yaml": "flows: [{resource: b, limit: 1}]\n"})
	got := user{}.run(t, "validate", directory)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.out, `quota.yaml:2:1: unknown kind "quota": the kinds here are flow, isolation,`)
	assert.Contains(t, got.out, `b.yaml:1:1: unknown kind "flows": did you mean "flow"?`)
	assert.Contains(t, got.out, "A kind that a service brings itself takes a penstock that knows it")

	got = user{}.run(t, "validate", "--allow-unknown-kinds", directory)
	assert.Equal(t, command.ExitDone, got.code)
	assert.Equal(t, "2 documents, 1 rule, no mistakes\n", got.out)
	assert.Contains(t, got.err, foreignWarning)
	got = user{}.run(t, "validate", "--allow-unknown-kinds", "--output", "json", directory)
	var report struct{ Warnings []string }
	require.NoError(t, json.Unmarshal([]byte(got.out), &report))
	assert.Len(t, report.Warnings, 2)
}

func TestSimulationsNeedEveryKind(t *testing.T) {
	directory := tree(t, map[string]string{"quota.yaml": foreign})
	got := user{}.run(t, "explain", "orders", "--rules", directory)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, `unknown kind "quota"`)
	assert.Contains(t, got.err, "takes a penstock that knows it")
	assert.NotContains(t, got.err, "--allow-unknown-kinds")
}

func TestExplainLeavesOutUnknownKindsInEtcd(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", tree(t, map[string]string{"quota.yaml": foreign}), "--yes").code)
	got := u.run(t, "explain", "orders")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.err, foreignWarning+"they are left out here\n")
	assert.Contains(t, got.out, `flow rule "orders"`)
}

func TestListsThatUnknownKindsMayNameStay(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	entries := tree(t, map[string]string{"bots.txt": "192.0.2.0/24\n"})
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "bots", entries+"/bots.txt", "--yes").code)
	deny := tree(t, map[string]string{"deny.yaml": "deny: [{resource: a, who: bots}]\n"})
	require.Equal(t, command.ExitDone, u.run(t, "push", deny, "--yes").code)
	got := u.run(t, "lists", "delete", "bots", "--yes")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, `list bots is named by document "deny.yaml", perhaps by a rule of the kind deny, which this penstock does not know`)
	assert.Equal(t, command.ExitDone, u.run(t, "lists", "delete", "bots", "--yes", "--force").code)
}
