package libraries

import (
	"reflect"
	"time"
	"unsafe"

	"github.com/go-kratos/aegis/ratelimit"
	"github.com/go-kratos/aegis/ratelimit/bbr"

	"github.com/penstock-go/penstock/rule"
)

// How the library reads the processor: the average of what it reads twice a second, in which
// the last reading counts for a twentieth.
const (
	bbrInterval = 500 * time.Millisecond
	bbrDecay    = 0.95
)

// bbrLimiter is the limiter of the package bbr of kratos, with its defaults, but for where it
// reads the processor.
type bbrLimiter struct {
	limiter *bbr.BBR
	cpu     processor
}

func newBBR(cpu *rule.Reading) limiter {
	l := &bbrLimiter{limiter: bbr.NewLimiter(), cpu: processor{reading: cpu, sampled: time.Now()}}
	// The library has no option for it. Its own tests set the same field.
	read := reflect.ValueOf(l.limiter).Elem().FieldByName("cpu")
	read = reflect.NewAt(read.Type(), unsafe.Pointer(read.UnsafeAddr())).Elem() //nolint:gosec // a field that is not exported
	read.Set(reflect.ValueOf(l.cpu.thousandths).Convert(read.Type()))
	return l
}

func (l *bbrLimiter) enter() (end func(counts bool), ok bool) {
	l.cpu.sample()
	done, err := l.limiter.Allow()
	if err != nil {
		return nil, false
	}
	return func(bool) {
		l.cpu.sample()
		done(ratelimit.DoneInfo{})
	}, true
}

// processor is the share of the processor that is in use, as the library averages it.
type processor struct {
	reading *rule.Reading
	sampled time.Time // up to when
	average float64
}

func (p *processor) sample() {
	value, _ := p.reading.Load()
	for ; time.Since(p.sampled) >= bbrInterval; p.sampled = p.sampled.Add(bbrInterval) {
		p.average = bbrDecay*p.average + (1-bbrDecay)*min(value, 1)
	}
}

func (p *processor) thousandths() int64 { return int64(1000 * p.average) }
