package signal

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/rule"
)

// Map is a source that calls a function for each signal: for signals of your own, and for
// tests. An engine calls them one after the other, from one goroutine at a time. Those that
// wait for something end with the context: until then no other signal is read.
type Map map[rule.Signal]func(ctx context.Context) (float64, error)

// Read calls the function of the signal.
func (m Map) Read(ctx context.Context, signal rule.Signal) (float64, error) {
	if read := m[signal]; read != nil {
		return read(ctx)
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

func (o override) Read(ctx context.Context, signal rule.Signal) (float64, error) {
	if o.with[signal] != nil {
		return o.with.Read(ctx, signal)
	}
	return o.base.Read(ctx, signal)
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
