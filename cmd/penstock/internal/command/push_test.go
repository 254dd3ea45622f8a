package command_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// one returns a directory with one rule.
func one(t *testing.T, limit int) string {
	t.Helper()
	return tree(t, map[string]string{"shop.yaml": fmt.Sprintf("flow: [{resource: orders, limit: %d}]\n", limit)})
}

// read returns the files below a directory.
func read(t *testing.T, directory string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	require.NoError(t, filepath.Walk(directory, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(directory, path)
		files[filepath.ToSlash(name)] = string(data)
		return err
	}))
	return files
}

// stored returns the documents in etcd.
func (u user) stored(t *testing.T) map[string]string {
	t.Helper()
	directory := t.TempDir()
	got := u.run(t, "pull", directory)
	if strings.Contains(got.err, "there are no documents") {
		return map[string]string{}
	}
	require.Equal(t, command.ExitDone, got.code, got.err)
	return read(t, directory)
}

func TestPushReplacesAllDocuments(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	from, to := before(t), after(t)
	got := u.run(t, "push", from, "--yes")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.out, "/penstock/shop/ in etcd is at revision 2 now\n")
	assert.Equal(t, read(t, from), u.stored(t))

	got = u.run(t, "push", to, "--yes")
	require.Equal(t, command.ExitDone, got.code, got.err)
	golden(t, "push.txt", got.out, "")
	assert.Equal(t, read(t, to), u.stored(t))

	again := u.run(t, "push", to, "--yes")
	assert.Equal(t, answer{"no differences\nnothing to write: /penstock/shop/ in etcd is at revision 3\n", "", command.ExitDone}, again)
}

func TestPushOfDocumentsWithMistakesWritesNothing(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	got := u.run(t, "push", mistaken(t), "--yes")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "penstock: 8 mistakes in 4 of 6 documents\n")
	assert.Empty(t, got.out)
	assert.Empty(t, u.stored(t))
}

func TestPushAsksOnATerminal(t *testing.T) {
	t.Parallel()
	_, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", before(t), "--yes").code)
	was := u.stored(t)
	to := after(t)
	u.terminal = true
	for _, no := range []string{"n\n", "\n", "", "yess\n", "what?\ny\n"} {
		u.types = no
		got := u.run(t, "push", to)
		assert.Equal(t, command.ExitNo, got.code, "%q", no)
		assert.Contains(t, got.err, "This deletes 1 document. Write it to /penstock/shop/ at "+u.env["PENSTOCK_ENDPOINTS"]+"? [y/N] ")
		assert.Contains(t, got.err, "nothing was written")
		assert.Equal(t, was, u.stored(t))
	}
	u.types = "n\n"
	got := u.run(t, "push", to, "--dry-run")
	assert.Equal(t, command.ExitDone, got.code)
	assert.Empty(t, got.err, "nobody is asked")
	assert.Equal(t, was, u.stored(t))

	u.types = "Yes\n"
	assert.Equal(t, command.ExitDone, u.run(t, "push", to).code)
	assert.Equal(t, read(t, to), u.stored(t))
	u.types = "n\n"
	assert.Equal(t, command.ExitDone, u.run(t, "push", to).code, "nobody is asked about nothing")
}

func TestOneOfConcurrentPushesSucceeds(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", one(t, 0), "--yes").code)
	const n = 5
	var pushes sync.WaitGroup
	answers := make([]answer, n)
	for i := range n {
		directory := one(t, i+1)
		pushes.Go(func() {
			answers[i] = u.run(t, "push", directory, "--yes", "--expect-rev", "2", "--author", fmt.Sprint("user-", i))
		})
	}
	pushes.Wait()
	var done []int
	for i, a := range answers {
		if a.code == command.ExitDone {
			done = append(done, i)
		}
	}
	require.Len(t, done, 1, "%v", answers)
	winner := done[0]
	for i, a := range answers {
		if i != winner {
			assert.Equal(t, command.ExitConflict, a.code)
			assert.Contains(t, a.err, fmt.Sprintf("penstock: user-%d, with revision 3 (\"\"), has written shop.yaml since revision 2: nothing was changed", winner))
		}
	}
	assert.Equal(t, map[string]string{"shop.yaml": fmt.Sprintf("flow: [{resource: orders, limit: %d}]\n", winner+1)}, u.stored(t))
}

