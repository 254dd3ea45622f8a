module github.com/penstock-go/penstock/adapters/chi

go 1.25.0

require (
	github.com/go-chi/chi/v5 v5.0.7
	github.com/penstock-go/penstock v0.2.0
	github.com/penstock-go/penstock/adapters/adaptertest v0.2.0
	github.com/stretchr/testify v1.8.1
	go.uber.org/goleak v1.2.0
)

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/penstock-go/penstock/adapters/rpc v0.2.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
