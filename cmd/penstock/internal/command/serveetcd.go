package command

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/penstock-go/penstock/cmd/penstock/internal/connection"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/datasource/lastgood"
	"github.com/penstock-go/penstock/datasource/lists"
)

// rulesCopy is the name of the copy of the rules, in the directory of --copy; the lists are in
// listsCopy.
const (
	rulesCopy = "rules.copy"
	listsCopy = "lists"
)

// followEtcd has the engine follow the rules in etcd, and the lists unless they are files. Without
// copies an etcd that does not answer is an error.
func (s *serving) followEtcd(
	ctx context.Context, cmd *cobra.Command, env Env, engine *core.Engine, logger *slog.Logger,
) (ends func(), err error) {
	source, disconnect, err := s.etcdSource(cmd, env, logger)
	if err != nil {
		return nil, err
	}
	var follow core.Source = source
	var keep []lists.Option
	if s.copies != "" {
		if follow, err = s.keepCopy(source, logger); err != nil {
			disconnect()
			return nil, err
		}
		keep = append(keep, lists.KeepCopies(filepath.Join(s.copies, listsCopy), source.Name()))
	}
	if err := engine.Follow(ctx, s.source(env, follow, logger)); err != nil {
		disconnect()
		return nil, err
	}
	if s.lists != "" {
		return disconnect, nil
	}
	watch, err := source.WatchLists(ctx, engine.Lists(), keep...)
	if err != nil {
		disconnect()
		return nil, err
	}
	return func() { watch.Close(); disconnect() }, nil
}

// etcdSource returns the source of the rules in etcd. With copies it connects by itself, whenever
// etcd answers.
func (s *serving) etcdSource(cmd *cobra.Command, env Env, logger *slog.Logger) (source *etcd.Source, ends func(), err error) {
	instance := s.instance
	if instance == "" {
		instance, _ = os.Hostname() // without a name it reports nothing
	}
	options := etcd.Options{Instance: instance, Logger: logger}
	if cmd.Flags().Changed("admin") && etcd.CheckInspect(s.admin) == nil { // the default is one of each machine
		options.Inspect = s.admin
	}
	const otherwise = "%w\nOther rules than those in etcd are named by --rules"
	if s.copies == "" {
		session, err := env.open(cmd)
		if err != nil {
			return nil, nil, fmt.Errorf(otherwise, err)
		}
		if source, err = etcd.New(session.client, session.settings.Keys.Documents, options); err != nil {
			session.close()
			return nil, nil, err
		}
		return source, session.close, nil
	}
	settings, err := connection.Find(cmd.Context(), cmd.Flags(), env.Getenv)
	if err != nil {
		return nil, nil, fmt.Errorf(otherwise, err)
	}
	for _, warning := range settings.Warnings {
		env.warn(warning)
	}
	config, err := settings.Config(cmd.Context())
	if err != nil {
		return nil, nil, failure{ExitFailed, err}
	}
	source, err = etcd.Open(config, settings.Keys.Documents, options)
	return source, func() {}, err
}

// keepCopy keeps a copy of the rules in force.
func (s *serving) keepCopy(of core.Source, logger *slog.Logger) (core.Source, error) {
	if err := os.MkdirAll(s.copies, 0o700); err != nil {
		return nil, failure{ExitFailed, fmt.Errorf("--copy: %w", err)}
	}
	kept, err := lastgood.Keep(of, lastgood.Options{Path: filepath.Join(s.copies, rulesCopy), App: of.Name(), Logger: logger})
	if err != nil {
		return nil, failure{ExitFailed, fmt.Errorf("--copy: %w", err)}
	}
	return kept, nil
}
