package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/internal/calendar"
	"github.com/penstock-go/penstock/internal/longtest"
	"github.com/penstock-go/penstock/rule"
)

// longFlood says from where values are invented.
var longFlood = map[string]func(i int) []core.Option{
	"a /16":       fromSixteen,
	"eight /16":   func(i int) []core.Option { return fromAddress(i, fmt.Sprintf("203.%d.%d.%d", i%8, i>>8&0xFF, i&0xFF)) },
	"an IPv6 /32": func(i int) []core.Option { return fromAddress(i, fmt.Sprintf("2001:db8:%x:%x::/64", i>>16, i&0xFFFF)) },
	"an IPv6 /29": func(i int) []core.Option {
		return fromAddress(i, fmt.Sprintf("2001:db%x:%x:%x::/64", 8+i%8, i>>16, i&0xFFFF))
	},
}

func fromAddress(i int, ip string) []core.Option {
	return []core.Option{core.String("user", fmt.Sprint("x", i)), core.String("ip", ip)}
}

// A flood goes on until far more values were invented than there are places, long before the first of
// them is as new again: as with windows of hours to months and the places of the default.
func TestNewcomersFromElsewherePassInAFloodOfHours(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine, and long")
	}
	const places = 5000
	window := func(count int, unit calendar.Unit) rule.Calendar {
		return rule.Calendar{Period: calendar.Period{Count: count, Unit: unit}}
	}
	for name, r := range map[string]hotparam.Rule{
		"token bucket, 6h":   {Limit: 5, Window: 6 * time.Hour, MaxValues: places},
		"token bucket, 24h":  {Limit: 1, Window: 24 * time.Hour, MaxValues: places},
		"fixed window, 6h":   {Limit: 5, Window: 6 * time.Hour, MaxValues: places, Algorithm: hotparam.FixedWindow},
		"fixed window, 1d":   {Limit: 1, Calendar: window(1, calendar.Day), MaxValues: places},
		"fixed window, 1w":   {Limit: 1000, Calendar: window(1, calendar.Week), MaxValues: places},
		"fixed window, 1mo":  {Limit: 5, Calendar: window(1, calendar.Month), MaxValues: places},
		"sliding window, 6h": {Limit: 5, Window: 6 * time.Hour, MaxValues: places, Algorithm: hotparam.SlidingWindow},
		"throttle, 1h":       {Limit: 1, Window: time.Hour, MaxValues: places, Algorithm: hotparam.Throttle},
	} {
		for from, invent := range longFlood {
			t.Run(name+", from "+from, func(t *testing.T) {
				t.Parallel()
				if !slices.Contains([]string{"eight /16", "an IPv6 /29"}, from) || r.Calendar != (rule.Calendar{}) {
					longtest.Skip(t, "fixed windows of 6h, from eight /16")
				}
				r.Param = rule.StringsOf("user")
				f := &flood{rule: r, invent: invent, arrive: newcomer, tries: 1, begin: time.Minute, lasts: 5 * time.Minute}
				f.run(t)
				t.Logf("%d of %d calls refused", f.refused, f.calls)
				assert.LessOrEqual(t, f.refused, f.calls/100)
			})
		}
	}
}

// With the number of places that a rule has by default, for as long as it takes.
func TestNewcomersFromElsewherePassInAFloodOfADay(t *testing.T) {
	longtest.Skip(t, "TestNewcomersFromElsewherePassInAFloodOfHours")
	const lasts = 24 * time.Hour
	for name, r := range map[string]hotparam.Rule{
		"token bucket": {Limit: 5, Window: 24 * time.Hour},
		"fixed window": {Limit: 5, Window: 24 * time.Hour, Algorithm: hotparam.FixedWindow},
	} {
		t.Run(name, func(t *testing.T) {
			r.Param = rule.StringsOf("user")
			f := &flood{rule: r, invent: fromSixteen, arrive: newcomer, tries: 1, begin: lasts / 2, lasts: lasts}
			f.run(t)
			t.Logf("%d of %d calls refused", f.refused, f.calls)
			assert.LessOrEqual(t, f.refused, f.calls/100)
		})
	}
}
