module github.com/penstock-go/penstock/examples

go 1.26.0

replace (
	github.com/penstock-go/penstock => ..
	github.com/penstock-go/penstock/adapters/gin => ../adapters/gin
	github.com/penstock-go/penstock/adapters/grpc => ../adapters/grpc
	github.com/penstock-go/penstock/datasource/etcd => ../datasource/etcd
	github.com/penstock-go/penstock/datasource/etcd/etcdtest => ../datasource/etcd/etcdtest
	github.com/penstock-go/penstock/metrics/prometheus => ../metrics/prometheus
)
