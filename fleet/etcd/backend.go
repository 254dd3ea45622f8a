package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	source "github.com/penstock-go/penstock/datasource/etcd"
	"github.com/penstock-go/penstock/fleet"
)

// ErrNameTaken says that another instance that is alive has the same name. It is
// [fleet.ErrNameTaken].
var ErrNameTaken = fleet.ErrNameTaken

var errClosed = errors.New("etcd: the backend of the fleet has been closed")

const (
	maxID     = 256         // bytes in the name of an instance
	dialAgain = time.Second // pause after an attempt to connect
)

// Backend is a [fleet.Backend] on etcd: see the package comment. Its methods may be called
// concurrently.
type Backend struct {
	prefix string // of the keys
	owner  string // tells what this process has written
	dial   func(context.Context) (*clientv3.Client, error)
	ended  context.Context // when the backend is closed
	close  context.CancelFunc

	mu            sync.Mutex // guards what follows
	client        *clientv3.Client
	ownsClient    bool
	dialing       chan struct{} // closed when the attempt to connect has ended; nil if there is none
	dialErr       error         // of the last one
	dialedAt      time.Time
	mirror        *mirror
	endMirror     context.CancelFunc
	registrations map[string]*registration // by ID
}

var _ fleet.Backend = (*Backend)(nil)

// New returns a backend that uses the caller's client. The caller closes the client, after
// the backend. The prefix is that of the application's documents, as in "/penstock/shop/".
func New(client *clientv3.Client, prefix string) (*Backend, error) {
	if client == nil || client.ActiveConnection() == nil {
		return nil, errors.New("etcd: the client has no connection: make it with clientv3.New")
	}
	b, err := newBackend(prefix)
	if err == nil {
		b.client = client
	}
	return b, err
}

// Open returns a backend that uses a client of its own. It connects with the first
// announcement, and tries again while the cluster cannot be reached or refuses the password.
// The prefix is that of the application's documents, as in "/penstock/shop/".
//
// Open sets these fields of the configuration if they are left out: DialTimeout to 5 s,
// DialKeepAliveTime to 10 s, DialKeepAliveTimeout to 3 s, and Logger to one that discards,
// because errors are returned. Context is that of the backend.
func Open(config clientv3.Config, prefix string) (*Backend, error) {
	if len(config.Endpoints) == 0 {
		return nil, errors.New("etcd: Config.Endpoints is empty: name the members of the cluster")
	}
	b, err := newBackend(prefix)
	if err != nil {
		return nil, err
	}
	setDefault(&config.DialTimeout, 5*time.Second)
	setDefault(&config.DialKeepAliveTime, 10*time.Second)
	setDefault(&config.DialKeepAliveTimeout, 3*time.Second)
	if config.LogConfig == nil && config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	b.ownsClient = true
	b.dial = func(ctx context.Context) (*clientv3.Client, error) {
		config := config
		config.Context = ctx
		return clientv3.New(config)
	}
	return b, nil
}

func setDefault(field *time.Duration, value time.Duration) {
	if *field == 0 {
		*field = value
	}
}

func newBackend(prefix string) (*Backend, error) {
	keys, err := source.KeysOf(prefix)
	if err != nil {
		return nil, err
	}
	b := &Backend{prefix: keys.Fleet, owner: rand.Text(), registrations: make(map[string]*registration)}
	b.ended, b.close = context.WithCancel(context.Background())
	return b, nil
}

// Announce implements [fleet.Backend].
func (b *Backend) Announce(ctx context.Context, self fleet.Instance, withInstances bool) (fleet.Fleet, error) {
	if err := checkID(self.ID); err != nil {
		return fleet.Fleet{}, err
	}
	known, err := b.announce(ctx, self, withInstances)
	if err != nil {
		return fleet.Fleet{}, b.wrap(ctx, fmt.Errorf("etcd: announcing %q: %w", self.ID, err))
	}
	return known, nil
}

func (b *Backend) announce(ctx context.Context, self fleet.Instance, withInstances bool) (known fleet.Fleet, err error) {
	client, err := b.connect(ctx)
	if err != nil {
		return known, err
	}
	r, copied := b.register(client, self.ID)
	if err := r.lock(ctx); err != nil {
		return known, err
	}
	defer r.unlock()
	if err := r.announce(ctx, client, copied, &self); err != nil {
		if reason := copied.reason(); reason != nil && isUnreachable(err) {
			err = fmt.Errorf("%w: %w", err, reason)
		}
		return known, err
	}
	known, err = copied.await(ctx, r.revision, withInstances)
	if r.noteAwaited(err) {
		copied.reread(fmt.Errorf("the watch is behind: %w", err))
	}
	if err != nil {
		return known, err
	}
	known.IsNew, r.isNew = r.isNew, false
	r.translate(known.Instances)
	return known, nil
}

