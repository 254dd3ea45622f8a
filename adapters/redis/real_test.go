//go:build unix

package penstockredis_test

import (
	"bytes"
	"context"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockredis "github.com/penstock-go/penstock/adapters/redis"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rules"
)

// realServer is a server program that ends with the test.
type realServer struct {
	addr    string
	process *exec.Cmd
}

// startReal starts a real server. It skips the test if there is no program.
func startReal(t *testing.T, args ...string) *realServer {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		program, err = exec.LookPath("valkey-server")
	}
	if err != nil {
		t.Skip("SKIPPED, no real server: neither redis-server nor valkey-server is on the PATH. " +
			"Install one, on Debian and Ubuntu with: apt-get install redis-server")
	}
	for range 10 { // another program may take the port
		if s := tryReal(t, program, args); s != nil {
			return s
		}
	}
	t.Fatal("no server starts")
	return nil
}

func tryReal(t *testing.T, program string, args []string) *realServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	require.NoError(t, listener.Close())
	args = append([]string{
		"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", t.TempDir(), "--daemonize", "no",
	}, args...)
	s := &realServer{addr: addr, process: exec.Command(program, args...)}
	var output bytes.Buffer
	s.process.Stdout, s.process.Stderr = &output, &output
	require.NoError(t, s.process.Start())
	ended := make(chan struct{})
	go func() { _ = s.process.Wait(); close(ended) }()
	t.Cleanup(func() { _ = s.process.Process.Kill(); <-ended })
	own := "process_id:" + strconv.Itoa(s.process.Process.Pid) + "\r\n"
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	for deadline := time.Now().Add(eventTimeout); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if info, _ := client.Info(t.Context(), "server").Result(); strings.Contains(info, own) {
			return s
		}
		select {
		case <-ended:
			return nil
		default:
		}
	}
	t.Fatal("the server does not answer: " + output.String())
	return nil
}

// control returns a client without the hook.
func (s *realServer) control(t *testing.T) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestRealServerIsBlamedForWhatItCannotDo(t *testing.T) {
	server := startReal(t)
	seen, engine := record(t, "command")
	client, control := newClient(t, server.addr, engine, penstockredis.Options{}), server.control(t)
	ctx := t.Context()
	set := func() error { return client.Set(ctx, "a", strings.Repeat("x", 1000), 0).Err() }
	transact := func() error {
		_, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error { return pipe.Set(ctx, "a", "x", 0).Err() })
		return err
	}
	require.NoError(t, set())
	require.ErrorContains(t, client.LPush(ctx, "a", "x").Err(), "WRONGTYPE")
	require.ErrorContains(t, client.Do(ctx, "SET", "a").Err(), "wrong number of arguments")
	require.ErrorContains(t, client.EvalSha(ctx, strings.Repeat("0", 40), nil).Err(), "NOSCRIPT")
	assert.Equal(t, outcomes(succeeded, succeeded, succeeded, succeeded), seen.Outcomes())

	require.NoError(t, control.ConfigSet(ctx, "maxmemory", "1").Err())
	require.ErrorContains(t, set(), "OOM")
	require.NoError(t, control.ConfigSet(ctx, "maxmemory", "0").Err())
	require.NoError(t, control.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err())
	require.ErrorContains(t, set(), "READONLY")
	require.ErrorContains(t, transact(), "EXECABORT") // the client hides the READONLY
	require.NoError(t, control.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
	require.NoError(t, control.ConfigSet(ctx, "min-replicas-to-write", "1").Err())
	require.ErrorContains(t, set(), "NOREPLICAS")
	require.NoError(t, control.ConfigSet(ctx, "min-replicas-to-write", "0").Err())
	require.NoError(t, transact())
	assert.Equal(t, outcomes(failed, failed, failed, failed, succeeded), seen.Outcomes()[4:])
}

func TestRealServerThatHangsOrDiesIsAFailure(t *testing.T) {
	server := startReal(t)
	seen, engine := record(t, "command")
	client := newClient(t, server.addr, engine, penstockredis.Options{})
	require.NoError(t, client.Ping(t.Context()).Err())

	require.NoError(t, server.process.Process.Signal(syscall.SIGSTOP))
	late, cancelLate := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancelLate()
	require.Error(t, client.Get(late, "a").Err())
	require.NoError(t, server.process.Process.Signal(syscall.SIGCONT))

	require.NoError(t, server.process.Process.Kill())
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() != nil }, eventTimeout, time.Millisecond)
	ends := seen.Outcomes()
	assert.Equal(t, outcomes(succeeded, failed), ends[:2])
	assert.Equal(t, failed, ends[len(ends)-1])
}

func TestRealConnectionsAreSetUpWithinTheCallThatNeedsThem(t *testing.T) {
	server := startReal(t)
	require.NoError(t, server.control(t).ConfigSet(t.Context(), "requirepass", "secret").Err())
	one := rules.Set{Isolation: []isolation.Rule{{Name: "one", Match: "redis:*", Shared: true, Limit: 1}}}
	engine := newEngine(t, one)
	client := redis.NewClient(&redis.Options{Addr: server.addr, Password: "secret", DB: 2, ClientName: "test", MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(penstockredis.NewHook(engine, penstockredis.Options{}))
	require.NoError(t, client.Watch(t.Context(), func(tx *redis.Tx) error {
		_, err := tx.TxPipelined(t.Context(), func(pipe redis.Pipeliner) error { return pipe.Incr(t.Context(), "n").Err() })
		return err
	}, "n"))
	assert.Equal(t, []string{"redis:MULTI", "redis:WATCH"}, adaptertest.Called(engine))
}

func TestCommandsOfARealClusterAreCallsOnce(t *testing.T) {
	server := startReal(t, "--cluster-enabled", "yes")
	control := server.control(t)
	require.NoError(t, control.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	require.Eventually(t, func() bool {
		info, _ := control.ClusterInfo(t.Context()).Result()
		return strings.Contains(info, "cluster_state:ok")
	}, eventTimeout, time.Millisecond)
	engine := newEngine(t, limited("redis:PIPELINE", 3))
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.addr}})
	t.Cleanup(func() { _ = cluster.Close() })
	cluster.AddHook(penstockredis.NewHook(engine, penstockredis.Options{}))
	require.NoError(t, cluster.Set(t.Context(), "a", "1", 0).Err())
	fill := func() error {
		_, err := cluster.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			pipe.Incr(t.Context(), "a")
			return pipe.Incr(t.Context(), "b").Err()
		})
		return err
	}
	require.NoError(t, fill())
	require.ErrorIs(t, fill(), core.ErrBlocked)
	assert.Equal(t, []string{"redis:PIPELINE", "redis:SET"}, adaptertest.Called(engine))
	assert.EqualValues(t, 1, totals(engine, "redis:SET").Completed)
	assert.Equal(t, "2", control.Get(t.Context(), "a").Val())
}
