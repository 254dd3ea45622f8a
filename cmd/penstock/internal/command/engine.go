package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/penstock-go/penstock/inspect"
)

const (
	engineTimeout = 10 * time.Second
	maxAnswer     = 16 << 20 // bytes of what a service says
)

// askEngine asks a running service about a call.
func askEngine(ctx context.Context, address string, call inspect.Call) (inspect.Explanation, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return inspect.Explanation{}, fmt.Errorf("--engine is %q: must be HOST:PORT or a URL", address)
	}
	at = at.JoinPath("explain")
	at.RawQuery = call.Query().Encode()
	var answer inspect.Explanation
	if err := fetch(ctx, at, &answer); err != nil {
		return inspect.Explanation{}, failure{ExitFailed, fmt.Errorf("asking the engine: %w", err)}
	}
	return answer, nil
}

// fetch reads the JSON at a URL.
func fetch(ctx context.Context, at *url.URL, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode != http.StatusOK {
		var why inspect.Failure
		_ = decoder.Decode(&why) // whoever it is may not speak JSON
		return fmt.Errorf("%s answers %s: %s", at.Host, response.Status, why.Error)
	}
	if err := decoder.Decode(answer); err != nil {
		return fmt.Errorf("%s does not answer as the package inspect does, is it another service? %w", at.Host, err)
	}
	return nil
}
