package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// refusal makes calls until one is refused and returns the answer, as a client
// sees it.
func (c *client) refusal(ctx context.Context) (string, error) {
	for range 1000 {
		response, err := c.answer(ctx, http.MethodPost, "/orders")
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return "", err
		}
		if response.StatusCode != http.StatusTooManyRequests {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "HTTP/1.1 %s\n", response.Status)
		for _, field := range []string{"Content-Type", "Retry-After", "RateLimit-Policy", "RateLimit"} {
			fmt.Fprintf(&b, "%s: %s\n", field, response.Header.Get(field))
		}
		fmt.Fprintf(&b, "\n%s", body)
		return b.String(), nil
	}
	return "", errors.New("none of 1000 calls of POST /orders was refused")
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
