module github.com/penstock-go/penstock/metrics/prometheus

go 1.26.0

require (
	github.com/penstock-go/penstock v0.0.0
	github.com/prometheus/client_golang v1.25.0
	github.com/stretchr/testify v1.12.1
)

replace github.com/penstock-go/penstock => ../..
