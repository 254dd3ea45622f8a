package connection

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Interrupted is the text of the error of a request that was interrupted.
const Interrupted = "interrupted"

// Connect returns a client of the etcd cluster, after the cluster has answered a
// request. The caller closes it.
func (s Settings) Connect(ctx context.Context) (*clientv3.Client, error) {
	tls, err := s.tls(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.checkReachable(ctx, tls); err != nil {
		return nil, s.Explain(err)
	}
	client, err := clientv3.New(s.config(tls))
	if err == nil {
		err = s.ping(ctx, client)
	}
	switch {
	case err == nil:
		return client, nil
	case client != nil:
		_ = client.Close()
	}
	if ctx.Err() == nil && isTimeout(err) {
		return nil, s.noAnswerError(tls != nil)
	}
	return nil, s.Explain(err)
}

// Config returns the configuration of a client, for a source that waits until the cluster answers.
func (s Settings) Config(ctx context.Context) (clientv3.Config, error) {
	config, err := s.tls(ctx)
	if err != nil {
		return clientv3.Config{}, err
	}
	return s.config(config), nil
}

func (s Settings) config(tls *tls.Config) clientv3.Config {
	return clientv3.Config{
		Endpoints:            s.Endpoints,
		TLS:                  tls,
		Username:             s.user,
		Password:             s.password,
		DialTimeout:          s.timeout,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		Logger:               zap.NewNop(), // the commands report errors
	}
}

// ping makes a request and returns its error.
func (s Settings) ping(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	_, err := client.Get(ctx, s.Keys.Documents, clientv3.WithCountOnly())
	return err
}

// IsAway reports whether a request found no server, as during a restart of etcd.
func IsAway(err error) bool {
	if server, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return server.Code() == codes.Unavailable
	}
	return status.Code(err) == codes.Unavailable
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded
}

// Explain adds to an error of a request what to do about it. Errors of Connect are
// already explained.
func (s Settings) Explain(err error) error {
	user := fmt.Sprintf("the user %q", s.user)
	if s.user == "" {
		user = "a client without a user"
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), status.Code(err) == codes.Canceled:
		return errors.New(Interrupted)
	case is(err, rpctypes.ErrUserEmpty):
		return errors.New("etcd asks for a user: set --user or PENSTOCK_USER, and its password by PENSTOCK_PASSWORD or --password-file")
	case is(err, rpctypes.ErrAuthFailed):
		return fmt.Errorf("etcd does not know %s (%s) with that password (%s)", user, s.values["user"].from, s.passwordFrom.from)
	case is(err, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("etcd does not allow %s to do this: it needs the right to read, and to change rules that to write, all keys that begin with %q: %w",
			user, strings.TrimSuffix(s.Keys.Documents, "/"), err)
	case status.Code(err) == codes.Unimplemented:
		return fmt.Errorf("%s answers, but not as etcd does: is it a proxy, or another service? %w", strings.Join(s.Endpoints, ", "), err)
	case isTimeout(err):
		return fmt.Errorf("etcd at %s did not answer in time: %w", strings.Join(s.Endpoints, ", "), err)
	default:
		return err
	}
}

// is reports whether an error is the given one of etcd, wrapped or as text.
func is(err, target error) bool {
	return errors.Is(err, target) || strings.Contains(err.Error(), rpctypes.ErrorDesc(target))
}
