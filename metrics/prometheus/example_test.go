package penstockprom_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	penstockprom "github.com/penstock-go/penstock/metrics/prometheus"
	"github.com/penstock-go/penstock/rules"
)

func ExampleNewCollector() {
	engine := core.New(core.Config{Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	err := engine.Load(rules.Set{Flow: []flow.Rule{
		{Name: "create", Resource: "orders:create", Limit: 360, Window: time.Hour},
	}})
	if err != nil {
		panic(err)
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(penstockprom.NewCollector(engine, penstockprom.Options{}))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})

	guard, err := engine.Entry(context.Background(), "orders:create")
	if err == nil {
		guard.Exit()
	}
	page := httptest.NewRecorder()
	handler.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for lines := bufio.NewScanner(page.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "penstock_passed") || strings.HasPrefix(lines.Text(), "penstock_flow") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// penstock_flow_ceiling_tokens_per_second{resource="orders:create",rule="create"} 0.1
	// penstock_flow_remaining_tokens{resource="orders:create",rule="create"} 359
	// penstock_flow_used_ratio{resource="orders:create",rule="create"} 0.002777777777777778
	// penstock_passed_tokens_total{resource="orders:create"} 1
	// penstock_passed_total{resource="orders:create"} 1
}
