package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/rueidis"

	"github.com/penstock-go/penstock/fleet"
)

// use is how an instance's use of a limit is written.
type use struct {
	Key      string  `json:"key"`
	Demand   float64 `json:"demand"`
	Passed   float64 `json:"passed"`
	Reserved float64 `json:"reserved,omitempty"`
}

// No limit has an empty key, so its keys never are those of instances.

func (s *Store) instancesKey() string         { return "{ps:" + s.options.App + ":}instances" }
func (s *Store) instanceKey(id string) string { return "{ps:" + s.options.App + ":}instance:" + id }
func (s *Store) sessionKey(id string) string  { return "{ps:" + s.options.App + ":}session:" + id }

// Announce implements [fleet.Backend].
func (s *Store) Announce(ctx context.Context, self fleet.Instance, withInstances bool) (fleet.Fleet, error) {
	if self.ID == "" {
		return fleet.Fleet{}, errors.New("redis: an instance needs an ID")
	}
	uses := make([]use, 0, min(len(self.Limits), fleet.MaxUses))
	for _, u := range self.Limits[:min(len(self.Limits), fleet.MaxUses)] {
		uses = append(uses, use(u))
	}
	text, err := json.Marshal(uses)
	if err != nil {
		return fleet.Fleet{}, fmt.Errorf("redis: instance %q: %w", self.ID, err)
	}
	known, ids, err := s.announce(ctx, self, string(text), withInstances)
	if err == nil && withInstances {
		known.Instances, err = s.instances(ctx, ids)
	}
	if errors.Is(err, fleet.ErrNameTaken) {
		return fleet.Fleet{}, fmt.Errorf("redis: announcing %q: %w", self.ID, err)
	}
	if err != nil {
		return fleet.Fleet{}, s.explain(err)
	}
	return known, nil
}

// announce returns what the script knows of the fleet, and the names of the instances if they
// are wanted.
func (s *Store) announce(ctx context.Context, self fleet.Instance, uses string, withIDs bool) (fleet.Fleet, []string, error) {
	args := []string{self.ID, whole(fleet.AnnounceLife.Microseconds()), "0", uses, self.Session}
	if withIDs {
		args[2] = "1"
	}
	say := func(byHash bool) ([]rueidis.RedisResult, error) {
		return s.connection.do(ctx, func(b rueidis.Builder) []rueidis.Completed {
			keys := []string{s.instancesKey(), s.instanceKey(self.ID), s.sessionKey(self.ID)}
			return []rueidis.Completed{s.scripts.announce.call(b, byHash, args, keys...)}
		})
	}
	results, err := say(true)
	if err == nil && isNoScript(results[0].Error()) {
		results, err = say(false)
	}
	if err != nil {
		return fleet.Fleet{}, nil, err
	}
	values, err := results[0].ToArray()
	if err != nil {
		return fleet.Fleet{}, nil, err
	}
	if len(values) != 3 {
		return fleet.Fleet{}, nil, errProtocol
	}
	count, err := values[0].AsInt64()
	isNew, err2 := values[1].AsInt64()
	ids, err3 := values[2].AsStrSlice()
	if isNew < 0 {
		return fleet.Fleet{}, nil, fleet.ErrNameTaken
	}
	return fleet.Fleet{Count: int(count), IsNew: isNew == 1}, ids, errors.Join(err, err2, err3)
}

// instances reads what instances have announced.
func (s *Store) instances(ctx context.Context, ids []string) ([]fleet.Instance, error) {
	slices.Sort(ids)
	results, err := s.connection.do(ctx, func(b rueidis.Builder) []rueidis.Completed {
		keys := make([]string, len(ids))
		for i, id := range ids {
			keys[i] = s.instanceKey(id)
		}
		return []rueidis.Completed{b.Arbitrary("MGET").Keys(keys...).Build()}
	})
	if err != nil {
		return nil, err
	}
	texts, err := results[0].ToArray()
	if err == nil && len(texts) != len(ids) {
		err = errProtocol
	}
	if err != nil {
		return nil, err
	}
	all := make([]fleet.Instance, len(ids))
	for i, id := range ids {
		all[i] = fleet.Instance{ID: id}
		text, err := texts[i].ToString()
		if rueidis.IsRedisNil(err) {
			continue // its announcement has just ended
		}
		var uses []use
		if err == nil {
			err = json.Unmarshal([]byte(text), &uses)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: what instance %q has announced: %w", errProtocol, id, err)
		}
		for _, u := range uses {
			all[i].Limits = append(all[i].Limits, fleet.Use(u))
		}
	}
	return all, nil
}

// Leave implements [fleet.Backend].
func (s *Store) Leave(ctx context.Context, id string) error {
	results, err := s.connection.do(ctx, func(b rueidis.Builder) []rueidis.Completed {
		return []rueidis.Completed{
			b.Arbitrary("ZREM").Keys(s.instancesKey()).Args(id).Build(),
			b.Arbitrary("DEL").Keys(s.instanceKey(id), s.sessionKey(id)).Build(),
		}
	})
	for i := range results {
		err = errors.Join(err, results[i].Error())
	}
	if err != nil {
		return s.explain(err)
	}
	return nil
}
