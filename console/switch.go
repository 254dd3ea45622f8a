package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
)

const (
	// maxReason is how many bytes the reason for a switch may have: engines keep no more.
	maxReason = 256

	// maxSwitched is how many of the scopes that are switched a page shows.
	maxSwitched = 100
)

// switchRequest has rules switched off or on, as [core.Engine.Switch] does: a rule with its kind, a kind, a
// resource, or all.
type switchRequest struct {
	Kind     rule.Kind `json:"kind,omitempty"`
	Rule     string    `json:"rule,omitempty"`
	Resource string    `json:"resource,omitempty"`
	All      bool      `json:"all,omitempty"`

	State  string `json:"state"`         // "" to release
	For    string `json:"for,omitempty"` // such as 10m; until it is released if it is ""
	Reason string `json:"reason"`
}

// order returns the order that a request is.
func (s switchRequest) order(who Identity) (core.Order, error) {
	scopes := 0
	for _, named := range []bool{s.Kind != "", s.Resource != "", s.All} {
		if named {
			scopes++
		}
	}
	switch {
	case s.Rule != "" && s.Kind == "":
		return core.Order{}, errRequest{"say of which kind the rule is"}
	case scopes != 1:
		return core.Order{}, errRequest{"name a rule with its kind, a kind, a resource, or all"}
	case s.State != "" && s.State != core.SwitchOff && s.State != core.SwitchOn:
		return core.Order{}, errRequest{"rules are switched off or on, or released"}
	}
	order, err := orderOf(who, s.Reason)
	if err != nil || s.For == "" {
		return order, err
	}
	if order.For, err = time.ParseDuration(s.For); err != nil || order.For <= 0 || s.State == "" {
		return order, errRequest{"for how long must be a time such as 10m, and is not for a release"}
	}
	return order, nil
}

// orderOf returns an order of somebody, who has to say why.
func orderOf(who Identity, reason string) (core.Order, error) {
	order := core.Order{By: cmp.Or(string(who), "somebody"), Reason: strings.TrimSpace(reason)}
	switch {
	case order.Reason == "":
		return order, errRequest{"say why: others will want to know"}
	case len(order.Reason) > maxReason:
		return order, errRequest{fmt.Sprintf("the reason is too long: it may have %d bytes", maxReason)}
	}
	return order, nil
}

// form returns the request as [inspect.ControlHandler] takes it.
func (s switchRequest) form(order core.Order) url.Values {
	now := strconv.FormatInt(time.Now().UnixNano(), 10) // of several orders, the same one is the last for all instances
	form := url.Values{"switch": {s.State}, "by": {order.By}, "reason": {order.Reason}, "at": {now}}
	for field, value := range map[string]string{"kind": string(s.Kind), "rule": s.Rule, "resource": s.Resource, "for": s.For} {
		if value != "" {
			form.Set(field, value)
		}
	}
	if s.All {
		form.Set("engine", strconv.FormatBool(true))
	}
	return form
}

// switchDone says what came of an order.
type switchDone struct {
	Done   int             `json:"done"` // instances that did it
	Total  int             `json:"total"`
	Failed []instanceShown `json:"failed"` // those that did not

	// Unsure says that one of those that failed may do it, or have done it, nevertheless.
	Unsure bool `json:"unsure,omitempty"`
}

// switchRules switches rules in this process, or in all instances.
func (h *handler) switchRules(r request) (any, error) {
	s, err := decode[switchRequest](r)
	if err != nil {
		return nil, err
	}
	order, err := s.order(r.who)
	if err != nil {
		return nil, err
	}
	defer h.statuses.forget()
	if h.Engine != nil {
		scope := core.Scope{Kind: s.Kind, Rule: s.Rule, Resource: s.Resource}
		if err := h.Engine.Switch(scope, s.State, order); err != nil {
			return nil, errRequest{strings.TrimPrefix(err.Error(), "core: ")}
		}
		return switchDone{Done: 1, Total: 1, Failed: []instanceShown{}}, nil
	}
	all, err := h.fleet.list(r.Context())
	if err != nil {
		return nil, err
	}
	// Once some have it, the others are to have it, too, though the page is gone.
	return tell(context.WithoutCancel(r.Context()), all, s.form(order)), nil
}

// tell sends a form to the control handlers of all instances at the same time.
func tell(ctx context.Context, all []instance, form url.Values) switchDone {
	errs := make([]error, len(all))
	var told sync.WaitGroup
	for n, i := range all {
		told.Go(func() { errs[n] = i.tell(ctx, form) })
	}
	told.Wait()
	done := switchDone{Total: len(all), Failed: []instanceShown{}}
	for n, i := range all {
		if errs[n] == nil {
			done.Done++
			continue
		}
		done.Failed = append(done.Failed, instanceShown{i.name, i.address, errs[n].Error()})
		done.Unsure = done.Unsure || mayBeDone(errs[n])
	}
	return done
}

// tell sends a form to the control handler of an instance, which answers nothing.
func (i instance) tell(ctx context.Context, form url.Values) error {
	return i.post(ctx, form, http.StatusNoContent, func(io.Reader) error { return nil })
}

// post sends a form to the control handler of an instance, and has its answer read.
func (i instance) post(ctx context.Context, form url.Values, status int, read func(body io.Reader) error) error {
	if i.problem != "" {
		return errors.New(i.problem)
	}
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.base+"control", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if err := i.token.addTo(request); err != nil {
		return err
	}
	err = i.token.hidden(exchange(i.client, request, status, read))
	if failed := (answerError{}); errors.As(err, &failed) && (failed.status == http.StatusNotFound || failed.status == http.StatusMethodNotAllowed) {
		return errors.New("it serves no inspect.ControlHandler under control")
	}
	return err
}

// switched is a scope that is switched off or on, or whose state is forced, and on how many instances. A rule, a kind or a resource is
// named, or none for all rules.
type switched struct {
	Kind      rule.Kind `json:"kind,omitempty"`
	Rule      string    `json:"rule,omitempty"`
	Resource  string    `json:"resource,omitempty"`
	State     string    `json:"state"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Since     time.Time `json:"since"` // on the first of them
	Until     time.Time `json:"until,omitzero"`
	Instances int       `json:"instances"`
}

// addSwitches adds what is switched, or forced, on an instance to what is on others. More of it than a page shows is
// only counted.
func addSwitches(to []switched, more int, of []inspect.Forced) (all []switched, left int) {
	for n := range of {
		f := &of[n]
		i := indexOfSwitch(to, f)
		switch {
		case i >= 0:
			to[i].add(f)
		case len(to) < maxSwitched:
			to = append(to, switched{f.Kind, f.Rule, f.Resource, f.State, f.By, f.Reason, f.Since, f.Until, 1})
		default:
			left++
		}
	}
	return to, max(more, left)
}

func (s *switched) add(f *inspect.Forced) {
	s.Instances++
	if f.Since.Before(s.Since) {
		s.Since = f.Since
	}
	if f.Until.After(s.Until) {
		s.Until = f.Until
	}
}

// indexOfSwitch returns the number of the same order on another instance, -1 if there is none. Each of them
// has begun it a little earlier or later.
func indexOfSwitch(all []switched, f *inspect.Forced) int {
	return slices.IndexFunc(all, func(of switched) bool {
		return of.Kind == f.Kind && of.Rule == f.Rule && of.Resource == f.Resource && of.State == f.State &&
			of.By == f.By && of.Reason == f.Reason && of.Until.IsZero() == f.Until.IsZero()
	})
}
