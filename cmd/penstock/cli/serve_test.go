package cli_test

import (
	"bytes"
	"context"
	"regexp"
	"sync"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/penstock-go/penstock/cmd/penstock/cli"
	"github.com/penstock-go/penstock/rule"
)

// notes is a log that several goroutines write and read.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

func TestServeDecidesByTheKindsOfTheProgram(t *testing.T) {
	path := write(t, "shop.yaml", "deny: [{name: no-eve, resource: orders, user: eve}]\n")
	var log notes
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, cli.Config{
			Args: []string{"serve", "--rules", path, "--grpc", "127.0.0.1:0", "--admin", ""}, Err: &log, Kinds: []rule.Definition{denyKind()},
		})
	}()
	defer func() {
		cancel()
		assert.Zero(t, <-ended, log.String())
	}()
	var at []string
	require.Eventually(t, func() bool {
		at = regexp.MustCompile(`for=grpc address=(\S+)`).FindStringSubmatch(log.String())
		return at != nil
	}, time.Minute, 5*time.Millisecond)
	conn, err := grpc.NewClient(at[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	for user, want := range map[string]rls.RateLimitResponse_Code{"eve": rls.RateLimitResponse_OVER_LIMIT, "ann": rls.RateLimitResponse_OK} {
		answer, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), &rls.RateLimitRequest{
			Domain: "shop",
			Descriptors: []*common.RateLimitDescriptor{{
				Entries: []*common.RateLimitDescriptor_Entry{{Key: "resource", Value: "orders"}, {Key: "user", Value: user}},
			}},
		})
		require.NoError(t, err)
		assert.Equal(t, want, answer.GetOverallCode(), user)
	}
	out, code := penstock{t: t}.try("validate", "--for", "rls", path)
	assert.Zero(t, code, out)
	assert.Contains(t, out, "no mistakes")
}
