module github.com/penstock-go/penstock/adapters/connect

go 1.25.0

require (
	connectrpc.com/connect v1.11.0
	github.com/penstock-go/penstock v0.2.0
	github.com/penstock-go/penstock/adapters/adaptertest v0.2.0
	github.com/penstock-go/penstock/adapters/rpc v0.2.0
	github.com/stretchr/testify v1.8.1
	go.uber.org/goleak v1.2.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20240318140521-94a12d6c2237
	google.golang.org/protobuf v1.33.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/google/go-cmp v0.6.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
