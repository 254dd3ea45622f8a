package penstockfiber

import (
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/utils/v2"

	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/rule"
)

// attributes reads the attributes of requests that rules look at. All texts are copies:
// fasthttp reuses the memory of a request for the next one, and rules keep texts.
type attributes struct {
	clients *clientip.Resolver
	finder  *finder
}

// of returns the attribute of a key of a call.
func (a *attributes) of(call *call, key string) rule.Attribute {
	c := call.ctx
	switch key {
	case rule.KeyIP:
		return a.clientText(c, (*clientip.Resolver).Text)
	case rule.KeyIPPrefix:
		return a.clientText(c, (*clientip.Resolver).PrefixText)
	case "method":
		return attribute.Text(c.Method()) // one of those that the App knows
	case "host":
		return attribute.Text(hostOf(string(c.RequestCtx().Host())))
	case "path":
		return attribute.Text(unescapePath(string(c.RequestCtx().URI().PathOriginal())))
	}
	kind, name, _ := strings.Cut(key, ":")
	if kind == "param" {
		return a.param(c, name)
	}
	if value, ok := named(c, kind, name); ok {
		return attribute.Text(string(value))
	}
	return rule.Attribute{}
}

// named returns the value of a key that contains a name, in the memory of the request.
func named(c fiber.Ctx, kind, name string) (value []byte, ok bool) {
	if name == "" {
		return nil, false
	}
	request := &c.RequestCtx().Request
	switch kind {
	case "header":
		if all := request.Header.PeekAll(name); len(all) > 0 {
			return all[0], true
		}
	case "cookie":
		if value = request.Header.Cookie(name); len(value) > 0 {
			return value, true
		}
		for key := range request.Header.Cookies() {
			ok = ok || string(key) == name
		}
		return nil, ok // it is empty
	case "query":
		args := request.URI().QueryArgs()
		return args.Peek(name), args.Has(name)
	}
	return nil, false
}

// param returns a parameter of the route. fiber leaves values escaped unless it is
// configured otherwise: they are unescaped, so that one value has one form.
func (a *attributes) param(c fiber.Ctx, name string) rule.Attribute {
	value, ok := a.finder.param(c, name)
	if !ok {
		return rule.Attribute{}
	}
	if !c.App().Config().UnescapePath {
		value = unescapePath(value)
	}
	return attribute.Text(value)
}

// clientText returns a text of the client of a request: of a peer, which is not in the memory
// of the request, without a copy.
func (a *attributes) clientText(c fiber.Ctx, text func(*clientip.Resolver, clientip.Address) string) rule.Attribute {
	client := a.client(c)
	if client == clientip.Of(c.RequestCtx().RemoteAddr()) {
		return rule.String(text(a.clients, client))
	}
	return rule.String(strings.Clone(text(a.clients, client)))
}

// client returns the address of the client of a request.
func (a *attributes) client(c fiber.Ctx) clientip.Address {
	peer := clientip.Of(c.RequestCtx().RemoteAddr())
	if !a.clients.Trusts(peer) {
		return peer
	}
	var few [8]string
	return a.clients.Client(peer, headerLines(few[:0], c, a.clients.FieldName()))
}

// headerLines appends the values of a header field, in the memory of the request.
func headerLines(list []string, c fiber.Ctx, name string) []string {
	for _, value := range c.RequestCtx().Request.Header.PeekAll(name) {
		list = append(list, utils.UnsafeString(value))
	}
	return list
}

// hostOf returns the host in lower case, without port, brackets and final dot.
func hostOf(host string) string {
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		host, _, _ = strings.Cut(inner, "]")
	} else {
		host, _, _ = strings.Cut(host, ":")
	}
	return strings.ToLower(strings.TrimRight(host, "."))
}

func unescapePath(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	if text, err := url.PathUnescape(path); err == nil {
		return text
	}
	return path
}
