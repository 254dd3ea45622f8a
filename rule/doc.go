// Package rule is the contract between the engine and a kind of rule.
//
// A kind of rule, such as a rate limit or a circuit breaker, is a rule type R, which
// is a plain value that documents describe, and a [Limiter], which enforces one rule
// on one resource. A [Spec] describes both, and [Define] makes a [Type] of it. No other
// package knows the kind: documents are read, validated and written by the fields of the
// Spec, the engine asks the limiters about calls and keeps their state over reloads, and
// status, metrics and simulations show the gauges and states.
//
// A kind of your own is defined in the same way as the ones that come with Penstock:
//
//	func Kind() *rule.Type[Rule] {
//		return rule.Define(rule.Spec[Rule]{Kind: "deny", Phase: rule.PhaseAccess, …})
//	}
//
// and given to the engine in core.Config.Kinds. Its rules are then written in documents,
// in a list "deny", or in code, by [Type.Of]. The examples of package penstock have this
// kind as a whole, examples/quota has one with a limit for each value of an attribute, and
// package rule/kindtest tests what a kind has to keep to.
package rule
