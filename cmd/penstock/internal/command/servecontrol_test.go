package command_test

import (
	"net/http"
	"path/filepath"
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/penstock-go/penstock/cmd/penstock/internal/command"
)

func TestOperatorsWithTheTokenActOnTheRulesOfServe(t *testing.T) {
	t.Parallel()
	directory := tree(t, map[string]string{
		"rules/a.yaml": "flow: [{name: credit, resource: ask, algorithm: prepaid, limit: 0}]\n",
		"token":        "secret\n",
		"wrong":        "guess\n",
	})
	at := func(name string) string { return filepath.Join(directory, name) }
	s := startServing(t, "--rules", at("rules"), "--control-token-file", at("token"))
	conn := s.dial(insecure.NewCredentials())
	asked := func() string {
		code, err := shouldLimit(t.Context(), conn, "shop", "ask")
		require.NoError(t, err)
		return code.String()
	}
	add := func(token string) answer {
		return user{}.run(t, "quota", "add", "--engine", s.address("admin"), "--token-file", at(token), "--rule", "credit", "1")
	}
	assert.Equal(t, rls.RateLimitResponse_OVER_LIMIT.String(), asked())
	got := add("wrong")
	assert.NotEqual(t, command.ExitDone, got.code)
	assert.Contains(t, got.err, "401")
	assert.Equal(t, rls.RateLimitResponse_OVER_LIMIT.String(), asked())
	got = add("token")
	assert.Equal(t, command.ExitDone, got.code, got.err)
	assert.Equal(t, rls.RateLimitResponse_OK.String(), asked())
	assert.Equal(t, rls.RateLimitResponse_OVER_LIMIT.String(), asked(), "there was one token")
}

func TestNobodyActsOnTheRulesOfServeWithoutAToken(t *testing.T) {
	t.Parallel()
	directory := tree(t, map[string]string{"a.yaml": "flow: [{name: credit, resource: ask, algorithm: prepaid, limit: 0}]\n"})
	s := startServing(t, "--rules", directory)
	s.dial(insecure.NewCredentials())
	got := user{}.run(t, "quota", "add", "--engine", s.address("admin"), "--rule", "credit", "1")
	assert.NotEqual(t, command.ExitDone, got.code)
	assert.Contains(t, got.err, "405 Method Not Allowed")
	assert.Contains(t, got.err, "does it serve the control handler")
}

func TestServeTellsNothingOnLoopbackToPagesOfOtherHosts(t *testing.T) {
	t.Parallel()
	s := startServing(t, "--rules", tree(t, map[string]string{"a.yaml": "flow: []\n"}))
	s.dial(insecure.NewCredentials())
	for host, want := range map[string]int{"evil.example": http.StatusForbidden, "localhost:6060": http.StatusOK, "": http.StatusOK} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address("admin")+"/status", http.NoBody)
		require.NoError(t, err)
		request.Host = host // "": the address
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, want, response.StatusCode, host)
	}
}
