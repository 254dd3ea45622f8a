package clientip

import "strings"

// walk returns the elements of a header field that is a list, the last first.
type walk struct {
	lines  []string // that are still to be read
	rest   string   // of the present line
	within bool     // the present line has another element
	budget int      // bytes that may still be looked at
	quotes bool     // commas in quoted strings separate nothing
}

// next returns the element to the left of the one before; false if there is none
// within the budget.
func (w *walk) next() (element string, ok bool) {
	if !w.within {
		if len(w.lines) == 0 {
			return "", false
		}
		last := len(w.lines) - 1
		w.rest, w.lines, w.within = w.lines[last], w.lines[:last], true
	}
	start := max(0, len(w.rest)-w.budget)
	comma := lastComma(w.rest[start:], w.quotes)
	if comma < 0 && start > 0 {
		return "", false // longer than the budget
	}
	element = w.rest[start+comma+1:]
	w.budget -= len(element) + 1
	if w.within = comma >= 0; w.within {
		w.rest = w.rest[:start+comma]
	}
	return element, w.budget >= 0
}

// lastComma returns the index of the last comma, outside of quoted strings if there
// are such; -1 if there is none. What it finds to the right of a comma does not depend
// on what stands to the left of it: an unbalanced quote of a client cannot hide what a
// proxy has added.
func lastComma(list string, quotes bool) int {
	if !quotes {
		return strings.LastIndexByte(list, ',')
	}
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch list[i] {
		case ',':
			if !quoted {
				return i
			}
		case '"': // outside of quotes, the end of a quoted string
			quoted = !quoted || isEscaped(list, i)
		}
	}
	return -1
}

// isEscaped reports whether an odd number of backslashes stands before the index.
func isEscaped(text string, index int) bool {
	before := text[:index]
	return (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
}

// forwardedFor returns the node of the parameter "for" of an element of the field
// Forwarded, without quotes; "" if there is none, or several, or the element is
// malformed.
func forwardedFor(element string) (node string) {
	for more := true; more; {
		var pair string
		var closed bool
		pair, element, more, closed = cutPair(element)
		name, value, assigned := strings.Cut(pair, "=")
		switch {
		case !closed:
			return ""
		case !strings.EqualFold(trim(name), "for"):
			continue
		case !assigned || node != "":
			return ""
		}
		if node = unquoted(trim(value)); node == "" {
			return ""
		}
	}
	return node
}

// cutPair cuts an element at the first semicolon outside of quoted strings. closed is
// false if a quoted string does not end.
func cutPair(element string) (pair, rest string, more, closed bool) {
	quoted := false
	for i := 0; i < len(element); i++ {
		switch c := element[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++ // the next byte stands for itself
		case c == ';' && !quoted:
			return element[:i], element[i+1:], true, true
		}
	}
	return element, "", false, !quoted
}

// unquoted returns a value without its quotes; "" if it has only one. What is escaped
// stays so, and is no address.
func unquoted(value string) string {
	if !strings.HasPrefix(value, `"`) {
		return value
	}
	if len(value) < 2 || !strings.HasSuffix(value, `"`) {
		return ""
	}
	return value[1 : len(value)-1]
}
