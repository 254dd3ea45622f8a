package etcd

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// TokenFile returns a function for [Options.Token] that reads the token from a
// file, without spaces and line ends around it.
func TokenFile(path string) func() (string, error) {
	return func() (string, error) {
		data, err := os.ReadFile(path) //nolint:gosec // the caller names the file
		if err != nil {
			return "", fmt.Errorf("etcd: reading the token: %w", err)
		}
		token := strings.TrimSpace(string(data))
		if token == "" {
			return "", fmt.Errorf("etcd: reading the token: %s is empty", path)
		}
		return token, nil
	}
}

// withToken returns the configuration with the token sent along with each request.
func withToken(config clientv3.Config, token func() (string, error)) clientv3.Config {
	config.DialOptions = append(slices.Clone(config.DialOptions), grpc.WithPerRPCCredentials(tokenCredentials(token)))
	return config
}

// tokenCredentials ask for the token of each request anew.
type tokenCredentials func() (string, error)

func (t tokenCredentials) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := t()
	if err != nil {
		return nil, err
	}
	return map[string]string{rpctypes.TokenFieldNameGRPC: token}, nil
}

// RequireTransportSecurity is false, as for the client's own tokens: whether the
// connection is encrypted is for the configuration to say.
func (tokenCredentials) RequireTransportSecurity() bool { return false }
