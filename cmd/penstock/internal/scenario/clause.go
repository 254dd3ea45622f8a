package scenario

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-go/penstock/rule"
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
	case w.text == "inbound":
		p.set("inbound", w, "")
		s.Inbound = true
	case w.text == "from":
		s.From = p.time(w, "from", false)
	case w.text == "for":
		p.span = p.time(w, "until", true)
	case w.text == "to", w.text == "until":
		s.Until = p.time(w, "until", true)
	default:
		s.bad = true
		p.unknown(w.at, "word", w.text, append(nameList{"for", "from", "to", "even", "poisson", "inbound"}, assignments()...))
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
func assignments() nameList {
	return nameList{"tokens=", "origin=", "priority=", "attrs=", "serviceTime=", "fails=", "timeout="}
}

// assign takes "key=value".
func (p *lineParser) assign(w word) {
	const notATime = "is %q: must be in seconds, such as 1.5, or have a unit, such as 500ms"
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
	case "priority":
		priority, ok := rule.ParsePriority(value)
		s.Priority = priority
		fault = cmp.Or(faultUnless(value != "", "is missing behind the ="), faultUnless(ok, noPriority, value, priorityNames()))
	case "attrs":
		fault = p.assignAttributes(value)
	case "serviceTime":
		d, ok := ParseDuration(value)
		s.ServiceTime = d
		fault = faultUnless(ok, notATime, value)
	case "fails":
		share, err := strconv.ParseFloat(value, 64)
		s.Fails = share
		fault = faultUnless(err == nil, "is %q: must be a share from 0 to 1", value)
	case "timeout":
		d, ok := ParseDuration(value)
		s.Timeout = d
		fault = cmp.Or(faultUnless(ok, notATime, value), faultUnless(d > 0, "is %q: must be longer than 0s", value))
	case "args":
		fault = argsRemoved
	default:
		s.bad = true
		p.unknown(w.at, "word", key+"=", assignments())
		return
	}
	p.set(key, w, fault)
}

// assignAttributes takes "user:u1,tenant:7".
func (p *lineParser) assignAttributes(list string) (fault string) {
	for pair := range strings.SplitSeq(list, ",") {
		name, value, ok := strings.Cut(pair, ":")
		if !ok || name == "" {
			return fmt.Sprintf("has %q: must be name:value, such as user:u1", pair)
		}
		p.stream.Attrs = append(p.stream.Attrs, simulate.Attr{Name: name, Values: []any{parseAttribute(value)}})
	}
	return ""
}
