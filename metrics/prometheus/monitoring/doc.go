// Package monitoring has a Grafana dashboard and alert rules for the metrics of Penstock.
//
// dashboard.json and alerts.yaml are for use as they are; alerts_test.yaml is for promtool
// test rules. The tests of this package check all three with the PromQL engine of
// Prometheus, on what a real engine shows under load, and draw the dashboard:
//
//	make monitoring       # the tests
//	make dashboard        # docs/images/dashboard.svg
package monitoring
