package server

// unusedHeap is how many bytes of the heap are set aside, see setAside.
const unusedHeap = 32 << 20

// setAside returns memory that is never touched, and so takes addresses only. While somebody refers to
// it, the garbage collector takes it for used and runs each time that requests have allotted as much
// again, which is how much garbage there may be, in place of after a few hundred requests: the server
// itself uses a few megabytes, and a fifth of its time would go into collections. It returns nil if the
// environment says how the collector works.
func setAside(getenv func(string) string) []byte {
	if getenv("GOGC") != "" || getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, unusedHeap)
}
