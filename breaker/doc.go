// Package breaker is the kind of rule that stops calling what does not work: a circuit
// breaker.
//
// A breaker is closed at first: calls pass, and it counts how they end. When too many
// of them were bad (see [Strategy]) it opens, and refuses all calls for a while. Then
// it is half-open: a few calls pass as probes, all others are refused. If all probes
// end well it closes; if one ends badly, or takes too long to end, it opens again.
//
// A [Rule] says what is bad, how much of that is too much, and how long the breaker
// stays open. [Kind] is what the engine knows of such rules.
package breaker
