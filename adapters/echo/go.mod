module github.com/penstock-go/penstock/adapters/echo

go 1.25.0

require (
	github.com/labstack/echo/v5 v5.3.1
	github.com/penstock-go/penstock v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace github.com/penstock-go/penstock => ../..
