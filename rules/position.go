package rules

import (
	"fmt"
	"strings"
)

// Position is a place in a rule document.
type Position struct {
	// Document is the name that [Parse] was given.
	Document string

	// Line and Column count from 1, the column in characters, as editors do.
	Line, Column int
}

// String returns the position as editors and terminals link it: "doc.yaml:3:5".
func (p Position) String() string {
	if p.Document == "" {
		return fmt.Sprintf("%d:%d", p.Line, p.Column)
	}
	const most = 1024 // as of the name of a rule: stores have names of any length
	name := p.Document
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	return fmt.Sprintf("%s:%d:%d", name, p.Line, p.Column)
}
