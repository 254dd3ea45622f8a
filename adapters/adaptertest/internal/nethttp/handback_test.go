package nethttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/rule"
)

// The server removes the temporary files of the form of the request that it has made.
func TestFormOfACopyOfTheRequestIsHandedBack(t *testing.T) {
	handler := guardOrders(new(adaptertest.Probe).NewEngine(t), nethttp.Options{
		Priority: func(*http.Request) rule.Priority { return rule.PriorityHigh },
	}, func(_ http.ResponseWriter, r *http.Request) { assert.NoError(t, r.ParseMultipartForm(1)) })
	r := httptest.NewRequest(http.MethodGet, "/orders/7", strings.NewReader("--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n"))
	r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	assert.NotNil(t, r.MultipartForm)
}
