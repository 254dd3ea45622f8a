package share

import (
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
)

// The member calls use and divide with its mutex held: they neither block nor call it.

// use tells the demand, for an announcement. It is called once for each that is sent.
func (s *Share) use(now clock.Instant) fleet.Use {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure(now)
	if !s.answered {
		s.doubt(now)
	}
	s.answered = false
	s.reserved = s.reserve()
	return fleet.Use{Key: s.terms.Key, Demand: s.demand.asked, Passed: s.demand.passed, Reserved: s.reserved}
}

// begin has the first announcement reserve an even part, if all instances have been known for long enough.
func (s *Share) begin(now, knownSince clock.Instant, instances int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(knownSince) >= s.settleTime() {
		s.expected = instances
		s.wanted = s.even()
	}
}

// even is what the instance may raise its part to before settledAt: an even part if the limit began when all
// instances were known, of which none has left since then.
func (s *Share) even() float64 {
	if s.expected == 0 {
		return 0
	}
	return 1 / float64(s.expected)
}

// reserve returns what is to be reserved. What has passed without having been reserved, as in
// an outage, takes nothing from the others.
func (s *Share) reserve() float64 {
	return min(1, max(s.granted, s.wanted, min(s.spent(), s.reserved)))
}

// doubt notes that it is not known what has become of the last announcement. It may still
// overtake later ones: nothing is raised above what it reserved for a while.
func (s *Share) doubt(now clock.Instant) {
	if now >= s.doubtUntil {
		s.doubtful = 1
	}
	s.doubtful, s.doubtUntil = min(s.doubtful, s.reserved), now.Add(announceTime)
}

// raise raises what is granted, to at most what this instance is known to have reserved and
// nobody else has.
func (s *Share) raise(now clock.Instant, known, free float64) {
	most := min(s.wanted, s.reserved, known, free)
	if now < s.doubtUntil {
		most = min(most, s.doubtful)
	}
	s.granted = max(s.granted, most)
}

// divide takes the answer to an announcement: all instances, self being this one. It returns
// after what time the member should announce itself again, at most [exchange.AnnounceInterval]; the
// member takes the shortest of all shares.
func (s *Share) divide(now clock.Instant, self string, known fleet.Fleet) (again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure(now)
	// The others may have taken over what an instance has that was silent for long.
	silent := now.Sub(s.answeredAt)
	isKnown := s.count > 0
	joins := known.IsNew || !isKnown || silent >= fleet.AnnounceLife-exchange.AnnounceInterval
	own, demands, announced := s.look(now, self, known)
	s.answered, s.answeredAt, s.outage, s.err = true, now, false, nil
	if !announced {
		// Nobody knows what this instance uses.
		_ = s.refuseUnannounced()
		return exchange.AnnounceInterval
	}
	free := s.free(now)
	if joins {
		s.granted = min(s.granted, free)
	}
	if known.IsNew || isKnown && silent >= announceTime || known.Count < s.expected {
		s.expected = 0
	}
	if joins || silent >= announceTime {
		s.settledAt = now.Add(s.settleTime())
	}
	s.wanted = s.part(demands, own.Demand)
	if now < s.settledAt {
		s.wanted = min(s.wanted, max(s.granted, s.even())) // not all may be known
	}
	switch {
	case s.wanted < s.granted*(1-tolerance):
		s.granted = s.wanted
	case s.wanted <= s.granted:
		s.wanted = s.granted
	default:
		s.raise(now, own.Reserved, free)
	}
	s.publish()
	return s.announceAgain(now, own.Reserved)
}

// refuseUnannounced has the instance pass next to nothing of a limit that it does not announce.
func (s *Share) refuseUnannounced() error {
	s.granted, s.wanted = 0, 0
	s.err = fmt.Errorf("fleet: limit %q passes next to nothing: an instance announces at most %d limits,"+
		" give some of the rules with mode share another mode or no scope", s.terms.Key, fleet.MaxUses)
	s.publish()
	return s.err
}

// look notes what the instances have announced for this limit. It returns what this one has,
// if it is among them, and the demands of all, in tokens per second.
func (s *Share) look(now clock.Instant, self string, known fleet.Fleet) (own fleet.Use, demands []float64, announced bool) {
	for _, o := range s.others {
		if !o.missing {
			o.missing, o.missingAt = true, now
		}
	}
	for i := range known.Instances {
		instance := &known.Instances[i]
		for _, use := range instance.Limits {
			if use.Key != s.terms.Key {
				continue
			}
			use.Demand, use.Reserved = sane(use.Demand, math.MaxInt64, 0), sane(use.Reserved, 1, 1)
			demands = append(demands, use.Demand)
			if instance.ID == self {
				own, announced = use, true
			} else {
				s.others[instance.ID] = &other{reserved: use.Reserved}
			}
			break
		}
	}
	for _, o := range s.others {
		if !o.missing {
			o.beside = own.Reserved
		}
	}
	s.count = max(1, len(demands))
	return own, demands, announced
}

// sane returns a number that another instance announced, bounded, or, if it is none, instead.
func sane(x, most, instead float64) float64 {
	if math.IsNaN(x) {
		return instead
	}
	return min(max(x, 0), most)
}

// free returns the fraction of the limit that no other instance has reserved. One that is missing may have reserved
// all that it saw to be free before it left: nothing is free but what this instance had reserved by then.
func (s *Share) free(now clock.Instant) float64 {
	reserved, most := 0.0, 1.0
	for id, o := range s.others {
		if o.missing && now.Sub(o.missingAt) >= s.settleTime() {
			delete(s.others, id)
			continue
		}
		reserved += o.reserved
		if o.missing {
			most = min(most, o.beside)
		}
	}
	return min(most, max(0, 1-reserved))
}

// part returns the fraction of the limit that this instance should have.
func (s *Share) part(demands []float64, own float64) float64 {
	perSecond := s.terms.PerSecond()
	if perSecond <= 0 {
		return 1 / float64(len(demands))
	}
	window := s.terms.Window.Seconds()
	for i := range demands {
		demands[i] *= window
	}
	allocation := allocate(s.terms.Limit, demands)
	return min(1, allocation.part(own*window)/s.terms.Limit)
}

// announceAgain returns how soon the instance should announce itself again, of which the
// others know a reservation.
func (s *Share) announceAgain(now clock.Instant, known float64) time.Duration {
	next := s.reserve()
	notable := tolerance * max(known, next)
	switch {
	case math.Abs(next-known) > notable:
		return soon
	case next-s.granted > notable:
		// It waits until what it passed has left the window, or for others to make room.
		return min(max(soon*5, time.Duration(s.count)*soon/5), exchange.AnnounceInterval)
	case now < s.settledAt:
		return min(s.settledAt.Sub(now), exchange.AnnounceInterval)
	default:
		return exchange.AnnounceInterval
	}
}

// soon is after what time a member announces a change that other instances wait for.
const soon = 50 * time.Millisecond
