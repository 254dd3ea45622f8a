package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eventTimeout is longer than any step of a test takes on a busy machine.
const eventTimeout = 2 * time.Minute

// asCommand is the variable of the environment that makes the binary of the test
// penstock itself.
const asCommand = "PENSTOCK_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is a penstock that runs.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    *os.File // the end of a pipe that is its standard input
	out   output
	err   output
	ended chan struct{}
}

// start runs penstock with a pipe as its standard input.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start with another standard output, unless that is nil.
func startWith(t *testing.T, out io.Writer, args ...string) *process {
	t.Helper()
	binary, err := os.Executable()
	require.NoError(t, err)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.Command(binary, args...), in: writer, ended: make(chan struct{})}
	p.cmd.Env = []string{asCommand + "=1", "HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"}
	p.cmd.Dir = t.TempDir()
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = reader, &p.out, &p.err
	if out != nil {
		p.cmd.Stdout = out
	}
	require.NoError(t, p.cmd.Start())
	_ = reader.Close()
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = writer.Close()
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// code returns the exit code, once the process has ended.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(eventTimeout):
		require.Fail(p.t, "it has not ended", "%v: %s", p.cmd.Args[1:], p.err.String())
		return 0
	}
}

// until returns once the process has written the text to standard error.
func (p *process) until(text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Contains(p.err.String(), text) }, eventTimeout, 5*time.Millisecond, text)
}

// output is what a process wrote so far.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

// listenSilently takes connections and never answers. The channel has one for
// each.
func listenSilently(t *testing.T) (address string, taken <-chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	connections := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				connections <- struct{}{}
				go func() { _, _ = io.Copy(io.Discard, conn) }()
			}
		}
	}()
	return listener.Addr().String(), connections
}
