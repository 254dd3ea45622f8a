// Package versions tells which version of a rule uses what all its versions share, such as what an instance
// has of a limit of the whole fleet: a newer version takes it over, and the last one to end releases it.
package versions

import "sync/atomic"

// Versions are those of one rule on a resource. What changes them is called by one goroutine at a time; the
// others may be called concurrently. It is made by Begin.
type Versions struct {
	latest  uint64 // the newest one that there is, in force or about to be
	inForce atomic.Uint64
	ended   atomic.Bool
}

// Begin has the first version be in force.
func (v *Versions) Begin(first uint64) {
	v.latest = first
	v.inForce.Store(first)
}

// Adopt notes that there is a newer version; false if what they share is released.
func (v *Versions) Adopt(number uint64) bool {
	v.latest = max(v.latest, number)
	return !v.Ended()
}

// Activate says whether a version comes into force, rather than a newer one being there.
func (v *Versions) Activate(number uint64) bool {
	if v.Ended() || number <= v.InForce() {
		return false
	}
	v.inForce.Store(number)
	return true
}

// Retire says whether all ends with a version: there is no newer one.
func (v *Versions) Retire(number uint64) bool {
	if v.Ended() || number < v.latest {
		return false
	}
	v.ended.Store(true)
	return true
}

// InForce is the version that was activated last.
func (v *Versions) InForce() uint64 { return v.inForce.Load() }

// IsInForce says whether the rule goes on by a version.
func (v *Versions) IsInForce(number uint64) bool { return !v.Ended() && v.InForce() == number }

// Ended says whether the rule is gone.
func (v *Versions) Ended() bool { return v.ended.Load() }
