package serve

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestReportThatComesWhenItsStreamIsServedNoMoreOpensNothing(t *testing.T) {
	s := newQuotaServer(t, RLQSOptions{}, "flow: [{resource: orders, limit: 1000}]")
	served := &servedStream{service: s.service, wake: make(chan struct{}, 1)}
	served.leave(false)
	require.ErrorIs(t, served.take(report("shop", usage(1, 0, "resource", "orders"))), io.EOF)
	assert.Zero(t, s.service.Status())
}

func TestStreamWhoseDataPlaneReadsNothingEndsWithTheServer(t *testing.T) {
	s := newQuotaServer(t, RLQSOptions{}, "flow: [{match: '*', limit: 1000}]")
	stream := s.open()
	var buckets int
	for buckets < 5000 { // more than what fits in the windows
		message := report("shop")
		for range 500 {
			buckets++
			message.BucketQuotaUsages = append(message.BucketQuotaUsages, usage(1, 0, "resource", longName(buckets)))
		}
		require.NoError(t, stream.Send(message))
	}
	s.counts(1, buckets)
	s.divided(divideInterval)
	s.service.Close()
	require.Eventually(t, func() bool { return s.service.Status().Streams == 0 }, eventually, time.Millisecond)
	for {
		if _, err := stream.Recv(); err != nil {
			assert.Equal(t, codes.Unavailable, status.Code(err))
			return
		}
	}
}

// longName returns a name of its own, with several hundred bytes.
func longName(of int) string { return fmt.Sprintf("%0500d", of) }
