package penstockgin

import (
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/rule"
)

// attributes reads the attributes of requests that rules look at.
type attributes struct{ ofRequest *nethttp.Attributes }

// Attribute implements [rule.AttributeSource] for a *[gin.Context].
func (a *attributes) Attribute(call any, key string) rule.Attribute {
	c, _ := call.(*gin.Context)
	if c == nil {
		return rule.Attribute{}
	}
	name, isParam := strings.CutPrefix(key, "param:")
	if !isParam {
		return a.ofRequest.Attribute(c.Request, key)
	}
	if value, ok := c.Params.Get(name); ok {
		return attribute.Text(value)
	}
	return rule.Attribute{}
}
