package etcd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

func TestOpenSetsDefaults(t *testing.T) {
	endpoints := []string{"127.0.0.1:1"}
	source, err := Open(clientv3.Config{Endpoints: endpoints}, Prefix("shop"), Options{})
	require.NoError(t, err)
	assert.Equal(t, 5*time.Second, source.config.DialTimeout)
	assert.Equal(t, 10*time.Second, source.config.DialKeepAliveTime)
	assert.Equal(t, 3*time.Second, source.config.DialKeepAliveTimeout)
	assert.NotNil(t, source.config.Logger)

	own := clientv3.Config{
		Endpoints: endpoints, DialTimeout: 1, DialKeepAliveTime: 2, DialKeepAliveTimeout: 3, LogConfig: &zap.Config{},
	}
	source, err = Open(own, Prefix("shop"), Options{})
	require.NoError(t, err)
	assert.Equal(t, own, source.config)
}
