package signal

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/rule"
)

// Map is a source that calls a function for each signal: for signals of your own, and for
// tests. An engine calls them one after the other, from one goroutine at a time. They must
// not block: the other signals of the engine wait for them.
type Map map[rule.Signal]func() (float64, error)

// Read calls the function of the signal.
func (m Map) Read(signal rule.Signal) (float64, error) {
	if read := m[signal]; read != nil {
		return read()
	}
	return 0, fmt.Errorf("signal: %q: there is no such signal; known are %s", string(signal), list(slices.Collect(maps.Keys(m))))
}

// Override returns a source that has the signals of the map from there, and all others from
// base.
func Override(base Source, with Map) Source { return override{base, maps.Clone(with)} }

type override struct {
	base Source
	with Map
}

func (o override) Read(signal rule.Signal) (float64, error) {
	if o.with[signal] != nil {
		return o.with.Read(signal)
	}
	return o.base.Read(signal)
}

// list returns signals by name, as a text.
func list(signals []rule.Signal) string {
	names := make([]string, len(signals))
	for i, s := range signals {
		names[i] = string(s)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
