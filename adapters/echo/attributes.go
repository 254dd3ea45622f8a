package penstockecho

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v5"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/rule"
)

// attributes reads the attributes of requests that rules look at.
type attributes struct{ ofRequest *nethttp.Attributes }

// of returns the attribute of a key of a request.
func (a *attributes) of(c *echo.Context, key string) rule.Attribute {
	name, ok := strings.CutPrefix(key, "param:")
	if !ok {
		return a.ofRequest.Attribute(c.Request(), key)
	}
	for _, param := range c.PathValues() {
		if param.Name == name && name != "" {
			return attribute.Text(unescaped(param.Value, c.Request().URL.RawPath))
		}
	}
	return rule.Attribute{}
}

// unescaped returns a parameter without the escapes of the path, so that one value has one
// form. echo leaves them in unless it is configured not to.
func unescaped(value, rawPath string) string {
	if rawPath == "" || !strings.Contains(value, "%") || !strings.Contains(rawPath, value) {
		return value
	}
	if text, err := url.PathUnescape(value); err == nil {
		return text
	}
	return value
}
