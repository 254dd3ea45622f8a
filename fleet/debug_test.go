package fleet_test

import (
	"fmt"
	"github.com/penstock-go/penstock/fleet"
	"os"
	"testing"
	"time"
)

var debug func(i *instance, b *fleet.Batch, when string)

func TestDebug(t *testing.T) {
	if os.Getenv("EXPLORE") == "" {
		t.Skip()
	}
	w := newWorld(1, 2*time.Millisecond)
	w.join(bucketOf(1000), fleet.ModeWindow, fleet.OutageLast, even(8, 800)...)
	w.run(3 * time.Second)
	debug = func(i *instance, b *fleet.Batch, when string) {
		if i != w.instances[0] {
			return
		}
		for k, r := range b.Requests {
			if when == "sent" {
				fmt.Printf("%v sent want %d back %d to %d owed %d ahead %v\n", w.clock.Now().Sub(w.start), r.Want, r.Back, r.BackTo%1000000000, r.Owed, r.Ahead)
			} else {
				fmt.Printf("%v got %+v\n", w.clock.Now().Sub(w.start), b.Replies[k])
			}
		}
	}
	w.run(400 * time.Millisecond)
	debug = nil
}
