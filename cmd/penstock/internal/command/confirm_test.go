package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

func TestHeldBackChangeIsShownAndConfirmed(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", before(t), "--yes").code)
	startCareful(t, server, "careful", 0.5)

	got := u.run(t, "push", one(t, 1), "--yes", "--wait")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "1 instance held the change back: see penstock confirm")
	assert.Contains(t, got.out, "careful: core: source ")

	got = u.run(t, "status")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Regexp(t, `\ncareful .* held back\n`, got.out)
	assert.Contains(t, got.out, " would go at once, more than the share of 0.5 that is allowed")
	assert.Contains(t, got.out, "\nWhat is held back is put in force by penstock confirm")

	got = u.run(t, "confirm")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Regexp(t, `^/penstock/shop/ in etcd: removals up to revision \d+ are confirmed\n$`, got.out)
	require.Eventually(t, func() bool { return u.run(t, "status").code == command.ExitDone }, eventTimeout, 10*time.Millisecond)
	assert.NotContains(t, u.run(t, "status").out, "held back")
}

func TestHeldBackListIsShownAndConfirmed(t *testing.T) {
	t.Parallel()
	server, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "lists", "push", "scrapers", listFile(t, "a\nb\nc\nd\n"), "--yes").code)
	engine := startCarefulEngine(t, server, "careful", 0.2)
	entries := func() int {
		if status := engine.Lists().Status(); len(status) == 1 {
			return status[0].Entries
		}
		return -1
	}
	require.Equal(t, 4, entries())

	require.Equal(t, command.ExitDone, u.run(t, "lists", "remove", "scrapers", "c", "d").code)
	var got answer
	require.Eventually(t, func() bool {
		got = u.run(t, "status")
		return strings.Contains(got.out, "held back")
	}, eventTimeout, 10*time.Millisecond)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.out, "held back: 1 list")
	assert.Contains(t, got.out, "\nWhat is held back is put in force by penstock confirm")
	assert.Equal(t, 4, entries(), "the one in force stays")

	got = u.run(t, "confirm")
	require.Equal(t, command.ExitDone, got.code, got.err)
	require.Eventually(t, func() bool { return entries() == 2 }, eventTimeout, 10*time.Millisecond)

	// What takes out few entries, or is confirmed with the change, is not held back.
	require.Equal(t, command.ExitDone, u.run(t, "lists", "remove", "scrapers", "a", "b", "--confirm-removals").code)
	require.Eventually(t, func() bool { return entries() == 0 }, eventTimeout, 10*time.Millisecond)
}

func TestConfirmAsksOnATerminal(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", before(t), "--yes").code)
	startCareful(t, server, "careful", 0.5)
	require.Equal(t, command.ExitNo, u.run(t, "push", one(t, 1), "--yes", "--wait").code)

	u.terminal, u.types = true, "n\n"
	got := u.run(t, "confirm")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.out, "careful: core: source ")
	assert.Contains(t, got.err, "Confirm the removals in /penstock/shop/ in etcd? [y/N] ")
	assert.Contains(t, got.err, "penstock: nothing was confirmed\n")
	require.Regexp(t, `\ncareful .* held back\n`, u.run(t, "status").out)

	got = u.run(t, "confirm", "--yes", "--wait")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Empty(t, got.err, "nobody is asked")
	assert.Equal(t, command.ExitDone, u.run(t, "status").code)
}

func TestConfirmedPushIsNotHeldBack(t *testing.T) {
	t.Parallel()
	for name, agree := range map[string]func(u user, t *testing.T) answer{
		"on a terminal": func(u user, t *testing.T) answer {
			u.terminal, u.types = true, "y\n"
			return u.run(t, "push", one(t, 1), "--wait")
		},
		"by the flag": func(u user, t *testing.T) answer {
			return u.run(t, "push", one(t, 1), "--yes", "--confirm-removals", "--wait")
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, u := startEtcd(t, etcdtest.Options{})
			require.Equal(t, command.ExitDone, u.run(t, "push", before(t), "--yes").code)
			startCareful(t, server, "careful", 0.5)
			got := agree(u, t)
			assert.Equal(t, command.ExitDone, got.code, got.err+got.out)
			assert.Regexp(t, `\ncareful .* up to date\n`, u.run(t, "status").out)
		})
	}
}

func TestConfirmWithoutAHeldBackChangeExitsWith5(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"another application": {[]string{"--app=typo"}, "/penstock/typo/ in etcd: there are no documents, and no instance reports: is that the right place? nothing was confirmed"},
		"nobody reports":      {nil, "no live instance reports: services do when etcd.Options.Instance names them; --force confirms for those that do not: nothing was confirmed"},
		"all is in force":     {[]string{"--app=busy"}, "/penstock/busy/ in etcd: none of 1 instance holds anything back: nothing was confirmed"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, command.ExitDone, u.run(t, "push", one(t, 1), "--yes").code)
			_, err := server.Client().Put(t.Context(), "/penstock/busy.instances/a", `{"instance": "a", "revision": 9}`)
			require.NoError(t, err)
			before, err := server.Client().Get(t.Context(), "x")
			require.NoError(t, err)
			got := u.run(t, append([]string{"confirm"}, test.args...)...)
			assert.Equal(t, command.ExitNobody, got.code)
			assert.Equal(t, "penstock: "+test.want+"\n", got.err)
			assert.Empty(t, got.out)
			after, err := server.Client().Get(t.Context(), "x")
			require.NoError(t, err)
			assert.Equal(t, before.Header.Revision, after.Header.Revision, "nothing is written")

			got = u.run(t, append([]string{"confirm", "--force"}, test.args...)...)
			assert.Equal(t, command.ExitDone, got.code)
			assert.Contains(t, got.out, "are confirmed\n")
		})
	}
}
