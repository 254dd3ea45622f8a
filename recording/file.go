package recording

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// magic begins each file, before the number of the version.
const magic = "penstock calls\n"

// version is the version of the files that [Write] writes. [Read] reads it and those before.
const version = 1

// The bounds of what [Read] reads.
const (
	maxCalls      = 16 << 20
	maxNames      = 1 << 16
	maxValues     = 1 << 22
	maxNameLength = 4096
	maxTextTotal  = 256 << 20 // bytes of all names and values
	maxAttributes = 16        // of a call
	minCallSize   = 3         // bytes of the file
)

var (
	errMixed   = errors.New("recording: some recordings have hashes of values, and others the values: they cannot be one")
	errTooMany = errors.New("recording: the instances have more than 65,536 different names: record fewer of them at once")
)

// formatError says that a file is no recording, or is damaged.
type formatError struct {
	Offset int64 // in the file, of what is wrong
	What   string
	Err    error // of the reader, such as io.ErrUnexpectedEOF; nil if the content is wrong
}

// Error tells where the file is wrong, and how.
func (e *formatError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("recording: at byte %d: %s: %v", e.Offset, e.What, e.Err)
	}
	return fmt.Sprintf("recording: at byte %d: %s", e.Offset, e.What)
}

// Unwrap returns the error of the reader.
func (e *formatError) Unwrap() error { return e.Err }

// The bits of the head of a call.
const (
	headOutcome  = 0 // two bits
	headPriority = 2 // three bits
	headWait     = 1 << 5
	headPatience = 1 << 6
	headEnded    = 1 << 7
	headSettled  = 1 << 8
	headMore     = 1 << 9 // an origin, other tokens than 1, attributes
	headFacts    = 10     // six bits
	headBits     = 16
)

// The kinds of values.
const (
	valueText = iota
	valueNumber
	valueFalse
	valueTrue
)

func newChecksum() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// Write writes a recording. Its calls must be in the order of their instants.
func Write(w io.Writer, r *Recording) error {
	out := &writer{crc: newChecksum()}
	out.to = bufio.NewWriterSize(io.MultiWriter(w, out.crc), 64<<10)
	out.text(magic)
	out.number(version)
	hashed := uint64(0)
	if r.Hashed {
		hashed = 1
	}
	out.number(hashed)
	out.names(r.Keys)
	out.names(r.Resources)
	if len(r.Origins) == 0 {
		out.names([]string{""}) // that of calls without one
	} else {
		out.names(r.Origins)
	}
	out.number(uint64(len(r.Rules)))
	for _, rule := range r.Rules {
		out.name(rule.Kind)
		out.name(rule.Name)
	}
	out.values(r.Values)
	out.number(uint64(len(r.Instances)))
	for i := range r.Instances {
		of := &r.Instances[i]
		out.name(of.Name)
		out.name(of.Error)
		out.number(uint64(of.From))
		out.number(uint64(of.Until))
	}
	out.number(uint64(len(r.Calls)))
	before := clock.Instant(0)
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.At < before {
			return fmt.Errorf("recording: call %d is earlier than the one before it", i)
		}
		out.call(c, before, r)
		before = c.At
	}
	if err := out.to.Flush(); err != nil {
		return err
	}
	_, err := w.Write(binary.LittleEndian.AppendUint32(nil, out.crc.Sum32()))
	return err
}

// writer writes the parts of a file. Its errors are those of Flush.
type writer struct {
	to      *bufio.Writer
	crc     hash.Hash32
	scratch [binary.MaxVarintLen64]byte
}

func (w *writer) text(s string) { _, _ = w.to.WriteString(s) }

func (w *writer) number(n uint64) {
	_, _ = w.to.Write(w.scratch[:binary.PutUvarint(w.scratch[:], n)])
}

func (w *writer) name(s string) {
	if len(s) > maxNameLength {
		s = s[:maxNameLength]
	}
	w.number(uint64(len(s)))
	w.text(s)
}

func (w *writer) names(names []string) {
	w.number(uint64(len(names)))
	for _, name := range names {
		w.name(name)
	}
}

func (w *writer) values(values []any) {
	w.number(uint64(len(values)))
	for _, value := range values {
		switch v := value.(type) {
		case int64:
			w.number(valueNumber)
			w.number(uint64(v))
		case bool:
			if v {
				w.number(valueTrue)
			} else {
				w.number(valueFalse)
			}
		default:
			text, _ := v.(string)
			w.number(valueText)
			w.name(text)
		}
	}
}

