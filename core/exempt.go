package core

import (
	"log/slog"

	"github.com/penstock-go/penstock/internal/match"
)

// DefaultExempt returns the default of [Config.Exempt], for the names that adapters give:
//
//   - health checks: GET and HEAD of the routes /health, /healthz, /live, /livez, /ready, /readyz,
//     /health/live, /health/ready, /-/healthy and /-/ready; the service grpc.health.v1.Health
//   - metrics: GET and HEAD of the route /metrics
//   - these routes alone, as kratos names them, whatever the method
//   - reflection: the services grpc.reflection.v1.ServerReflection and that of v1alpha
func DefaultExempt() []string {
	names := []string{
		"/grpc.health.v1.Health/*", "/grpc.reflection.v1.ServerReflection/*", "/grpc.reflection.v1alpha.ServerReflection/*",
	}
	for _, route := range []string{
		"/health", "/healthz", "/live", "/livez", "/ready", "/readyz", "/health/live", "/health/ready",
		"/-/healthy", "/-/ready", "/metrics",
	} {
		names = append(names, "GET:"+route, "HEAD:"+route, route)
	}
	return names
}

// exemptions returns a function that says whether a name is exempt; nil if none is. What is no
// pattern is logged, and left out: the rules are then for more than was meant, not for less.
func exemptions(config *Config) func(name string) bool {
	items := config.Exempt
	if items == nil {
		items = DefaultExempt()
	}
	names, patterns := make(map[string]bool), []match.Pattern(nil)
	for _, item := range items {
		if !match.IsPattern(item) {
			names[item] = true
			continue
		}
		pattern, err := match.Compile(item)
		if err != nil {
			config.Logger.Error("penstock: Config.Exempt has an entry that is no pattern, which is left out", slog.Any("error", err))
			continue
		}
		patterns = append(patterns, pattern)
	}
	if len(names)+len(patterns) == 0 {
		return nil
	}
	return func(name string) bool {
		if names[name] {
			return true
		}
		for i := range patterns {
			if patterns[i].Matches(name) {
				return true
			}
		}
		return false
	}
}
