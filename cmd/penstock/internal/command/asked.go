package command

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/datasource/etcd"
)

// instanceAnswer is what an instance says of itself, at the address that it reports.
type instanceAnswer[T any] struct {
	asked bool // it reports an address
	value T
	err   error // why it has not answered
}

// answers are what instances say, by name.
type answers[T any] map[string]instanceAnswer[T]

// askInstances asks the package inspect in all instances that report an address, at the same time.
func askInstances[T any](ctx context.Context, reports []etcd.Report, path string, query url.Values) answers[T] {
	list := make([]instanceAnswer[T], len(reports))
	asked := 0
	var all sync.WaitGroup
	for i, r := range reports {
		if r.Inspect == "" {
			continue
		}
		list[i].asked = true
		if asked++; asked > maxServices {
			list[i].err = fmt.Errorf("not asked: at most %d instances are", maxServices)
			continue
		}
		all.Go(func() { list[i].err = askEngine(ctx, r.Inspect, path, query, &list[i].value) })
	}
	all.Wait()
	answers := make(answers[T], len(reports))
	for i, r := range reports {
		answers[r.Instance] = list[i]
	}
	return answers
}

// askEach asks the services at all addresses at the same time.
func askEach[T any](ctx context.Context, addresses []string, ask func(ctx context.Context, address string) T) []T {
	answers := make([]T, len(addresses))
	var all sync.WaitGroup
	for i, address := range addresses {
		all.Go(func() { answers[i] = ask(ctx, address) })
	}
	all.Wait()
	return answers
}

// shownAddress is the address of a service without a password.
func shownAddress(address string) string {
	if at, err := engineURL(address); err == nil {
		return at.Host + at.Path
	}
	return address
}

// asked says whether any instance was asked.
func (a answers[T]) asked() bool {
	for _, answer := range a {
		if answer.asked {
			return true
		}
	}
	return false
}

// error returns why an instance has not answered; "" if it has, or was not asked.
func (a answers[T]) error(instance string) string {
	if err := a[instance].err; err != nil {
		return strings.TrimPrefix(err.Error(), "asking the engine at ")
	}
	return ""
}

// tellMissing names the instances that have not answered, and, where others were asked, those that report
// no address. It returns an error if one has not answered.
func tellMissing[T any](env Env, reports []etcd.Report, a answers[T]) error {
	if !a.asked() {
		return nil
	}
	code := ExitDone
	for _, r := range reports {
		why := a.error(r.Instance)
		switch {
		case why != "":
			code = ExitFailed
			fmt.Fprintf(env.Err, "penstock: no answer from %s: %s\n", wording.Cell(r.Instance), wording.Printable(why))
		case !a[r.Instance].asked:
			env.warn(r.Instance + " is not asked: it reports no address of its inspect handler")
		}
	}
	if code != ExitDone {
		return failure{code: code}
	}
	return nil
}

// forcedText describes what is forced or switched in an instance, to be printed after its name.
func forcedText(f *etcd.ForcedState) string {
	text := fmt.Sprintf(": %s is forced to be %s", wording.Cell(f.Scope()), wording.Cell(f.State))
	if f.Switch {
		text = fmt.Sprintf(": %s is switched %s", wording.Cell(f.Scope()), wording.Cell(f.State))
	}
	if !f.Until.IsZero() {
		text += " until " + dateTime(f.Until)
	}
	text += " by " + cmp.Or(wording.Cell(f.By), "somebody")
	if f.Reason != "" {
		text += ": " + wording.Cell(f.Reason)
	}
	return text
}
