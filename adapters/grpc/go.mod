module github.com/penstock-go/penstock/adapters/grpc

go 1.25.0

require (
	github.com/penstock-go/penstock v0.2.0
	github.com/stretchr/testify v1.8.1
	go.uber.org/goleak v1.2.0
	google.golang.org/grpc v1.64.0
	google.golang.org/protobuf v1.33.0
)

require (
	github.com/cncf/xds/go v0.0.0-20240318125728-8a4994d93e50
	github.com/penstock-go/penstock/adapters/adaptertest v0.2.0
	github.com/penstock-go/penstock/adapters/rpc v0.2.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240318140521-94a12d6c2237
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/envoyproxy/protoc-gen-validate v1.0.4 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/net v0.22.0 // indirect
	golang.org/x/sys v0.18.0 // indirect
	golang.org/x/text v0.14.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
