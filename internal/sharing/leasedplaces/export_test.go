package leasedplaces

import "github.com/penstock-go/penstock/clock"

// BeginWake does the first step of Wake, and says whether the caller is to go on with EndWake.
func (p *Places) BeginWake() bool { return p.isWoken.CompareAndSwap(false, true) }

// EndWake does the second step of Wake.
func (p *Places) EndWake(now clock.Instant) { p.putIntoWoken(now) }
