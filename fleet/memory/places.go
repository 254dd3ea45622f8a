package memory

import (
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/places"
)

// news is that an instance was granted places of a limit.
type news struct {
	tell func(key string)
	key  string
}

func (s *Store) claimPlaces(now int64, r *fleet.Request) fleet.Reply {
	k := key{placesShape, r.Terms.Key}
	v := s.value(now, k)
	if v == nil {
		v = &value{places: &places.Ledger{}}
	}
	grant, told := v.places.Claim(now, s.isYoung(now), r.Places)
	if !grant.Late {
		s.put(now, k, v, 0, places.Keep)
	}
	for _, instance := range told {
		if tell := s.listeners[instance]; tell != nil {
			s.news = append(s.news, news{tell, r.Terms.Key})
		}
	}
	return fleet.Reply{Places: grant}
}

func (s *Store) claimValuePlaces(now int64, r *fleet.Request) fleet.Reply {
	k := key{valuesShape, r.Terms.Key}
	v := s.value(now, k)
	if v == nil {
		v = &value{values: &places.Register{}}
	}
	grant := v.values.Claim(now, s.isYoung(now), r.Value)
	s.put(now, k, v, 0, places.Keep)
	return fleet.Reply{Value: grant}
}

func (s *Store) isYoung(now int64) bool {
	return s.started != 0 && now < s.started+places.Young.Microseconds()
}

// Listen implements [fleet.Notifier].
func (s *Store) Listen(instance string, f func(key string)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners == nil {
		s.listeners = map[string]func(string){}
	}
	s.listeners[instance] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, instance)
	}
}

// unlock releases the mutex, and tells what is to be told.
func (s *Store) unlock() {
	all := s.news
	s.news = nil
	s.mu.Unlock()
	for _, n := range all {
		n.tell(n.key)
	}
}
