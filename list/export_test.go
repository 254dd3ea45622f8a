package list

import (
	"context"
	"io"

	"github.com/penstock-go/penstock/clock"
)

// EditAt is editAt, which tests give the time.
func EditAt(ctx context.Context, now clock.Instant, from io.Reader, to io.Writer, add, remove []string) (Edited, error) {
	return editAt(ctx, now, from, to, add, remove)
}

// Bounds that tests look at from outside.
const (
	MaxLine     = maxLine
	MaxMistakes = maxMistakes
	MaxName     = maxName
	MaxText     = maxText
)
