package recording_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/recording"
)

// drawn draws a recording.
func drawn(t *rapid.T) *recording.Recording {
	name := rapid.StringN(0, 20, 40)
	names := func(what string) []string {
		return append([]string{""}, rapid.SliceOfN(name, 1, 4).Draw(t, what)...)
	}
	r := &recording.Recording{
		Hashed: rapid.Bool().Draw(t, "hashed"), Keys: names("keys"), Resources: names("resources"), Origins: names("origins"),
		Rules:     []recording.Rule{{}, {Kind: "flow", Name: name.Draw(t, "rule")}},
		Instances: []recording.Instance{{Name: name.Draw(t, "instance"), From: 5, Until: math.MaxInt64}},
	}
	if rapid.Bool().Draw(t, "several") {
		r.Instances = append(r.Instances, recording.Instance{Name: "other", Error: "no answer"})
	}
	if !r.Hashed {
		r.Values = []any{"alice", int64(-7), true, false, int64(math.MinInt64)}
	}
	at := clock.Instant(rapid.Int64Range(0, 1<<62).Draw(t, "at"))
	duration := rapid.Map(rapid.Int64Range(-1, 1<<40), func(n int64) time.Duration { return time.Duration(n) })
	for range rapid.IntRange(0, 20).Draw(t, "calls") {
		at = at.Add(time.Duration(rapid.Int64Range(0, 1<<40).Draw(t, "later")))
		c := recording.Call{
			At: at, Wait: max(0, min(duration.Draw(t, "wait"), time.Duration(at))), Patience: max(0, duration.Draw(t, "patience")),
			Duration: duration.Draw(t, "duration"), SettledAfter: duration.Draw(t, "settled"),
			Tokens:   rapid.Int32Range(1, math.MaxInt32).Draw(t, "tokens"),
			Instance: uint16(rapid.IntRange(0, len(r.Instances)-1).Draw(t, "instance")),
			Resource: uint16(rapid.IntRange(0, len(r.Resources)-1).Draw(t, "resource")),
			Origin:   uint16(rapid.IntRange(0, len(r.Origins)-1).Draw(t, "origin")),
			Priority: int8(rapid.IntRange(-2, 2).Draw(t, "priority")),
			Outcome:  recording.Outcome(rapid.IntRange(0, 2).Draw(t, "outcome")),
			Inbound:  rapid.Bool().Draw(t, "inbound"), NoWait: rapid.Bool().Draw(t, "no wait"),
			LongLived: rapid.Bool().Draw(t, "long-lived"), Failed: rapid.Bool().Draw(t, "failed"),
			Ignored: rapid.Bool().Draw(t, "ignored"), Cancelled: rapid.Bool().Draw(t, "cancelled"),
		}
		if c.SettledAfter >= 0 {
			c.Settled = rapid.Int32Range(0, math.MaxInt32-1).Draw(t, "cost")
		}
		if c.Outcome == recording.Refused {
			c.Rule = uint16(rapid.IntRange(0, 1).Draw(t, "refused by"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "attributes") {
			a := recording.Attribute{Key: uint16(rapid.IntRange(0, len(r.Keys)-1).Draw(t, "key")), Value: rapid.Uint64Range(0, 4).Draw(t, "value")}
			if r.Hashed {
				a.Value = rapid.Uint64().Draw(t, "hash")
			}
			r.Attributes = append(r.Attributes, a)
			c.AttributeCount++
		}
		if c.AttributeCount > 0 {
			c.FirstAttribute = uint32(len(r.Attributes)) - uint32(c.AttributeCount)
		}
		r.Calls = append(r.Calls, c)
	}
	return r
}

func written(t require.TestingT, r *recording.Recording) []byte {
	var b bytes.Buffer
	require.NoError(t, recording.Write(&b, r))
	return b.Bytes()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawn(t)
		content := bytes.NewReader(written(t, r))
		for _, from := range []io.Reader{content, iotest.OneByteReader(content)} {
			content.Reset(written(t, r))
			got, err := recording.Read(from)
			require.NoError(t, err)
			if len(r.Calls) == 0 {
				r.Calls, got.Calls = nil, nil
			}
			require.Equal(t, r, got)
		}
	})
}

