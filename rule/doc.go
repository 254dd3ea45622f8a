// Package rule is the contract between the engine and a kind of rule.
//
// A kind of rule, such as a rate limit or a circuit breaker, is a rule type R, which
// is a plain value that documents describe, and a [Limiter], which enforces one rule
// on one resource. [Define] makes a [Type] of the two. From what the type says of
// itself everything else follows: documents are read, judged and written by its
// fields, the engine asks its limiters about calls and keeps their state over
// reloads, and status, metrics and simulations show what they do.
//
// A kind of your own is defined in the same way as the ones that come with Penstock:
//
//	func Kind() *rule.Type[Rule] {
//		return rule.Define(rule.Spec[Rule]{Kind: "quota", Phase: rule.PhaseRate, …})
//	}
//
// and given to the engine in core.Config.Kinds. Rules of it then come from documents,
// in a list of that name, or from code, by [Type.Of]. The examples of package penstock
// have a whole kind.
package rule
