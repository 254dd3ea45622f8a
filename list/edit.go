package list

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// Edited is what [Edit] has made of a text. The entries are as the caller wrote them.
type Edited struct {
	Added   []string // that the text did not have
	Present []string // that it had already
	Removed []string // that it has no longer
	Absent  []string // that it did not have either
	Ended   int      // lines that are left out because their entries have ended
}

// IsChanged says whether the text is another one.
func (e *Edited) IsChanged() bool { return len(e.Added)+len(e.Removed) > 0 }

// entryKey tells entries apart, however they are written.
type entryKey struct {
	addr   words
	length int
	is4    bool
	text   string
	isText bool
}

// Edit copies the text of a list with some entries added at its end and others taken out, each
// with its whole line. What is left stays byte for byte. An entry is one however it is written:
// 192.0.2.1 is 192.0.2.1/32, and "a" is a; but no address is taken out of a prefix. The entries
// are as they stand in a list. The text is not checked: [Parse] does that.
//
// An entry that is to be added with an end takes the place of one that ends earlier, and one without
// an end that of any that has one. Lines whose entries have ended are left out.
func Edit(ctx context.Context, from io.Reader, to io.Writer, add, remove []string) (Edited, error) {
	return editAt(ctx, clock.Instant(time.Now().UnixNano()), from, to, add, remove)
}

// editAt is [Edit] at an instant of the wall clock.
func editAt(ctx context.Context, now clock.Instant, from io.Reader, to io.Writer, add, remove []string) (Edited, error) {
	e := editor{to: bufio.NewWriter(to), now: now, add: map[entryKey]wanted{}, remove: map[entryKey]wanted{}}
	if err := errors.Join(e.wants(e.add, nil, add), e.wants(e.remove, e.add, remove)); err != nil {
		return Edited{}, err
	}
	lines := bufio.NewReaderSize(from, bufferSize)
	for line := 1; ; line++ {
		if err := context.Cause(ctx); line%checkEvery == 0 && err != nil {
			return Edited{}, err
		}
		text, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return Edited{}, fmt.Errorf("list: reading line %d: %w", line, err)
		}
		e.line(text, line == 1)
		if err != nil {
			return e.end(add, remove)
		}
	}
}

// editor edits one text.
type editor struct {
	to          *bufio.Writer
	now         clock.Instant
	add, remove map[entryKey]wanted // that were not found yet
	last        byte                // that was written
	ended       int                 // lines left out
}

// wanted is an entry as the caller wrote it, and its end.
type wanted struct {
	written string
	until   clock.Instant
}

// wants notes entries that the caller names, and that are not among others.
func (e *editor) wants(all, others map[entryKey]wanted, entries []string) error {
	for _, entry := range entries {
		if err := (&Builder{max: 1}).addEntry([]byte(entry)); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		key, until, ok := keyOf([]byte(entry))
		if line := withoutComment([]byte(entry)); !ok || string(line) != entry {
			return fmt.Errorf("list: %s is no entry as it stands in a list: write it without white space around it, and in quotes if it has a #", quote(entry))
		}
		if _, twice := others[key]; twice {
			return fmt.Errorf("list: %s is to be added and taken out", quote(entry))
		}
		if until != never && until <= e.now {
			return fmt.Errorf("list: %s has ended already", quote(entry))
		}
		all[key] = wanted{entry, until}
	}
	return nil
}

// keyOf returns the key of an entry and its end, and whether there is one.
func keyOf(entry []byte) (key entryKey, until clock.Instant, ok bool) {
	entry, until, err := cutEnd(entry)
	if err != nil || len(entry) == 0 {
		return entryKey{}, never, false
	}
	if entry[0] == '"' {
		text, err := strconv.Unquote(string(entry))
		return entryKey{text: text, isText: true}, until, err == nil
	}
	if addr, length, is4, ok := parsePrefix(entry); ok {
		return entryKey{addr: addr, length: length, is4: is4}, until, true
	}
	return entryKey{text: string(entry), isText: true}, until, true
}

// line copies a line, unless its entry is to be taken out, or has ended.
func (e *editor) line(text []byte, isFirst bool) {
	entry := text
	if isFirst {
		entry = bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	if key, until, ok := keyOf(withoutComment(entry)); ok {
		if until != never && until <= e.now {
			e.ended++
			return
		}
		if want, ok := e.add[key]; ok {
			if until != never && (want.until == never || want.until > until) {
				return // the one to be added takes its place
			}
			delete(e.add, key)
		}
		if _, ok := e.remove[key]; ok {
			e.remove[key] = wanted{}
			return
		}
	}
	e.write(text)
}

func (e *editor) write(text []byte) {
	if len(text) > 0 {
		_, _ = e.to.Write(text) // its error comes with Flush
		e.last = text[len(text)-1]
	}
}

// end writes what is to be added, and returns what was done.
func (e *editor) end(add, remove []string) (Edited, error) {
	done := Edited{Ended: e.ended}
	for _, entry := range add {
		key, _, _ := keyOf([]byte(entry))
		switch want, ok := e.add[key]; {
		case !ok:
			done.Present = append(done.Present, entry)
		case want.written == entry: // of those that are the same, the last one
			if e.last != 0 && e.last != '\n' {
				e.write([]byte("\n"))
			}
			e.write([]byte(entry + "\n"))
			delete(e.add, key)
			done.Added = append(done.Added, entry)
		}
	}
	for _, entry := range remove {
		key, _, _ := keyOf([]byte(entry))
		if e.remove[key] == (wanted{}) {
			done.Removed = append(done.Removed, entry)
		} else {
			done.Absent = append(done.Absent, entry)
		}
	}
	if e.last == 0 {
		e.write([]byte("# no entries\n"))
	}
	return done, e.to.Flush()
}
