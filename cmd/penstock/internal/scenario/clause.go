package scenario

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/simulate"
)

// clause takes what may follow the rate or the times.
func (p *lineParser) clause(w word) {
	s := &p.stream
	switch {
	case strings.Contains(w.text, "="):
		p.assign(w)
	case w.text == string(simulate.Poisson), w.text == string(simulate.Even):
		p.set("shape", w, "")
		s.Shape = simulate.Shape(w.text)
	case w.text == "from":
		s.From = p.time(w, "from", false)
	case w.text == "for":
		p.span = p.time(w, "until", true)
	case w.text == "to", w.text == "until":
		s.Until = p.time(w, "until", true)
	default:
		s.bad = true
		p.unknown(w.at, "word", w.text, append(nameList{"for", "from", "to", "even", "poisson"}, assignments()...))
	}
}

// time takes the time behind a word.
func (p *lineParser) time(behind word, field string, positive bool) time.Duration {
	if len(p.words) == 0 {
		p.set(field, behind, fmt.Sprintf("is missing behind %q: write a time, such as 1.5s", behind.text))
		return 0
	}
	w := p.next()
	d, ok := ParseDuration(w.text)
	switch {
	case !ok:
		p.set(field, w, fmt.Sprintf("is %q: must be in seconds, such as 1.5, or have a unit, such as 500ms", w.text))
	case positive && d <= 0:
		p.set(field, w, fmt.Sprintf("is %q: must be longer than 0s", w.text))
	default:
		p.set(field, w, "")
	}
	return d
}

// assignments are the words that a value is assigned to.
func assignments() nameList { return nameList{"tokens=", "origin=", "args=", "serviceTime="} }

// assign takes "key=value".
func (p *lineParser) assign(w word) {
	key, value, _ := strings.Cut(w.text, "=")
	s, fault := &p.stream, ""
	switch key {
	case "tokens":
		tokens, err := strconv.ParseInt(value, 10, 32)
		s.Tokens = int(tokens)
		fault = faultUnless(err == nil && tokens > 0, "is %q: must be a whole number, 1 or more", value)
	case "origin":
		s.Origin = value
		fault = faultUnless(value != "", "is missing behind the =")
	case "args":
		for arg := range strings.SplitSeq(value, ",") {
			s.Args = append(s.Args, parseArgument(arg))
		}
	case "serviceTime":
		d, ok := ParseDuration(value)
		s.ServiceTime = d
		fault = faultUnless(ok, "is %q: must be in seconds, such as 1.5, or have a unit, such as 500ms", value)
	default:
		s.bad = true
		p.unknown(w.at, "word", key+"=", assignments())
		return
	}
	p.set(key, w, fault)
}