// Whatever byte of a file is changed, and wherever it is cut off, reading it fails.
func TestDamagedFilesAreFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		file := written(t, drawn(t))
		at := rapid.IntRange(0, len(file)-1).Draw(t, "at")
		_, err := recording.Read(bytes.NewReader(file[:at]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		var wrong *recording.FormatError
		require.ErrorAs(t, err, &wrong)
		require.EqualValues(t, at, wrong.Offset)
		file[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		_, err = recording.Read(bytes.NewReader(file))
		require.ErrorAs(t, err, &wrong)
	})
}

// file returns a file with these parts, which are numbers and texts.
func file(parts ...any) []byte {
	b := []byte(recording.FileMagic)
	for _, part := range parts {
		switch p := part.(type) {
		case int:
			b = binary.AppendUvarint(b, uint64(p))
		case string:
			b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
		}
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

func TestMistakesInFilesAreTold(t *testing.T) {
	t.Parallel()
	// The version, whether values are hashed, keys, resources, origins, rules, values, instances.
	head := []any{1, 1, 1, "user", 1, "r", 1, "", 1, "flow", "f", 0, 1, "i", "", 5, 6}
	with := func(parts ...any) []byte { return file(append(append([]any{}, head...), parts...)...) }
	_, err := recording.Read(bytes.NewReader(with(0)))
	require.NoError(t, err)
	for want, content := range map[string][]byte{
		`at byte 0: the file is no recording of calls: it does not begin with "penstock calls\n"`: []byte("flow:\n- {resource: a}\n"),
		"version 7 of the format, and this program reads version 1":                               file(7),
		"must be 0 or 1":                           file(1, 2),
		"the number of resources is 70000":         file(1, 0, 0, 70000),
		"a name of resources has 5000 bytes":       file(1, 0, 0, 1, strings.Repeat("x", 5000)),
		"the type of a value is 9":                 file(1, 0, 0, 0, 0, 0, 1, 9),
		"the number of calls is 99999999":          with(99999999),
		"no such outcome or priority":              with(1, 3),
		"the head of a call is 1048576":            with(1, 1<<20),
		"the resource of a call is 1":              with(1, 2<<2, 0, 1),
		"the rule that refused a call is 4":        with(1, 2<<2|1, 0, 0, 4),
		"the wait of a call began before 1970":     with(1, 2<<2|1<<5, 5, 0, 6),
		"the origin of a call is 3":                with(1, 2<<2|1<<9, 5, 0, 3),
		"a call takes 0 tokens: must be from":      with(1, 2<<2|1<<9, 5, 0, 0, 0),
		"the number of attributes of a call is 17": with(1, 2<<2|1<<9, 5, 0, 0, 1, 17),
		"the key of an attribute is 1":             with(1, 2<<2|1<<9, 5, 0, 0, 1, 1, 1),
		"there is more after the end":              append(with(0), 0),
		"the time of a call is too large":          with(2, 2<<2, math.MaxInt64, 0, 2<<2, 1, 0),
		"there are calls of no instance":           file(1, 1, 1, "user", 1, "r", 1, "", 0, 0, 0, 1, 2<<2, 0, 0),
	} {
		_, err := recording.Read(bytes.NewReader(content))
		var wrong *recording.FormatError
		if assert.ErrorAs(t, err, &wrong, want) {
			assert.ErrorContains(t, err, want)
		}
	}
	overlong := append([]byte(recording.FileMagic), bytes.Repeat([]byte{0x80}, 12)...)
	_, err = recording.Read(bytes.NewReader(overlong))
	require.ErrorContains(t, err, "larger than 64 bits")
}

// A file that promises many calls and has none takes little memory.
func TestPromisesOfAFileTakeNoMemory(t *testing.T) {
	promise := file(1, 1, 1, "user", 1, "r", 1, "", 1, "flow", "f", 0, 1, "i", "", 5, 6, recording.MaxCalls)
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			_, err := recording.Read(bytes.NewReader(promise))
			require.Error(b, err)
		}
	})
	assert.Less(t, result.AllocedBytesPerOp(), int64(16<<20))
}

