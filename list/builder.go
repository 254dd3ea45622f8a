package list

import (
	"context"
	"net/netip"
)

// Builder collects the entries of a list. The zero value has none. It must not be used
// concurrently.
type Builder struct{ list List }

// AddPrefix adds all addresses of a prefix, which must be valid. Bits beyond its length
// count for nothing.
func (b *Builder) AddPrefix(p netip.Prefix) {
	b.list.nets = append(b.list.nets, p.Masked())
	b.list.entries++
}

// AddText adds an exact text of at most [MaxText] bytes.
func (b *Builder) AddText(text string) {
	if b.list.texts == nil {
		b.list.texts = make(map[string]struct{})
	}
	b.list.texts[text] = struct{}{}
	b.list.entries++
}

// Len returns how many entries have been added.
func (b *Builder) Len() int { return b.list.entries }

// Build returns the list, and leaves the builder empty. The error is that of a context
// that ends meanwhile.
func (b *Builder) Build(ctx context.Context) (*List, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	built := b.list
	b.list = List{}
	return &built, nil
}
