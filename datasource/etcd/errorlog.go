package etcd

import (
	"strings"
	"time"
	"unicode"

	"github.com/penstock-go/penstock/clock"
)

// errorLog remembers the error that was logged last, so that a failure that
// repeats is logged once. The zero value logs the next error.
type errorLog struct {
	text     string
	loggedAt clock.Instant
}

// shouldLog returns whether to log an error: its text differs from that of the one
// logged last, and at least a second has passed since.
func (l *errorLog) shouldLog(err error, now clock.Instant) bool {
	text := withoutDigits(err)
	if l.text != "" && (text == l.text || now.Sub(l.loggedAt) < time.Second) {
		return false
	}
	l.text, l.loggedAt = text, now
	return true
}

// withoutDigits returns the text of an error without its digits, because the ports,
// revisions and durations in it change with each attempt.
func withoutDigits(err error) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, err.Error())
}
