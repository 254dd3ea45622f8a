// Package isolation limits how many calls are under way at once.
//
// A [Rule] gives its resource a number of places. A call takes one place when it
// passes, whatever its tokens, and frees it when it ends. A call that finds no free
// place is refused or, with [Rule.MaxWait], waits in a queue until a call that ends
// hands over its place.
//
// What holds under any number of goroutines and over reloads:
//
//   - There are never more than Limit calls under way. When a reload lowers the
//     limit, calls that are under way may finish, and no call passes until fewer
//     than the new limit are. When it raises the limit, waiting calls pass at once.
//   - While a call waits, no place is free. A place that becomes free goes to a call of
//     the highest priority that waits, and among these by the [Order] of the rule. When
//     seven places in a row have gone to the highest priority while a call of a lower one
//     waited, the next one goes to the first of all those that have a lower one.
//   - When the queue is full, a call may join it that is more important than another one
//     that waits: the last one of the lowest priority makes way and is refused.
//   - A wait ends with a place, after MaxWait, or when the caller gives up. A place
//     that is freed at exactly the end of MaxWait is still handed over.
//
// With [Rule.MaxAge] a place counts as given back when its call has held it for so long. The end of
// the call gives nothing back then.
//
// A call keeps its place while it waits for rules that are asked later, such as a
// throttle.
//
// Names beyond an engine's bound on resources share one limiter under a pattern. When
// such a name comes to have a resource of its own, its limiter starts with no calls under
// way; the shared one counts the earlier calls until they end. Until then more than Limit
// calls of the name can be under way. The excess is at most Limit for all such names
// together, as the shared limiter never lets more pass.
package isolation
