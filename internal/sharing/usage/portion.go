package usage

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
)

// Portion measures which part of all that the fleet uses of a limit this instance uses, by what
// the store tells with its answers. In an outage the instance goes on with that part: the parts
// of all instances are the whole limit, whenever in a window the outage begins. The zero value
// knows nothing. It is guarded by its owner.
type Portion struct {
	own, fleet             float64       // tokens of the present period, as of the last answer
	ownBefore, fleetBefore float64       // of periods before it, which fade
	since                  clock.Instant // when the present period began, 0 if there was no answer
	isSliding              bool          // a period lasts from answer to answer, and those before it count by time

	used, left float64       // of a window, what this instance had used and the fleet had left by the last answer
	others     float64       // what the others had used of it then, if it ends with all that is in it
	leftAt     clock.Instant // when the part of it had begun
	most       float64       // what the fleet had used of it by any answer, if it ends with all that is in it
	isLost     bool          // the store has lost what it knew of it
}

// portionMemory is the memory of portions: of few tokens in less time, chance would decide.
const portionMemory = 5 * time.Second

// Window takes an answer about a window, of which so many tokens are used, and some of them were
// granted with the answer.
func (p *Portion) Window(now clock.Instant, log *PassLog, terms *fleet.Terms, own, fleet, granted int64) {
	if len(log.Counts) == 1 && p.hasLost(log, float64(fleet)) {
		return
	}
	fleet = max(own, fleet)
	if len(log.Counts) > 1 {
		p.sliding(now, float64(own), float64(fleet), float64(granted))
	} else {
		p.fixed(log, terms, float64(own), float64(fleet), float64(granted))
	}
	p.used, p.left = float64(own), max(0, terms.Limit-float64(fleet))
	if len(log.Counts) == 1 {
		p.left = max(0, p.left-p.unseen(log, float64(fleet-own)))
	}
	p.leftAt = log.Begin
}

// hasLost says whether the store has lost what it knew of the window: then its answers tell nothing of the part of
// this instance before the next window.
func (p *Portion) hasLost(log *PassLog, fleet float64) bool {
	if p.since == 0 || log.Begin.Sub(p.leftAt) >= log.Length/2 { // it may have been aligned meanwhile
		p.most, p.isLost = 0, false
	}
	p.isLost = p.isLost || fleet < p.most/2
	p.most = max(p.most, fleet)
	return p.isLost
}

// sliding takes an answer about a window that slides. Answers come more often while tokens are granted:
// what is used counts for as long as it was so.
func (p *Portion) sliding(now clock.Instant, own, fleet, granted float64) {
	if p.since != 0 {
		lasted := now.Sub(p.since)
		kept, seconds := math.Exp(-lasted.Seconds()/portionMemory.Seconds()), lasted.Seconds()
		p.ownBefore = p.ownBefore*kept + (p.own+own-granted)/2*seconds
		p.fleetBefore = p.fleetBefore*kept + (p.fleet+fleet-granted)/2*seconds
	}
	p.since, p.own, p.fleet, p.isSliding = now, own, fleet, true
}

// fixed takes an answer about a window that ends with all that is in it. Half of what was granted counts:
// there is no answer just before an instance is granted some, and each is the more just after.
func (p *Portion) fixed(log *PassLog, terms *fleet.Terms, own, fleet, granted float64) {
	length := terms.Window
	if p.since == 0 {
		p.since = log.Begin
	}
	if lasted := log.Begin.Sub(p.since) + log.Length/2; lasted >= length { // it may have been aligned meanwhile
		p.fade(lasted)
		p.since = log.Begin
	}
	p.own, p.fleet = own-granted/2, fleet-granted/2
}

// unseen is what the others take of a window after an answer that tells what they have used, and before an
// outage begins, as far as is to be expected: half of what they take from answer to answer.
func (p *Portion) unseen(log *PassLog, others float64) float64 {
	taken := others
	if log.Begin.Sub(p.leftAt) < log.Length/2 { // it may have been aligned meanwhile
		taken = max(0, others-p.others)
	}
	p.others = others
	return taken / 2
}

// Present is what this instance has used of the present window and what the fleet has left, by the
// last answer, if there was one about it. Of what the others have used since it knows no more than what
// is to be expected.
func (p *Portion) Present(log *PassLog) (used, left float64, isKnown bool) {
	age := log.Begin.Sub(p.leftAt) + log.Length/2
	return p.used, p.left, p.since != 0 && age < log.Length*time.Duration(len(log.Counts))
}

// Bucket takes an answer about a bucket. It does not tell what the fleet uses, only that the limit
// is known.
func (p *Portion) Bucket(now clock.Instant) { p.since = now }

// fade ends a period.
func (p *Portion) fade(lasted time.Duration) {
	kept := math.Exp(-lasted.Seconds() / portionMemory.Seconds())
	p.ownBefore = p.ownBefore*kept + p.own
	p.fleetBefore = p.fleetBefore*kept + p.fleet
}

// Fraction is the part of this instance, from 0 to 1. It is not known before anything was used.
func (p *Portion) Fraction() (fraction float64, isKnown bool) {
	if p.isSliding && p.fleetBefore > 0 {
		return p.ownBefore / p.fleetBefore, true
	}
	if fleet := p.fleet + p.fleetBefore; fleet > 0 {
		return (p.own + p.ownBefore) / fleet, true
	}
	return 0, p.since != 0
}
