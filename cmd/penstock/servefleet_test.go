//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/fleet/redis/redistest"
)

// rlsServer is a penstock serve in a process of its own.
type rlsServer struct {
	*process
	client rls.RateLimitServiceClient
}

func startRLS(t *testing.T, args ...string) *rlsServer {
	t.Helper()
	s := &rlsServer{process: start(t, append([]string{"serve", "--grpc", "127.0.0.1:0", "--admin", ""}, args...)...)}
	var at []string
	require.Eventually(t, func() bool {
		at = regexp.MustCompile(`for=grpc address=(\S+)`).FindStringSubmatch(s.err.String())
		return at != nil
	}, eventTimeout, 5*time.Millisecond, "it does not serve")
	conn, err := grpc.NewClient(at[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	s.client = rls.NewRateLimitServiceClient(conn)
	return s
}

// passes asks about a call of "orders", and says whether it passes. ok is false if the server is gone.
func (s *rlsServer) passes() (passes, ok bool) {
	answer, err := s.client.ShouldRateLimit(s.t.Context(), &rls.RateLimitRequest{
		Domain:      "shop",
		Descriptors: []*common.RateLimitDescriptor{{Entries: []*common.RateLimitDescriptor_Entry{{Key: "generic_key", Value: "orders"}}}},
	})
	if status.Code(err) == codes.Unavailable {
		return false, false
	}
	require.NoError(s.t, err)
	return answer.GetOverallCode() == rls.RateLimitResponse_OK, true
}

// TestServersOfAFleetHoldALimitThoughOneIsKilled kills one of three servers that count in one Redis.
// What it had leased is lost, and nothing passes twice. How much passes beside depends on how busy the
// machine is: what Redis does not answer in time is refused.
func TestServersOfAFleetHoldALimitThoughOneIsKilled(t *testing.T) {
	store := redistest.Any(t)
	const limit, before, after = 300, 150, 20
	for _, mode := range []string{"ask", "lease"} {
		directory := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(directory, "a.yaml"), []byte(
			"flow: [{resource: orders, limit: 300, window: 24h, algorithm: tokenBucket, scope: fleet,"+
				" fleet: {mode: "+mode+", onOutage: closed}}]\n"), 0o600))
		app := mode + strconv.FormatInt(time.Now().UnixNano(), 36) // tests may share a server
		var servers []*rlsServer
		for _, name := range []string{"one", "two", "three"} {
			servers = append(servers, startRLS(t, "--rules", directory, "--instance", name,
				"--fleet-redis", store.Addr(), "--fleet-app", app))
		}
		passed, refused := 0, 0
		for i := 0; passed < before+after || refused < 20*len(servers); i++ {
			if passed == before && len(servers) == 3 {
				killed := servers[1]
				require.NoError(t, killed.cmd.Process.Kill())
				<-killed.ended
				_, ok := killed.passes()
				assert.False(t, ok, "a server that is gone is unavailable")
				servers = []*rlsServer{servers[0], servers[2]}
			}
			passes, ok := servers[i%len(servers)].passes()
			require.True(t, ok)
			if refused++; passes {
				passed, refused = passed+1, 0
			}
		}
		t.Logf("mode %s: %d of %d", mode, passed, limit)
		assert.LessOrEqual(t, passed, limit+1, mode) // a token flows in every five minutes
	}
}
