package rules

import (
	"fmt"
	"unicode/utf8"
)

// MaxNameLength is how many bytes the name of a rule or a resource may have.
const MaxNameLength = 1024

// checkName returns what is wrong with the name of a rule or a resource,
// nothing when it is sound. Names are written to logs and metrics.
func checkName(name string) string {
	if len(name) > MaxNameLength {
		return fmt.Sprintf("is %d bytes long: the most is %d", len(name), MaxNameLength)
	}
	for _, r := range name {
		switch {
		case r == utf8.RuneError:
			return fmt.Sprintf("is %s: it is not UTF-8 or lost a character on its way; write it anew", quote(name))
		case invisible(r):
			return fmt.Sprintf("is %s: it has a character %U, which cannot be seen; remove it", quote(name), r)
		}
	}
	return ""
}
