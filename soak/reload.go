package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// reload loads one set after the other until ctx ends. Now and then a set is invalid
// and must be rejected.
func (s *soak) reload(ctx context.Context, random *rand.Rand) {
	for i := 1; ctx.Err() == nil; i++ {
		if i%20 == 0 {
			broken := setOf(i, random)
			broken.Flow = append(slices.Clone(broken.Flow[:5]), flow.Rule{Resource: "sliding", Limit: -1})
			if s.main.Load(broken) == nil {
				s.findings.add("a set with a limit of -1 is in force")
			}
		}
		if err := s.main.Load(setOf(i, random)); err != nil {
			s.findings.add("set %d: %v", i, err)
		}
		if err := s.crowded.Load(rules.Set{Flow: append(crowdedRules(), temporaryRules(random)...)}); err != nil {
			s.findings.add("set %d: %v", i, err)
		}
		s.reloads.Add(1)
		time.Sleep(time.Duration(1+random.IntN(20)) * time.Millisecond)
	}
}
