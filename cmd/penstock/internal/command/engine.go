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

	"github.com/penstock-go/penstock/cmd/penstock/internal/wording"
	"github.com/penstock-go/penstock/inspect"
)

const (
	engineTimeout = 10 * time.Second
	maxAnswer     = 16 << 20 // bytes of a response
)

// askEngine gets an answer of the package inspect in a running service.
func askEngine(ctx context.Context, address, path string, query url.Values, answer any) error {
	at, err := engineURL(address)
	if err != nil {
		return err
	}
	at = at.JoinPath(path)
	at.RawQuery = query.Encode()
	if err := exchange(ctx, http.MethodGet, at, "", http.NoBody, answer); err != nil {
		return failure{ExitFailed, fmt.Errorf("asking the engine at %s: %w", at.Host, err)}
	}
	return nil
}

// engineURL returns the address of a running service as a URL.
func engineURL(address string) (*url.URL, error) {
	text := address
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	at, err := url.Parse(text)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("--engine is %q: must be HOST:PORT or a URL", text)
	}
	return at, nil
}

// refusedError says that a service does not do what it was asked for.
type refusedError struct {
	status    int
	text, why string
}

func (e refusedError) Error() string { return e.text + ": " + e.why }

// exchange sends a request, with a token and a form as its body if there are any, and reads the JSON of
// the answer; nothing if answer is nil.
func exchange(ctx context.Context, method string, at *url.URL, token string, form io.Reader, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, at.String(), form)
	if err != nil {
		return err
	}
	if form != http.NoBody {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// It goes nowhere else: an answer must not have the request, and its token, sent to another address.
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return unanswered(err, method)
	}
	defer response.Body.Close()
	want := http.StatusOK
	if answer == nil {
		want = http.StatusNoContent
	}
	decoder := json.NewDecoder(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode != want {
		var why inspect.Failure
		if decoder.Decode(&why) != nil || why.Error == "" { // it may be another service
			why.Error = "does it serve the handler of the package inspect, and under that path?"
		}
		if response.StatusCode == http.StatusMethodNotAllowed && request.Method == http.MethodPost {
			why.Error = "operators only look there: does it serve the control handler of the package inspect under that path?"
		}
		text := fmt.Sprintf("it answers %s to %s", response.Status, at.Redacted())
		return refusedError{response.StatusCode, wording.Printable(text), wording.Printable(why.Error)}
	}
	if answer == nil {
		return nil
	}
	if err := decoder.Decode(answer); err != nil {
		return fmt.Errorf("it does not answer as the package inspect does, is it another service? %w", err)
	}
	return nil
}
