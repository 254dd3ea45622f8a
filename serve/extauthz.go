package serve

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/penstock-go/penstock/core"
)

// ResourceExtension is the context extension by which Envoy's configuration of a route names the
// resource of its requests, see [ExtAuthz].
const ResourceExtension = "resource"

// ExtAuthz is the external authorization service of Envoy, envoy.service.auth.v3.Authorization.
// Make it with [NewExtAuthz]. It is safe for concurrent use.
//
// A request is the call of the resource that the context extension "resource" of its route
// names, else of that of HTTPOptions.Routes. Rules see the attributes of nethttp.Attributes. The
// peer is the source of the request, and X-Forwarded-For is believed only if that is one of the
// TrustedProxies. Calls may wait as long as their rules let them and Envoy's timeout allows.
//
// A refused request is denied with the status, the header and the body that the HTTP adapter
// would answer: 429 with Retry-After and the RateLimit fields, or 403. The dynamic metadata says which
// rule refused, or which shadow rule would have. What cannot be decided ends with an error, upon
// which Envoy denies the request unless its failure_mode_allow is set: INVALID_ARGUMENT for what
// is no HTTP request, UNAVAILABLE once the engine is closed.
type ExtAuthz struct {
	auth.UnimplementedAuthorizationServer
	judge *httpJudge
}

// NewExtAuthz returns the authorization service that decides by the rules of the engine. The
// error is that a route makes no sense, or conflicts with another.
func NewExtAuthz(engine *core.Engine, options HTTPOptions) (*ExtAuthz, error) {
	judge, err := newHTTPJudge(engine, options)
	if err != nil {
		return nil, err
	}
	return &ExtAuthz{judge: judge}, nil
}

// Check decides on a request.
func (a *ExtAuthz) Check(ctx context.Context, request *auth.CheckRequest) (*auth.CheckResponse, error) {
	attributes := request.GetAttributes()
	asked, err := requestOf(attributes)
	if err != nil {
		return nil, err
	}
	verdict := a.judge.decide(ctx, asked, attributes.GetContextExtensions()[ResourceExtension])
	if verdict.err != nil {
		return nil, statusOf(verdict.err)
	}
	response := &auth.CheckResponse{DynamicMetadata: verdict.metadata()}
	if verdict.passed() {
		response.Status = status.New(codes.OK, "").Proto()
		response.HttpResponse = &auth.CheckResponse_OkResponse{OkResponse: &auth.OkHttpResponse{
			ResponseHeadersToAdd: optionsOf(verdict.fields()),
		}}
		return response, nil
	}
	response.Status = status.New(codes.PermissionDenied, verdict.block.Error()).Proto()
	response.HttpResponse = &auth.CheckResponse_DeniedResponse{DeniedResponse: &auth.DeniedHttpResponse{
		Status:  &typev3.HttpStatus{Code: typev3.StatusCode(int32(verdict.status))},
		Headers: optionsOf(verdict.fields()),
		Body:    string(verdict.body),
	}}
	return response, nil
}

// requestOf returns the request that Envoy asks about.
func requestOf(attributes *auth.AttributeContext) (*http.Request, error) {
	from := attributes.GetRequest().GetHttp()
	if from == nil {
		return nil, status.Error(codes.InvalidArgument, "there is no HTTP request to decide on")
	}
	if !isMethod(from.GetMethod()) {
		return nil, status.Error(codes.InvalidArgument, "the request has no method, or one that is none")
	}
	target, err := targetOf(from.GetPath())
	if err != nil {
		target = &url.URL{Path: "/"} // such as the * of OPTIONS, and CONNECT: no route
		if from.GetPath() != "" && from.GetPath() != "*" {
			return nil, status.Errorf(codes.InvalidArgument, "the path of the request: %v", err)
		}
	}
	r := &http.Request{
		Method: from.GetMethod(), URL: target, Host: from.GetHost(), Header: make(http.Header, len(from.GetHeaders())),
		RemoteAddr: addressOf(attributes.GetSource().GetAddress()),
	}
	for name, value := range from.GetHeaders() {
		if !strings.HasPrefix(name, ":") {
			r.Header.Set(name, value)
		}
	}
	for _, field := range from.GetHeaderMap().GetHeaders() { // in place of the others, if Envoy encodes them raw
		value := field.GetValue()
		if raw := field.GetRawValue(); raw != nil {
			value = string(raw)
		}
		if name := field.GetKey(); !strings.HasPrefix(name, ":") {
			r.Header.Add(name, value)
		}
	}
	return r, nil
}

// addressOf returns an address as a http.Request has it. A peer on a Unix socket is on this
// machine.
func addressOf(address *corev3.Address) string {
	if address.GetPipe() != nil {
		return "127.0.0.1:0"
	}
	at := address.GetSocketAddress()
	return net.JoinHostPort(at.GetAddress(), strconv.FormatUint(uint64(at.GetPortValue()), 10))
}

// optionsOf returns header fields that replace those of the same names.
func optionsOf(fields []*corev3.HeaderValue) []*corev3.HeaderValueOption {
	list := make([]*corev3.HeaderValueOption, len(fields))
	for i, field := range fields {
		list[i] = &corev3.HeaderValueOption{Header: field, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD}
	}
	return list
}

// metadata returns what refused a request, or what shadow rule would have; nil if nothing.
func (v *verdict) metadata() *structpb.Struct {
	if v.block == nil {
		return nil
	}
	fields := refusalFields(v.block)
	if v.passed() {
		shadows := []*structpb.Value{structpb.NewStructValue(&structpb.Struct{Fields: fields})}
		fields = map[string]*structpb.Value{"shadows": structpb.NewListValue(&structpb.ListValue{Values: shadows})}
	}
	return &structpb.Struct{Fields: fields}
}
