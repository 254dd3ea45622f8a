// Package monitoring checks the Grafana dashboard and the alert rules that
// metrics/prometheus/monitoring has, with the PromQL engine of Prometheus, on what real
// engines show under load; and it draws the dashboard:
//
//	make monitoring       # the tests
//	make dashboard        # docs/images/dashboard.svg
package monitoring