func TestHistoryAndRollback(t *testing.T) {
	t.Parallel()
	_, u := startEtcd(t, etcdtest.Options{})
	got := u.run(t, "history")
	assert.Equal(t, answer{"nothing was pushed to /penstock/shop/ in etcd yet\n", "", command.ExitDone}, got)

	first := tree(t, map[string]string{
		"a.yaml":      "\ufeff# kept\r\nflow: [{resource: a, limit: 1}]",
		"eu/de/b.yml": "flow:\n\n\n  - {resource: b, limit: 1}   \n\n",
		"c.json":      "{\"flow\"\t: []}",
	})
	for _, push := range [][]string{
		{first, "--author", "alice", "--message", "the first"},
		{after(t), "--author", "bob", "-m", "in two\nlines"},
		{one(t, 3), "--author", "eve\x1b[31m"},
	} {
		require.Equal(t, command.ExitDone, u.run(t, append([]string{"push", "--yes"}, push...)...).code)
	}
	got = u.run(t, "rollback", "2", "--yes", "--author", "carol")
	require.Equal(t, command.ExitDone, got.code, got.err)
	assert.Contains(t, got.out, "- flow orders (shop.yaml): resource orders, limit 3")
	assert.Contains(t, got.out, "is at revision 5 now")
	assert.Equal(t, read(t, first), u.stored(t), "byte for byte")
	golden(t, "history.txt", u.run(t, "history").out, "")

	got = u.run(t, "history", "-o", "json", "-n", "1")
	assert.Regexp(t, `(?s)^{\s+"revisions": \[\s+{\s+"revision": 5,\s+"time": "[^"]+",\s+"author": "carol",\s+"message": "rollback to 2",\s+"documents": 3,\s+"added": 3,\s+"changed": 0,\s+"removed": 1\s+}\s+\]\s+}\s+$`, got.out)

	got = u.run(t, "rollback", "7", "--yes")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Equal(t, "penstock: the history has no revision 7: penstock history lists those it has\n", got.err)

	got = u.run(t, "rollback", "3", "--dry-run")
	assert.Equal(t, command.ExitDone, got.code)
	assert.Equal(t, read(t, first), u.stored(t))

	old := filepath.Join(t.TempDir(), "old")
	require.Equal(t, command.ExitDone, u.run(t, "pull", old, "--rev", "4").code)
	assert.Equal(t, read(t, one(t, 3)), read(t, old))
}

func TestPullIntoADirectory(t *testing.T) {
	server, u := startEtcd(t, etcdtest.Options{})
	directory := filepath.Join(t.TempDir(), "rules")
	got := u.run(t, "pull", directory, "--force")
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "there are no documents below /penstock/shop/: is that the right place?")
	assert.NoDirExists(t, directory)

	from := before(t)
	require.Equal(t, command.ExitDone, u.run(t, "push", from, "--yes").code)
	got = u.run(t, "pull", directory)
	assert.Equal(t, answer{directory + ": 4 documents of revision 2; 4 documents added\n", "", command.ExitDone}, got)
	assert.Equal(t, read(t, from), read(t, directory))

	mine := filepath.Join(directory, "mine.yaml")
	require.NoError(t, os.WriteFile(mine, []byte("flow: []"), 0o600))
	got = u.run(t, "pull", directory)
	assert.Equal(t, command.ExitNo, got.code)
	assert.Contains(t, got.err, "holds documents that are not in etcd: mine.yaml: nothing was written; pull into another directory, or replace them with --force")
	assert.FileExists(t, mine)

	got = u.run(t, "pull", directory, "--force")
	assert.Equal(t, directory+": 4 documents of revision 2; 1 document removed\n", got.out)
	assert.Equal(t, read(t, from), read(t, directory))

	// What other tools write may be called anything.
	_, err := server.Client().Put(t.Context(), "/penstock/shop/limits", "flow: []")
	require.NoError(t, err)
	got = u.run(t, "pull", directory)
	assert.Equal(t, command.ExitDone, got.code)
	assert.Contains(t, got.err, "would leave out limits")
	_, err = server.Client().Put(t.Context(), "/penstock/shop/../../x.yaml", "flow: []")
	require.NoError(t, err)
	got = u.run(t, "pull", directory)
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, `"../../x.yaml" is no path below a directory: nothing was written`)
	assert.NoFileExists(t, filepath.Join(directory, "..", "..", "x.yaml"))
}

