package snapshot

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Options are what sources made of this package have in common. The zero value is ready
// to use.
type Options struct {
	// MaxDocuments is how many documents the store may hold. If there are more, none of
	// them is applied and the source counts as disconnected until there are fewer.
	// Defaults to 10,000.
	MaxDocuments int

	// MinBackoff and MaxBackoff bound the pause before another attempt, as in
	// [retry.Backoff]. The limit of the pauses starts at MinBackoff again after a
	// connection that has lasted for MaxBackoff. Default to 100 ms and 5 s.
	MinBackoff time.Duration
	MaxBackoff time.Duration

	// Clock times the pauses. Defaults to [clock.System].
	Clock clock.Clock
}

// Complete returns the options with the defaults filled in, or all their mistakes.
// Errors begin with the name of a package.
func (o Options) Complete(pkg string) (Options, error) {
	faults := []error{
		NotNegative(pkg, "MaxDocuments", o.MaxDocuments),
		NotNegative(pkg, "MinBackoff", o.MinBackoff),
		NotNegative(pkg, "MaxBackoff", o.MaxBackoff),
	}
	if o.MaxDocuments == 0 {
		o.MaxDocuments = 10_000
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = max(o.MinBackoff, 5*time.Second)
	}
	if o.MinBackoff == 0 {
		o.MinBackoff = min(o.MaxBackoff, 100*time.Millisecond)
	}
	if o.MinBackoff > o.MaxBackoff {
		faults = append(faults, fmt.Errorf("%s: Options.MinBackoff %v is longer than MaxBackoff %v", pkg, o.MinBackoff, o.MaxBackoff))
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o, errors.Join(faults...)
}

// NotNegative returns an error if an option is negative.
func NotNegative[T int | time.Duration](pkg, field string, value T) error {
	if value >= 0 {
		return nil
	}
	return fmt.Errorf("%s: Options.%s is negative: leave it out for the default", pkg, field)
}

// Document returns a document with its text, or one with an error if the text is longer
// than [rules.MaxDocumentSize], or the name than [rule.MaxNameLength]: of such a name it
// has the beginning and a digest, as it stands in every status and report.
func Document(pkg, name string, data []byte) core.Document {
	if len(name) > rule.MaxNameLength {
		short := shorten(name)
		return core.Document{Name: short, Err: fmt.Errorf("%s: the name of document %q has %d bytes, at most %d are read: shorten it",
			pkg, short, len(name), rule.MaxNameLength)}
	}
	if len(data) > rules.MaxDocumentSize {
		return core.Document{Name: name, Err: fmt.Errorf("%s: document %q has %d bytes, at most %d are read: split the document",
			pkg, name, len(data), rules.MaxDocumentSize)}
	}
	return core.Document{Name: name, Data: data}
}

// shorten returns the beginning of a name, and a digest that tells it from others.
func shorten(name string) string {
	const shown = 200 // bytes
	digest := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s…%x", strings.ToValidUTF8(name[:shown], ""), digest[:8])
}
