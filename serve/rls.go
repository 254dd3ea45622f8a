package serve

import (
	"context"
	"errors"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// RLS is the rate limit service of Envoy, envoy.service.ratelimit.v3.RateLimitService. Make it
// with [NewRLS]. It is safe for concurrent use.
//
// Each descriptor of a request is a call, as documents say of its domain, see [rules.Domain]: else the
// entry "resource" or "generic_key" names the resource, and all entries are attributes by their keys. The entry "remote_address" is the
// attributes "ip" and "ipPrefix" too. A call takes as many tokens as hits_addend says, that of
// the descriptor before that of the request; one that says 0 takes none and asks whether a call
// of one token would pass. Calls never wait.
//
// A descriptor with is_negative_hits gives back so many tokens, which calls like it took before,
// once all others have passed: see [core.Engine.Refund]. It is never refused.
//
// A call that has passed rules which count the calls under way is under way until a request has a
// descriptor with the same entries and is_negative_hits: that ends the one that has passed first, and
// gives no tokens back. A call that nobody ends is taken for ended at the maxAge of its rules.
//
// A request passes only if all of its descriptors do. If one is refused, the others give back
// what they took, and are not counted, except for what a throttle lets pass: its next call is as
// far away as if the request had passed.
//
// An answer has the status of each descriptor, by the rule that is nearest to its end, and the
// response header fields and body that the HTTP adapter would write. In the dynamic metadata
// stands which rule refused and why, and which shadow rule would have. A descriptor that no rule
// is for passes. The limit that a descriptor overrides is ignored: rules have the limits.
//
// What cannot be decided ends with an error. Envoy lets requests pass then, and counts that, unless its
// failure_mode_deny is set: INVALID_ARGUMENT for a request without a domain, without descriptors or with
// too many, NOT_FOUND for an unknown domain, UNAVAILABLE once the engine is closed.
type RLS struct {
	ratelimit.UnimplementedRateLimitServiceServer
	engine    *core.Engine
	options   RLSOptions
	holds     holds
	answers   *nethttp.Answers
	clients   *clientip.Resolver
	attribute func(*descriptorCall, string) rule.Attribute // a method
}

// NewRLS returns the rate limit service that decides by the rules of the engine.
func NewRLS(engine *core.Engine, options RLSOptions) *RLS {
	options.setDefaults()
	s := &RLS{
		engine: engine, options: options, answers: nethttp.NewAnswers(engine, options.Fields, options.Spread),
		clients: clientip.New(clientip.Options{IPv6Prefix: options.IPv6Prefix}),
	}
	s.attribute, s.holds.most = s.attributeOf, options.MaxHolds
	return s
}

// ShouldRateLimit decides on a request.
func (s *RLS) ShouldRateLimit(ctx context.Context, request *ratelimit.RateLimitRequest) (*ratelimit.RateLimitResponse, error) {
	domain, err := s.domainOf(request)
	if err != nil {
		return nil, err
	}
	calls := make([]descriptorCall, len(request.GetDescriptors()))
	defer func() {
		for i := range calls {
			calls[i].exit()
		}
	}()
	refused := -1
	for i, d := range request.GetDescriptors() {
		calls[i].read(s, &domain, d, request.GetHitsAddend())
		if err := calls[i].enter(ctx); err != nil {
			giveBack(calls[:i])
			return nil, statusOf(err)
		}
		if calls[i].decision.Refusal != nil && refused < 0 {
			refused = i
		}
	}
	if refused >= 0 {
		giveBack(calls)
	} else if err := s.take(calls); err != nil {
		giveBack(calls)
		return nil, err
	}
	return s.answer(calls, refused), nil
}

// take does what a request that has passed asks for: it holds calls under way, takes what their hits are beyond
// what is left where the domain says so, and gives back what calls with negative hits say. An error is that there are too many of the former, or of the latter.
func (s *RLS) take(calls []descriptorCall) error {
	for i := range calls {
		if err := calls[i].hold(); err != nil {
			return err
		}
	}
	changed := false
	for i := range calls {
		changed = changed || calls[i].refunds || calls[i].settles
		if err := calls[i].refund(); err != nil {
			return err
		}
		calls[i].settle()
	}
	for i := range calls {
		if changed {
			calls[i].readLimits()
		}
	}
	return nil
}

// giveBack gives back what calls took.
func giveBack(calls []descriptorCall) {
	for i := range calls {
		calls[i].giveBack()
	}
}

// domainOf returns the domain of a request, or what is wrong with that.
func (s *RLS) domainOf(request *ratelimit.RateLimitRequest) (domain rules.Domain, err error) {
	name, descriptors := request.GetDomain(), request.GetDescriptors()
	switch {
	case name == "":
		return domain, status.Error(codes.InvalidArgument, "the request has no domain")
	case len(descriptors) == 0:
		return domain, status.Error(codes.InvalidArgument, "the request has no descriptors")
	case len(descriptors) > s.options.MaxDescriptors:
		return domain, status.Errorf(codes.InvalidArgument, "the request has %d descriptors: at most %d are served",
			len(descriptors), s.options.MaxDescriptors)
	}
	domain, served := domainOf(s.engine, name)
	if !served {
		return domain, status.Errorf(codes.NotFound, "the domain %s is not served", rule.Quote(name))
	}
	for i, d := range descriptors {
		switch count := len(d.GetEntries()); {
		case count == 0:
			return domain, status.Errorf(codes.InvalidArgument, "descriptor %d has no entries", i)
		case count > s.options.MaxEntries:
			return domain, status.Errorf(codes.InvalidArgument, "descriptor %d has %d entries: at most %d are served",
				i, count, s.options.MaxEntries)
		}
	}
	return domain, nil
}

// statusOf returns an error of Entry other than a refusal as that of a gRPC call.
func statusOf(err error) error {
	switch {
	case errors.Is(err, core.ErrClosed):
		return status.Error(codes.Unavailable, "the server is shutting down")
	case errors.Is(err, core.ErrInvalid):
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return status.FromContextError(err).Err()
}
