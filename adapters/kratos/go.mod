module github.com/penstock-go/penstock/adapters/kratos

go 1.25.0

require github.com/penstock-go/penstock v0.0.0

require (
	github.com/go-kratos/kratos/v2 v2.8.3 // indirect
	github.com/go-playground/form/v4 v4.2.0 // indirect
	github.com/google/uuid v1.4.0 // indirect
	golang.org/x/sync v0.5.0 // indirect
	google.golang.org/protobuf v1.33.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/penstock-go/penstock => ../..
