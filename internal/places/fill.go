package places

import "slices"

// fill divides a number of places among those that want some: who wants no more than an even part
// has what it wants, the others have the same, to within one place. The places that are left when
// all have the same go to those who come first in the order. It returns the parts, and how many
// places these were.
func fill(wants []int64, total int64, order []int) (parts []int64, left int64) {
	parts = make([]int64, len(wants))
	byWant := make([]int, len(wants))
	for i := range byWant {
		byWant[i] = i
	}
	slices.SortFunc(byWant, func(a, b int) int { return int(wants[a] - wants[b]) })
	count := int64(len(wants))
	for _, i := range byWant {
		if wants[i]*count > total {
			break
		}
		parts[i] = wants[i]
		total -= wants[i]
		count--
	}
	if count == 0 {
		return parts, 0
	}
	level, left := total/count, total%count
	remaining := left
	for _, i := range order {
		if parts[i] == wants[i] { // has all that it wants
			continue
		}
		if parts[i] = level; remaining > 0 {
			parts[i]++
			remaining--
		}
	}
	return parts, left
}
