// Package fault injects faults into calls: a share of them is delayed, refused, or both,
// until a given time.
//
// It shows how a service copes with a slow or failing dependency before that happens by
// itself: a [Rule] on the resource of the dependency makes some of its calls slow, and
// timeouts, retries and circuit breakers of the callers have to deal with that. The rule
// ends by itself, and an operator can stop one rule, or all rules of the kind, at once.
package fault
