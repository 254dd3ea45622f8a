package etcd

import (
	"strings"
	"time"
	"unicode"

	"github.com/penstock-go/penstock/clock"
)

// complaint is the error of a series that was logged last. The zero complaint
// begins a series.
type complaint struct {
	said string
	at   clock.Instant
}

// next returns whether an error is to be logged: when it says something else than
// the one that was logged last, and that is a second ago.
func (c *complaint) next(err error, now clock.Instant) bool {
	said := meaning(err)
	if c.said != "" && (said == c.said || now.Sub(c.at) < time.Second) {
		return false
	}
	c.said, c.at = said, now
	return true
}

// meaning returns what an error says without its numbers: the ports, revisions and
// durations in it change with each attempt.
func meaning(err error) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, err.Error())
}
