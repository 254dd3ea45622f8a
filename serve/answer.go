package serve

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// answer returns the answer to a request whose call with index refused was the first that was
// refused; -1 if all have passed.
func (s *RLS) answer(calls []descriptorCall, refused int) *ratelimit.RateLimitResponse {
	response := &ratelimit.RateLimitResponse{
		OverallCode: ratelimit.RateLimitResponse_OK,
		Statuses:    make([]*ratelimit.RateLimitResponse_DescriptorStatus, len(calls)),
	}
	nearest, remaining := 0, uint32(math.MaxUint32)
	for i := range calls {
		of := s.status(&calls[i])
		response.Statuses[i] = of
		if of.CurrentLimit != nil && of.LimitRemaining < remaining {
			nearest, remaining = i, of.LimitRemaining
		}
	}
	response.DynamicMetadata = metadataOf(calls, refused)
	if refused < 0 {
		if s.options.Fields.Always {
			var r reply
			s.answers.SetDecided(r.Header(), calls[nearest].resource, calls[nearest].origin, &calls[nearest].decision)
			response.ResponseHeadersToAdd = r.fields()
		}
		return response
	}
	c := &calls[refused]
	var r reply
	s.answers.WriteRefused(&r, c.decision.Refusal, c.origin, c.opts...)
	response.OverallCode = ratelimit.RateLimitResponse_OVER_LIMIT
	response.ResponseHeadersToAdd, response.RawBody = r.fields(), r.body
	return response
}

// status returns the status of one call: of the rule that refused it, or that is nearest to
// its end.
func (s *RLS) status(c *descriptorCall) *ratelimit.RateLimitResponse_DescriptorStatus {
	of := &ratelimit.RateLimitResponse_DescriptorStatus{Code: ratelimit.RateLimitResponse_OK}
	reset := time.Duration(0)
	if tightest := c.decision.Limit(); tightest != nil {
		if !tightest.Quota.Prepaid { // which has no unit
			of.CurrentLimit = limitOf(tightest.Name, tightest.Quota)
		}
		of.LimitRemaining = uint32(min(max(tightest.Quota.Remaining, 0), math.MaxUint32))
		reset = tightest.Quota.Reset
	}
	if c.decision.Refusal != nil {
		of.Code = ratelimit.RateLimitResponse_OVER_LIMIT
		if after := c.decision.RetryAfter; after > 0 && after != rule.Never {
			reset = after
		}
		if c.tokens <= 1 {
			of.LimitRemaining = 0 // others may have given back since
		}
	}
	if reset > 0 {
		of.DurationUntilReset = durationpb.New(reset)
	}
	return of
}

// unit is a unit of Envoy.
type unit struct {
	is   ratelimit.RateLimitResponse_RateLimit_Unit
	long time.Duration
}

// units returns the units, the longest first, that have one length.
func units() [5]unit {
	const day = 24 * time.Hour
	return [...]unit{
		{ratelimit.RateLimitResponse_RateLimit_WEEK, 7 * day},
		{ratelimit.RateLimitResponse_RateLimit_DAY, day},
		{ratelimit.RateLimitResponse_RateLimit_HOUR, time.Hour},
		{ratelimit.RateLimitResponse_RateLimit_MINUTE, time.Minute},
		{ratelimit.RateLimitResponse_RateLimit_SECOND, time.Second},
	}
}

// limitOf returns a limit as Envoy shows it: so many requests in a whole number of units. A
// window that is no whole number of seconds is shown as the nearest rate per second, or per
// minute if that is less than 1.
func limitOf(name string, q *rule.Quota) *ratelimit.RateLimitResponse_RateLimit {
	limit, window := q.Limit, q.Window
	if window <= 0 || window%time.Second != 0 {
		rate := limit / max(window, time.Nanosecond).Seconds()
		limit, window = rate, time.Second
		if rate < 1 {
			limit, window = rate*60, time.Minute
		}
	}
	shown := &ratelimit.RateLimitResponse_RateLimit{Name: name, RequestsPerUnit: whole(limit)}
	for _, u := range units() {
		if window%u.long == 0 {
			shown.Unit = u.is
			if count := window / u.long; count > 1 {
				shown.UnitMultiplier = wrapperspb.UInt32(uint32(min(count, math.MaxUint32)))
			}
			break
		}
	}
	return shown
}

// whole returns a limit as the nearest whole number.
func whole(limit float64) uint32 {
	return uint32(min(max(math.Round(limit), 0), math.MaxUint32))
}

// metadataOf returns what a proxy may log: which rule refused a request, and which shadow rules
// would have; nil if there are none.
func metadataOf(calls []descriptorCall, refused int) *structpb.Struct {
	fields := map[string]*structpb.Value{}
	if refused >= 0 {
		block := calls[refused].decision.Refusal
		maps.Copy(fields, refusalFields(block))
		fields["descriptor"] = structpb.NewNumberValue(float64(refused))
	}
	var shadows []*structpb.Value
	for i := range calls {
		if would := calls[i].guard.WouldBlock(); would != nil {
			of := refusalFields(would)
			of["descriptor"] = structpb.NewNumberValue(float64(i))
			shadows = append(shadows, structpb.NewStructValue(&structpb.Struct{Fields: of}))
		}
	}
	if shadows != nil {
		fields["shadows"] = structpb.NewListValue(&structpb.ListValue{Values: shadows})
	}
	if len(fields) == 0 {
		return nil
	}
	return &structpb.Struct{Fields: fields}
}

// refusalFields returns what refused, for metadata.
func refusalFields(block *core.BlockError) map[string]*structpb.Value {
	return map[string]*structpb.Value{
		"reason":   structpb.NewStringValue(block.Reason.String()),
		"resource": structpb.NewStringValue(strings.ToValidUTF8(block.Resource, "\uFFFD")),
		"kind":     structpb.NewStringValue(string(block.Kind)),
		"rule":     structpb.NewStringValue(block.Rule),
	}
}

// reply is a response in memory. The zero value is ready to use.
type reply struct {
	header http.Header
	status int
	body   []byte
}

func (r *reply) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

func (r *reply) WriteHeader(status int) { r.status = status }

func (r *reply) Write(p []byte) (int, error) {
	r.body = append(r.body, p...)
	return len(p), nil
}

// fields returns the header for Envoy, in the order of names.
func (r *reply) fields() (list []*corev3.HeaderValue) {
	for _, name := range slices.Sorted(maps.Keys(r.header)) {
		for _, value := range r.header[name] {
			list = append(list, &corev3.HeaderValue{Key: strings.ToLower(name), Value: value})
		}
	}
	return list
}
