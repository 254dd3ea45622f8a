package server

import (
	"runtime"
	"runtime/debug"
)

const (
	// mostGarbage is how many bytes of garbage there may be, and garbagePart how many more, in percent of
	// what is in use.
	mostGarbage = 32 << 20
	garbagePart = 10

	// unusedHeap is how many bytes of the heap are set aside, see boundGarbage.
	unusedHeap = mostGarbage * 100 / garbagePart

	usualGarbagePart = 100 // that of Go
)

// boundGarbage bounds the garbage. By itself Go lets there be as much as is in use: that is too little
// while requests only come and go, as the server itself uses a few megabytes and would spend a fifth of its time
// collecting, and too much when it has many streams. So it sets memory aside that is never touched,
// and so takes addresses only: the collector takes it for used, and gets along with a small part of
// all. What is returned ends that. Nothing is done if the environment says how the collector works.
func boundGarbage(getenv func(string) string) (end func()) {
	if getenv("GOGC") != "" || getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	debug.SetGCPercent(garbagePart)
	aside := make([]byte, unusedHeap)
	return func() {
		debug.SetGCPercent(usualGarbagePart)
		runtime.KeepAlive(aside)
	}
}
