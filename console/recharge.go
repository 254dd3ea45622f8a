package console

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
)

// rechargeRequest adds tokens to a balance.
type rechargeRequest struct {
	Kind     rule.Kind `json:"kind"`
	Rule     string    `json:"rule"`
	Resource string    `json:"resource"`
	Of       string    `json:"of"` // whose balance it is, as callerIn reads it; "" of one that has no values
	Tokens   int64     `json:"tokens"`
	Reason   string    `json:"reason"`
}

// rechargeDone says what came of it.
type rechargeDone struct {
	Left   int64           `json:"left"` // in all instances that did it
	Done   int             `json:"done"`
	Total  int             `json:"total"`
	Failed []instanceShown `json:"failed"`

	// Unsure says that one of those that failed may have added the tokens nevertheless.
	Unsure bool `json:"unsure,omitempty"`
}

// order returns who recharges a balance and why.
func (q *rechargeRequest) order(who Identity) (core.Order, error) {
	switch {
	case q.Kind == "" || q.Rule == "":
		return core.Order{}, errRequest{"name the rule that has the balance, with its kind"}
	case q.Tokens == 0 || max(q.Tokens, -q.Tokens) > rule.MaxBalance:
		return core.Order{}, errRequest{fmt.Sprintf("tokens are from 1 to %d, or below 0 to take some off", int64(rule.MaxBalance))}
	}
	return orderOf(who, q.Reason)
}

// recharge adds tokens to a balance in this process, or in the instances: to one of the fleet once, to others in each
// instance that has it.
func (h *handler) recharge(r request) (any, error) {
	q, err := decode[rechargeRequest](r)
	if err != nil {
		return nil, err
	}
	order, err := q.order(r.who)
	if err != nil {
		return nil, err
	}
	query := inspect.RuleQuery{Kind: q.Kind, Rule: q.Rule}
	if query.Origin, query.Attributes, err = callerIn(q.Of); err != nil {
		return nil, err
	}
	all, err := h.fleet.list(r.Context())
	if err != nil {
		return nil, err
	}
	holders, isOfFleet, err := holdersOf(r.Context(), all, query, q.Resource)
	if err != nil {
		return nil, err
	}
	if isOfFleet {
		holders = holders[:1]
	}
	// Once some have it, the others are to have it, too, though the page is gone.
	return h.rechargeIn(context.WithoutCancel(r.Context()), holders, q.form(query, order)), nil
}

// holdersOf returns the instances that have a balance, and whether it is that of the fleet.
func holdersOf(ctx context.Context, all []instance, query inspect.RuleQuery, resource string) (holders []instance, isOfFleet bool, err error) {
	var once gatherer[inspect.Quotas]
	why := "no instance answers"
	for _, a := range once.ask(ctx, all, func(ctx context.Context, i instance) (found inspect.Quotas, err error) {
		return found, i.ask(ctx, "quotas", query.Query(), &found)
	}) {
		if a.err != "" {
			why = a.err
			continue
		}
		has := func(of inspect.QuotaState) bool { return of.Prepaid && of.Resource == resource }
		if i := slices.IndexFunc(a.value.Quotas, has); i >= 0 {
			holders = append(holders, a.instance)
			isOfFleet = isOfFleet || a.value.Quotas[i].Fleet
		} else {
			why = "the rule has none there, or looks at other attributes"
		}
	}
	if len(holders) == 0 {
		return nil, false, errRequest{"no instance has such a balance: " + why}
	}
	return holders, isOfFleet, nil
}

// form returns the request as [inspect.ControlHandler] takes it.
func (q *rechargeRequest) form(query inspect.RuleQuery, order core.Order) url.Values {
	form := query.Query()
	form.Set("action", "recharge")
	form.Set("tokens", strconv.FormatInt(q.Tokens, 10))
	form.Set("by", order.By)
	form.Set("reason", order.Reason)
	if q.Resource != "" {
		form.Set("resource", q.Resource)
	}
	return form
}

// rechargeIn has instances add tokens, at the same time.
func (h *handler) rechargeIn(ctx context.Context, holders []instance, form url.Values) rechargeDone {
	done := rechargeDone{Total: len(holders), Failed: []instanceShown{}}
	var mu sync.Mutex // guards done
	var told sync.WaitGroup
	for _, i := range holders {
		told.Go(func() {
			left, err := h.rechargeAt(ctx, i, form)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				done.Done++
				done.Left += left
				return
			}
			done.Failed = append(done.Failed, instanceShown{i.name, i.address, err.Error()})
			done.Unsure = done.Unsure || mayBeDone(err)
		})
	}
	told.Wait()
	return done
}

// rechargeAt has an instance add tokens, and returns what is left.
func (h *handler) rechargeAt(ctx context.Context, i instance, form url.Values) (left int64, err error) {
	if h.Engine != nil {
		i.client, i.base = &http.Client{Transport: inProcess{inspect.ControlHandler(h.Engine, inspect.Options{})}}, "http://localhost/"
	}
	var answer inspect.Recharged
	err = i.post(ctx, form, http.StatusOK, func(body io.Reader) error {
		if err := json.NewDecoder(io.LimitReader(body, maxAnswer)).Decode(&answer); err != nil {
			return unansweredError{err, true}
		}
		return nil
	})
	return answer.Left, err
}
