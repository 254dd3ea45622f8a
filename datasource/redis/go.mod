module github.com/penstock-go/penstock/datasource/redis

go 1.26.0

require (
	github.com/penstock-go/penstock v0.0.0
	github.com/penstock-go/penstock/fleet/redis v0.0.0-00010101000000-000000000000
	github.com/redis/rueidis v1.0.79
	github.com/stretchr/testify v1.12.1
)

require (
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace (
	github.com/penstock-go/penstock => ../..
	github.com/penstock-go/penstock/fleet/redis => ../../fleet/redis
)
