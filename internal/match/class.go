package match

import "fmt"

// class translates a class, whose bracket was read.
func (g *glob) class() *Error {
	opened := g.at
	g.expression.WriteByte('[')
	switch {
	case g.sees('!'):
		g.at++
		g.expression.WriteByte('^')
	case g.sees('^'):
		return g.fault(opened, `begins with ^: write [! for "none of", or \^ for the character itself`)
	}
	for first := true; ; first = false {
		switch {
		case g.at == len(g.pattern):
			return g.fault(opened, `is not closed: end it with ], or write \[ for the character itself`)
		case g.sees(']') && first:
			return g.fault(opened, `is empty: write characters before the ], or \] for the character itself`)
		case g.sees(']'):
			g.at++
			g.expression.WriteByte(']')
			return nil
		}
		if fault := g.member(opened); fault != nil {
			return fault
		}
	}
}

// member translates a character of a class, or a range of them.
func (g *glob) member(opened int) *Error {
	low, fault := g.character()
	if fault != nil {
		return fault
	}
	high := low
	// A - that is the last character stands for itself.
	if g.sees('-') && g.at+1 < len(g.pattern) && g.pattern[g.at+1] != ']' {
		g.at++
		if high, fault = g.character(); fault != nil {
			return fault
		}
	}
	if high < low {
		return g.fault(opened, "has the range %c-%c, which is empty: put the lower character first", low, high)
	}
	fmt.Fprintf(&g.expression, `\x{%x}-\x{%x}`, low, high)
	return nil
}

// character returns the next character of a class. The caller knows that there is one.
func (g *glob) character() (rune, *Error) {
	r := g.pattern[g.at]
	g.at++
	if r == '\\' {
		return g.escaped()
	}
	return r, nil
}

func (g *glob) sees(r rune) bool { return g.at < len(g.pattern) && g.pattern[g.at] == r }
