package command

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestProgressIsToldOfLongRunsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := progress{out: &out, patience: 500 * time.Millisecond}
		for second := range 60 {
			p.show(time.Duration(second)*time.Second, time.Minute)
			time.Sleep(30 * time.Millisecond)
		}
		p.end()
		told := strings.Split(out.String(), "\r")
		assert.Equal(t, "simulating: 17 of 60 s", told[1], "after the first half second")
		assert.Equal(t, "simulating: 21 of 60 s", told[2], "a tenth of a second later")
		assert.Equal(t, "\x1b[K", told[len(told)-1], "and nothing is left of it")

		out.Reset()
		short := progress{out: &out, patience: time.Hour}
		short.show(1, 2)
		short.end()
		silent := progress{out: &out, silent: true}
		silent.show(1, 2)
		silent.end()
		assert.Empty(t, out.String())
	})
}
