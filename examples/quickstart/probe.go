package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
)

// keep keeps a refusal, to be shown.
func (c *client) keep(response *http.Response, body []byte) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", response.Proto, response.Status)
	for _, field := range []string{"Content-Type", "Retry-After", "RateLimit-Policy", "RateLimit"} {
		fmt.Fprintf(&b, "%s: %s\n", field, response.Header.Get(field))
	}
	fmt.Fprintf(&b, "\n%s", body)
	text := b.String()
	c.refusal.Store(&text)
}

// scrape returns how many series of Penstock's metrics there are.
func (c *client) scrape(ctx context.Context) (series int, err error) {
	response, err := c.answer(ctx, http.MethodGet, "/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "penstock_") {
			series++
		}
	}
	return series, lines.Err()
}