type fails struct{}

func (fails) Read([]byte) (int, error)  { return 0, errBroken }
func (fails) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken")

func TestErrorsOfReadersAndWritersAreTold(t *testing.T) {
	t.Parallel()
	_, err := recording.Read(fails{})
	require.ErrorIs(t, err, errBroken)
	require.ErrorIs(t, recording.Write(fails{}, new(recording.Recording)), errBroken)
	unsorted := &recording.Recording{Calls: []recording.Call{{At: 2}, {At: 1}}}
	require.ErrorContains(t, recording.Write(io.Discard, unsorted), "call 1 is earlier")
}

func TestMergedRecordingHasTheCallsOfAllByTime(t *testing.T) {
	t.Parallel()
	one := &recording.Recording{
		Instances: []recording.Instance{{Name: "one", From: 1, Until: 9}}, Resources: []string{"", "a", "b"}, Origins: []string{"", "x"},
		Rules: []recording.Rule{{}, {Kind: "flow", Name: "f"}}, Keys: []string{"user"}, Values: []any{"alice"},
		Calls:      []recording.Call{{At: 1, Resource: 1}, {At: 5, Resource: 2, Origin: 1, AttributeCount: 1}},
		Attributes: []recording.Attribute{{}},
	}
	two := &recording.Recording{
		Instances: []recording.Instance{{Name: "two", From: 2, Until: 8}}, Resources: []string{"", "b"}, Origins: []string{"", "y"},
		Rules: []recording.Rule{{}, {Kind: "breaker", Name: "f"}}, Keys: []string{"tenant", "user"}, Values: []any{int64(7), "alice"},
		Calls:      []recording.Call{{At: 3, Resource: 1, Origin: 1, Outcome: recording.Refused, Rule: 1, AttributeCount: 2}},
		Attributes: []recording.Attribute{{}, {Key: 1, Value: 1}},
	}
	got, err := recording.Merge(one, two)
	require.NoError(t, err)
	assert.Equal(t, &recording.Recording{
		Instances: []recording.Instance{{Name: "one", From: 1, Until: 9}, {Name: "two", From: 2, Until: 8}},
		Resources: []string{"", "a", "b"}, Origins: []string{"", "x", "y"},
		Rules: []recording.Rule{{}, {Kind: "flow", Name: "f"}, {Kind: "breaker", Name: "f"}}, Keys: []string{"user", "tenant"},
		Values: []any{"alice", int64(7)},
		Calls: []recording.Call{
			{At: 1, Resource: 1},
			{At: 3, Instance: 1, Resource: 2, Origin: 2, Outcome: recording.Refused, Rule: 2, FirstAttribute: 1, AttributeCount: 2},
			{At: 5, Resource: 2, Origin: 1, AttributeCount: 1},
		},
		Attributes: []recording.Attribute{{}, {Key: 1, Value: 1}, {}},
	}, got)
	from, until := got.Span()
	assert.Equal(t, [2]clock.Instant{1, 9}, [2]clock.Instant{from, until})
	_, err = recording.Merge(one, &recording.Recording{Hashed: true})
	require.ErrorContains(t, err, "hashes")
}

func FuzzRead(f *testing.F) {
	f.Add(file(1, 1, 1, "user", 1, "r", 1, "", 1, "flow", "f", 0, 1, "i", "", 5, 6, 1, 2<<2|1<<9|1<<7, 5, 0, 7, 0, 3, 0))
	f.Add(file(1, 0, 0, 1, "r", 1, "", 0, 1, 0, "v", 2, "i", "", 5, 6, "j", "e", 0, 0, 1, 2<<2, 5, 0, 1))
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := recording.Read(bytes.NewReader(content))
		if err != nil {
			var wrong *recording.FormatError
			require.ErrorAs(t, err, &wrong)
			require.LessOrEqual(t, wrong.Offset, int64(len(content)))
			return
		}
		again, err := recording.Read(bytes.NewReader(written(t, r)))
		require.NoError(t, err)
		require.Len(t, again.Calls, len(r.Calls))
	})
}
