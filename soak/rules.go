package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// maxTokens returns the highest number of tokens that a call of the resource takes.
func maxTokens(resource string) int {
	switch resource {
	case "sliding", "strict", "bucket", "overdraft", "layers":
		return 3
	}
	return 1
}

// steadyRules are always in force and never change: one of every kind.
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
		{Resource: queueName, Limit: 200, Algorithm: flow.Throttle, MaxWait: 300 * ms},
		{Name: "layers: throttle", Resource: "layers", Limit: 600, Algorithm: flow.Throttle, MaxWait: 50 * ms},
		{Name: "layers: window", Resource: "layers", Limit: 300},
		{Name: "layers: bucket", Resource: "layers", Limit: 400, Algorithm: flow.TokenBucket, Burst: 40},
		{Name: "api: mobile", Resource: "api", Limit: 40, Origin: "mobile"},
		{Name: "api: others", Resource: "api", Limit: 200, Origin: rule.OtherOrigins},
		{Name: "api: all", Resource: "api", Limit: 250},
		{Resource: "write", Limit: busyWrites + 50},
		{Resource: "read", Limit: busyWrites, Related: "write"},
		{Resource: "shadow", Limit: 100, Shadow: true},
		{Match: "together:*", Limit: 300, Shared: true},
		{Match: "each:*", Limit: 20},
	}
}

// busyWrites is how many writes in a second block reads.
const busyWrites = 200

// changingRules change with every set. No version has higher limits than the first,
// which has the number 0.
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

// temporaryRules are added and removed at random. Their limits are not checked.
func temporaryRules(random *rand.Rand) (temporary []flow.Rule) {
	const ms = time.Millisecond
	for _, r := range []flow.Rule{
		{Name: "temporary: all", Match: "*", Limit: 1e6 + float64(random.IntN(3))},
		{Name: "temporary: shadow", Match: "each:*", Limit: 1, Shadow: true},
		{Name: "temporary: queue", Match: "name:*", Limit: 5000, Algorithm: flow.Throttle, MaxWait: 10 * ms, Shared: random.IntN(2) == 0},
		{Name: "temporary: bucket", Match: "~^name:.*[02468]$", Limit: 500, Algorithm: flow.TokenBucket, MaxWait: 5 * ms},
		{Name: "temporary: name", Resource: fmt.Sprint("name:", random.IntN(200)), Limit: 5},
		{Name: "temporary: related", Resource: "name:1", Related: "sliding", Limit: 100},
		{Name: "temporary: origin", Match: "name:?", Limit: 5, Origin: []string{"mobile", rule.OtherOrigins}[random.IntN(2)]},
	} {
		if random.IntN(2) == 0 {
			temporary = append(temporary, r)
		}
	}
	return temporary
}

// crowdedRules are those of the engine that reaches MaxResources: all further names
// share one limit and one set of statistics.
func crowdedRules() []flow.Rule {
	return []flow.Rule{{Match: "crowd:*", Limit: 100}}
}

// setOf returns the i-th set.
func setOf(i int, random *rand.Rand) rules.Set {
	set := rules.Set{Flow: append(steadyRules(), changingRules(i)...)}
	set.Flow = append(set.Flow, temporaryRules(random)...)
	random.Shuffle(len(set.Flow), func(i, j int) { set.Flow[i], set.Flow[j] = set.Flow[j], set.Flow[i] })
	return set
}

// describe describes a rule briefly.
func describe(r flow.Rule) string {
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
