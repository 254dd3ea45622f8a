// Package each calls code of the program for all of a list.
package each

// Of calls fn, which is or calls code of the program, for all of a list, also for those behind one
// for which fn panics.
func Of[T any](list []T, fn func(T)) {
	i := 0
	defer func() {
		if i < len(list) {
			Of(list[i+1:], fn)
		}
	}()
	for ; i < len(list); i++ {
		fn(list[i])
	}
}
