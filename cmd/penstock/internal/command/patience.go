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
)

// pollInterval is how often instances are counted while some are missing.
const pollInterval = 200 * time.Millisecond

// patience says how long --wait waits, and for how many instances.
type patience struct {
	timeout time.Duration
	least   int  // instances that have to be there
	given   bool // least is the user's; else nobody is waited for who does not report yet, and one has to
}

// patienceFlags gives a command with --wait the flags beside it.
func patienceFlags(cmd *cobra.Command, p *patience) {
	cmd.Flags().IntVar(&p.least, "min-instances", 0,
		"wait until at least `n` instances do, and all that report (default: one has to report by now)")
	cmd.Flags().DurationVar(&p.timeout, "timeout", time.Minute, "how long to wait at most")
}

var errTimeout = errors.New("--timeout must be longer than nothing")

// check finds what is wrong with the flags.
func (p *patience) check(cmd *cobra.Command, wait bool) error {
	p.given = cmd.Flags().Changed("min-instances")
	switch {
	case p.timeout <= 0:
		return errTimeout
	case p.least < 0:
		return errors.New("--min-instances must not be negative")
	case p.given && !wait:
		return errors.New("--min-instances says how many --wait waits for: add --wait")
	default:
		return nil
	}
}

// wait is what is known while instances are waited for.
type wait struct {
	patience
	env      Env
	revision int64
	seen     map[string]bool // every instance that has reported
	told     string
}

// tell tells which instances are behind.
func (w *wait) tell(behind []etcd.Report) {
	w.note(behind)
	if len(behind) > 0 {
		w.say("waiting for %s to come to revision %d: %s", wording.Count(len(behind), "instance"), w.revision, names(behind))
	}
}

// come tells whether all of the instances and enough of them are at the revision.
func (w *wait) come(reports []etcd.Report) bool {
	w.note(reports)
	there, behind := w.part(reports)
	if missing := w.least - len(there); missing > 0 {
		w.say("waiting for %s more to report revision %d; at it: %s", wording.Count(missing, "instance"), w.revision, listed(there))
		return false
	}
	return len(behind) == 0
}

// part parts the instances that are at the revision from those that are behind.
func (w *wait) part(reports []etcd.Report) (there []string, behind []etcd.Report) {
	for _, r := range reports {
		if r.Revision >= w.revision {
			there = append(there, r.Instance)
		} else {
			behind = append(behind, r)
		}
	}
	return there, behind
}

func (w *wait) note(reports []etcd.Report) {
	for _, r := range reports {
		w.seen[r.Instance] = true
	}
}

// say tells something unless it was told last.
func (w *wait) say(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != w.told {
		w.env.note("%s", text)
		w.told = text
	}
}

// late says who is missing when the time is over.
func (w *wait) late(reports []etcd.Report) error {
	there, behind := w.part(reports)
	if len(there)+len(behind) >= w.least {
		return fmt.Errorf("not every instance came to revision %d in %v: %s", w.revision, w.timeout, wording.Printable(names(behind)))
	}
	text := fmt.Sprintf("only %d of at least %s came to revision %d in %v; at it: %s",
		len(there), wording.Count(w.least, "instance"), w.revision, w.timeout, listed(there))
	if len(behind) > 0 {
		text += "; behind: " + names(behind)
	}
	for _, r := range reports {
		delete(w.seen, r.Instance)
	}
	if len(w.seen) > 0 {
		text += "; stopped meanwhile: " + wording.List(slices.Sorted(maps.Keys(w.seen)))
	}
	if missing := w.least - len(reports) - len(w.seen); missing > 0 {
		text += fmt.Sprintf("; never reported: %d", missing)
	}
	return errors.New(wording.Printable(text))
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return wording.List(names)
}
