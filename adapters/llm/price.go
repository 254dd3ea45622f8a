package llm

import (
	"cmp"
	"fmt"
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

// usedTokens is what a call uses, by what it costs. None is in two of them.
type usedTokens struct{ prompt, cached, written, answer int }

// of returns what tokens cost in millionths: the price of a million tokens is what a token costs in them.
func (p Price) of(n usedTokens) float64 {
	return float64(n.prompt)*p.Prompt + float64(n.cached)*cmp.Or(p.Cached, p.Prompt) +
		float64(n.written)*cmp.Or(p.CacheWrite, p.Prompt) + float64(n.answer)*p.Answer
}

// priceFault says what is wrong with a price of a million tokens; "" if nothing is.
func priceFault(price float64) string {
	if price >= 0 && price <= maxPrice {
		return ""
	}
	return fmt.Sprintf("is %v: must be from 0 to %g for a million tokens", price, maxPrice)
}
