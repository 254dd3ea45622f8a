// Package access is the kind of rule that says who may call at all.
//
// A [Rule] looks at one attribute of a call, the client's address unless it says another,
// and compares its value with entries: those that it denies, those that it allows, and
// those of a list that is loaded and replaced on its own; see the package list. A deny
// wins over an allow. A call that is refused cannot pass later either.
//
// [Kind] is what the engine knows of such rules.
package access