func TestPullToStandardOutput(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	directory := tree(t, map[string]string{"a.yaml": "flow: []", "b/c.json": "{\"flow\": []}\n"})
	require.Equal(t, command.ExitDone, u.run(t, "push", directory, "--yes").code)
	want := answer{"--- # a.yaml\nflow: []\n--- # b/c.json\n{\"flow\": []}\n", "", command.ExitDone}
	assert.Equal(t, want, u.run(t, "pull"))
	assert.Equal(t, want, u.run(t, "pull", "-"))
}

func TestDryRunFailsIfSomebodyWroteAfterTheExpectedRevision(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	require.Equal(t, command.ExitDone, u.run(t, "push", one(t, 1), "--yes").code)
	got := u.run(t, "push", one(t, 3), "--dry-run", "--expect-rev=2")
	assert.Equal(t, command.ExitDone, got.code, got.err)

	require.Equal(t, command.ExitDone, u.run(t, "push", one(t, 2), "--yes", "--author=alice").code)
	for _, args := range [][]string{{"push", one(t, 3)}, {"rollback", "2"}} {
		got = u.run(t, append(args, "--dry-run", "--expect-rev=2")...)
		assert.Equal(t, command.ExitConflict, got.code)
		assert.Contains(t, got.err, `penstock: alice, with revision 3 (""), has written shop.yaml since revision 2: nothing was changed`)
		assert.Contains(t, got.out, "~ flow orders", "what would change is shown all the same")
	}
	got = u.run(t, "push", one(t, 3), "--dry-run", "--expect-rev=1000")
	assert.Equal(t, command.ExitFailed, got.code)
	assert.Contains(t, got.err, "revision 1000 is yet to come")

	// Nobody is asked about what cannot be done.
	u.terminal, u.types = true, "y\n"
	got = u.run(t, "push", one(t, 3), "--expect-rev=2")
	assert.Equal(t, command.ExitConflict, got.code)
	assert.NotContains(t, got.err, "[y/N]")
}

// never is a terminal at which nobody types anything.
type never chan struct{}

func (n never) Read([]byte) (int, error) {
	<-n
	return 0, io.EOF
}

func TestInterruptAtTheQuestionWritesNothing(t *testing.T) {
	_, u := startEtcd(t, etcdtest.Options{})
	typed := make(never)
	defer close(typed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	var errs notes
	directory, done := one(t, 1), make(chan int, 1)
	go func() {
		done <- command.Run(ctx, command.Env{
			In: typed, Out: &out, Err: &errs, Getenv: func(name string) string { return u.env[name] }, InIsTerminal: true,
		}, []string{"push", directory})
	}()
	require.Eventually(t, func() bool { return strings.Contains(errs.String(), "[y/N] ") }, eventTimeout, time.Millisecond)
	cancel()
	assert.Equal(t, command.ExitFailed, <-done)
	assert.Contains(t, errs.String(), "[y/N] \npenstock: interrupted: nothing was written\n")
	assert.Empty(t, u.stored(t))
}

func TestReadingFromATerminalPrintsANote(t *testing.T) {
	got := user{terminal: true, types: "flow: []\n"}.run(t, "validate", "-")
	assert.Equal(t, answer{"1 document, 0 rules, no mistakes\n", "reading from the terminal: end with Ctrl-D, or stop with Ctrl-C\n", command.ExitDone}, got)
}
