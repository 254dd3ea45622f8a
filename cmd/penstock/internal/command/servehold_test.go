package command_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
)

// postJSON asks a server.
func postJSON(t *testing.T, to, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

func TestServeHoldsCallsUntilProgramsReleaseThem(t *testing.T) {
	t.Parallel()
	directory := tree(t, map[string]string{"a.yaml": "isolation: [{resource: render, limit: 1, maxAge: 1m}]\n"})
	s := startServing(t, "--rules", directory, "--http", "127.0.0.1:0", "--hold")
	at := "http://" + s.address("http")
	status, answer := postJSON(t, at+"/hold", `{"resource": "render"}`)
	require.Equal(t, http.StatusOK, status, answer)
	var held struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(answer), &held))
	status, answer = postJSON(t, at+"/hold", `{"resource": "render"}`)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, answer, "temporary-reduced-capacity")
	assert.NotContains(t, s.log.String(), "not decided", "it was refused by a rule")
	for range 2 {
		status, _ = postJSON(t, at+"/release", `{"id": "`+held.ID+`"}`)
		assert.Equal(t, http.StatusNoContent, status)
	}
	status, _ = postJSON(t, at+"/hold", `{"resource": "render"}`)
	assert.Equal(t, http.StatusOK, status)
	status, _ = postJSON(t, at+"/hold", `{"resource": ""}`)
	assert.Equal(t, http.StatusBadRequest, status)
	metrics := s.get("/metrics")
	for _, line := range []string{
		`penstock_serve_requests_total{code="200",method="Hold"} 2`, `penstock_serve_requests_total{code="503",method="Hold"} 1`,
		`penstock_serve_requests_total{code="204",method="Release"} 2`,
	} {
		assert.Contains(t, metrics, line)
	}
}

func TestServeAnswersProxiesAtAllPathsUnlessItHolds(t *testing.T) {
	t.Parallel()
	directory := tree(t, map[string]string{
		"a.yaml": "flow: [{resource: render, limit: 1}]\n", "held/a.yaml": "isolation: [{resource: render, limit: 1, maxAge: 1m}]\n",
	})
	s := startServing(t, "--rules", filepath.Join(directory, "a.yaml"), "--http", "127.0.0.1:0")
	status, answer := postJSON(t, "http://"+s.address("http")+"/hold", `{"resource": "render"}`)
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, answer, "X-Forwarded-Uri")
	got := user{}.run(t, "serve", "--rules", directory, "--hold")
	assert.Contains(t, got.err, "--hold is served over HTTP: set --http")
	held := filepath.Join(directory, "held")
	assert.Equal(t, command.ExitDone, user{}.run(t, "validate", "--for", "hold", held).code)
	assert.Equal(t, command.ExitNo, user{}.run(t, "validate", "--for", "forward-auth", held).code)
}

func TestServeDoesNotWaitForASlowBodyWithTheRequestsOfOthers(t *testing.T) {
	t.Parallel()
	directory := tree(t, map[string]string{"a.yaml": "isolation: [{resource: render, limit: 1, maxAge: 1m}]\n"})
	s := startServing(t, "--rules", directory, "--http", "127.0.0.1:0", "--hold", "--max-requests", "1")
	slow, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.address("http"))
	require.NoError(t, err)
	defer func() { _ = slow.Close() }()
	require.NoError(t, slow.SetDeadline(time.Now().Add(2*time.Minute)))
	_, err = io.WriteString(slow, "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 50\r\nExpect: 100-continue\r\n\r\n")
	require.NoError(t, err)
	answers := bufio.NewReader(slow)
	line, err := answers.ReadString('\n') // the server reads the body
	require.NoError(t, err)
	require.Contains(t, line, "100 Continue")
	status, answer := postJSON(t, "http://"+s.address("http")+"/hold", `{"resource": "render"}`)
	assert.Equal(t, http.StatusOK, status, answer)
	_, err = answers.ReadString('\n')
	require.NoError(t, err)
	line, err = answers.ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, line, "408 Request Timeout")
}

func TestPythonHoldsAsThePageSays(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("NOT TESTED: python3 is not on the PATH")
	}
	directory := tree(t, map[string]string{"a.yaml": "isolation: [{resource: render, limit: 1, maxAge: 1m}]\n"})
	s := startServing(t, "--rules", directory, "--http", "127.0.0.1:0", "--hold")
	program := strings.ReplaceAll(recipe(t, "python"), "127.0.0.1:8082", s.address("http")) + `
with held("render", user="7"):
    try:
        with held("render"):
            print("two at once")
    except Refused as refused:
        print(refused.status)
with held("render"):
    print("again")
`
	out, err := exec.CommandContext(t.Context(), "python3", "-c", program).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "503\nagain\n", string(out))
}
