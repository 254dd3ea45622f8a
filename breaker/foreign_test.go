package breaker_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/rule"
)

// A call that would have been a probe, but for an observer that fails as it hears that the breaker is
// half-open, keeps no place.
func TestProbeThatTheObserverFailsFreesItsPlace(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(){"panic": func() { panic("observer") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := errorRatio()
			r.Probes = 1
			s := newService(t, r)
			s.limiter.Control(s.now, breaker.Open)
			s.limiter.Control(s.now, "")
			for range 4 {
				ticket, decision := s.limiter.Acquire(rule.Call{Now: s.now, Tokens: 1})
				require.Equal(t, rule.Pass, decision)
				s.limiter.Done(ticket, rule.Exit{Now: s.now, Start: s.now, Failed: true})
			}
			require.Equal(t, breaker.Open, s.limiter.Status(s.now).State)
			s.now = s.now.Add(5 * time.Second)
			s.observer = fail
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { _ = recover() }()
				s.limiter.Acquire(rule.Call{Now: s.now, Tokens: 1})
			}()
			<-done
			s.observer = func() {}
			_, decision := s.limiter.Acquire(rule.Call{Now: s.now, Tokens: 1})
			assert.Equal(t, rule.Pass, decision)
		})
	}
}
