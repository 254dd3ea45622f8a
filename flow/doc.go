// Package flow holds the rate ceilings: the [Rule] that states one, and the
// controllers that enforce it.
package flow
