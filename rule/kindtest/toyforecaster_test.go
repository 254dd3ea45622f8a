package kindtest

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// forecasting are the flaws of a toy that makes forecasts, for calls that all have one value.
func forecasting() []flaw {
	return []flaw{
		"forecasts take places", "forecasts refuse what passes", "forecasts let pass what is refused",
		"forecasts are of another instant", "tickets are no instants",
	}
}

// withForecasts is no flaw: the toy makes forecasts, and they are right.
const withForecasts flaw = "it makes forecasts"

func makesForecasts(of flaw) bool { return of == withForecasts || slices.Contains(forecasting(), of) }

func TestRightForecastsPass(t *testing.T) {
	p := promise{"ForecastsTellWhatCallsFind", forecastsTellWhatCallsFind}
	if found := finds(p, toyOptions(withForecasts), patience); len(found) > 0 {
		t.Errorf("it fails for a kind without flaws: %v", found)
	}
}

// toyForecaster is a toy that knows what becomes of a call, whose tickets are instants, and for which no
// call waits.
type toyForecaster struct{ of *toyLimiter }

func (l toyForecaster) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	switch ticket, decision := l.of.Acquire(c); {
	case decision == rule.Wait:
		return 0, rule.Block
	case decision == rule.Pass && !l.of.is("tickets are no instants"):
		return rule.Ticket(c.Now), decision
	default:
		return ticket, decision
	}
}

func (l toyForecaster) Forecast(c rule.Call, at clock.Instant, _ int64) (passes clock.Instant, refused bool) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	u := &l.of.users[0]
	refused = u.under >= l.of.rule.Limit
	switch {
	case l.of.is("forecasts take places"):
		u.under++
	case l.of.is("forecasts refuse what passes"):
		refused = true
	case l.of.is("forecasts let pass what is refused"):
		refused = false
	case l.of.is("forecasts are of another instant"):
		at++
	}
	return max(at, c.Now), refused
}

func (l toyForecaster) GiveBack(now clock.Instant, _ rule.Ticket, n int32) { l.of.GiveBack(now, 0, n) }

func (l toyForecaster) Done(_ rule.Ticket, e rule.Exit) { l.of.Done(0, e) }

func (l toyForecaster) RetryAfter(c rule.Call) time.Duration { return l.of.RetryAfter(c) }

func (l toyForecaster) Status(now clock.Instant) rule.Status { return l.of.Status(now) }

func (l toyForecaster) Idle(now clock.Instant) bool { return l.of.Idle(now) }
