package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// most is the most tokens that a call takes of the resources that are named here.
// It is one of others.
func most(resource string) int {
	switch resource {
	case "sliding", "strict", "bucket", "overdraft", "layers":
		return 3
	}
	return 1
}

// steadyRules are in force throughout and never change: one of every kind.
func steadyRules() []flow.Rule {
	const ms = time.Millisecond
	return []flow.Rule{
		{Resource: "sliding", Limit: 500},
		{Resource: "coarse", Limit: 300, Window: 500 * ms, Buckets: 2},
		{Resource: "strict", Limit: 500, Strict: true},
		{Resource: "fixed", Limit: 300, Window: 500 * ms, Algorithm: flow.FixedWindow},
		{Resource: "fraction", Limit: 2.5},
		{Resource: "closed", Limit: 0},
		{Resource: "cold", Limit: 900, WarmUp: flow.WarmUp{Period: 5 * time.Second}},
		{Resource: "bucket", Limit: 400, Algorithm: flow.TokenBucket, Burst: 50},
		{Resource: "patient", Limit: 400, Algorithm: flow.TokenBucket, Burst: 20, MaxWait: 50 * ms},
		{Resource: "overdraft", Limit: 300, Algorithm: flow.TokenBucket, Burst: 20, Overdraft: true, MaxWait: 20 * ms},
		{Resource: "cold bucket", Limit: 400, Algorithm: flow.TokenBucket, WarmUp: flow.WarmUp{Period: 5 * time.Second}},
		{Resource: "throttle", Limit: 500, Algorithm: flow.Throttle, MaxWait: 100 * ms},
		{Resource: "impatient", Limit: 500, Algorithm: flow.Throttle},
		{Resource: "cold throttle", Limit: 400, Algorithm: flow.Throttle, MaxWait: 50 * ms, WarmUp: flow.WarmUp{Period: 5 * time.Second}},
		{Resource: lineName, Limit: 200, Algorithm: flow.Throttle, MaxWait: 300 * ms},
		{Name: "layers: throttle", Resource: "layers", Limit: 600, Algorithm: flow.Throttle, MaxWait: 50 * ms},
		{Name: "layers: window", Resource: "layers", Limit: 300},
		{Name: "layers: bucket", Resource: "layers", Limit: 400, Algorithm: flow.TokenBucket, Burst: 40},
		{Name: "api: mobile", Resource: "api", Limit: 40, Origin: "mobile"},
		{Name: "api: others", Resource: "api", Limit: 200, Origin: flow.OtherOrigins},
		{Name: "api: all", Resource: "api", Limit: 250},
		{Resource: "write", Limit: busy + 50},
		{Resource: "read", Limit: busy, Related: "write"},
		{Resource: "shadow", Limit: 100, Shadow: true},
		{Match: "together:*", Limit: 300, Shared: true},
		{Match: "each:*", Limit: 20},
	}
}

// busy is how many writes in a second keep reads away.
const busy = 200

// changingRules change with every set; every version promises no more than the
// first, which has the number 0.
func changingRules(i int) []flow.Rule {
	const ms = time.Millisecond
	part := 1 / float64(1+i%3)
	return []flow.Rule{
		{Resource: "changing", Limit: 200 * part},
		{Resource: "changing strictly", Limit: 200 * part, Strict: true},
		{Resource: "changing bucket", Limit: 300 * part, Algorithm: flow.TokenBucket, Burst: 60 * part, MaxWait: 20 * ms},
		{Resource: "changing throttle", Limit: 400 * part, Algorithm: flow.Throttle, MaxWait: time.Duration(i%5*10) * ms},
	}
}

// passingRules come and go. They promise nothing that is held against them.
func passingRules(random *rand.Rand) (passing []flow.Rule) {
	const ms = time.Millisecond
	for _, r := range []flow.Rule{
		{Name: "passing: all", Match: "*", Limit: 1e6 + float64(random.IntN(3))},
		{Name: "passing: shadow", Match: "each:*", Limit: 1, Shadow: true},
		{Name: "passing: queue", Match: "name:*", Limit: 5000, Algorithm: flow.Throttle, MaxWait: 10 * ms, Shared: random.IntN(2) == 0},
		{Name: "passing: bucket", Match: "~^name:.*[02468]$", Limit: 500, Algorithm: flow.TokenBucket, MaxWait: 5 * ms},
		{Name: "passing: name", Resource: fmt.Sprint("name:", random.IntN(200)), Limit: 5},
		{Name: "passing: related", Resource: "name:1", Related: "sliding", Limit: 100},
		{Name: "passing: origin", Match: "name:?", Limit: 5, Origin: []string{"mobile", flow.OtherOrigins}[random.IntN(2)]},
	} {
		if random.IntN(2) == 0 {
			passing = append(passing, r)
		}
	}
	return passing
}

// crowdedRules are those of an engine whose resources are all taken: other names
// share one ceiling, and one account.
func crowdedRules() []flow.Rule {
	return []flow.Rule{{Match: "crowd:*", Limit: 100}}
}

// setOf returns the i-th set.
func setOf(i int, random *rand.Rand) rules.Set {
	set := rules.Set{Flow: append(steadyRules(), changingRules(i)...)}
	set.Flow = append(set.Flow, passingRules(random)...)
	random.Shuffle(len(set.Flow), func(i, j int) { set.Flow[i], set.Flow[j] = set.Flow[j], set.Flow[i] })
	return set
}

// inWords says what a rule is, briefly.
func inWords(r flow.Rule) string {
	kind := "sliding"
	switch {
	case r.Algorithm == flow.Throttle:
		kind = "throttle"
	case r.Algorithm == flow.TokenBucket && r.Burst > 0:
		kind = fmt.Sprintf("bucket of %v", r.Burst)
	case r.Algorithm == flow.TokenBucket:
		kind = "bucket"
	case r.Algorithm == flow.FixedWindow:
		kind = "fixed"
	case r.Strict:
		kind = "strict"
	}
	words := []string{kind}
	add := func(is bool, word string) {
		if is {
			words = append(words, word)
		}
	}
	add(r.Overdraft, "overdraft")
	add(r.WarmUp.Period > 0, "warm-up")
	add(r.Shared, "shared")
	add(r.Shadow, "shadow")
	add(r.Origin != "", "of "+r.Origin)
	return fmt.Sprintf("%s, %v in %v", strings.Join(words, ", "), r.Limit, r.Window)
}
