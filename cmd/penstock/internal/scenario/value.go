package scenario

import (
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/rule"
)

const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// text reads a name or the like. A number will do as one.
func (r *reader) text(n *yaml.Node, field string) string {
	if !isScalar(n) {
		r.fail(placeOf(n), field, "is %s: must be text", describe(n))
		return ""
	}
	return n.Value
}

func (r *reader) number(n *yaml.Node, field string) float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	switch {
	case !isScalar(n) || err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		r.fail(placeOf(n), field, "is %s: must be a number, such as 100 or 2.5", describe(n))
		return 0
	case n.Style&quoted != 0:
		r.fail(placeOf(n), field, "is %s: must be a number; remove the quotes", describe(n))
		return 0
	}
	return v
}

func (r *reader) whole(n *yaml.Node, field string) int {
	before := len(r.problems)
	v := r.number(n, field)
	if len(r.problems) == before && (v != math.Trunc(v) || math.Abs(v) > math.MaxInt32) {
		r.fail(placeOf(n), field, "is %s: must be a whole number", describe(n))
		return 0
	}
	return int(v)
}

// duration reads seconds, or a duration with a unit.
func (r *reader) duration(n *yaml.Node, field string) time.Duration {
	v, ok := ParseDuration(n.Value)
	if !isScalar(n) || !ok {
		r.fail(placeOf(n), field, "is %s: must be in seconds, such as 1.5, or have a unit, such as 500ms", describe(n))
		return 0
	}
	return v
}

// noPriority is the message for a text that is no priority, with the text and the priorities.
const noPriority = "is %.60q: must be %s"

// priorityNames returns the priorities, the most important first.
func priorityNames() string {
	var names []string
	for _, p := range rule.Priorities() {
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}

func (r *reader) priority(n *yaml.Node, field string) rule.Priority {
	text := r.text(n, field)
	p, ok := rule.ParsePriority(text)
	if !ok && isScalar(n) && text != "" {
		r.fail(placeOf(n), field, noPriority, text, priorityNames())
	}
	return p
}

// ParseDuration reads a time as load files have it: seconds, "1.5", or a duration
// with units, "500ms", of which "d" is 24 hours and "w" seven times that: "40d", "1d12h".
func ParseDuration(text string) (time.Duration, bool) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return wholeNanoseconds(seconds * float64(time.Second))
	}
	unsigned, isNegative := strings.CutPrefix(text, "-")
	days, rest, ok := cutDays(unsigned)
	if !ok {
		d, err := time.ParseDuration(text)
		return d, err == nil
	}
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || strings.ContainsAny(rest[:1], "+-") {
			return 0, false
		}
		days += float64(d)
	}
	if isNegative {
		days = -days
	}
	return wholeNanoseconds(days)
}

// cutDays cuts weeks and days off the beginning of a duration, and returns them in nanoseconds; false if
// there are none.
func cutDays(text string) (time float64, rest string, ok bool) {
	for _, unit := range []struct {
		name   string
		length float64
	}{{"w", 7 * 24 * 3600e9}, {"d", 24 * 3600e9}} {
		before, behind, found := strings.Cut(text, unit.name)
		if !found {
			continue
		}
		count, err := strconv.ParseFloat(before, 64)
		if err != nil || before[0] < '.' || before[0] > '9' { // a sign, or no number of digits
			return 0, text, false
		}
		time, text, ok = time+count*unit.length, behind, true
	}
	return time, text, ok
}

// wholeNanoseconds returns a whole number of them; false if they are too many, or no number.
func wholeNanoseconds(n float64) (time.Duration, bool) {
	n = math.Round(n)
	return time.Duration(n), math.Abs(n) < math.MaxInt64
}

// rate reads calls per second, or a rate with a unit.
func (r *reader) rate(n *yaml.Node, field string) float64 {
	if strings.Contains(n.Value, "/") && isScalar(n) {
		v, ok := parseRate(n.Value)
		if !ok {
			r.fail(placeOf(n), field, "is %s: must be calls per second, such as 100, 100/s or 6000/m", describe(n))
		}
		return v
	}
	return r.number(n, field)
}

// parseRate reads "100/s", "6000/m" or "5/h" as calls per second.
func parseRate(text string) (float64, bool) {
	number, unit, _ := strings.Cut(text, "/")
	v, err := strconv.ParseFloat(number, 64)
	per := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	if err != nil || per == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return v / per, true
}

func (r *reader) boolean(n *yaml.Node, field string) bool {
	if !isScalar(n) || n.Tag != "!!bool" {
		r.fail(placeOf(n), field, "is %s: must be true or false", describe(n))
		return false
	}
	return strings.EqualFold(n.Value, "true")
}

// items returns the values of a list, or the one value that stands for it.
func items(n *yaml.Node) []*yaml.Node {
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// isScalar says whether there is one value, and not an empty one.
func isScalar(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag != "!!null" }

// describe returns what a message says of a value.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Tag == "!!null":
		return "left empty"
	case n.Tag == "!!str" || !plainNumber.MatchString(strings.TrimPrefix(n.Value, "-")):
		return wording.Quote(n.Value)
	default:
		return n.Value
	}
}
