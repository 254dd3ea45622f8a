package core

import (
	"time"

	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// MaxAge returns after how long the rules that count the call as under way take it for ended if nobody
// says so: the longest time of these, 0 if there are no such rules. It is for who
// decides for others, and may never learn how a call has ended. It must not run at the same time as
// Exit.
func (g *Guard) MaxAge() (longest time.Duration) {
	if g == nil || g.extras == nil || g.extras.Passed == nil {
		return 0
	}
	for i := range g.extras.Passed.Rules {
		longest = max(longest, maxAgeOf(g.extras.Passed.Rules[i].Limiter))
	}
	return longest
}

// MaxAge is [Guard.MaxAge] for calls of the resource with these options, without one.
func (e *Engine) MaxAge(resource string, opts ...Option) (longest time.Duration) {
	for _, p := range e.applying(resource, opts) {
		longest = max(longest, maxAgeOf(p.Limiter))
	}
	return longest
}

func maxAgeOf(limiter rule.Limiter) time.Duration {
	if aged, ok := limiter.(optional.Aged); ok {
		return aged.MaxAge()
	}
	return 0
}
