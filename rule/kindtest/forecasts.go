package kindtest

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// forecastsTellWhatCallsFind compares what an optional.Forecaster says of a call with what becomes of it.
func forecastsTellWhatCallsFind(f *fixture) {
	l := f.limiter()
	forecaster, ok := l.(optional.Forecaster)
	if !ok {
		f.Skip("the limiter makes no forecasts")
	}
	if len(f.of.Rule.Attributes()) > 0 {
		f.Errorf("a limiter that makes forecasts looks at attributes")
	}
	passed := 0
	for n := range max(f.of.Passes, 1) + 2 {
		c := f.call(1)
		var passes clock.Instant
		var refused bool
		for range 3 { // it takes nothing
			passes, refused = forecaster.Forecast(c, c.Now, 0)
		}
		ticket, decision := f.acquire(l, c)
		if refused != (decision == rule.Block) {
			f.Fatalf("call %d: it is forecast to be refused: %t, and gets %d", n+1, refused, decision)
		}
		f.forecastOf(l, c, passes, ticket, decision)
		if decision == rule.Pass {
			passed++
		}
	}
	if f.of.Passes >= 0 && passed != f.of.Passes {
		f.Errorf("%d calls pass when each is forecast before it comes, not %d", passed, f.of.Passes)
	}
	if f.of.Again == rule.Never || f.of.Again <= 0 || f.of.Passes <= 0 {
		return
	}
	if _, refused := forecaster.Forecast(f.call(1), f.now.Add(f.of.Again), 0); refused {
		f.Errorf("a call is forecast to be refused after %v, when as many pass again", f.of.Again)
	}
}

// forecastOf checks the instants of a call that has come.
func (f *fixture) forecastOf(l rule.Limiter, c rule.Call, passes clock.Instant, ticket rule.Ticket, decision rule.Decision) {
	_, waits := l.(rule.Queue)
	switch {
	case decision == rule.Block:
	case decision == rule.Wait && ticket != 0 && clock.Instant(ticket) != passes:
		f.Errorf("a call that is forecast to pass at %d would have to wait until %d", passes, ticket)
	case decision == rule.Pass && passes > c.Now:
		f.Errorf("a call that is forecast to pass at %d passes at %d", passes, c.Now)
	case decision == rule.Pass && !waits && clock.Instant(ticket) != c.Now:
		f.Errorf("the ticket of a call at %d is %d, which is not its instant", c.Now, ticket)
	}
}
