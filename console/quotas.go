package console

import (
	"cmp"
	"context"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/penstock-go/penstock/inspect"
	"github.com/penstock-go/penstock/rule"
)

const (
	// quotasAge is how old what is shown of limits may be: each balance of the fleet is a request to its store.
	quotasAge = 2900 * time.Millisecond

	// maxQuotas is how many limits the page shows.
	maxQuotas = 300
)

// quotasScreen shows how much of limits on what passes in a time is used and left.
type quotasScreen struct {
	h      *handler
	query  inspect.RuleQuery
	gather gatherer[inspect.Quotas]

	shown quotasShown
	at    time.Time
}

func newQuotas(h *handler, query url.Values) (*quotasScreen, error) {
	s := &quotasScreen{h: h}
	var err error
	s.query.Origin, s.query.Attributes, err = callerIn(query.Get("of"))
	return s, err
}

// callerIn reads the attributes of a caller as the page writes them: "tenant=acme, region=eu". That of the key
// "origin" is the name of the caller.
func callerIn(text string) (origin string, attributes map[string]string, err error) {
	var pairs []string
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		if name, ok := strings.CutPrefix(pair, "origin="); ok {
			origin = name
		} else {
			pairs = append(pairs, pair)
		}
	}
	if attributes, err = inspect.ParseAttributes(pairs); err == nil {
		err = inspect.Call{Resource: "any", Origin: origin, Attributes: attributes}.Validate()
	}
	if err != nil {
		return "", nil, errRequest{strings.TrimPrefix(err.Error(), "inspect: ")}
	}
	return origin, attributes, nil
}

// quotasShown is what the page gets.
type quotasShown struct {
	Instances []instanceShown `json:"instances"`
	Quotas    []quotaShown    `json:"quotas"`
	More      int             `json:"more"` // that are left out
}

// quotaShown is a limit. One of the fleet is the same in all instances, which may know different states of it;
// of others each instance has its own, and they are added up.
type quotaShown struct {
	quotaKey

	Shadow bool    `json:"shadow,omitempty"`
	Off    bool    `json:"off,omitempty"`
	Limit  float64 `json:"limit"`  // of the rule, for each instance or for the fleet
	Window float64 `json:"window"` // in seconds

	Instances int             `json:"instances"` // that have it
	Effective inspect.Ceiling `json:"effective"` // of all of them
	Used      *float64        `json:"used,omitempty"`
	Left      float64         `json:"left"`              // of a limit of the fleet what the instance knows that knows of least
	Unknown   bool            `json:"unknown,omitempty"` // no instance knows Left

	ResetsAt time.Time `json:"resetsAt,omitzero"` // the first of them
	Penalty  float64   `json:"penalty,omitempty"` // the longest, in seconds
}

// quotaKey tells limits apart.
type quotaKey struct {
	Kind     rule.Kind `json:"kind"`
	Rule     string    `json:"rule"`
	Resource string    `json:"resource,omitempty"`
	Value    string    `json:"value,omitempty"`
	Prepaid  bool      `json:"prepaid,omitempty"`
	Fleet    bool      `json:"fleet,omitempty"`
}

func (s *quotasScreen) read(ctx context.Context) (any, error) {
	if time.Since(s.at) < quotasAge {
		return s.shown, nil
	}
	all, err := s.h.fleet.list(ctx)
	if err != nil {
		return nil, err
	}
	shown := quotasShown{Quotas: []quotaShown{}}
	index := make(map[quotaKey]int)
	for _, a := range s.gather.ask(ctx, all, s.ask) {
		shown.Instances = append(shown.Instances, instanceShown{a.instance.name, a.instance.address, a.err})
		shown.More = max(shown.More, a.value.MoreQuotas)
		for i := range a.value.Quotas {
			shown.add(&a.value.Quotas[i], index)
		}
	}
	slices.SortFunc(shown.Quotas, compareQuotas)
	if more := len(shown.Quotas) - maxQuotas; more > 0 {
		shown.Quotas, shown.More = shown.Quotas[:maxQuotas], shown.More+more
	}
	s.shown, s.at = shown, time.Now()
	return shown, nil
}

func (s *quotasScreen) ask(ctx context.Context, i instance) (found inspect.Quotas, err error) {
	return found, i.ask(ctx, "quotas", s.query.Query(), &found)
}

// keyOf returns what tells a limit of an instance apart from its others.
func keyOf(of *inspect.QuotaState) quotaKey {
	return quotaKey{of.Kind, of.Rule, of.Resource, of.Value, of.Prepaid, of.Fleet}
}

// add adds a limit of an instance.
func (s *quotasShown) add(of *inspect.QuotaState, index map[quotaKey]int) {
	i, known := index[keyOf(of)]
	if !known {
		i = len(s.Quotas)
		index[keyOf(of)] = i
		s.Quotas = append(s.Quotas, quotaShown{quotaKey: keyOf(of), Shadow: of.Shadow, Limit: of.Limit, Window: of.Window})
	}
	to := &s.Quotas[i]
	to.Instances++
	to.Off = to.Off || of.Off
	to.Penalty = max(to.Penalty, of.Penalty)
	if !of.ResetsAt.IsZero() && (to.ResetsAt.IsZero() || of.ResetsAt.Before(to.ResetsAt)) {
		to.ResetsAt = of.ResetsAt
	}
	left := float64(of.Remaining)
	if of.Fleet && known {
		to.Effective = max(to.Effective, of.Effective)
		switch {
		case of.Unknown:
		case to.Unknown:
			to.Left, to.Unknown = left, false
		default:
			to.Left = min(to.Left, left)
		}
		if of.Used != nil {
			used := max(*of.Used, *cmp.Or(to.Used, new(float64)))
			to.Used = &used
		}
		return
	}
	to.Effective += of.Effective
	to.Left += left
	to.Unknown = of.Unknown
	if of.Used != nil {
		used := *of.Used + *cmp.Or(to.Used, new(float64))
		to.Used = &used
	}
}

// share returns which part of a limit is left, all of it if that is not known.
func (q *quotaShown) share() float64 {
	if q.Unknown {
		return 1
	}
	if q.Effective <= 0 || q.Effective.IsInfinite() {
		return math.Copysign(1, q.Left-0.5)
	}
	return min(1, q.Left/float64(q.Effective))
}

// compareQuotas puts those of which least is left before the others.
func compareQuotas(a, b quotaShown) int {
	return cmp.Or(
		cmp.Compare(a.share(), b.share()), cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Rule, b.Rule),
		strings.Compare(a.Resource, b.Resource), strings.Compare(a.Value, b.Value),
	)
}
