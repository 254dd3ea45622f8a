package list

import (
	"context"
	"errors"
	"io"
	"net/netip"

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

// AddPrefix adds all addresses of a prefix. Bits beyond its length count for nothing.
func (b *Builder) AddPrefix(p netip.Prefix) error {
	if !p.IsValid() {
		return errors.New("list: the prefix is not valid")
	}
	addr, length := p.Addr(), p.Bits()
	if addr.Is4In6() && length >= 96 {
		addr, length = addr.Unmap(), length-96
	}
	prefix := wordsOf6(addr)
	if addr.Is4() {
		prefix = wordsOf4(addr)
	}
	return prefixed(b.addPrefix(prefix.masked(length), length, addr.Is4(), never))
}

// StatusOf returns how the list of one provider is; false if it has none.
func (r *Registry) StatusOf(name string, from Provider) (Status, bool) {
	for _, s := range r.Status(name) {
		if s.Provider == from {
			return s, true
		}
	}
	return Status{}, false
}
