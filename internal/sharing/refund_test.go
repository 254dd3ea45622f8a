package sharing_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/fleet"
)

func TestRefundsOfAnySizeGiveBackNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	for name, operation := range map[string]fleet.Operation{
		"fixed": fleet.AskFixedWindow, "log": fleet.AskSlidingLog, "bucket": fleet.AskTokenBucket,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStepped(t)
			terms := askTerms(5)
			terms.Window = 24 * time.Hour
			asker := s.member.Asker(terms, operation, fleet.OutageLast)
			allowed := func() (count int) {
				t.Helper()
				for range 7 {
					answers := askFor(s, asker, 1)
					s.step()
					if assert.Len(t, *answers, 1) && assert.False(t, (*answers)[0].Outage) && (*answers)[0].Allowed {
						count++
					}
				}
				return count
			}
			asker.Refund(s.now(), 3)
			s.step()
			assert.Equal(t, 5, allowed(), "nothing was taken before")
			assert.Zero(t, allowed())
			asker.Refund(s.now(), 2)
			s.step()
			assert.Equal(t, 2, allowed(), "what was denied before is asked again")
			for range 600 { // more than a request may say
				asker.Refund(s.now(), math.MaxInt32)
			}
			s.step()
			assert.Equal(t, 5, allowed())
		})
	}
}
