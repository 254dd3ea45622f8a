package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/etcd/store"
)

// pollInterval is how often instances are counted while some are missing.
const pollInterval = 200 * time.Millisecond

// waitOptions is how long --wait waits, and for how many instances.
type waitOptions struct {
	timeout      time.Duration
	minInstances int  // number of instances that must report
	minSet       bool // least was set by the user; otherwise at least one must report already
	strict       bool // rules that match nothing that instances have seen are an error
}

// addWaitFlags adds the flags that go with --wait to a command.
func addWaitFlags(cmd *cobra.Command, p *waitOptions) {
	cmd.Flags().IntVar(&p.minInstances, "min-instances", 0,
		"wait for at least `n` instances, and for all that report (default: at least one must report already)")
	cmd.Flags().DurationVar(&p.timeout, "timeout", time.Minute, "how long to wait at most")
	cmd.Flags().BoolVar(&p.strict, "strict", false,
		"fail if no instance has seen a call that a rule is for, or one reports no longer that was behind")
}

var errTimeout = errors.New("--timeout must be longer than nothing")

// check returns an error if the flags are invalid.
func (p *waitOptions) check(cmd *cobra.Command, wait bool) error {
	p.minSet = cmd.Flags().Changed("min-instances")
	switch {
	case p.timeout <= 0:
		return errTimeout
	case p.minInstances < 0:
		return errors.New("--min-instances must not be negative")
	case p.minSet && !wait:
		return errors.New("--min-instances says how many --wait waits for: add --wait")
	default:
		return nil
	}
}

// waiter is the state of a wait for instances.
type waiter struct {
	waitOptions
	env         Env
	revision    int64
	seen        map[string]bool // instances that have reported, and whether they were last at the revision
	lastMessage string          // last progress message
}

// showBehind prints which instances are behind.
func (w *waiter) showBehind(behind []etcd.Report) {
	for _, r := range behind {
		w.seen[r.Instance] = false
	}
	if len(behind) > 0 {
		w.print("waiting for %s to come to revision %d: %s", wording.Count(len(behind), "instance"), w.revision, names(behind, w.revision))
	}
}

// done reports whether all instances, and enough of them, are at the revision.
func (w *waiter) done(found store.Deployment) bool {
	for _, r := range found.Instances {
		w.seen[r.Instance] = found.IsAt(w.revision, r)
	}
	there, behind := w.split(found)
	if missing := w.minInstances - len(there); missing > 0 {
		w.print("waiting for %s more to report revision %d; at it: %s", wording.Count(missing, "instance"), w.revision, listed(there))
		return false
	}
	return len(behind) == 0
}

// split splits the instances into those at the revision and those behind.
func (w *waiter) split(found store.Deployment) (there []string, behind []etcd.Report) {
	for _, r := range found.Instances {
		if found.IsAt(w.revision, r) {
			there = append(there, r.Instance)
		} else {
			behind = append(behind, r)
		}
	}
	return there, behind
}

// print prints a message unless it is the same as the last one.
func (w *waiter) print(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != w.lastMessage {
		w.env.note("%s", text)
		w.lastMessage = text
	}
}

// timeoutError returns the error with the missing instances when the time is over.
func (w *waiter) timeoutError(found store.Deployment) error {
	there, behind := w.split(found)
	if len(there)+len(behind) >= w.minInstances {
		return fmt.Errorf("not every instance came to revision %d in %v: %s", w.revision, w.timeout, wording.Printable(names(behind, w.revision)))
	}
	text := fmt.Sprintf("only %d of at least %s came to revision %d in %v; at it: %s",
		len(there), wording.Count(w.minInstances, "instance"), w.revision, w.timeout, listed(there))
	if len(behind) > 0 {
		text += "; behind: " + names(behind, w.revision)
	}
	stopped := w.stopped(found.Instances)
	if len(stopped) > 0 {
		text += "; stopped meanwhile: " + wording.List(stopped)
	}
	if missing := w.minInstances - len(found.Instances) - len(stopped); missing > 0 {
		text += fmt.Sprintf("; never reported: %d", missing)
	}
	return errors.New(wording.Printable(text))
}

// stopped returns the instances that have reported and do so no longer.
func (w *waiter) stopped(reports []etcd.Report) []string {
	for _, r := range reports {
		delete(w.seen, r.Instance)
	}
	return slices.Sorted(maps.Keys(w.seen))
}

// tellStopped tells which instances report no longer. Of one that was behind nobody knows whether it ended,
// as instances do that a deployment replaces, or hangs and goes on with what it had: that is an error with
// --strict.
func (w *waiter) tellStopped(reports []etcd.Report) error {
	var ended, silent []string
	for _, name := range w.stopped(reports) {
		if w.seen[name] {
			ended = append(ended, name)
		} else {
			silent = append(silent, name)
		}
	}
	if len(ended) > 0 {
		w.env.note("stopped meanwhile: %s", wording.List(ended))
	}
	if len(silent) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s reported no longer before coming to revision %d: ended, or hanging with what there was before",
		wording.Printable(wording.List(silent)), w.revision)
	if w.strict {
		return failure{ExitNo, fmt.Errorf("%s, and --strict is given", text)}
	}
	w.env.warn(text)
	return nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return wording.List(names)
}
