package peer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/hotspot"
	"github.com/go-chi/httprate"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// ValueLimit is a limit for each value.
type ValueLimit struct {
	Limit  int           // calls in a window
	Window time.Duration // that the limit is for
	Places int           // values that have a state of their own, for the libraries that have a bound
}

// ValueTry makes one call with a value. It returns false when the call was refused. It is
// safe for concurrent use.
type ValueTry func(value string) bool

// ValueLimiter is what a library has to limit the calls of each value of an attribute.
type ValueLimiter struct {
	Name string // as in the tables

	// New returns a new limiter. That of Sentinel replaces the one before; see [Reset].
	New func(ValueLimit) (ValueTry, error)
}

// ValueLimiters returns the limiters of values. Those of Penstock and Sentinel guard a
// call; the others only decide.
func ValueLimiters() []ValueLimiter {
	return []ValueLimiter{
		{Baseline, penstockValues},
		{Resolved, penstockValuesResolved(clock.System)},
		{Fastest, penstockValuesResolved(coarseClock)},
		{sentinelName, sentinelValues},
		{"httprate", httprateValues},
		{"ulule", ululeValues},
		{"map-of-rate", rateValues},
	}
}

// RateForAll is rate.Allow with one limit for all values. It limits no value, but is what those
// that do are compared with, in the same loop: to choose the value of a call takes time too.
func RateForAll() ValueLimiter {
	return ValueLimiter{Yardstick, func(of ValueLimit) (ValueTry, error) {
		l := rate.NewLimiter(rate.Limit(float64(of.Limit)/of.Window.Seconds()), of.Limit)
		return func(string) bool { return l.Allow() }, nil
	}}
}

func penstockValues(of ValueLimit) (ValueTry, error) {
	engine, err := asUsual().under(hotParamRules(of))
	return func(value string) bool {
		guard, err := engine.Entry(context.Background(), resource, core.String("user", value))
		if err != nil {
			return false
		}
		guard.Exit()
		return true
	}, err
}

// penstockValuesResolved calls a resource that was looked up once.
func penstockValuesResolved(clock func() clock.Clock) func(ValueLimit) (ValueTry, error) {
	return func(of ValueLimit) (ValueTry, error) {
		engine := newEngine(Settings{Clock: clock()})
		handle := engine.Resource(resource)
		return func(value string) bool {
			guard, err := handle.Entry(context.Background(), core.String("user", value))
			if err != nil {
				return false
			}
			guard.Exit()
			return true
		}, engine.Load(hotParamRules(of))
	}
}

func hotParamRules(of ValueLimit) rules.Set {
	return rules.Set{HotParam: []hotparam.Rule{{
		Resource: resource, Param: rule.StringsOf("user"),
		Limit: float64(of.Limit), Window: of.Window, MaxValues: of.Places,
	}}}
}

func sentinelValues(of ValueLimit) (ValueTry, error) {
	_, err := hotspot.LoadRules([]*hotspot.Rule{{
		Resource: resource, MetricType: hotspot.QPS, ControlBehavior: hotspot.Reject, ParamIndex: 0,
		Threshold: int64(of.Limit), DurationInSec: int64(max(1, of.Window/time.Second)), ParamsMaxCapacity: int64(of.Places),
	}})
	return func(value string) bool {
		entry, blocked := api.Entry(resource, api.WithArgs(value))
		if blocked != nil {
			return false
		}
		entry.Exit()
		return true
	}, err
}

// httprateValues calls the limiter of the middleware, without a server around it.
func httprateValues(of ValueLimit) (ValueTry, error) {
	limiter := httprate.NewRateLimiter(of.Limit, of.Window, httprate.WithResponseHeaders(httprate.ResponseHeaders{}))
	request, err := http.NewRequest(http.MethodGet, "/", http.NoBody)
	return func(value string) bool { return !limiter.OnLimit(nil, request, value) }, err
}

func ululeValues(of ValueLimit) (ValueTry, error) {
	l := limiter.New(memory.NewStore(), limiter.Rate{Period: of.Window, Limit: int64(of.Limit)})
	return func(value string) bool {
		result, err := l.Get(context.Background(), value)
		return err == nil && !result.Reached
	}, nil
}

// rateValues is what services write themselves: it has no bound.
func rateValues(of ValueLimit) (ValueTry, error) {
	var mu sync.Mutex
	limiters := make(map[string]*rate.Limiter)
	perSecond := rate.Limit(float64(of.Limit) / of.Window.Seconds())
	return func(value string) bool {
		mu.Lock()
		l := limiters[value]
		if l == nil {
			l = rate.NewLimiter(perSecond, of.Limit)
			limiters[value] = l
		}
		mu.Unlock()
		return l.Allow()
	}, nil
}

// Values are values of one length. Their texts lie side by side, as those of requests do that a
// server has just read: whoever takes one after the other does not wait for memory.
type Values struct {
	texts  string
	count  int
	length int // of each, in bytes
}

// textSize is how many bytes of memory the text of a value has: as many as if it were allocated
// by itself, so that it is in one cache line.
const textSize = 16

// NewValues returns so many different values, up to ten billion.
func NewValues(count int) Values {
	digits := len(strconv.Itoa(count - 1))
	var texts strings.Builder
	texts.Grow(count * textSize)
	for i := range count {
		fmt.Fprintf(&texts, "%-*s", textSize, fmt.Sprintf("user-%0*d", digits, i))
	}
	return Values{texts: texts.String(), count: count, length: len("user-") + digits}
}

// Len returns how many values there are.
func (v Values) Len() int { return v.count }

// AtRandom returns so many values, one after the other, each of which is one of these.
func (v Values) AtRandom(count int) Values {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable on purpose
	var texts strings.Builder
	texts.Grow(count * textSize) // no garbage, which would be returned to the system during the measurement
	for range count {
		at := random.IntN(v.count) * textSize
		texts.WriteString(v.texts[at : at+textSize])
	}
	return Values{texts: texts.String(), count: count, length: v.length}
}

// At returns the value with an index.
func (v Values) At(i int) string { return v.texts[i*textSize : i*textSize+v.length] }
