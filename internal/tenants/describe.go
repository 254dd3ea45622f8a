package tenants

import (
	"fmt"
	"strings"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/internal/valuehash"
	"github.com/penstock-go/penstock/internal/waitqueue"
	"github.com/penstock-go/penstock/rule"
)

// Waiting is what status says of a call that waits.
type Waiting struct {
	Tenant rule.Attribute
	Since  clock.Instant
}

// Describe adds to a status how many tenants wait, how many calls that one has waiting which has most, and
// how many tenants are not known, as gauges; and a note of who waits, and of whose call is the first:
// that gets what is named, such as "the next place".
func Describe[W any](s *rule.Status, q *waitqueue.Queue[W], first *W, next string, of func(*W) Waiting, name func(rule.Attribute) string) {
	const most = 3
	shares := q.Longest(most)
	longest := 0
	if len(shares) > 0 {
		longest = shares[0].Waiting
	}
	unknown, isFlood := q.Unknown()
	s.Gauges = append(s.Gauges, float64(q.Tenants()), float64(longest), float64(unknown))
	if len(shares) == 0 || first == nil {
		return
	}
	var b strings.Builder
	if n := q.Tenants(); n == 1 {
		b.WriteString("calls of 1 tenant wait: ")
	} else {
		fmt.Fprintf(&b, "calls of %d tenants wait, most of them of ", n)
	}
	since := of(first).Since
	for i, share := range shares {
		if i > 0 {
			b.WriteString(", ")
		}
		oldest := of(share.Oldest)
		fmt.Fprintf(&b, "%s (%d)", name(oldest.Tenant), share.Waiting)
		since = min(since, oldest.Since)
	}
	fmt.Fprintf(&b, "; %s goes to %s", next, name(of(first).Tenant))
	if isFlood {
		fmt.Fprintf(&b, "; %d of them are not known, and get half together", unknown)
	}
	s.Notes = append(s.Notes, rule.Note{Since: since, Text: b.String()})
}

// maxName is how many bytes of a tenant status shows.
const maxName = 64

// Name returns a tenant as status shows it.
func (r Fields) Name(value rule.Attribute, hasher *valuehash.Hasher) string {
	switch {
	case !value.IsSet():
		return "(missing)"
	case r.Mask == rule.MaskHash:
		return fmt.Sprintf("#%016x", hasher.Hash(value))
	}
	text := value.String()
	isCut := len(text) > maxName
	text = strings.ToValidUTF8(text[:min(len(text), maxName)], "�")
	text = strings.Map(func(r rune) rune {
		if document.IsInvisible(r) {
			return '�'
		}
		return r
	}, text)
	if isCut {
		text = strings.TrimRight(text, "�") + "…"
	}
	return text
}
