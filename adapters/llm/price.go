package llm

import (
	"cmp"
	"slices"
	"strings"
)

// priceTable finds the price of a model.
type priceTable struct {
	exact    map[string]Price
	prefixes []pricedPrefix // the longest first
}

type pricedPrefix struct {
	prefix string
	price  Price
}

func newPriceTable(prices map[string]Price) priceTable {
	t := priceTable{exact: map[string]Price{}}
	for model, price := range prices {
		if prefix, ok := strings.CutSuffix(model, "*"); ok {
			t.prefixes = append(t.prefixes, pricedPrefix{prefix, price})
		} else {
			t.exact[model] = price
		}
	}
	slices.SortFunc(t.prefixes, func(a, b pricedPrefix) int {
		return cmp.Or(cmp.Compare(len(b.prefix), len(a.prefix)), cmp.Compare(a.prefix, b.prefix))
	})
	return t
}

// of returns the price of a model; false if it has none.
func (t *priceTable) of(model string) (Price, bool) {
	if price, ok := t.exact[model]; ok {
		return price, true
	}
	for _, p := range t.prefixes {
		if strings.HasPrefix(model, p.prefix) {
			return p.price, true
		}
	}
	return Price{}, false
}

// of returns what a call costs in millionths: the price of a million tokens is what a token costs in
// them. cached are tokens that were read from a cache.
func (p Price) of(prompt, cached, answer int) float64 {
	return float64(prompt)*p.Prompt + float64(cached)*cmp.Or(p.Cached, p.Prompt) + float64(answer)*p.Answer
}
