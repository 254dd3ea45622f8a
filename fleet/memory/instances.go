package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/penstock-go/penstock/fleet"
)

// announcement is what an instance announced, and when.
type announcement struct {
	at   int64
	self fleet.Instance
}

// Announce implements [fleet.Backend].
func (s *Store) Announce(ctx context.Context, self fleet.Instance, withInstances bool) (fleet.Fleet, error) {
	if err := ctx.Err(); err != nil {
		return fleet.Fleet{}, fmt.Errorf("%w: %w", fleet.ErrUnavailable, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for id, a := range s.instances {
		switch {
		case a.at <= now-fleet.AnnounceLife.Microseconds():
			delete(s.instances, id)
		case a.at > now: // the clock has jumped back
			s.instances[id] = announcement{at: now, self: a.self}
		}
	}
	before, isKnown := s.instances[self.ID]
	if isKnown && before.self.Session != self.Session {
		return fleet.Fleet{}, fleet.ErrNameTaken
	}
	self.Limits = slices.Clone(self.Limits[:min(len(self.Limits), fleet.MaxUses)])
	s.instances[self.ID] = announcement{at: now, self: self}
	known := fleet.Fleet{Count: len(s.instances), IsNew: !isKnown}
	if withInstances {
		for _, id := range slices.Sorted(maps.Keys(s.instances)) {
			instance := s.instances[id].self
			instance.Session = ""
			instance.Limits = slices.Clone(instance.Limits)
			known.Instances = append(known.Instances, instance)
		}
	}
	return known, nil
}

// Leave implements [fleet.Backend].
func (s *Store) Leave(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", fleet.ErrUnavailable, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.instances, id)
	return nil
}
