package table

import "github.com/penstock-go/penstock/internal/prefetch"

// Prefetch begins to load what tells the slot of a value, and does not wait for it. It does not
// change what a call gets.
func (b *Buckets) Prefetch(hash uint64) { prefetchGroups(b.groups, b.key(hash, tagMask)) }

// Prefetch is [Buckets.Prefetch].
func (w *Windows) Prefetch(hash uint64) { prefetchGroups(w.words, w.key(hash, windowTagMask)) }

// Prefetch is [Buckets.Prefetch].
func (c *Concurrency) Prefetch(hash uint64) { prefetchGroups(c.groups, c.key(hash, countTagMask)) }

// prefetchGroups begins to load both groups of a value: when a table is full, every fifth value is
// in the second one.
func prefetchGroups[G any](groups []G, k key) {
	prefetch.Line(&groups[k.first])
	prefetch.Line(&groups[k.second])
}
