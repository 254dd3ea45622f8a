module github.com/penstock-go/penstock/adapters/kratos

go 1.25.0

require (
	github.com/go-kratos/kratos/v2 v2.7.0
	github.com/penstock-go/penstock v0.2.0
	github.com/penstock-go/penstock/adapters/adaptertest v0.2.0
	github.com/penstock-go/penstock/adapters/rpc v0.2.0
	github.com/stretchr/testify v1.8.2
	go.uber.org/goleak v1.2.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20230629202037-9506855d4529
	google.golang.org/grpc v1.56.1
	google.golang.org/protobuf v1.31.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/go-kratos/aegis v0.2.0 // indirect
	github.com/go-playground/form/v4 v4.2.0 // indirect
	github.com/golang/protobuf v1.5.3 // indirect
	github.com/google/uuid v1.3.0 // indirect
	github.com/gorilla/mux v1.8.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/net v0.11.0 // indirect
	golang.org/x/sys v0.10.0 // indirect
	golang.org/x/text v0.11.0 // indirect
	google.golang.org/genproto v0.0.0-20230629202037-9506855d4529 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20230629202037-9506855d4529 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
