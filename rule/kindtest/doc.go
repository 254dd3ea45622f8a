// Package kindtest is the suite that every kind of rules passes: the promises of package rule,
// and what the engine and its users rely on. It asks limiters as the engine does, on a clock of its
// own, and runs the rules in a real engine.
//
// The test of a kind tells the suite which rules to try, and how many calls each lets pass:
//
//	func TestKindKeepsThePromisesOfKinds(t *testing.T) {
//		kindtest.Run(t, kindtest.Options{
//			Kind: quota.Kind(),
//			Rules: []kindtest.Rule{{
//				Rule:   quota.Kind().Of(quota.Rule{Resource: "report", PerDay: 5}),
//				Passes: 5, Again: 24 * time.Hour,
//				Stricter: quota.Kind().Of(quota.Rule{Resource: "report", PerDay: 3}),
//			}},
//		})
//	}
//
// Rules that follow the time of day say when the tests are to begin, by [Rule.Start]; those whose calls wait for other
// calls say how one comes, by [Rule.Release].
//
// What limiters can do beside [rule.Limiter] is tested of those that have the methods of [rule.Queue],
// [rule.Finisher], [rule.QuotaReader], [rule.Activator], [rule.Retirer] or [rule.Controllable]. The package
// needs nothing but the standard library and Penstock.
package kindtest
