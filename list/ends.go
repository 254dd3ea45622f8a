package list

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// maxEnds is how many entries of a list may have an end.
const maxEnds = 1_000_000

// ends are the entries of a list that have an end. They never change: one that has ended is not on
// the list any more, whoever asks. Of the same entries the one that ends last counts.
type ends struct {
	v4, v6 prefixEnds
	texts  map[string]clock.Instant

	// When entries end, in order: those that are addresses, and the texts.
	addrs, others []clock.Instant

	textBytes int64
}

// prefixEnds are prefixes and when they end.
type prefixEnds struct {
	lengths []int // that prefixes have
	until   map[prefix]clock.Instant
}

type prefix struct {
	addr   words
	length int
}

func (e *prefixEnds) add(p prefix, until clock.Instant) {
	if e.until == nil {
		e.until = make(map[prefix]clock.Instant)
	}
	if !slices.Contains(e.lengths, p.length) {
		e.lengths = append(e.lengths, p.length)
	}
	e.until[p] = max(e.until[p], until)
}

// contains says whether an address is in one of the prefixes at an instant.
func (e *prefixEnds) contains(addr words, at clock.Instant) bool {
	for _, length := range e.lengths {
		if at < e.until[prefix{addr.masked(length), length}] {
			return true
		}
	}
	return false
}

// contains says whether an address is in one of the prefixes at an instant. e may be nil.
func (e *ends) contains(addr words, is4 bool, at clock.Instant) bool {
	switch {
	case e == nil:
		return false
	case is4:
		return e.v4.contains(addr, at)
	}
	return e.v6.contains(addr, at)
}

// ended returns how many entries have ended by an instant. e may be nil.
func (e *ends) ended(at clock.Instant) (addrs, texts int) {
	if e == nil {
		return 0, 0
	}
	return countUntil(e.addrs, at), countUntil(e.others, at)
}

// countUntil returns how many of sorted instants are not after another one.
func countUntil(sorted []clock.Instant, at clock.Instant) int {
	count, _ := slices.BinarySearch(sorted, at+1)
	return count
}

// len returns how many entries there are, also those that have ended. e may be nil.
func (e *ends) len() int {
	if e == nil {
		return 0
	}
	return len(e.addrs) + len(e.others)
}

// size returns about how many bytes of memory the entries take.
func (e *ends) size() int64 {
	if e == nil {
		return 0
	}
	const each = 90 // bytes of an entry in a map, and of its instant
	return each*int64(e.len()) + e.textBytes
}

// sort makes the counts of the entries that have ended possible.
func (e *ends) sort() {
	if e != nil {
		slices.Sort(e.addrs)
		slices.Sort(e.others)
	}
}

// ends returns the entries with an end, to which one is to be added.
func (b *Builder) ends() (*ends, error) {
	if b.list.ends == nil {
		b.list.ends = new(ends)
	}
	if b.list.ends.len() >= maxEnds {
		return nil, fmt.Errorf("%w: at most %d have an end", errFull, maxEnds)
	}
	return b.list.ends, b.count()
}

func (b *Builder) addPrefixUntil(addr words, length int, is4 bool, until clock.Instant) error {
	e, err := b.ends()
	if err != nil {
		return err
	}
	b.list.addrs++
	e.addrs = append(e.addrs, until)
	if is4 {
		e.v4.add(prefix{addr, length}, until)
	} else {
		e.v6.add(prefix{addr, length}, until)
	}
	return nil
}

func (b *Builder) addTextUntil(text []byte, until clock.Instant) error {
	e, err := b.ends()
	if err != nil {
		return err
	}
	if e.texts == nil {
		e.texts = make(map[string]clock.Instant)
	}
	if _, known := e.texts[string(text)]; !known {
		e.textBytes += int64(len(text))
	}
	e.others = append(e.others, until)
	e.texts[string(text)] = max(e.texts[string(text)], until)
	return nil
}

// never is the end of an entry without one.
const never = clock.Instant(0)

// endError says what is wrong with the end of an entry, which begins at a byte of it.
type endError struct {
	at      int
	message string
}

func (e *endError) Error() string { return e.message }

// cutEnd splits an entry from its end, as in 203.0.113.9 until 2026-12-01T00:00:00Z. Without one,
// until is never.
func cutEnd(entry []byte) (bare []byte, until clock.Instant, err error) {
	bare, text, at := splitEnd(entry)
	if at < 0 {
		return entry, never, nil
	}
	t, err := time.Parse(time.RFC3339, string(text))
	_, _, former := splitEnd(bare)
	switch {
	case former >= 0:
		return bare, never, &endError{at, "until is there twice: an entry has one end; put the entry in quotes if it is a text"}
	case err != nil:
		return bare, never, &endError{at, fmt.Sprintf(
			"%s is no time: write one such as 2026-12-01T00:00:00Z after until; put the entry in quotes if it is a text", quote(string(text)))}
	case t.Before(time.Unix(1, 0)) || t.After(clock.Instant(1<<63-1).Time()):
		return bare, never, &endError{at, fmt.Sprintf("%s must be from 1970 to 2262", quote(string(text)))}
	}
	return bare, clock.Instant(t.UnixNano()), nil
}

// splitEnd splits an entry at the last word "until" that is not in quotes. at is where the text of
// the end begins, -1 if there is none.
func splitEnd(entry []byte) (bare, text []byte, at int) {
	const word = "until"
	from := 0
	if len(entry) > 0 && entry[0] == '"' {
		quoted, err := strconv.QuotedPrefix(string(entry))
		if err != nil {
			return entry, nil, -1
		}
		from = len(quoted)
	}
	for end := len(entry); ; {
		i := bytes.LastIndex(entry[from:end], []byte(word))
		if i < 0 {
			return entry, nil, -1
		}
		i += from
		behind := i + len(word)
		if i > 0 && isBlank(entry[i-1]) && (behind == len(entry) || isBlank(entry[behind])) {
			text = bytes.TrimLeft(entry[behind:], " \t")
			return bytes.TrimRight(entry[:i], " \t"), text, len(entry) - len(text)
		}
		end = i
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
