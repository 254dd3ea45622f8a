package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// maxServices is how many services a command asks at the most.
const maxServices = 200

// services are the running services that a command asks.
type services struct {
	engines []string // the addresses of their inspect handlers
	silent  []string // instances that report no address
}

// addFlag adds the flag that names the services.
func (s *services) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.engines, "engine", nil, "the `address` of a running service; may be repeated")
}

// check tells a mistake in what the command line says of the services.
func (s *services) check(cmd *cobra.Command) error {
	if len(s.engines) > 0 && isOfApp(cmd) {
		return errors.New("--engine and --app are two places to look at: leave one out")
	}
	if len(s.engines) > maxServices {
		return fmt.Errorf("--engine is given %d times: the most is %d", len(s.engines), maxServices)
	}
	for _, address := range s.engines {
		if _, err := engineURL(address); err != nil {
			return err
		}
	}
	return nil
}

// isOfApp says whether the command line names an application.
func isOfApp(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("app") || cmd.Flags().Changed("prefix")
}

// findNamed finds the services of the application that the command line names, or says that neither is named.
func (s *services) findNamed(env Env, cmd *cobra.Command) error {
	switch {
	case len(s.engines) > 0:
		return nil
	case isOfApp(cmd):
		return s.find(env, cmd)
	}
	return errors.New("--engine is missing: name the running service, or say --app for all instances of an application")
}

// find finds the services by their reports in etcd.
func (s *services) find(env Env, cmd *cobra.Command) error {
	etcd, err := env.open(cmd)
	if err != nil {
		return err
	}
	defer etcd.close()
	found, err := request(cmd.Context(), etcd, etcd.store.Instances)
	if err != nil {
		return err
	}
	for _, r := range found {
		if r.Inspect == "" {
			s.silent = append(s.silent, r.Instance)
		} else if !slices.Contains(s.engines, r.Inspect) {
			s.engines = append(s.engines, r.Inspect)
		}
	}
	switch {
	case len(found) == 0:
		return failure{ExitFailed, fmt.Errorf("no instance reports to %s", etcd.settings.Keys.Instances)}
	case len(s.engines) == 0:
		return failure{ExitFailed, errors.New("no instance reports where its inspect handler is: set Options.Inspect of the source, or name the services with --engine")}
	case len(s.engines) > maxServices:
		return failure{ExitFailed, fmt.Errorf("%d instances report an address: name at most %d of them with --engine", len(s.engines), maxServices)}
	}
	return nil
}
