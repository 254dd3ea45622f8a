package connection

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/penstock-go/penstock/cmd/penstock/internal/files"
	"github.com/penstock-go/penstock/datasource/etcd"
)

// Settings are the settings of the connection to etcd, and the keys of the
// application.
type Settings struct {
	Keys      etcd.Keys
	Endpoints []string
	Warnings  []string // for the user, about the settings themselves

	values       values
	timeout      time.Duration
	user         string
	password     string
	passwordFrom value // the setting that contains the password
}

// Find returns the settings from flags, environment and file, or all their mistakes.
// The error never contains a password.
func Find(ctx context.Context, flags *pflag.FlagSet, getenv func(string) string) (Settings, error) {
	config, err := readFile(ctx, flags, getenv)
	if err != nil {
		return Settings{}, err
	}
	s := Settings{values: collect(flags, getenv, config)}
	return s, errors.Join(s.findPrefix(), s.findEndpoints(), s.findTimeout(), s.findUser(ctx, config), s.checkCertificates())
}

func (s *Settings) findPrefix() error {
	name, chosen, err := s.values.either("app", "prefix")
	prefix := chosen.text
	switch {
	case err != nil:
		return err
	case name == "":
		return errors.New("which rules are meant? Name the application with --app NAME or PENSTOCK_APP, or say --prefix")
	case name == "app" && strings.HasPrefix(prefix, "/"):
		return fmt.Errorf("%s is %q: must be a name, such as shop; a whole path goes into --prefix", chosen.from, prefix)
	case name == "app":
		prefix = etcd.Prefix(prefix)
	}
	if s.Keys, err = etcd.KeysOf(prefix); err != nil {
		return fmt.Errorf("%s: %w", chosen.from, err)
	}
	return nil
}

func (s *Settings) findEndpoints() error {
	v := s.values["endpoints"]
	for endpoint := range strings.SplitSeq(v.text, ",") {
		endpoint = strings.TrimSpace(endpoint)
		if _, err := address(endpoint); err != nil {
			return fmt.Errorf("%s: %w", v.from, err)
		}
		s.Endpoints = append(s.Endpoints, endpoint)
	}
	return nil
}

// address returns the host and port of an endpoint.
func address(endpoint string) (hostPort string, err error) {
	scheme, hostPort, isURL := strings.Cut(endpoint, "://")
	if isURL {
		hostPort = strings.TrimRight(hostPort, "/")
	} else {
		scheme, hostPort = "", endpoint
	}
	host, port, err := net.SplitHostPort(hostPort)
	switch {
	case strings.Contains(endpoint, "@"): // it may contain a password
		return "", errors.New("an endpoint holds a user: set --user instead")
	case err != nil, host == "", port == "", !slices.Contains([]string{"", "http", "https"}, scheme):
		return "", fmt.Errorf("the endpoint %q must be HOST:PORT, or a URL such as https://etcd-1:2379", endpoint)
	}
	return hostPort, nil
}

func (s *Settings) findTimeout() error {
	v := s.values["dial-timeout"]
	timeout, err := time.ParseDuration(v.text)
	if err != nil || timeout <= 0 {
		return fmt.Errorf("%s is %q: write a duration with a unit, such as 5s", v.from, v.text)
	}
	s.timeout = timeout
	return nil
}

// findUser determines the user and the password, which may be joined to the name or
// be set separately.
func (s *Settings) findUser(ctx context.Context, config file) error {
	user := s.values["user"]
	name, password, joined := strings.Cut(user.text, ":")
	s.user = name
	own, chosen, err := s.values.either("password", "password-file")
	if err != nil {
		return err
	}
	if joined && chosen.level == user.level {
		return fmt.Errorf("the password is set by %s and by %s: keep one", user.from, chosen.from)
	}
	switch {
	case joined && user.level > chosen.level:
		s.password, s.passwordFrom = password, user
	case own == "password":
		s.password, s.passwordFrom = chosen.text, chosen
	case own == "password-file":
		data, err := files.Read(ctx, chosen.text)
		if err != nil {
			return fmt.Errorf("%s: %w", chosen.from, err)
		}
		s.password, s.passwordFrom = strings.TrimRight(string(data), "\r\n"), chosen
		s.warn(chosen.text)
	}
	if config.hasPassword() {
		s.warn(config.path)
	}
	switch {
	case s.user == "" && s.passwordFrom.level > unset:
		return fmt.Errorf("%s sets a password without a user: say --user NAME", s.passwordFrom.from)
	case s.user != "" && s.password == "":
		return fmt.Errorf("the user %q (%s) has no password: set PENSTOCK_PASSWORD or --password-file FILE", s.user, user.from)
	}
	return nil
}

func (s *Settings) warn(path string) {
	if text := fileWarning(path); text != "" {
		s.Warnings = append(s.Warnings, text)
	}
}

func (s *Settings) checkCertificates() error {
	cert, key := s.values["cert"], s.values["key"]
	if (cert.text == "") != (key.text == "") {
		return errors.New("a certificate and its key belong together: set both of --cert and --key")
	}
	return nil
}
