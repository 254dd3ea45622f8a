package match

import (
	"fmt"
	"regexp"
	"strings"
)

// glob translates a pattern to a regular expression, which matches in linear time: a
// matcher that backtracks may not.
type glob struct {
	pattern []rune
	at      int // the next character

	prefix     strings.Builder // what comes before the first wildcard
	expression strings.Builder // the rest
	word       strings.Builder // the literal text since the last wildcard
	literals   literals
}

func compileGlob(pattern string) (Pattern, *Error) {
	g := &glob{pattern: []rune(pattern)}
	for g.at < len(g.pattern) {
		if fault := g.next(); fault != nil {
			return Pattern{}, fault
		}
	}
	g.endWord()
	g.literals.prefix = g.prefix.String()
	if g.expression.Len() == 0 {
		return Pattern{literals: g.literals, whole: true}, nil
	}
	if g.expression.String() == ".*" { // the usual pattern: no name is too long for it
		return Pattern{literals: g.literals, open: true}, nil
	}
	rest, err := regexp.Compile(`^(?s:` + g.expression.String() + `)$`)
	if err != nil {
		return Pattern{}, &Error{Message: fmt.Sprintf("cannot be compiled: %v; write a simpler one", err)}
	}
	return Pattern{literals: g.literals, rest: rest}, nil
}

// next translates one element of the pattern.
func (g *glob) next() *Error {
	r := g.pattern[g.at]
	g.at++
	switch r {
	case '*':
		g.endWord()
		g.expression.WriteString(".*")
	case '?':
		g.endWord()
		g.expression.WriteByte('.')
	case '[':
		g.endWord()
		return g.class()
	case '\\':
		literal, fault := g.escaped()
		if fault != nil {
			return fault
		}
		g.literal(literal)
	default:
		g.literal(r)
	}
	return nil
}

func (g *glob) literal(r rune) {
	if g.expression.Len() == 0 {
		g.prefix.WriteRune(r)
		return
	}
	g.expression.WriteString(regexp.QuoteMeta(string(r)))
	g.word.WriteRune(r)
}

// endWord notes the literal text that ends here.
func (g *glob) endWord() {
	g.literals.addWord(g.word.String())
	g.word.Reset()
}

// escaped returns the character after a backslash.
func (g *glob) escaped() (rune, *Error) {
	if g.at == len(g.pattern) {
		return 0, &Error{Position: g.at, Message: `the \ has nothing after it: write \\ for the character itself`}
	}
	g.at++
	return g.pattern[g.at-1], nil
}

// fault tells what is wrong with the class that opened at a position.
func (g *glob) fault(opened int, format string, args ...any) *Error {
	return &Error{Position: opened, Message: "the class " + fmt.Sprintf(format, args...)}
}
