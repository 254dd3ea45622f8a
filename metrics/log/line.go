package metriclog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/penstock-go/penstock/core"
)

// Line is what happened on a resource in one second.
type Line struct {
	Time             time.Time `json:"time"` // when the second began
	Resource         string    `json:"resource"`
	Passed           uint64    `json:"passed"`
	Blocked          uint64    `json:"blocked"`
	Completed        uint64    `json:"completed"`        // ended, failed ones included
	Failed           uint64    `json:"failed"`           // ended with a failure
	MeanResponseTime uint64    `json:"meanResponseTime"` // milliseconds
	Occupied         uint64    `json:"occupied"`         // Sentinel's: borrowed from later seconds; 0 of Penstock
	MaxInFlight      uint64    `json:"maxInFlight"`      // the most calls under way at once
	Classification   uint64    `json:"classification"`   // Sentinel's: the type of the resource; 0 of Penstock
}

func lineOf(s *core.ResourceSecond, at time.Time) Line {
	return Line{
		Time: at, Resource: s.Resource, Passed: s.Passed, Blocked: s.Blocked,
		Completed: s.Completed, Failed: s.Failed, MaxInFlight: s.MaxInFlight,
		MeanResponseTime: uint64(max(0, s.MeanResponseTime().Round(time.Millisecond)/time.Millisecond)),
	}
}

// maxName is how many bytes of the name of a resource are written.
const maxName = 1024

// appendTo appends the line in Sentinel's format, with the line break.
func (l *Line) appendTo(text []byte, location *time.Location) []byte {
	at := l.Time.In(location)
	text = strconv.AppendInt(text, at.UnixMilli(), 10)
	text = append(text, '|')
	text = at.AppendFormat(text, time.DateTime)
	text = append(text, '|')
	text = append(text, writable(l.Resource)...)
	for _, n := range []uint64{
		l.Passed, l.Blocked, l.Completed, l.Failed, l.MeanResponseTime, l.Occupied, l.MaxInFlight, l.Classification,
	} {
		text = append(text, '|')
		text = strconv.AppendUint(text, n, 10)
	}
	return append(text, '\n')
}

// writable returns a name without what would end a field or a line.
func writable(name string) string {
	name = strings.ToValidUTF8(name, string(utf8.RuneError))
	name = strings.Map(func(r rune) rune {
		if r == '|' || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, name)
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	return name
}

// fields is how many fields a line has.
const fields = 11

var errLine = errors.New("no line of a metric log")

// parseLine reads a line without its line break. The text of the time is not looked at: the
// number before it says the same, whatever the time zone.
func parseLine(text string) (Line, error) {
	parts := strings.Split(text, "|")
	if len(parts) != fields {
		return Line{}, fmt.Errorf("metriclog: %w: %d fields rather than %d", errLine, len(parts), fields)
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	l := Line{Time: time.UnixMilli(at), Resource: parts[2]}
	for i, n := range []*uint64{
		&l.Passed, &l.Blocked, &l.Completed, &l.Failed, &l.MeanResponseTime, &l.Occupied, &l.MaxInFlight, &l.Classification,
	} {
		var failed error
		*n, failed = strconv.ParseUint(parts[3+i], 10, 64)
		err = errors.Join(err, failed)
	}
	if err != nil {
		return Line{}, fmt.Errorf("metriclog: %w: %w", errLine, err)
	}
	return l, nil
}
