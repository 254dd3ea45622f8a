package penstockgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgrpc "github.com/penstock-go/penstock/adapters/grpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func refusal(reason rule.Reason) error {
	return fmt.Errorf("query: %w", &core.BlockError{Resource: "db", Rule: "pool", Reason: reason})
}

func TestOutcomeOfACallForRules(t *testing.T) {
	for _, test := range []struct {
		name       string
		err        error // of the handler
		want       adaptertest.Outcome
		wantClient adaptertest.Outcome // of the same call, guarded at the client
	}{
		{"call that the handler cancelled", context.Canceled, adaptertest.Ignored, ""},
		{"refusal, rate limited", penstockgrpc.Error(refusal(rule.RateLimited)), adaptertest.Ignored, adaptertest.Succeeded},
		{"refusal, overloaded", penstockgrpc.Error(refusal(rule.Overloaded)), adaptertest.Ignored, adaptertest.Failed},
		{"refusal, denied", penstockgrpc.Error(refusal(rule.Denied)), adaptertest.Ignored, adaptertest.Succeeded},
		{"refusal without a status", refusal(rule.Unavailable), adaptertest.Ignored, adaptertest.Failed},
	} {
		everywhere(t, func(t *testing.T, at side, s shape) {
			want := test.want
			if at == atClient {
				want = test.wantClient
			}
			if want == "" {
				return
			}
			t.Run(test.name, func(t *testing.T) {
				p := new(adaptertest.Probe)
				engine := p.NewEngine(t)
				client := guard(t, at, engine, penstockgrpc.Options{}, service{finish: func(context.Context) error {
					return test.err
				}}, recovered(func(any) {})...)
				_ = s.call(t.Context(), client)
				requireEnded(t, engine, s.method)
				assert.Equal(t, []adaptertest.Outcome{want}, p.Outcomes())
			})
		})
	}
}

func TestCallThatMetItsDeadlineHasFailedEvenWithARefusal(t *testing.T) {
	late := fmt.Errorf("%w: %w", status.Error(codes.DeadlineExceeded, ""), refusal(rule.Overloaded))
	assert.True(t, penstockgrpc.IsFailure(late))
	assert.False(t, penstockgrpc.IsFailure(refusal(rule.Overloaded)))
	assert.False(t, penstockgrpc.IsFailure(penstockgrpc.Error(refusal(rule.Unavailable))))
}

func TestFailureOptionDecidesAboutRefusals(t *testing.T) {
	p := new(adaptertest.Probe)
	engine := p.NewEngine(t)
	options := penstockgrpc.Options{Failure: func(err error) bool { return errors.Is(err, core.ErrBlocked) }}
	s := shapes()[0]
	client := guard(t, atServer, engine, options, service{finish: func(context.Context) error { return refusal(rule.RateLimited) }})
	require.Error(t, s.call(t.Context(), client))
	requireEnded(t, engine, s.method)
	assert.Equal(t, []adaptertest.Outcome{adaptertest.Failed}, p.Outcomes())
}

func TestRefusalIsAnsweredByItsReason(t *testing.T) {
	for _, test := range []struct {
		reason  rule.Reason
		code    codes.Code
		details []any
	}{
		{rule.RateLimited, codes.ResourceExhausted, []any{&errdetails.QuotaFailure{}, &errdetails.RetryInfo{}}},
		{rule.Overloaded, codes.Unavailable, []any{&errdetails.RetryInfo{}}},
		{rule.Unavailable, codes.Unavailable, []any{&errdetails.RetryInfo{}}},
		{rule.Injected, codes.Unavailable, []any{&errdetails.RetryInfo{}}},
		{rule.Denied, codes.PermissionDenied, nil},
	} {
		everywhere(t, func(t *testing.T, at side, s shape) {
			t.Run(test.reason.String(), func(t *testing.T) {
				p := &adaptertest.Probe{Reason: test.reason, RefuseAfter: 1500 * time.Millisecond}
				_, outside := refuse(t, at, s, p.NewEngine(t), penstockgrpc.Options{ShowRules: true})
				answer := status.Convert(outside)
				assert.Equal(t, test.code, answer.Code())
				require.Len(t, answer.Details(), len(test.details))
				for i, detail := range answer.Details() {
					assert.IsType(t, test.details[i], detail)
				}
			})
		})
	}
}
