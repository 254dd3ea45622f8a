package access

import (
	"context"
	"net/netip"
	"strconv"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// compiledRule is what all limiters of a version of a rule have in common. It never
// changes, but for the monitor.
type compiledRule struct {
	allow, deny entries
	isIP        bool // the value is an address
	allowsOnly  bool // what is not allowed is refused
	listAllows  bool // the entries of the list are allowed, not denied
	passMissing bool // a call without the attribute passes
	list        string
	version     uint64

	monitor atomic.Pointer[monitor] // nil until the first limiter is made
}

// entries are the entries of one field.
type entries struct {
	exact    *list.List
	patterns *match.Index // nil if there are none
}

func compile(r Rule, version uint64) *compiledRule {
	return &compiledRule{
		allow:       compileEntries(r, r.Allow),
		deny:        compileEntries(r, r.Deny),
		isIP:        r.Attribute == IP,
		allowsOnly:  r.allowsOnly(),
		listAllows:  r.ListAction == Allow,
		passMissing: r.Missing == rule.MissingPass,
		list:        r.List,
		version:     version,
	}
}

// compileEntries compiles entries that have been validated.
func compileEntries(r Rule, given rule.Strings) entries {
	var exact list.Builder
	var patterns []match.Pattern
	for entry := range given.All() {
		var err error
		switch {
		case r.Attribute == IP:
			err = exact.Add(entry)
		case match.IsPattern(entry):
			var p match.Pattern
			p, err = match.Compile(entry)
			patterns = append(patterns, p)
		default:
			err = exact.AddText(entry)
		}
		if err != nil {
			panic("access: " + err.Error()) // Validate refuses it
		}
	}
	var e entries
	e.exact, _ = exact.Build(context.Background()) // which never ends
	if len(patterns) > 0 {
		e.patterns = match.NewIndex(patterns)
	}
	return e
}

func (e *entries) hasText(text string) bool {
	return e.exact.ContainsText(text) || e.patterns != nil && e.matches(text)
}

func (e *entries) matches(text string) bool {
	var places [16]int // on the stack, enough for most
	return len(e.patterns.Append(places[:0], text)) > 0
}

// listed is a list as it is at an instant; of is nil if there is none.
type listed struct {
	of *list.List
	at clock.Instant // of the wall clock, if the list has entries with an end
}

func (l listed) hasAddr(addr netip.Addr) bool { return l.of != nil && l.of.ContainsAddrAt(addr, l.at) }

func (l listed) hasText(text string) bool { return l.of != nil && l.of.ContainsTextAt(text, l.at) }

// passes says whether a call with this attribute passes.
func (c *compiledRule) passes(a rule.Attribute, of listed) bool {
	text, isText := a.Text()
	number, isNumber := a.Number()
	switch {
	case !a.IsSet():
		return c.passMissing
	case c.isIP:
		addr, ok := list.ParseAddr(text)
		return isText && ok &&
			c.decide(c.deny.exact.ContainsAddr(addr), of.hasAddr(addr), c.allow.exact.ContainsAddr(addr))
	case isText:
		return c.passesText(text, of)
	case isNumber && c.deny.patterns == nil && c.allow.patterns == nil:
		return c.passesNumber(number, of)
	}
	return c.passesText(a.String(), of) // allocates for a number: patterns have to look at its text
}

func (c *compiledRule) passesText(text string, of listed) bool {
	return c.decide(c.deny.hasText(text), of.hasText(text), c.allow.hasText(text))
}

func (c *compiledRule) passesNumber(number int64, of listed) bool {
	var digits [20]byte
	text := string(strconv.AppendInt(digits[:0], number, 10)) // stays on the stack
	return c.decide(c.deny.exact.ContainsText(text), of.hasText(text), c.allow.exact.ContainsText(text))
}

// decide says whether a value passes that is denied, in the list, or allowed.
func (c *compiledRule) decide(denied, listed, allowed bool) bool {
	return !denied && (!listed || c.listAllows) && (!c.allowsOnly || allowed || listed)
}
