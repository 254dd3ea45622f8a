package console

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/inspect"
)

// An instance that hangs has no report after a while, and is not among those that do not answer.
func TestInstancesThatComeAndGoAreEvents(t *testing.T) {
	log, now := newEventLog(), time.Unix(1000, 0)
	told := func(wanted func(*inspect.Event) bool, names ...string) (told []string) {
		all := []instance{{name: "7 more"}}
		for _, name := range names {
			all = append(all, instance{name: name, base: "http://" + name})
		}
		log.latest = nil
		log.compare(all, now, wanted)
		for _, e := range log.latest {
			assert.Equal(t, now, e.At)
			told = append(told, e.Instance+" "+e.To)
		}
		return told
	}
	assert.Empty(t, told(isNoRefusal, "a", "b"), "nothing is known of before")
	assert.Empty(t, told(isNoRefusal, "a", "b"))
	assert.Equal(t, []string{"b gone"}, told(isNoRefusal, "a"))
	assert.Equal(t, []string{"b there", "a gone"}, told(isNoRefusal, "b"))
	assert.Empty(t, told(func(*inspect.Event) bool { return false }))
}
