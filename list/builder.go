package list

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock-go/penstock/clock"
)

// What a list may have.
const (
	maxEntries = 10_000_000
	maxText    = 1024 // bytes of an exact text
)

// Builder collects the entries of a list. The zero value has none. It must not be used
// concurrently.
type Builder struct {
	max    int // entries; 0: MaxEntries
	list   List
	v4, v6 familyBuilder
	kind   entryKind // of the entries that Add was given without quotes
	first  string    // of these, to quote
}

// Add adds an entry as the text of a list has it: an address, a prefix, a text, or a
// text in quotes, perhaps with an end. See the package comment.
func (b *Builder) Add(entry string) error { return prefixed(b.addEntry([]byte(entry))) }

// AddText adds an exact text of at most 1024 bytes, whatever it looks like.
func (b *Builder) AddText(text string) error { return prefixed(b.addText([]byte(text), never)) }

// prefixed returns an error as exported methods do.
func prefixed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("list: %w", err)
}

// Build returns the list, and leaves the builder empty. The error is that of a context
// that ends meanwhile; it is looked at every few thousand entries, but not while entries
// are sorted, which takes a few seconds for millions.
func (b *Builder) Build(ctx context.Context) (*List, error) {
	built := b.list
	built.ends.sort()
	var err error
	if built.v4, err = b.v4.build(ctx); err == nil {
		if built.v6, err = b.v6.build(ctx); err == nil {
			err = built.texts.index(ctx, built.permanentTexts())
		}
	}
	*b = Builder{max: b.max}
	if err != nil {
		return nil, fmt.Errorf("list: building was given up: %w", err)
	}
	return &built, nil
}

// addPrefix adds a prefix without bits beyond its length.
func (b *Builder) addPrefix(addr words, length int, is4 bool, until clock.Instant) error {
	if until != never {
		return b.addPrefixUntil(addr, length, is4, until)
	}
	if err := b.count(); err != nil {
		return err
	}
	b.list.addrs++
	if is4 {
		b.v4.add(addr, length)
	} else {
		b.v6.add(addr, length)
	}
	return nil
}

func (b *Builder) addText(text []byte, until clock.Instant) error {
	if len(text) > maxText {
		return fmt.Errorf("%s has %d bytes: a text has at most %d", quote(string(text)), len(text), maxText)
	}
	if until != never {
		return b.addTextUntil(text, until)
	}
	if err := b.count(); err != nil {
		return err
	}
	if !b.list.texts.add(text) {
		b.list.entries--
		return fmt.Errorf("%w: the texts have more than 4 GiB together", errFull)
	}
	return nil
}

// errFull says that there are too many entries.
var errFull = errors.New("too many entries")

func (b *Builder) count() error {
	most := b.max
	if most == 0 {
		most = maxEntries
	}
	if b.list.entries >= most {
		return fmt.Errorf("%w: the most is %d", errFull, most)
	}
	b.list.entries++
	return nil
}
