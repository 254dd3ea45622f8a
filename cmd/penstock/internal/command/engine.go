package command

import (
	"context"
	"encoding/json"
	"errors"
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
	maxAnswer     = 16 << 20 // bytes of a response
)

// askEngine gets an answer of the package inspect in a running service.
func askEngine(ctx context.Context, address, path string, query url.Values, answer any) error {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	at, err := url.Parse(address)
	if err != nil || at.Host == "" {
		return fmt.Errorf("--engine is %q: must be HOST:PORT or a URL", address)
	}
	at = at.JoinPath(path)
	at.RawQuery = query.Encode()
	if err := fetch(ctx, at, answer); err != nil {
		return failure{ExitFailed, fmt.Errorf("asking the engine at %s: %w", at.Host, err)}
	}
	return nil
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
	if failed, ok := errors.AsType[*url.Error](err); ok { // whose text repeats the address
		return fmt.Errorf("%w: does the service run, and listen there?", failed.Err)
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode != http.StatusOK {
		var why inspect.Failure
		if decoder.Decode(&why) != nil || why.Error == "" { // it may be another service
			why.Error = "does it serve the handler of the package inspect, and under that path?"
		}
		return fmt.Errorf("it answers %s to %s: %s", response.Status, at.Redacted(), why.Error)
	}
	if err := decoder.Decode(answer); err != nil {
		return fmt.Errorf("it does not answer as the package inspect does, is it another service? %w", err)
	}
	return nil
}
