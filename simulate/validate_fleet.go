package simulate

import (
	"fmt"
	"time"
)

func (f Fleet) validate(check checker) {
	f.Latency.validate("fleet.latency", check)
	check(f.Latency == Service{} || f.Latency.Mean != 0, "fleet.latency.mean", "is missing: say how long a reply takes")
	check(f.Loss >= 0 && f.Loss <= 1, "fleet.loss", "is %v: must be a share from 0 to 1", f.Loss)
	if f.Skew != nil {
		check(*f.Skew >= 0 && *f.Skew <= 1, "fleet.skew", "is %v: must be a share from 0 to 1", *f.Skew)
	}
	before := time.Duration(0)
	for i, o := range f.Outages {
		field := fmt.Sprintf("fleet.outages[%d].", i)
		check(o.From >= 0 && o.From <= MaxDuration, field+"from", "is %v: must be from 0s to %v", o.From, MaxDuration)
		check(o.From >= before || o.From < 0, field+"from", "is %v: must not be before the outage before it is over (%v)", o.From, before)
		if o.Until == 0 {
			check(false, field+"until", "is missing: say when the backend answers again")
			continue
		}
		check(o.Until > o.From && o.Until <= MaxDuration, field+"until",
			"is %v: must be later than from (%v) and at most %v", o.Until, o.From, MaxDuration)
		before = max(before, o.Until)
	}
}
