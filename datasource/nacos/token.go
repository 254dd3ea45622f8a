package nacossource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/datasource/internal/remote"
)

// token is what a login has returned.
type token struct {
	text    string        // "" if there is none
	renewAt clock.Instant // when nine tenths of its time have passed
}

// errForbidden says that Nacos does not accept the token or the user's permissions.
var errForbidden = errors.New("the user is not accepted, or may not read the namespace")

// do sends a request with a token. If the token is refused, because the server was
// replaced or its secret was changed, it does so once more with another one.
func (r *reader) do(ctx context.Context, request remote.Request, read func(*http.Response) error) error {
	if request.Timeout == 0 {
		request.Timeout = r.opts.RequestTimeout
	}
	err := r.doOnce(ctx, request, read)
	if errors.Is(err, errForbidden) && r.opts.Credentials != nil {
		r.token = token{}
		err = r.doOnce(ctx, request, read)
	}
	return err
}

func (r *reader) doOnce(ctx context.Context, request remote.Request, read func(*http.Response) error) error {
	if r.opts.Credentials != nil {
		if r.token.text == "" || r.opts.Clock.Now() >= r.token.renewAt {
			if err := r.login(ctx); err != nil {
				r.token = token{}
				return fmt.Errorf("logging in: %w", err)
			}
		}
		request.Query = maps.Clone(request.Query)
		request.Query.Set("accessToken", r.token.text)
	}
	return r.client.Do(ctx, request, read)
}

func (r *reader) login(ctx context.Context) error {
	user, password, err := r.opts.Credentials()
	if err != nil {
		return fmt.Errorf("getting the password: %w", err)
	}
	began := r.opts.Clock.Now()
	return r.client.Do(ctx, remote.Request{
		Method: http.MethodPost, Path: "/v1/auth/users/login", Timeout: r.opts.RequestTimeout,
		Form: url.Values{"username": {user}, "password": {password}},
	}, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return loginRefusal(response, password)
		}
		var answer struct {
			AccessToken string
			TokenTTL    int64 `json:"tokenTtl"` // in seconds
		}
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.AccessToken == "" {
			return errors.New("the answer has no token: is the address that of Nacos 2?")
		}
		ttl := time.Duration(max(1, answer.TokenTTL)) * time.Second
		r.token = token{text: answer.AccessToken, renewAt: began.Add(ttl - ttl/10)}
		return nil
	})
}

func loginRefusal(response *http.Response, password string) error {
	message := remote.Message(response, password)
	if response.StatusCode == http.StatusForbidden {
		return fmt.Errorf("the user name or the password is not accepted (status 403: %s)", message)
	}
	return fmt.Errorf("status %d: %s", response.StatusCode, message)
}

// refusal returns the error of a response that is none.
func (r *reader) refusal(response *http.Response) error {
	message := remote.Message(response, r.token.text)
	switch response.StatusCode {
	case http.StatusForbidden, http.StatusUnauthorized:
		if r.opts.Credentials == nil {
			message += "; set Options.Credentials"
		}
		return fmt.Errorf("%w (status %d: %s)", errForbidden, response.StatusCode, message)
	case http.StatusNotFound, http.StatusGone:
		return fmt.Errorf("the server does not have the API of Nacos 2: check the address (status %d)", response.StatusCode)
	default:
		return fmt.Errorf("status %d: %s", response.StatusCode, message)
	}
}
