package limit_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adaptive/internal/limit"
)

func TestSurgeIsDemandIfMoreCallsCameAndNoFewerEnded(t *testing.T) {
	usual := limit.Surge{Usual: 20, Variance: 20}
	for _, c := range []struct {
		name        string
		came, ended float64
		want        bool
	}{
		{"as many as usual", 20, 20, false},
		{"a few more", 30, 22, false},
		{"clearly more, and workers do what they can", 60, 30, true},
		{"clearly more, of which hardly any ended: a slow dependency whose clients ask again", 60, 10, false},
	} {
		s := usual
		s.Came, s.Ended = c.came, c.ended
		assert.Equal(t, c.want, s.IsDemand(), c.name)
	}
}