// Leave implements [fleet.Backend].
func (b *Backend) Leave(ctx context.Context, id string) error {
	b.mu.Lock()
	r, client := b.registrations[id], b.client
	b.mu.Unlock()
	if r == nil {
		return nil
	}
	if err := r.lock(ctx); err != nil {
		return b.wrap(ctx, fmt.Errorf("etcd: leaving as %q: %w", id, err))
	}
	defer r.unlock()
	b.unregister(id)
	if err := r.leave(ctx, client); err != nil {
		return b.wrap(ctx, fmt.Errorf("etcd: leaving as %q: %w", id, err))
	}
	return nil
}

// Close ends all that runs in the background, and the client if the backend has made it. It
// does not wait for calls under way, which end with an error. What was announced ends with
// its lease; call Leave before.
func (b *Backend) Close() error {
	b.close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ownsClient && b.client != nil {
		client := b.client
		b.client = nil
		return client.Close()
	}
	return nil
}

// register returns what is known of the announcements of an instance, and the copy of all.
func (b *Backend) register(client *clientv3.Client, id string) (*registration, *mirror) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mirror == nil {
		b.mirror = newMirror(b.prefix)
		var ctx context.Context
		ctx, b.endMirror = context.WithCancel(b.ended)
		go b.mirror.run(ctx, client)
	}
	r := b.registrations[id]
	if r == nil {
		r = newRegistration(b.ended, b.prefix+id, b.owner)
		b.registrations[id] = r
	}
	return r, b.mirror
}

// unregister forgets an instance, and the copy with the last one.
func (b *Backend) unregister(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.registrations, id)
	if len(b.registrations) == 0 && b.mirror != nil {
		b.endMirror()
		b.mirror = nil
	}
}

// connect returns the client. It makes one in the background if there is none, because that
// does not end with a context.
func (b *Backend) connect(ctx context.Context) (*clientv3.Client, error) {
	b.mu.Lock()
	if b.ended.Err() != nil {
		b.mu.Unlock()
		return nil, errClosed
	}
	if b.client == nil && b.dialing == nil {
		if b.dialErr != nil && time.Since(b.dialedAt) < dialAgain {
			defer b.mu.Unlock()
			return nil, b.dialErr
		}
		b.dialing = make(chan struct{})
		go b.connectInBackground()
	}
	client, dialing := b.client, b.dialing
	b.mu.Unlock()
	if client != nil {
		return client, nil
	}
	select {
	case <-ctx.Done():
		return nil, errors.New("connecting takes too long")
	case <-dialing:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.client == nil && b.dialErr == nil {
		return nil, errClosed
	}
	return b.client, b.dialErr
}

func (b *Backend) connectInBackground() {
	client, err := b.dial(b.ended)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && b.ended.Err() != nil {
		_ = client.Close()
		client = nil
	}
	b.client, b.dialErr, b.dialedAt = client, err, time.Now()
	close(b.dialing)
	b.dialing = nil
}

// wrap adds [fleet.ErrUnavailable] to an error that says that etcd did not answer, and has
// the client connect again at once. Its own pause grows to minutes.
func (b *Backend) wrap(ctx context.Context, err error) error {
	if b.ended.Err() != nil {
		return errClosed
	}
	if ctx.Err() == nil && !isUnreachable(err) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.client != nil {
		b.client.ActiveConnection().ResetConnectBackoff()
	}
	return fmt.Errorf("%w: %w", fleet.ErrUnavailable, err)
}

// isUnreachable says whether an error means that etcd is down, has no leader, or is too slow.
func isUnreachable(err error) bool {
	code := status.Code(err)
	if known := (rpctypes.EtcdError{}); errors.As(err, &known) {
		code = known.Code()
	}
	return code == codes.Unavailable || code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)
}

// checkID returns an error if a name cannot be that of an instance.
func checkID(id string) error {
	switch {
	case id == "":
		return errors.New("etcd: the name of the instance is empty: set fleet.Config.Instance, or leave the default")
	case len(id) > maxID:
		return fmt.Errorf("etcd: the name of the instance has %d bytes: shorten it to %d", len(id), maxID)
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) || strings.Contains(id, "/"):
		return fmt.Errorf("etcd: the name of the instance, %q, has slashes, control characters or is not UTF-8: leave them out", id)
	default:
		return nil
	}
}
