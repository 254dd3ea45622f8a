package rule

import "strconv"

// ParseAttribute reads an attribute as people write it on a command line: true and
// false are booleans, a whole number without a leading zero or a plus is a number,
// and everything else is text. What is in double quotes is text, too: "7".
func ParseAttribute(text string) Attribute {
	switch text {
	case "true":
		return Bool(true)
	case "false":
		return Bool(false)
	}
	if number, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(number, 10) == text {
		return Int(number)
	}
	if len(text) > 1 && text[0] == '"' {
		if quoted, err := strconv.Unquote(text); err == nil {
			return String(quoted)
		}
	}
	return String(text)
}
