package rpc_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestCodesThatBlameTheServer(t *testing.T) {
	blamed := []rpc.Code{rpc.Unknown, rpc.DeadlineExceeded, rpc.Unimplemented, rpc.Internal, rpc.Unavailable, rpc.DataLoss}
	for code := rpc.OK; code <= rpc.Unauthenticated; code++ {
		assert.Equal(t, slices.Contains(blamed, code), code.BlamesServer(), code)
	}
	assert.True(t, rpc.Code(99).BlamesServer())
	assert.Equal(t, "99", rpc.Code(99).String())
}

func TestRuleOrReasonDecidesOnTheCode(t *testing.T) {
	for reason, want := range map[rule.Reason]rpc.Code{
		rule.RateLimited: rpc.ResourceExhausted, rule.Overloaded: rpc.Unavailable, rule.Unavailable: rpc.Unavailable,
		rule.Injected: rpc.Unavailable, rule.Denied: rpc.PermissionDenied,
	} {
		assert.Equal(t, want, rpc.RefusalCode(&core.BlockError{Reason: reason}))
		for code := rpc.Canceled; code <= rpc.Unauthenticated; code++ {
			assert.Equal(t, code, rpc.RefusalCode(&core.BlockError{Reason: reason, Answer: rule.Answer{GRPC: code.String()}}))
		}
		for _, name := range []string{"OK", "NO_CODE"} { // neither refuses a call
			assert.Equal(t, want, rpc.RefusalCode(&core.BlockError{Reason: reason, Answer: rule.Answer{GRPC: name}}))
		}
	}
}

func TestWaitIsKnown(t *testing.T) {
	for _, row := range []struct {
		block core.BlockError
		known bool
		text  string
	}{
		{core.BlockError{RetryAfter: time.Second}, true, "penstock: the call was refused, retry after 1s"},
		{core.BlockError{}, false, "penstock: the call was refused"},
		{core.BlockError{RetryAfter: rule.Never}, false, "penstock: the call was refused"},
		{core.BlockError{RetryAfter: time.Second, Reason: rule.Denied}, false, "penstock: the call was refused"},
	} {
		_, known := rpc.RetryAfter(&row.block)
		assert.Equal(t, row.known, known)
		assert.Equal(t, row.text, rpc.HiddenMessage(&row.block))
	}
}

func TestPushback(t *testing.T) {
	for _, row := range []struct {
		values  []string
		after   time.Duration
		noRetry bool
	}{
		{nil, 0, false},
		{[]string{"0"}, 0, false},
		{[]string{"250"}, 250 * time.Millisecond, false},
		{[]string{"-1"}, 0, true},
		{[]string{"soon"}, 0, true},
		{[]string{"99999999999"}, 0, true},
		{[]string{"1", "1"}, 0, true},
	} {
		after, noRetry := rpc.Pushback(row.values)
		assert.Equal(t, row.after, after, row.values)
		assert.Equal(t, row.noRetry, noRetry, row.values)
	}
}

func TestOutcome(t *testing.T) {
	const had = time.Second // until the deadline; the slack is 50 ms
	for name, row := range map[string]struct {
		cancelAt, endAt  time.Duration // from the begin of the call; cancelAt 0 is never
		code             rpc.Code
		inbound, outward rpc.Code
	}{
		"reply":                        {0, had / 2, rpc.OK, rpc.OK, rpc.OK},
		"error":                        {0, had / 2, rpc.Internal, rpc.Internal, rpc.Internal},
		"cancelled by who is called":   {0, had / 2, rpc.Canceled, rpc.Canceled, rpc.Canceled},
		"cancelled near the deadline":  {0, had - 40*time.Millisecond, rpc.Canceled, rpc.DeadlineExceeded, rpc.DeadlineExceeded},
		"reply to who has left":        {had / 4, had / 2, rpc.OK, rpc.Canceled, rpc.OK},
		"error of who has left":        {had / 4, had / 2, rpc.Internal, rpc.Canceled, rpc.Canceled},
		"left just before the end":     {had - 40*time.Millisecond, had - 30*time.Millisecond, rpc.Internal, rpc.DeadlineExceeded, rpc.DeadlineExceeded},
		"reply after the deadline":     {0, had + 1, rpc.OK, rpc.DeadlineExceeded, rpc.OK},
		"error after the deadline":     {0, had + 1, rpc.NotFound, rpc.DeadlineExceeded, rpc.DeadlineExceeded},
		"cancelled after the deadline": {0, had + 1, rpc.Canceled, rpc.DeadlineExceeded, rpc.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), had)
				defer cancel()
				from := rpc.CallerOf(ctx)
				assert.Equal(t, ctx, from.Context())
				if row.cancelAt > 0 {
					time.AfterFunc(row.cancelAt, cancel)
				}
				time.Sleep(row.endAt)
				synctest.Wait()
				assert.Equal(t, row.inbound, from.Outcome(row.code, true), "server")
				assert.Equal(t, row.outward, from.Outcome(row.code, false), "client")
			})
		})
	}
}
