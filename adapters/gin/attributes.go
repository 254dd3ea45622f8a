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

// of returns the attribute of a key of a request.
func (a *attributes) of(c *gin.Context, key string) rule.Attribute {
	if name, ok := strings.CutPrefix(key, "param:"); ok {
		if value, ok := c.Params.Get(name); ok {
			return attribute.Text(value)
		}
		return rule.Attribute{}
	}
	found := a.ofRequest.Attribute(c.Request, key)
	if name, ok := strings.CutPrefix(key, "cookie:"); ok {
		return unescaped(found, c, name)
	}
	return found
}

// unescaped returns the value of a cookie as [gin.Context.Cookie] does: one that is
// escaped in different ways is one value.
func unescaped(cookie rule.Attribute, c *gin.Context, name string) rule.Attribute {
	if text, _ := cookie.Text(); strings.ContainsAny(text, "%+") || len(text) > attribute.MaxLength {
		if value, err := c.Cookie(name); err == nil {
			return attribute.Text(value)
		}
	}
	return cookie
}