func (w *writer) call(c *Call, before clock.Instant, of *Recording) {
	head := uint64(c.Outcome)<<headOutcome | uint64(c.Priority+2)<<headPriority
	for i, fact := range c.facts() {
		if *fact {
			head |= 1 << (headFacts + i)
		}
	}
	has := func(bit uint64, yes bool) {
		if yes {
			head |= bit
		}
	}
	has(headWait, c.Wait != 0)
	has(headPatience, c.Patience != 0)
	has(headEnded, c.Duration >= 0)
	has(headSettled, c.SettledAfter >= 0)
	has(headMore, c.Origin != 0 || c.Tokens != 1 || c.AttributeCount > 0)
	w.number(head)
	w.number(uint64(c.At - before))
	w.number(uint64(c.Resource))
	number := func(yes bool, n uint64) {
		if yes {
			w.number(n)
		}
	}
	number(len(of.Instances) > 1, uint64(c.Instance))
	number(c.Outcome == Refused, uint64(c.Rule))
	number(c.Wait != 0, uint64(c.Wait))
	number(c.Patience != 0, uint64(c.Patience))
	number(c.Duration >= 0, uint64(c.Duration))
	number(c.SettledAfter >= 0, uint64(c.SettledAfter))
	number(c.SettledAfter >= 0, uint64(c.Settled))
	if head&headMore == 0 {
		return
	}
	w.number(uint64(c.Origin))
	w.number(uint64(c.Tokens))
	w.number(uint64(c.AttributeCount))
	for _, a := range of.AttributesOf(c) {
		w.number(uint64(a.Key))
		if !of.Hashed {
			w.number(a.Value)
			continue
		}
		binary.LittleEndian.PutUint64(w.scratch[:8], a.Value)
		_, _ = w.to.Write(w.scratch[:8])
	}
}

// Read reads a recording. Whatever the file says, it takes no more memory than about twenty times its size,
// and than 16 million calls do; an error tells at which byte the file is damaged, and wraps that of the reader, if it is one.
func Read(from io.Reader) (*Recording, error) {
	r := &reader{from: bufio.NewReaderSize(from, 64<<10), size: sizeOf(from), crc: newChecksum()}
	out := new(Recording)
	if err := r.read(out); err != nil {
		return nil, err
	}
	return out, nil
}

// sizeOf returns how many bytes a reader has if it is a file or a buffer, else 0.
func sizeOf(from io.Reader) int {
	switch of := from.(type) {
	case interface{ Len() int }:
		return of.Len()
	case fs.File:
		if info, err := of.Stat(); err == nil && info.Mode().IsRegular() {
			return int(info.Size())
		}
	}
	return 0
}

// reader reads the parts of a file. The first error stays.
type reader struct {
	from   *bufio.Reader
	size   int // of the whole file; 0 if it is not known
	crc    hash.Hash32
	offset int64
	texts  int // bytes of names and values so far
	err    error
	summed []byte // not yet in crc
}

func (r *reader) read(out *Recording) error {
	r.head(out)
	out.Keys = r.names("attribute keys")
	out.Resources = r.names("resources")
	out.Origins = r.names("origins")
	for range r.count("the number of rules", maxNames) {
		out.Rules = append(out.Rules, Rule{r.name("the kind of a rule"), r.name("the name of a rule")})
		if r.err != nil {
			return r.err
		}
	}
	r.values(out)
	for range r.count("the number of instances", maxNames) {
		out.Instances = append(out.Instances, Instance{
			Name: r.name("the name of an instance"), Error: r.name("an error"), From: r.instant(), Until: r.instant(),
		})
		if r.err != nil {
			return r.err
		}
	}
	r.calls(out)
	r.checksum()
	return r.err
}

func (r *reader) head(out *Recording) {
	for i := range len(magic) {
		if b := r.byte("the beginning of the file"); r.err == nil && b != magic[i] {
			r.offset = 0
			r.wrong("the file is no recording of calls: it does not begin with %q", magic)
		}
		if r.err != nil {
			return
		}
	}
	if v := r.number("the version"); v != version {
		r.wrong("the file has version %d of the format, and this program reads version %d: use a newer one", v, version)
	}
	hashed := r.number("whether values are hashed")
	if hashed > 1 {
		r.wrong("whether values are hashed is %d: must be 0 or 1", hashed)
	}
	out.Hashed = hashed == 1
}

