//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
	"github.com/penstock-go/penstock/datasource/etcd/etcdtest"
)

// interrupt sends the signal and asserts that the command ends of itself, not
// because it is made to.
func (p *process) interrupt(signal os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(signal))
	assert.Equal(p.t, command.ExitFailed, p.code(), p.err.String())
	assert.Regexp(p.t, `(^|\n)penstock: interrupted(: .*)?\n$`, p.err.String())
}

// fifo makes a pipe with a name.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe.yaml")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	return path
}

// open opens a pipe for writing as soon as somebody reads it.
func open(t *testing.T, path string) *os.File {
	t.Helper()
	var pipe *os.File
	require.Eventually(t, func() (ok bool) {
		var err error
		pipe, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	}, eventTimeout, time.Millisecond)
	t.Cleanup(func() { _ = pipe.Close() })
	return pipe
}

func signals() map[string]os.Signal {
	return map[string]os.Signal{"Ctrl-C": syscall.SIGINT, "SIGTERM": syscall.SIGTERM}
}

// more is more than a pipe holds: who has written it knows that it is read.
var more = strings.Repeat("# a comment\n", 200_000/12)

func TestSignalEndsReadingStandardInput(t *testing.T) {
	for _, args := range [][]string{
		{"validate", "-"},
		{"convert"},
		{"convert", "-"},
		{"simulate", "--rules", "-", "--load", "load.yaml"},
		{"explain", "a", "--rules", "-"},
	} {
		for name, signal := range signals() {
			t.Run(strings.Join(args, " ")+"/"+name, func(t *testing.T) {
				p := start(t, args...)
				_, err := p.in.WriteString(more)
				require.NoError(t, err)
				p.interrupt(signal)
				assert.Empty(t, p.out.String())
			})
		}
	}
}

func TestSignalEndsReadingAPipe(t *testing.T) {
	for name, signal := range signals() {
		t.Run("with a writer that says nothing/"+name, func(t *testing.T) {
			path := fifo(t)
			p := start(t, "validate", path)
			pipe := open(t, path)
			p.interrupt(signal)
			_ = pipe.Close()
		})
		t.Run("without a writer/"+name, func(t *testing.T) {
			first, second := fifo(t), fifo(t)
			p := start(t, "push", "--yes", "--app=shop", first, second)
			pipe := open(t, first) // it runs
			_, err := pipe.WriteString("flow: []\n")
			require.NoError(t, err)
			require.NoError(t, pipe.Close())
			p.interrupt(signal)
		})
	}
	t.Run("that holds a password", func(t *testing.T) {
		path := fifo(t)
		p := start(t, "status", "--app=shop", "--user=a", "--password-file", path)
		open(t, path)
		p.interrupt(syscall.SIGINT)
	})
}

func TestPipesAreReadToTheirEnd(t *testing.T) {
	path := fifo(t)
	p := start(t, "validate", path, "-")
	pipe := open(t, path)
	_, err := pipe.WriteString("flow: [{resource: a, limit: 1}]\n")
	require.NoError(t, err)
	require.NoError(t, pipe.Close())
	_, err = p.in.WriteString("flow: [{resource: b, limit: 1}]\n")
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	assert.Equal(t, command.ExitDone, p.code(), p.err.String())
	assert.Equal(t, "2 documents, 2 rules, no mistakes\n", p.out.String())
}

func TestSignalEndsASimulation(t *testing.T) {
	directory, load := t.TempDir(), fifo(t)
	rules := filepath.Join(directory, "a.yaml")
	require.NoError(t, os.WriteFile(rules, []byte("flow: [{resource: a, limit: 1}]\n"), 0o600))
	p := start(t, "simulate", "--rules", rules, "--load", load)
	pipe := open(t, load)
	_, err := pipe.WriteString("streams: [{resource: a, rate: 1000, until: 2h}]\n")
	require.NoError(t, err)
	require.NoError(t, pipe.Close())
	p.interrupt(syscall.SIGINT)
}

func TestSignalEndsWaitingForAnEtcdThatDoesNotAnswer(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "a.yaml")
	require.NoError(t, os.WriteFile(rules, []byte("flow: []\n"), 0o600))
	for _, args := range []string{
		"status --wait", "history", "pull", "confirm", "rollback 1 --yes", "explain a", "push --yes " + rules, "diff " + rules,
	} {
		t.Run(args, func(t *testing.T) {
			address, taken := listenSilently(t)
			p := start(t, append(strings.Fields(args), "--app=shop", "--dial-timeout=10m", "--endpoints", address)...)
			<-taken
			<-taken // the first was only to see whether anybody is there
			require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
			assert.Equal(t, command.ExitFailed, p.code())
			assert.Contains(t, p.err.String(), "penstock: interrupted")
		})
	}
	t.Run("nor a service", func(t *testing.T) {
		address, taken := listenSilently(t)
		p := start(t, "explain", "a", "--engine", address)
		<-taken
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
		assert.Equal(t, command.ExitFailed, p.code())
	})
}

func TestSignalEndsWaitingForInstances(t *testing.T) {
	server, err := etcdtest.Start(etcdtest.Options{})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	_, err = server.Client().Put(t.Context(), "/penstock/shop.instances/old", `{"instance": "old", "revision": 1}`)
	require.NoError(t, err)
	rules := filepath.Join(t.TempDir(), "a.yaml")
	for i, command := range []string{"push --yes --wait " + rules, "status --wait"} {
		require.NoError(t, os.WriteFile(rules, fmt.Appendf(nil, "flow: [{resource: a, limit: %d}]\n", i), 0o600))
		p := start(t, append(strings.Fields(command), "--app=shop", "--timeout=10m", "--endpoints", server.Endpoint())...)
		p.until("waiting for 1 instance")
		p.interrupt(syscall.SIGINT)
	}
}

// TestSignalEndsACommandWithBlockedOutput blocks standard output.
func TestSignalEndsACommandWithBlockedOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	list := strings.Repeat(`,{"resource": "a", "count": 1}`, 5_000)
	require.NoError(t, os.WriteFile(path, []byte("["+list[1:]+"]"), 0o600))
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	p := startWith(t, writer, "convert", path)
	require.NoError(t, writer.Close())
	first := make([]byte, 1)
	_, err = reader.Read(first) // it writes
	require.NoError(t, err)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, command.ExitFailed, p.code())
}
