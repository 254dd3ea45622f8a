// Package unordered has lists whose order does not matter.
package unordered

import "slices"

// Remove removes what is at an index of a list, and returns what has taken its place: the last one.
func Remove[T any](list *[]T, at int) (moved T) {
	last := len(*list) - 1
	moved = (*list)[last]
	(*list)[at] = moved
	*list = slices.Delete(*list, last, last+1)
	return moved
}
