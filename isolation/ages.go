package isolation

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// ages tells places apart by when they were taken, in groups. Calls that pass belong to the open
// group, whose index is in the word of the pool. How many places that has is not counted: it is
// what is left of all. So a call that ends while its group is open costs nothing beside the word;
// one that ends later takes the mutex.
//
// A ticket has the index of the group and its generation, which begins anew when the places of a
// group are given back in place of their calls: the tickets of these calls are worth nothing any
// more. Most tickets are 0, or as small as an index, so that guards can carry them.
//
// It is guarded by the mutex of the pool but for the generations.
type ages struct {
	groups [maxGroups]group
	open   int           // the index of the open group
	closed uint64        // places of all other groups
	until  clock.Instant // when the open group closes
	given  uint64        // places that were given back because of their age, of all time
	untold uint64        // those of them that were not told yet
}

// group is the places that were taken at about the same time.
type group struct {
	start, end clock.Instant // when its calls passed, start included
	places     uint64        // if it is not open
	generation atomic.Uint32
}

const (
	maxGroups = 64

	// A group is open for leastWidth, and for twice as long for each groupsPerWidth groups that
	// have places. With maxAge it is open for the same part of that always, so that the groups
	// suffice.
	leastWidth     = 250 * time.Millisecond
	groupsPerWidth = 6
	partsOfMaxAge  = 32

	indexMask       = maxGroups - 1
	generationShift = 6
	ageMask         = 1<<(generationShift+32) - 1 // what a ticket has of it; see charged for the rest
)

func (a *ages) init(now clock.Instant, maxAge time.Duration) {
	a.groups[0].start = now
	a.until = now.Add(a.width(maxAge))
}

// ticketOf returns the ticket of a call that passes while a group is open. It may be called without
// the mutex.
func (a *ages) ticketOf(index uint64) rule.Ticket {
	return rule.Ticket(a.groups[index&indexMask].generation.Load())<<generationShift | rule.Ticket(index)
}

// isOf says whether a ticket is of a group as it is now. It may be called without the mutex.
func (a *ages) isOf(index uint64, t rule.Ticket) bool { return a.ticketOf(index) == t }

// end ends a call, of which all places are given. It returns whether the call had its place still.
func (a *ages) end(t rule.Ticket, places uint64) bool {
	index := uint64(t & indexMask)
	if !a.isOf(index, t) {
		return false
	}
	if int(index) == a.open {
		return places > a.closed // else the caller released twice
	}
	g := &a.groups[index]
	if g.places == 0 {
		return false
	}
	g.places--
	a.closed--
	return true
}

// advance closes the open group if its time is over, and gives back the places that are older than
// maxAge, if that is not 0. It returns how many places are left.
func (a *ages) advance(now clock.Instant, places uint64, maxAge time.Duration) uint64 {
	if now >= a.until {
		a.close(now, places, maxAge)
	}
	if maxAge == 0 {
		return places
	}
	for i := range a.groups {
		g := &a.groups[i]
		if i == a.open || g.places == 0 || now < g.end.Add(maxAge) {
			continue
		}
		places -= g.places
		a.closed -= g.places
		a.given += g.places
		a.untold += g.places
		g.places = 0
		g.generation.Add(1)
	}
	return places
}

// close opens another group, if calls of the open one are under way and a group is free.
func (a *ages) close(now clock.Instant, places uint64, maxAge time.Duration) {
	g, next := &a.groups[a.open], a.open
	g.places, g.end = places-min(a.closed, places), a.until // fewer only if a caller has released twice
	if g.places > 0 {
		next = a.free()
	}
	a.until = now.Add(a.width(maxAge))
	if next < 0 { // calls go on to join this one
		g.places = 0
		return
	}
	a.closed += g.places
	a.open = next
	a.groups[next].start = now
}

// free returns the first group without a place, which is not the open one; -1 if there is none.
func (a *ages) free() int {
	for i := range a.groups {
		if i != a.open && a.groups[i].places == 0 {
			return i
		}
	}
	return -1
}

// width returns how long the next group is to be open.
func (a *ages) width(maxAge time.Duration) time.Duration {
	if maxAge > 0 {
		return max(maxAge/partsOfMaxAge, 1)
	}
	used := 0
	for i := range a.groups {
		if a.groups[i].places > 0 {
			used++
		}
	}
	return leastWidth << (used / groupsPerWidth)
}

// oldest returns how long the oldest place is taken already, at most; 0 if there is no place.
func (a *ages) oldest(now clock.Instant, places uint64) time.Duration {
	oldest := now
	for i := range a.groups {
		if g := &a.groups[i]; g.places > 0 || i == a.open && places > a.closed {
			oldest = min(oldest, g.start)
		}
	}
	return now.Sub(oldest)
}

// next returns when advance has something to do again.
func (a *ages) next(maxAge time.Duration) clock.Instant {
	return min(a.until, a.firstEnd(maxAge))
}

// firstEnd returns when the first place of those that are taken is given back unless its call ends;
// the last instant if that is never.
func (a *ages) firstEnd(maxAge time.Duration) clock.Instant {
	if maxAge == 0 {
		return math.MaxInt64
	}
	first := a.until.Add(maxAge)
	for i := range a.groups {
		if g := &a.groups[i]; i != a.open && g.places > 0 {
			first = min(first, g.end.Add(maxAge))
		}
	}
	return first
}
