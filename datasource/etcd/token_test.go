package etcd

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTokenThatPanicsIsAnErrorOfTheRequest(t *testing.T) {
	credentials := tokenCredentials(func() (string, error) { panic("foreign") })
	fields, err := credentials.GetRequestMetadata(t.Context())
	assert.Nil(t, fields)
	assert.EqualError(t, err, "etcd: Options.Token has panicked: foreign")
}
