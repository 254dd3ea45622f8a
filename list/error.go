package list

import (
	"fmt"
	"strings"
)

// maxMistakes is how many mistakes an [Error] has in full.
const maxMistakes = 10

// Mistake is what is wrong with one line of a text.
type Mistake struct {
	Line    int    // the first line is 1
	Message string // what is wrong and what to do
	Column  int    // of the part of the line that is wrong, in characters, from 1; 0 if it is the entry
}

// String returns the line and the message, as in: line 3: "10.0.0.300" is no address.
func (m Mistake) String() string {
	if m.Column > 0 {
		return fmt.Sprintf("line %d, column %d: %s", m.Line, m.Column, m.Message)
	}
	return fmt.Sprintf("line %d: %s", m.Line, m.Message)
}

// Error is what is wrong with a text.
type Error struct {
	Mistakes []Mistake // the first 10
	Count    int       // how many there are altogether
}

// Error returns one mistake in a line, several below each other.
func (e *Error) Error() string {
	if e.Count == 1 && len(e.Mistakes) == 1 {
		return "list: " + e.Mistakes[0].String()
	}
	var text strings.Builder
	fmt.Fprintf(&text, "list: %d mistakes:", e.Count)
	for _, m := range e.Mistakes {
		fmt.Fprintf(&text, "\n  %s", m)
	}
	if more := e.Count - len(e.Mistakes); more > 0 {
		fmt.Fprintf(&text, "\n  and %d more", more)
	}
	return text.String()
}

func (e *Error) add(line int, message string) { e.addAt(line, 0, message) }

func (e *Error) addAt(line, column int, message string) {
	e.Count++
	if len(e.Mistakes) < maxMistakes {
		e.Mistakes = append(e.Mistakes, Mistake{line, message, column})
	}
}