// wrong notes that the content is wrong.
func (r *reader) wrong(format string, args ...any) {
	if r.err == nil {
		r.err = &formatError{Offset: r.offset, What: fmt.Sprintf(format, args...)}
	}
}

func (r *reader) failed(what string, err error) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if r.err == nil {
		r.err = &formatError{Offset: r.offset, What: "reading " + what, Err: err}
	}
}

func (r *reader) byte(what string) byte {
	if r.err != nil {
		return 0
	}
	b, err := r.from.ReadByte()
	if err != nil {
		r.failed(what, err)
		return 0
	}
	r.taken([]byte{b})
	return b
}

// taken says that bytes of the buffer were read. The checksum is that of all of them.
func (r *reader) taken(bytes []byte) {
	r.offset += int64(len(bytes))
	if r.summed = append(r.summed, bytes...); len(r.summed) >= 32<<10 {
		r.flushSum()
	}
}

func (r *reader) flushSum() {
	_, _ = r.crc.Write(r.summed)
	r.summed = r.summed[:0]
}

func (r *reader) number(what string) (n uint64) {
	if r.err != nil {
		return 0
	}
	if ahead, _ := r.from.Peek(min(binary.MaxVarintLen64, r.from.Buffered())); len(ahead) > 0 {
		if n, size := binary.Uvarint(ahead); size > 0 {
			r.taken(ahead[:size])
			_, _ = r.from.Discard(size)
			return n
		}
	}
	for shift := 0; ; shift += 7 { // it is too large, or is not in the buffer as a whole
		b := r.byte(what)
		if r.err != nil {
			return 0
		}
		if shift == 63 && b > 1 {
			r.wrong("%s is larger than 64 bits", what)
			return 0
		}
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
}

// below reads a number that must be less than a bound.
func (r *reader) below(what string, bound int) uint64 {
	n := r.number(what)
	if r.err == nil && n >= uint64(bound) {
		r.wrong("%s is %d: must be less than %d", what, n, bound)
	}
	return n
}

func (r *reader) count(what string, most int) int {
	n := r.number(what)
	if r.err == nil && n > uint64(most) {
		r.wrong("%s is %d: must be at most %d", what, n, most)
	}
	if r.err != nil {
		return 0
	}
	return int(n)
}

func (r *reader) instant() clock.Instant { return clock.Instant(r.signed("an instant")) }

func (r *reader) duration(what string) time.Duration { return time.Duration(r.signed(what)) }

// signed reads a number that is not larger than the largest int64.
func (r *reader) signed(what string) int64 {
	n := r.number(what)
	if r.err == nil && n > math.MaxInt64 {
		r.wrong("%s is larger than 63 bits", what)
	}
	return int64(n & math.MaxInt64)
}

func (r *reader) name(what string) string {
	n := r.number("the length of " + what)
	if r.err == nil && n > maxNameLength {
		r.wrong("%s has %d bytes: the most is %d", what, n, maxNameLength)
	}
	if r.texts += int(min(n, maxNameLength)); r.err == nil && r.texts > maxTextTotal {
		r.wrong("all names have more than %d bytes", maxTextTotal)
	}
	if r.err != nil {
		return ""
	}
	text := make([]byte, n)
	for i := range text {
		text[i] = r.byte(what)
	}
	return string(text)
}

func (r *reader) names(what string) (names []string) {
	for range r.count("the number of "+what, maxNames) {
		names = append(names, r.name("a name of "+what))
		if r.err != nil {
			return nil
		}
	}
	return names
}

func (r *reader) values(out *Recording) {
	for range r.count("the number of values", maxValues) {
		switch kind := r.number("the type of a value"); kind {
		case valueText:
			out.Values = append(out.Values, r.name("a value"))
		case valueNumber:
			out.Values = append(out.Values, int64(r.number("a value")))
		case valueFalse, valueTrue:
			out.Values = append(out.Values, kind == valueTrue)
		default:
			r.wrong("the type of a value is %d: must be from 0 to 3", kind)
		}
		if r.err != nil {
			return
		}
	}
}

func (r *reader) calls(out *Recording) {
	count := r.count("the number of calls", maxCalls)
	if r.err != nil {
		return
	}
	before := clock.Instant(0)
	out.Calls = make([]Call, 0, min(count, r.size/minCallSize))
	for i := range count {
		if i == cap(out.Calls) { // the file may promise more than it has
			out.Calls = slices.Grow(out.Calls, min(count-i, max(1<<16, i)))
		}
		out.Calls = append(out.Calls, Call{Duration: Unknown, SettledAfter: Unknown, Tokens: 1})
		c := &out.Calls[i]
		r.call(c, before, out)
		if r.err != nil {
			return
		}
		before = c.At
	}
}

func (r *reader) call(c *Call, before clock.Instant, of *Recording) {
	head := r.below("the head of a call", 1<<headBits)
	c.Outcome = Outcome(head >> headOutcome & 3)
	priority := head >> headPriority & 7
	if r.err == nil && (c.Outcome > GaveUp || priority > 4) {
		r.wrong("the head of a call is %#x: there is no such outcome or priority", head)
	}
	c.Priority = int8(priority) - 2
	for i, fact := range c.facts() {
		*fact = head>>(headFacts+i)&1 != 0
	}
	since := r.duration("the time of a call")
	if since > math.MaxInt64-time.Duration(before) {
		r.wrong("the time of a call is too large")
	}
	c.At = before.Add(since)
	c.Resource = uint16(r.below("the resource of a call", len(of.Resources)))
	if len(of.Instances) > 1 {
		c.Instance = uint16(r.below("the instance of a call", len(of.Instances)))
	} else if len(of.Instances) == 0 {
		r.wrong("there are calls of no instance")
	}
	if c.Outcome == Refused {
		c.Rule = uint16(r.below("the rule that refused a call", len(of.Rules)))
	}
	if head&headWait != 0 {
		if c.Wait = r.duration("the wait of a call"); c.Wait > time.Duration(c.At) {
			r.wrong("the wait of a call began before 1970")
		}
	}
	if head&headPatience != 0 {
		c.Patience = r.duration("the patience of a call")
	}
	if head&headEnded != 0 {
		c.Duration = r.duration("the duration of a call")
	}
	if head&headSettled != 0 {
		c.SettledAfter = r.duration("when a call was settled")
		c.Settled = int32(r.below("what a call was settled with", math.MaxInt32))
	}
	if head&headMore != 0 && r.err == nil {
		r.more(c, of)
	}
}

// more reads what few calls have.
func (r *reader) more(c *Call, of *Recording) {
	c.Origin = uint16(r.below("the origin of a call", len(of.Origins)))
	tokens := r.number("the tokens of a call") // MaxInt32 + 1 is no int where that has 32 bits
	if r.err == nil && (tokens == 0 || tokens > math.MaxInt32) {
		r.wrong("a call takes %d tokens: must be from 1 to %d", tokens, math.MaxInt32)
	}
	c.Tokens = int32(tokens)
	count := r.count("the number of attributes of a call", maxAttributes)
	if count == 0 {
		return
	}
	c.FirstAttribute, c.AttributeCount = uint32(len(of.Attributes)), uint8(count)
	for range count {
		a := Attribute{Key: uint16(r.below("the key of an attribute", len(of.Keys)))}
		if of.Hashed {
			for shift := 0; shift < 64; shift += 8 {
				a.Value |= uint64(r.byte("the hash of a value")) << shift
			}
		} else {
			a.Value = r.below("the value of an attribute", len(of.Values))
		}
		if r.err != nil {
			return
		}
		if len(of.Attributes) == cap(of.Attributes) {
			of.Attributes = slices.Grow(of.Attributes, max(4096, len(of.Attributes)))
		}
		of.Attributes = append(of.Attributes, a)
	}
}

// checksum compares the checksum at the end of the file.
func (r *reader) checksum() {
	if r.err != nil {
		return
	}
	r.flushSum()
	want, got := r.crc.Sum32(), uint32(0)
	at := r.offset
	for shift := 0; shift < 32; shift += 8 {
		got |= uint32(r.byte("the checksum")) << shift
	}
	if r.err == nil && got != want {
		r.offset = at
		r.wrong("the checksum is %08x, and that of the content is %08x: the file is damaged", got, want)
	}
	if _, err := r.from.ReadByte(); r.err == nil && err == nil {
		r.wrong("there is more after the end of the recording")
	}
}
