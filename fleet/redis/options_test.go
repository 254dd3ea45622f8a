package redis

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/fleet"
)

func TestAllMistakesInOptionsAreToldAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Connect(Options{
		Addresses: []string{"redis://me:hunter2@example.com:6379", "localhost"}, App: "my shop", User: "me", Database: -1,
		SentinelPassword: "hunter3", DialTimeout: -1,
	})
	require.Error(t, err)
	for _, part := range []string{
		"of the form host:port", `"localhost"`, `App is "my shop"`, "a user needs a password", "Database is -1",
		"need a SentinelMaster", "DialTimeout is -1ns",
	} {
		assert.ErrorContains(t, err, part)
	}
	assert.NotContains(t, err.Error(), "hunter")

	_, err = Connect(Options{})
	assert.ErrorContains(t, err, "Addresses is empty")
	assert.ErrorContains(t, err, `App is ""`)

	_, err = Connect(Options{Addresses: []string{"a:1", "b:1"}, App: "shop", Database: 2})
	assert.ErrorContains(t, err, "a cluster has only database 0")
}

func TestOptionsAreWrittenWithoutPasswords(t *testing.T) {
	t.Parallel()
	o := Options{Addresses: []string{"a:1"}, App: "shop", User: "me", Password: "hunter2", SentinelPassword: "hunter3", TLS: &tls.Config{}}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("connecting", "options", o)
	text := fmt.Sprintf("%v %+v %#v %s %s", o, o, o, o, log.String())
	assert.NotContains(t, text, "hunter")
	assert.Contains(t, text, "a:1")
}

func TestPasswordsThatServersRepeatAreRemoved(t *testing.T) {
	t.Parallel()
	s := &Store{options: Options{Password: "hunter2"}}
	raw := errors.New("ERR unknown command 'AUTH', with args beginning with: 'me' 'hunter2'")
	err := s.explain(raw)
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2")
	assert.NotErrorIs(t, err, raw, "callers cannot get at it either")
}

func TestKindOfAnErrorIsFoundInScriptsToo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"OOM command not allowed when used memory > 'maxmemory'.":                                                                            "OOM",
		"ERR Error running script (call to f_12): @user_script:51: -OOM command not allowed when used memory":                                "OOM",
		"ERR Error running script (call to f_12): @user_script:51: @user_script: 51: -READONLY You can't write against a read only replica.": "READONLY",
		"Error running script (call to f_12): @user_script:36: WRONGTYPE Operation against a key holding the wrong kind of value":            "WRONGTYPE",
		"ERR unknown command":           "ERR",
		"NOPERM this user has no right": "NOPERM",
	} {
		assert.Equal(t, want, code(text), text)
	}
}

func TestServerThatAcceptsAndIsSilentDoesNotHoldUp(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	s := open(t, Options{Addresses: []string{listener.Addr().String()}})
	for range 3 {
		reply := within(t, s, 50*time.Millisecond, fleet.Request{Terms: fleet.Terms{Key: "k", Limit: 1, Window: time.Second, Burst: 1}, Want: 1})[0]
		require.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
	}
}

func TestRefusedConnectionIsOneLineThatSaysItOnce(t *testing.T) {
	t.Parallel()
	s, err := Connect(Options{Addresses: []string{"127.0.0.1:1"}, App: "shop"})
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	reply := exchange(t, s, fleet.Request{Terms: fleet.Terms{Key: "k", Limit: 1, Window: time.Second, Burst: 1}, Want: 1})[0]
	require.ErrorIs(t, reply.Err, fleet.ErrUnavailable)
	assert.NotContains(t, reply.Err.Error(), "\n")
	assert.Equal(t, 1, strings.Count(reply.Err.Error(), "connection refused"), "%v", reply.Err)
}

func TestClosedStoreSaysSo(t *testing.T) {
	t.Parallel()
	s, err := Connect(Options{Addresses: []string{"127.0.0.1:1"}, App: "shop"})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	reply := exchange(t, s, fleet.Request{Terms: fleet.Terms{Key: "k", Limit: 1, Window: time.Second, Burst: 1}, Want: 1})[0]
	require.ErrorIs(t, reply.Err, ErrClosed)
	assert.NotErrorIs(t, reply.Err, fleet.ErrUnavailable)
	_, err = s.Announce(t.Context(), fleet.Instance{ID: "a"}, true)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.Leave(t.Context(), "a"), ErrClosed)
}

func TestLongKeysAreHashed(t *testing.T) {
	t.Parallel()
	s := &Store{options: Options{App: "shop"}}
	key := func(name string, operation fleet.Operation) string {
		return s.key(&fleet.Request{Operation: operation, Terms: fleet.Terms{Key: name}})
	}
	assert.Equal(t, "{ps:shop:flow/a}", key("flow/a", fleet.LeaseBucket))
	assert.Equal(t, "{ps:shop:flow/a}", key("flow/a", fleet.AskThrottle))
	assert.Equal(t, "{ps:shop:flow/a}:w", key("flow/a", fleet.LeaseWindow))
	long := key(strings.Repeat("x", 1000), fleet.LeaseBucket)
	assert.Len(t, long, len("{ps:shop:#}")+32)
	assert.NotEqual(t, long, key(strings.Repeat("x", 1001), fleet.LeaseBucket))
}
