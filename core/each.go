package core

// each calls fn, which is or calls code of the program, for all of a list, also for those behind one
// for which fn panics.
func each[T any](list []T, fn func(T)) {
	i := 0
	defer func() {
		if i < len(list) {
			each(list[i+1:], fn)
		}
	}()
	for ; i < len(list); i++ {
		fn(list[i])
	}
}
