module github.com/penstock-go/penstock/adapters/grpc

go 1.26.0

require (
	github.com/penstock-go/penstock v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	google.golang.org/grpc v1.85.0
)

replace github.com/penstock-go/penstock => ../..
