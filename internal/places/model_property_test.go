package places_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/places"
)

const ms = time.Millisecond

// model is a fleet whose every step is drawn: requests are lost, come late, twice and in another order,
// instances are paused, restart and are killed, and the store loses its state.
type model struct {
	t         *rapid.T
	now       clock.Instant
	ledger    *places.Ledger
	limit     int64
	started   clock.Instant // the store
	instances []*modelInstance
	onTheWay  []request
	restarts  int
	taken     map[*modelInstance]int64 // calls that were under way when the lease of their instance ended
}

type modelInstance struct {
	name     string
	holder   *places.Holder
	inUse    int64
	waiting  int64
	peak     int64
	isPaused bool
}

// request is a claim on the way to the store, or its answer on the way back.
type request struct {
	of     *modelInstance
	holder *places.Holder
	claim  places.Claim
	grant  *places.Grant
	sent   clock.Instant
}

func newModel(t *rapid.T) *model {
	m := &model{t: t, now: clock.Instant(time.Hour), ledger: &places.Ledger{}, taken: map[*modelInstance]int64{}}
	m.limit = rapid.Int64Range(1, 12).Draw(t, "limit")
	for range rapid.IntRange(1, 5).Draw(t, "instances") {
		m.start(&modelInstance{})
	}
	return m
}

func (m *model) start(i *modelInstance) {
	m.restarts++
	i.name = fmt.Sprint("i", m.restarts)
	i.holder = places.NewHolder(m.limit, places.DefaultLife, rapid.Bool().Draw(m.t, "keeps"), m.now)
	i.inUse, i.waiting, i.peak, i.isPaused = 0, 0, 0, false
	if !slices.Contains(m.instances, i) {
		m.instances = append(m.instances, i)
	}
}

func (m *model) draw(name string) *modelInstance {
	return m.instances[rapid.IntRange(0, len(m.instances)-1).Draw(m.t, name)]
}

func (m *model) awake(name string) *modelInstance {
	i := m.draw(name)
	if i.isPaused {
		m.t.Skip("paused")
	}
	return i
}

func (i *modelInstance) use() places.Use {
	peak := i.peak
	i.peak = i.inUse
	return places.Use{InUse: i.inUse, Waiting: i.waiting, Peak: peak}
}

// look is what a member does when it looks at places.
func (m *model) look(i *modelInstance) {
	if claim, ok := i.holder.Look(m.now, i.use()); ok {
		claim.Instance = i.name
		if err := places.Check(&claim); err != nil {
			m.t.Fatal(err)
		}
		m.onTheWay = append(m.onTheWay, request{of: i, holder: i.holder, claim: claim, sent: m.now})
	}
	m.serve(i)
}

// serve has calls that wait pass.
func (m *model) serve(i *modelInstance) {
	i.holder.Lapse(m.now, i.inUse)
	for i.waiting > 0 && i.inUse < i.holder.Allowed() {
		i.waiting--
		i.inUse++
		i.peak = max(i.peak, i.inUse)
	}
}

// arrive has a request reach the store, or an answer its instance.
func (m *model) arrive(at int, again bool) {
	r := m.onTheWay[at]
	switch {
	case r.grant == nil:
		micros := m.now.Time().UnixMicro()
		young := m.started != 0 && m.now.Sub(m.started) < places.Young
		grant, _ := m.ledger.Claim(micros, young, &r.claim)
		if err := places.CheckAnswer(&r.claim, &grant); err != nil {
			m.t.Fatal(err)
		}
		m.onTheWay = append(m.onTheWay, request{of: r.of, holder: r.holder, claim: r.claim, grant: &grant, sent: r.sent})
	case r.of.isPaused:
		m.t.Skip("paused")
	case r.holder == r.of.holder:
		r.holder.Answered(m.now, r.claim.Sequence, *r.grant, r.of.inUse)
		m.serve(r.of)
	}
	if !again {
		m.onTheWay = append(m.onTheWay[:at], m.onTheWay[at+1:]...)
	}
}

// check is the promise: no more calls are under way than the limit, and those of instances whose leases
// have ended meanwhile, as they were paused or had no answer.
func (m *model) check() {
	sum, excess := int64(0), int64(0)
	for _, i := range m.instances {
		sum += i.inUse
		excess += m.taken[i]
	}
	if sum > m.limit+excess {
		m.t.Fatalf("%d calls are under way, the limit is %d, and %d had lost their leases", sum, m.limit, excess)
	}
}

// Whatever becomes of requests and processes, the limit holds but for the calls of those that have lost their leases.
func TestTheLimitHoldsWhateverHappens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { m.check() },
			"call": func(t *rapid.T) {
				i := m.awake("of")
				i.waiting += rapid.Int64Range(1, 4).Draw(t, "calls")
				m.serve(i)
				m.look(i)
			},
			"end": func(t *rapid.T) {
				i := m.awake("of")
				if i.inUse == 0 {
					t.Skip("none is under way")
				}
				i.holder.Lapse(m.now, i.inUse)
				i.inUse--
				m.taken[i] = max(0, min(m.taken[i]-1, i.inUse))
				i.holder.Ended(i.inUse)
				m.serve(i)
				m.look(i)
			},
			"look":  func(*rapid.T) { m.look(m.awake("at")) },
			"news":  func(*rapid.T) { i := m.awake("to"); i.holder.News(); m.look(i) },
			"retry": func(*rapid.T) { i := m.awake("of"); i.holder.Retry(); m.look(i) },
			"arrive": func(t *rapid.T) {
				if len(m.onTheWay) == 0 {
					t.Skip("nothing is on the way")
				}
				m.arrive(rapid.IntRange(0, len(m.onTheWay)-1).Draw(t, "which"), rapid.IntRange(0, 5).Draw(t, "again") == 0)
			},
			"exchange": func(*rapid.T) { // without delay, as most are
				m.look(m.awake("of"))
				for range 2 {
					if last := len(m.onTheWay) - 1; last >= 0 {
						m.arrive(last, false)
					}
				}
			},
			"lose": func(t *rapid.T) {
				if len(m.onTheWay) == 0 {
					t.Skip("nothing is on the way")
				}
				r := m.onTheWay[0]
				m.onTheWay = m.onTheWay[1:]
				if !r.of.isPaused && r.holder == r.of.holder {
					r.holder.Unanswered(r.claim.Sequence)
				}
			},
			"wait": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.SampledFrom([]int{1, 5, 20, 100, 250, 400}).Draw(t, "ms")) * ms)
				for _, i := range m.instances {
					if m.now >= i.holder.End() {
						m.taken[i] = i.inUse
					}
					if !i.isPaused {
						m.look(i)
					}
				}
			},
			"pause": func(*rapid.T) { i := m.awake("which"); i.isPaused = true },
			"goOn": func(t *rapid.T) {
				i := m.draw("which")
				if !i.isPaused {
					t.Skip("not paused")
				}
				i.isPaused = false
				m.look(i)
			},
			"kill": func(*rapid.T) { i := m.draw("which"); m.taken[i] = 0; m.start(i) },
			"loseState": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "rarely") == 0 {
					m.ledger, m.started = &places.Ledger{}, m.now
				}
			},
		})
	})
}
