package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gaissmai/bart"
	"golang.org/x/sys/unix"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rules"
)

// library makes lists of some kinds of entries.
type library struct {
	name  string
	reads map[string]func(io.Reader) (lookup, error)
}

// lookup says whether a list has a value.
type lookup struct {
	has    func(value) bool
	holder any // what keeps the list alive
}

// value is what is looked up: a text and, if it is one, the address.
type value struct {
	text string
	addr netip.Addr
}

func libraries() []library {
	addresses := func(read func(io.Reader) (lookup, error)) map[string]func(io.Reader) (lookup, error) {
		return map[string]func(io.Reader) (lookup, error){"ipv4": read, "ipv6": read, "ipv6-hosts": read}
	}
	ours := addresses(readList)
	ours["texts"] = readTexts
	return []library{
		{"penstock", ours},
		{"bart.Lite", addresses(readLite)},
		{"map", map[string]func(io.Reader) (lookup, error){"texts": readMap}},
	}
}

func readList(r io.Reader) (lookup, error) {
	l, err := list.Parse(context.Background(), r, list.Options{})
	if err != nil {
		return lookup{}, err
	}
	return lookup{func(v value) bool { return l.ContainsAddr(v.addr) }, l}, nil
}

func readTexts(r io.Reader) (lookup, error) {
	l, err := list.Parse(context.Background(), r, list.Options{})
	if err != nil {
		return lookup{}, err
	}
	return lookup{func(v value) bool { return l.ContainsText(v.text) }, l}, nil
}

func readLite(r io.Reader) (lookup, error) {
	t := new(bart.Lite)
	err := eachPrefix(r, t.Insert)
	return lookup{func(v value) bool { return t.Contains(v.addr) }, t}, err
}

func readMap(r io.Reader) (lookup, error) {
	m := make(map[string]struct{})
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		m[lines.Text()] = struct{}{}
	}
	return lookup{func(v value) bool {
		_, ok := m[v.text]
		return ok
	}, m}, lines.Err()
}

func eachPrefix(r io.Reader, add func(netip.Prefix)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		p, err := netip.ParsePrefix(lines.Text())
		if err != nil {
			addr, err := netip.ParseAddr(lines.Text())
			if err != nil {
				return err
			}
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		add(p)
	}
	return lines.Err()
}

// cost is what a list costs.
type cost struct {
	Build           time.Duration // from a file
	Peak            float64       // bytes of the process, at the most so far
	Kept            float64       // bytes of the heap after a garbage collection
	Found, NotFound float64       // nanoseconds of a look-up
	Allocs          float64       // of a look-up

	// Nanoseconds of a call of an engine, only of Penstock: without a rule, allowed by the
	// list, refused by it, not in it.
	Free, Allowed, Refused, Passed float64
}

func measure(name, of string, count int) (cost, error) {
	var c cost
	kind, err := kindOf(of)
	if err != nil {
		return c, err
	}
	at := slices.IndexFunc(libraries(), func(l library) bool { return l.name == name })
	if at < 0 || libraries()[at].reads[of] == nil {
		return c, fmt.Errorf("there is no library %q for %s", name, of)
	}
	file, err := os.CreateTemp("", "lists-*.txt")
	if err != nil {
		return c, err
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }() // a temporary file
	if err := kind.writeTo(file, count); err != nil {
		return c, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return c, err
	}
	before := heap()
	start := time.Now()
	l, err := libraries()[at].reads[of](file)
	if err != nil {
		return c, err
	}
	c.Build = time.Since(start)
	if c.Peak, err = peak(); err != nil {
		return c, err
	}
	c.Kept = heap() - before
	return c, c.look(l, kind, count)
}

// look measures look-ups of values in random order, far more than fit in the caches.
func (c *cost) look(l lookup, kind kindOfEntries, count int) error {
	const values = 1 << 20
	entries, r := random(1), random(2)
	var found, others []value
	for range count {
		entry := kind.entry(entries)
		if r.IntN(max(count/values, 1)) == 0 && len(found) < values {
			found = append(found, valueOf(kind.found(r, entry)))
		}
	}
	for len(others) < values {
		if v := valueOf(kind.other(r)); !l.has(v) {
			others = append(others, v)
		}
	}
	r.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	inOrder(found)
	inOrder(others)
	for _, v := range found {
		if !l.has(v) {
			return errors.New("an entry is not found: " + v.text)
		}
	}
	look := func(v value) { l.has(v) }
	c.Found, c.NotFound = median(found, look), median(others, look)
	c.Allocs = allocs(found, look) + allocs(others, look)
	if ours, ok := l.holder.(*list.List); ok {
		if err := c.call(ours, kind, found, others); err != nil {
			return err
		}
	}
	runtime.KeepAlive(l.holder)
	return nil
}

// call measures calls of an engine with an access rule that denies what the list has.
func (c *cost) call(l *list.List, kind kindOfEntries, found, others []value) error {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	engine.Lists().Set("l", l)
	deny := access.Rule{Resource: "listed", Attribute: kind.attribute, List: "l"}
	allow := access.Rule{Resource: "allowed", Attribute: kind.attribute, List: "l", ListAction: access.Allow}
	if err := engine.Load(rules.Set{Access: []access.Rule{deny, allow}}); err != nil {
		return err
	}
	wrong := 0
	call := func(resource string, passes bool) func(value) {
		return func(v value) {
			guard, err := engine.Entry(context.Background(), resource, core.String(kind.attribute, v.text))
			if (err == nil) != passes {
				wrong++
			}
			guard.Exit()
		}
	}
	c.Free = median(others, call("free", true))
	c.Allowed, c.Refused, c.Passed = median(found, call("allowed", true)), median(found, call("listed", false)), median(others, call("listed", true))
	if c.Allocs += allocs(found, call("listed", false)) + allocs(others, call("listed", true)); wrong > 0 {
		return fmt.Errorf("%d calls were decided wrongly", wrong)
	}
	return nil
}

func valueOf(text string) value {
	addr, _ := netip.ParseAddr(text)
	return value{text, addr}
}

// inOrder puts the texts one after the other into memory: a call has just read its value,
// so that waiting for that is not part of a look-up.
func inOrder(values []value) {
	var all strings.Builder
	for _, v := range values {
		all.WriteString(v.text)
	}
	rest := all.String()
	for i, v := range values {
		values[i].text, rest = rest[:len(v.text)], rest[len(v.text):]
	}
}

// median returns the nanoseconds of a look-up, the median of many short rounds. It is
// processor time: what else the machine does counts as little as possible.
func median(values []value, look func(value)) float64 {
	const round = 1 << 14
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var rounds []float64
	for range 5 {
		for part := range slices.Chunk(values, round) {
			start := processorTime()
			for i := range part {
				look(part[i])
			}
			rounds = append(rounds, float64(processorTime()-start)/float64(len(part)))
		}
	}
	slices.Sort(rounds)
	return rounds[len(rounds)/2]
}

// processorTime returns the time that this thread has run so far.
func processorTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // it is there on every Linux
	}
	return time.Duration(t.Nano())
}

func allocs(values []value, look func(value)) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range values {
		look(values[i])
	}
	runtime.ReadMemStats(&after)
	return float64((after.Mallocs - before.Mallocs) / uint64(len(values)))
}

func heap() float64 {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// peak returns the most memory that the process has had so far.
func peak() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(rest, "kB")
	kilobytes, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
	return kilobytes * 1024, err
}
