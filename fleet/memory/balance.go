package memory

import (
	"fmt"
	"math"

	"github.com/penstock-go/penstock/fleet"
)

// askBalance takes all tokens or none from a balance, or adds some.
func (s *Store) askBalance(r *fleet.Request) fleet.Reply {
	k := key{balanceShape, r.Terms.Key}
	limit := int64(math.Floor(r.Terms.Limit))
	var used int64
	if v := s.values[k]; v != nil {
		used = v.used
	}
	used += r.Owed
	var granted int64
	switch left := limit - used; {
	case r.Want < 0:
		used += r.Want
	case r.Want <= left:
		used += r.Want
		granted = r.Want
	}
	left := limit - used
	switch {
	case left > fleet.MaxTokens || left < -fleet.MaxTokens:
		return fleet.Reply{Err: fmt.Errorf("fleet: a balance would have %d tokens, it must have at most 2⁴⁰", left)}
	case used == 0:
		delete(s.values, k)
	default:
		s.values[k] = &value{used: used, expires: math.MaxInt64}
	}
	return fleet.Reply{Granted: granted, Limit: limit, Remaining: left}
}
