module github.com/penstock-go/penstock/adapters/redis

go 1.25.0

require (
	github.com/alicebob/miniredis/v2 v2.31.0
	github.com/penstock-go/penstock v0.2.0
	github.com/penstock-go/penstock/adapters/adaptertest v0.2.0
	github.com/redis/go-redis/v9 v9.0.0
	github.com/stretchr/testify v1.8.1
	go.uber.org/goleak v1.2.0
)

require (
	github.com/alicebob/gopher-json v0.0.0-20200520072559-a9ecdc9d1d3a // indirect
	github.com/cespare/xxhash/v2 v2.2.0 // indirect
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/penstock-go/penstock/adapters/rpc v0.2.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/yuin/gopher-lua v1.1.0 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
