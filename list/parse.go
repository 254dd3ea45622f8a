package list

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// What a text may have.
const (
	maxLine = 8192    // bytes of a line, comments included
	MaxSize = 1 << 30 // bytes of a text
)

// Options are what [Parse] may be told. The zero value is a good one.
type Options struct {
	// MaxEntries is the most entries that the list may have. Defaults to 10,000,000,
	// and is never more.
	MaxEntries int

	// MaxSize is the most bytes that the text may have. Defaults to the package's
	// [MaxSize], and is never more.
	MaxSize int64

	// Progress is called now and then while the text is read, and once when all of it
	// has been; building the list takes about as long again. nil: nobody is interested.
	Progress func(Progress)
}

func (o Options) withDefaults() Options {
	if o.MaxEntries <= 0 || o.MaxEntries > maxEntries {
		o.MaxEntries = maxEntries
	}
	if o.MaxSize <= 0 || o.MaxSize > MaxSize {
		o.MaxSize = MaxSize
	}
	return o
}

// Progress is how far [Parse] has come.
type Progress struct {
	Lines   int   // that were read
	Entries int   // among them
	Bytes   int64 // that were read
}

// Parse reads the text of a list from its start to its end; see the package comment. The
// error is an [*Error] with all mistakes, that of the reader, or that of the context,
// which is looked at every few thousand lines; see also [Builder.Build]. There is either
// a list or an error, never a part of a list.
func Parse(ctx context.Context, r io.Reader, o Options) (*List, error) {
	o = o.withDefaults()
	p := parser{lines: bufio.NewReaderSize(r, bufferSize), options: o, builder: Builder{max: o.MaxEntries}}
	if err := p.read(ctx); err != nil {
		return nil, err
	}
	if p.mistakes.Count > 0 {
		return nil, &p.mistakes
	}
	return p.builder.Build(ctx)
}

const (
	bufferSize    = 1 << 16 // more than MaxLine
	progressEvery = 1 << 16 // lines
)

// parser reads one text.
type parser struct {
	lines    *bufio.Reader
	options  Options
	builder  Builder
	line     int   // the present one
	bytes    int64 // that were read
	mistakes Error
}

// read reads all lines, or as many as the list may have.
func (p *parser) read(ctx context.Context) error {
	for more := true; more; {
		if p.line%checkEvery == 0 {
			if err := context.Cause(ctx); err != nil {
				return fmt.Errorf("list: reading was given up: %w", err)
			}
		}
		line, err := p.next()
		switch {
		case errors.Is(err, io.EOF):
			more = false
			if len(line) == 0 {
				p.line-- // the last line has an end, or there is no line at all
			}
		case err != nil:
			return fmt.Errorf("list: reading line %d: %w", p.line, err)
		}
		if p.bytes > p.options.MaxSize {
			p.mistakes.add(p.line, fmt.Sprintf("the text has more than %d bytes, which is the most: what follows was not read", p.options.MaxSize))
			return nil
		}
		if !p.take(line) {
			return nil
		}
		if p.options.Progress != nil && (p.line%progressEvery == 0 || !more) {
			p.options.Progress(Progress{Lines: p.line, Entries: p.builder.list.entries, Bytes: p.bytes})
		}
	}
	return nil
}

// next returns the next line. It is valid until the one after. [io.EOF] comes with the
// last line.
func (p *parser) next() ([]byte, error) {
	p.line++
	line, err := p.lines.ReadSlice('\n')
	p.bytes += int64(len(line))
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	for errors.Is(err, bufio.ErrBufferFull) && p.bytes <= p.options.MaxSize {
		var more []byte
		more, err = p.lines.ReadSlice('\n')
		p.bytes += int64(len(more))
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil // the text is too long
	}
	return line, err // what is left of it is longer than MaxLine
}

// take adds the entry of a line, if there is one. It returns false when no further one
// can be added.
func (p *parser) take(line []byte) bool {
	if p.line == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if len(line) > maxLine {
		p.mistakes.add(p.line, fmt.Sprintf("the line is longer than %d bytes", maxLine))
		return true
	}
	entry := withoutComment(line)
	if len(entry) == 0 {
		return true
	}
	err := p.builder.addEntry(entry)
	var end *endError
	switch {
	case errors.As(err, &end):
		before := line[:cap(line)-cap(entry)+end.at] // entry is a part of line
		p.mistakes.addAt(p.line, utf8.RuneCount(before)+1, err.Error())
	case err != nil:
		p.mistakes.add(p.line, err.Error())
	}
	return !errors.Is(err, errFull)
}
