package settings

import "github.com/penstock-go/penstock/rule"

// WrittenKey returns a key of a [rule.NumberMap] as documents write it: the text "7" in quotes, the number 7 without.
func WrittenKey(key rule.Attribute) string {
	if text, isText := key.Text(); isText {
		return rule.Quote(text)
	}
	return key.String()
}
