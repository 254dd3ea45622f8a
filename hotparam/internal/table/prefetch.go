package table

import "github.com/penstock-go/penstock/internal/prefetch"

// Prefetch begins to load the first group of a value, and does not wait for it. It does not
// change what a call gets.
func (b *Buckets) Prefetch(hash uint64) { prefetch.Line(&b.groups[b.first(hash)]) }

// Prefetch begins to load the words of a value's first group, and does not wait for them. It
// does not change what a call gets.
func (w *Windows) Prefetch(hash uint64) { prefetch.Line(&w.words[w.first(hash)]) }

// Prefetch begins to load the first group of a value, and does not wait for it. It does not
// change what a call gets.
func (c *Concurrency) Prefetch(hash uint64) { prefetch.Line(&c.groups[c.first(hash)]) }
