package lastgood

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// Load reads a copy of any application and source.
func Load(path string) (core.Change, error) {
	c, err := load(path)
	if err != nil {
		return core.Change{}, err
	}
	return c.change(), nil
}

// Copy is a copy with any contents.
type Copy struct {
	App, Source string
	Revision    int64
	At          time.Time
	Documents   []core.Document
}

// Save saves it.
func (c Copy) Save(path string) error {
	data, err := encode(&contents{c.App, c.Source, c.Revision, clock.Instant(c.At.UnixNano()), c.Documents})
	if err != nil {
		return err
	}
	return replace(path, data)
}

// Decode reads one.
func Decode(data []byte) (Copy, error) {
	c, err := decode(data)
	if err != nil {
		return Copy{}, err
	}
	return Copy{c.app, c.source, c.revision, c.at.Time(), c.documents}, nil
}

// NeverRead returns the sink of a run that never reads its copy.
func NeverRead(source core.Source, engine core.Sink) core.Sink {
	return newRun(source.(*keeper), engine)
}

// Bounds that tests look at from outside.
const (
	MaxSize = maxSize
)
