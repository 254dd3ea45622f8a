package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// reload puts one set after the other in force until ctx ends. Now and then one is
// not sound and must be refused.
func (s *soak) reload(ctx context.Context, random *rand.Rand) {
	for i := 1; ctx.Err() == nil; i++ {
		if i%20 == 0 {
			broken := setOf(i, random)
			broken.Flow = append(slices.Clone(broken.Flow[:5]), flow.Rule{Resource: "sliding", Limit: -1})
			if s.main.Load(broken) == nil {
				s.wrong.add("a set with a limit of -1 is in force")
			}
		}
		if err := s.main.Load(setOf(i, random)); err != nil {
			s.wrong.add("set %d: %v", i, err)
		}
		if err := s.crowd.Load(rules.Set{Flow: append(crowdedRules(), passingRules(random)...)}); err != nil {
			s.wrong.add("set %d: %v", i, err)
		}
		s.reloads.Add(1)
		time.Sleep(time.Duration(1+random.IntN(20)) * time.Millisecond)
	}
}
