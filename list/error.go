package list

import (
	"fmt"
	"strings"
)

// MaxMistakes is how many mistakes an [Error] has in full.
const MaxMistakes = 10

// Mistake is what is wrong with one line of a text.
type Mistake struct {
	Line    int    // the first line is 1
	Message string // what is wrong and what to do
}

// String returns the line and the message, as in `line 3: "10.0.0.300" is no address`.
func (m Mistake) String() string { return fmt.Sprintf("line %d: %s", m.Line, m.Message) }

// Error is what is wrong with a text.
type Error struct {
	Mistakes []Mistake // the first [MaxMistakes]
	Count    int       // how many there are altogether
}

// Error returns the mistakes in one line.
func (e *Error) Error() string {
	texts := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		texts[i] = m.String()
	}
	text := "list: " + strings.Join(texts, "; ")
	if more := e.Count - len(e.Mistakes); more > 0 {
		text += fmt.Sprintf("; and %d more mistakes", more)
	}
	return text
}

func (e *Error) add(line int, message string) {
	e.Count++
	if len(e.Mistakes) < MaxMistakes {
		e.Mistakes = append(e.Mistakes, Mistake{line, message})
	}
}
