//go:build unix

package consulsource_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	consulsource "github.com/penstock-go/penstock/datasource/consul"
	"github.com/penstock-go/penstock/datasource/sourcetest"
)

func TestSourceOfARealServerKeepsThePromisesOfSources(t *testing.T) {
	program, err := exec.LookPath("consul")
	if err != nil {
		t.Skip("SKIPPED, no real server: there is no program consul on the PATH. The tests with a stand-in ran.")
	}
	first := startAgent(t, program)
	h := harness(func(t *testing.T) sourcetest.Store {
		t.Helper()
		first.wipe(t)
		return &realStore{t: t, program: program, agent: first, network: sourcetest.NewProxy(t, first.address)}
	})
	h.Lacks[sourcetest.HiddenChanges] = "a real server tells of every change"
	sourcetest.Run(t, h)
}

// agent is a real Consul server that asks for tokens. It ends with its test.
type agent struct{ address string }

func startAgent(t *testing.T, program string) *agent {
	t.Helper()
	dir, ports := t.TempDir(), freePorts(t, 3)
	config := fmt.Sprintf(`{
		"bind_addr": "127.0.0.1", "client_addr": "127.0.0.1", "disable_update_check": true, "log_level": "warn",
		"ports": {"http": %d, "server": %d, "serf_lan": %d, "serf_wan": -1, "dns": -1, "grpc": -1, "grpc_tls": -1},
		"acl": {"enabled": true, "default_policy": "deny", "tokens": {"initial_management": %q}}
	}`, ports[0], ports[1], ports[2], token)
	path := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	var log bytes.Buffer
	process := exec.Command(program, "agent", "-dev", "-config-file", path)
	process.Stdout, process.Stderr = &log, &log
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	a := &agent{address: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	require.Eventually(t, func() bool {
		status, err := a.do(http.MethodPut, "ready", "")
		return err == nil && status == http.StatusOK
	}, sourcetest.Patience, 50*time.Millisecond, "the server does not start")
	return a
}

func freePorts(t *testing.T, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = listener.Close() }() // after all have been found
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports
}

// do sends a request about a key on a connection of its own.
func (a *agent) do(method, key, value string) (status int, err error) {
	parts := strings.Split(key, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	address := "http://" + a.address + "/v1/kv/" + strings.Join(parts, "/")
	request, err := http.NewRequest(method, address, strings.NewReader(value))
	if err != nil {
		return 0, err
	}
	if method == http.MethodDelete && key == prefix {
		request.URL.RawQuery = "recurse"
	}
	request.Close = true
	request.Header.Set("X-Consul-Token", token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (a *agent) must(t *testing.T, method, key, value string) {
	t.Helper()
	status, err := a.do(method, key, value)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
}

// api sends a request about access control.
func (a *agent) api(t *testing.T, path, body string) {
	t.Helper()
	a.send(t, http.MethodPut, path, body, func([]byte) {})
}

// read calls do with an answer about access control.
func (a *agent) read(t *testing.T, path string, do func(struct{ ID string })) {
	t.Helper()
	a.send(t, http.MethodGet, path, "", func(text []byte) {
		var answer struct{ ID string }
		require.NoError(t, json.Unmarshal(text, &answer))
		do(answer)
	})
}

func (a *agent) send(t *testing.T, method, path, body string, do func([]byte)) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.address+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Close = true
	request.Header.Set("X-Consul-Token", token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", text)
	do(text)
}

func (a *agent) wipe(t *testing.T) {
	t.Helper()
	a.must(t, http.MethodDelete, prefix, "")
}

// realStore is a real server behind a network that can be cut.
type realStore struct {
	t       *testing.T
	program string
	agent   *agent
	network *sourcetest.Proxy
}

func (s *realStore) address() string { return s.network.Address() }
func (s *realStore) Put(name, content string) {
	s.agent.must(s.t, http.MethodPut, prefix+name, content)
}

func (s *realStore) Delete(name string) { s.agent.must(s.t, http.MethodDelete, prefix+name, "") }
func (s *realStore) Stop()              { s.network.Cut() }
func (s *realStore) Start()             { s.network.Restore() }
func (s *realStore) CutAfter(bytes int) { s.network.ResetAfter(bytes) }

// Replace implements [sourcetest.Replacer]: another server takes over the address.
func (s *realStore) Replace() {
	s.agent = startAgent(s.t, s.program)
	s.network.ForwardTo(s.agent.address)
}

// TestRealServerReportsWhatATokenMayNotRead uses a token that may read one of two keys, as
// if its policy had been changed.
func TestRealServerReportsWhatATokenMayNotRead(t *testing.T) {
	program, err := exec.LookPath("consul")
	if err != nil {
		t.Skip("SKIPPED, no real server: there is no program consul on the PATH. The tests with a stand-in ran.")
	}
	server := startAgent(t, program)
	server.must(t, http.MethodPut, prefix+"a.yaml", "1")
	server.must(t, http.MethodPut, prefix+"b.yaml", "1")
	const secret = "8a0b5f5c-2f0e-4b3c-9f53-111111111111"
	server.api(t, "/v1/acl/policy", `{"Name": "some", "Rules": "key_prefix \"penstock/shop/\" { policy = \"read\" }"}`)
	server.api(t, "/v1/acl/token", `{"SecretID": "`+secret+`", "Policies": [{"Name": "some"}]}`)
	opts := consulsource.Options{WatchTimeout: 100 * time.Millisecond, Token: func() (string, error) { return secret, nil }}
	r, _ := follow(t, server.address, opts)
	want := map[string]string{"a.yaml": "1", "b.yaml": "1"}
	r.AwaitDocuments(t, want)
	anonymous, _ := follow(t, server.address, consulsource.Options{})
	anonymous.AwaitError(t, contains("without a token"))

	var id string
	server.read(t, "/v1/acl/policy/name/some", func(policy struct{ ID string }) { id = policy.ID })
	server.api(t, "/v1/acl/policy/"+id, `{"ID": "`+id+`", "Name": "some", "Rules": "key \"penstock/shop/a.yaml\" { policy = \"read\" }"}`)
	r.AwaitError(t, contains("may not read all keys"))
	require.Equal(t, want, r.Documents())
}
