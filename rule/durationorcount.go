package rule

import (
	"fmt"
	"time"

	"github.com/penstock-go/penstock/internal/document"
)

// DurationOrCountField is a field with a duration or, in its place, a number of something: "10s", or
// {calls: 100} where the unit is "calls". What the rule does not have is 0.
func DurationOrCountField[R any](path, unit string, duration func(*R) *time.Duration, count func(*R) *int) Field[R] {
	return Field[R]{
		Path: path,
		read: func(rule *R, v document.Value) (fault string) {
			*duration(rule), *count(rule) = 0, 0
			if v.Type == document.Mapping {
				*count(rule), fault = readCount(v, unit)
			} else if *duration(rule), fault = document.ReadDuration(v); fault != "" {
				fault += fmt.Sprintf(", or {%s: 100}", unit)
			}
			return fault
		},
		write: func(rule *R) document.Value {
			if n := *count(rule); n != 0 {
				return document.Value{Type: document.Mapping, Entries: []document.Entry{{Key: unit, KeyType: document.Text, Value: document.WholeValue(n)}}}
			}
			return document.DurationValue(*duration(rule))
		},
		reset: func(rule *R) { *duration(rule), *count(rule) = 0, 0 },
		equal: func(a, b *R) bool { return *duration(a) == *duration(b) && *count(a) == *count(b) },
	}
}

// readCount reads a mapping with one entry, the unit, which is a whole number from 1.
func readCount(v document.Value, unit string) (int, string) {
	if len(v.Entries) != 1 || v.Entries[0].Key != unit {
		return 0, fmt.Sprintf("is %v: must be a duration, or a mapping with nothing but %s, such as {%s: 100}", v, unit, unit)
	}
	n, fault := document.ReadWhole(v.Entries[0].Value)
	switch {
	case fault != "":
		return 0, fmt.Sprintf("has an entry %s that %s", unit, fault)
	case n < 1:
		return 0, fmt.Sprintf("has an entry %s that is %d: must be at least 1", unit, n)
	}
	return n, ""
}
