package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// maxTimes bounds the calls that a line makes of "at 0s x1000".
const maxTimes = 1_000_000

// rateWord is a rate in a line: "2000/s".
var rateWord = regexp.MustCompile(`^[-+.0-9][^/]*/[a-z]+$`)

// shortStream reads a stream that is written as a line:
//
//	RESOURCE RATE [poisson] [for DURATION | from TIME] [to TIME] [key=value …]
//	RESOURCE at TIME [xN][, TIME [xN] …] [key=value …]
func (r *reader) shortStream(n *yaml.Node) stream {
	p := lineParser{reader: r, words: r.words(n)}
	p.stream = stream{at: placeOf(n), fields: make(given)}
	if !p.subject() {
		r.fail(placeOf(n), "", `%s names no rate and no times: write "RESOURCE 100/s for 10s" or "RESOURCE at 0s, 1.5s"`, describe(n))
		p.stream.bad = true
		return p.stream
	}
	for len(p.words) > 0 {
		p.clause(p.next())
	}
	if p.span > 0 {
		p.stream.Until = p.stream.From + p.span
	}
	return p.stream
}

// lineParser reads a line, word by word.
type lineParser struct {
	*reader
	words  []word // that are left
	stream stream
	span   time.Duration // of "for"
}

func (p *lineParser) next() word {
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

// subject takes the resource, which may have blanks in it, and the rate or the
// times behind it.
func (p *lineParser) subject() bool {
	for i, w := range p.words {
		if i == 0 || w.text != "at" && !rateWord.MatchString(w.text) {
			continue
		}
		var parts []string
		for _, part := range p.words[:i] {
			parts = append(parts, part.text)
		}
		p.set("resource", p.words[0], "")
		p.stream.Resource = strings.Join(parts, " ")
		p.words = p.words[i+1:]
		if w.text == "at" {
			p.times(w)
			return true
		}
		rate, ok := parseRate(w.text)
		p.set("rate", w, faultUnless(ok, "is %q: must be calls per second, minute or hour, such as 100/s or 6000/m", w.text))
		p.stream.Rate = rate
		return true
	}
	return false
}

// set notes where a field stands, and what is wrong with it.
func (p *lineParser) set(field string, w word, fault string) {
	if _, twice := p.stream.fields[field]; twice && fault == "" {
		fault = "is given twice: remove one"
	}
	p.stream.fields[field] = givenField{w.at, fault != ""}
	if fault != "" {
		p.fail(w.at, field, "%s", fault)
	}
}

func faultUnless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// times takes what follows "at": times, and behind one how many calls come then.
func (p *lineParser) times(at word) {
	p.set("times", at, "")
	times := &p.stream.Times
	for len(p.words) > 0 && !strings.Contains(p.words[0].text, "=") {
		w := p.next()
		for part := range strings.SplitSeq(strings.TrimSuffix(w.text, ","), ",") {
			if fault := addTime(times, part); fault != "" {
				p.set("times", w, fault)
			}
		}
	}
	if len(*times) == 0 && !p.stream.fields["times"].bad {
		p.set("times", at, "is missing: write when the calls come, as in at 0s, 1.5s x3")
	}
}

// addTime adds a time, or repeats the last one, or returns what is wrong.
func addTime(times *[]time.Duration, text string) (fault string) {
	if count, ok := repetition(text); ok {
		if len(*times) == 0 || count < 1 || len(*times)+count > maxTimes {
			return fmt.Sprintf("has %q: write it behind a time, with how many calls come then, at most %d in all", text, maxTimes)
		}
		last := (*times)[len(*times)-1]
		*times = append(*times, slices.Repeat([]time.Duration{last}, count-1)...)
		return ""
	}
	d, ok := ParseDuration(text)
	if !ok {
		return fmt.Sprintf("has %q: must be in seconds, such as 1.5, or have a unit, such as 500ms", text)
	}
	*times = append(*times, d)
	return ""
}

// repetition reads "x3".
func repetition(text string) (int, bool) {
	digits, ok := strings.CutPrefix(text, "x")
	if !ok {
		return 0, false
	}
	count, err := strconv.Atoi(digits)
	if err != nil || count > maxTimes {
		count = 0
	}
	return count, true
}
