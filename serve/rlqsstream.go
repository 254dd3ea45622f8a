package serve

import (
	"errors"
	"io"
	"sync"

	quota "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/rule"
)

// StreamRateLimitQuotas serves a data plane. An error ends its stream: INVALID_ARGUMENT without a
// domain, NOT_FOUND for an unknown one, RESOURCE_EXHAUSTED beyond MaxStreams.
func (s *RLQS) StreamRateLimitQuotas(stream quota.RateLimitQuotaService_StreamRateLimitQuotasServer) error {
	if err := s.quotas.enter(); err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	defer s.quotas.leave()
	served := &servedStream{service: s, stream: stream, wake: make(chan struct{}, 1)}
	go served.receive()
	for {
		select {
		case <-served.wake:
			if over, err := served.proceed(); over {
				served.leave(err == nil)
				return err
			}
		case <-s.closed:
			served.leave(false)
			return status.Error(codes.Unavailable, "the server is shutting down")
		}
	}
}

// servedStream is a stream of a data plane while it is served. Streams are idle most of the time, and
// there may be many. So two goroutines only wait, one for reports and one for all else, and their stacks
// stay small. Messages are decoded and encoded on others, which end afterwards: what was once a
// large stack remains one.
type servedStream struct {
	service *RLQS
	stream  quota.RateLimitQuotaService_StreamRateLimitQuotasServer
	wake    chan struct{} // receives when the stream is over, or there may be something to send

	mu      sync.Mutex   // guards what follows
	from    *quotaStream // nil until it is known of which domain
	left    bool         // the stream is served no more
	sending bool         // there is a goroutine that sends
	again   bool         // once it has sent all that there was
	over    bool         // no report comes any more, or nothing can be sent
	err     error        // why; nil if the data plane has ended the stream
}

// proceed says whether the stream is over, and why. If it is not, what there is to send is sent.
func (s *servedStream) proceed() (over bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return true, s.err
	case s.from == nil:
	case s.sending:
		s.again = true
	default:
		s.sending = true
		go s.send(s.from)
	}
	return false, nil
}

// end notes that the stream is over.
func (s *servedStream) end(err error) {
	s.mu.Lock()
	if !s.over {
		s.over, s.err = true, err
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// leave notes that the stream is served no more; clean means that the data plane has said so.
func (s *servedStream) leave(clean bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	if s.from != nil {
		s.service.quotas.close(s.from, clean)
	}
}

// receive takes a report, and has another goroutine wait for the next.
func (s *servedStream) receive() {
	message, err := s.stream.Recv()
	if err == nil {
		err = s.take(message)
	}
	switch {
	case err == nil:
		go s.receive()
	case errors.Is(err, io.EOF):
		s.end(nil)
	default:
		s.end(err)
	}
}

// take takes a report.
func (s *servedStream) take(message *quota.RateLimitQuotaUsageReports) error {
	from, err := s.source(message.GetDomain())
	if err != nil {
		return err
	}
	usages := make([]quotaUsage, 0, len(message.GetBucketQuotaUsages()))
	refused := uint64(0)
	for _, u := range message.GetBucketQuotaUsages() {
		if id := u.GetBucketId().GetBucket(); s.service.mayServe(id) {
			usages = append(usages, quotaUsage{
				id: id, requests: float64(u.GetNumRequestsAllowed()) + float64(u.GetNumRequestsDenied()), elapsed: elapsedOf(u.GetTimeElapsed()),
			})
		} else {
			refused++
		}
	}
	s.service.quotas.report(from, s.service.engine.Clock().Now(), usages, refused)
	return nil
}

// source returns the stream of a report of a domain, which its first report opens.
func (s *servedStream) source(domain string) (*quotaStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.left:
		return nil, io.EOF
	case s.from == nil:
		from, err := s.service.open(s.stream.Context(), domain, s.wake)
		s.from = from
		return from, err
	case domain != "" && domain != s.from.domain:
		return nil, status.Errorf(codes.InvalidArgument, "the stream is of the domain %s, and a report of %s: open another stream",
			rule.Quote(s.from.domain), rule.Quote(domain))
	}
	return s.from, nil
}

// send sends what there is to say to the data plane.
func (s *servedStream) send(to *quotaStream) {
	for {
		for actions := s.service.quotas.take(to, nil); len(actions) > 0; actions = s.service.quotas.take(to, actions[:0]) {
			message := &quota.RateLimitQuotaResponse{BucketAction: make([]*quota.RateLimitQuotaResponse_BucketAction, len(actions))}
			for i := range actions {
				message.BucketAction[i] = actions[i].message()
			}
			if err := s.stream.Send(message); err != nil {
				s.end(err)
				return
			}
		}
		s.mu.Lock()
		s.sending, s.again = s.again, false
		more := s.sending
		s.mu.Unlock()
		if !more {
			return
		}
	}
}
