package redis

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/places"
)

// channelArgument is the argument of the script of places that says where instances listen.
const channelArgument = 10

// claimArguments returns what the script of places is given but for the channel.
func claimArguments(key string, c *places.Claim) []string {
	return []string{
		c.Instance, whole(c.Sequence), whole(c.Limit), whole(c.Held), whole(c.InUse), whole(c.Want), whole(c.Spare),
		whole(c.Life.Microseconds()), whole(c.Born), whole(c.Number), "", key,
		whole(places.Young.Microseconds()), whole(places.Keep.Milliseconds()), whole(places.Tenure.Microseconds()),
		whole(places.Offer.Microseconds()), whole(places.FinalLife.Microseconds()),
	}
}

// valueArguments returns what the script of places of values is given.
func valueArguments(c *places.ValueClaim) []string {
	has := "0"
	if c.Value != "" {
		has = "1"
	}
	return []string{
		c.Instance, whole(c.Sequence), has, whole(c.Limit), whole(c.InUse), whole(c.Want), whole(c.Life.Microseconds()),
		whole(c.Born), whole(c.Number), whole(places.Young.Microseconds()), whole(places.Keep.Milliseconds()),
		whole(places.FinalLife.Microseconds()),
	}
}

// valuePlaces reads the answer to a claim of places of a value.
func (f *fields) valuePlaces() places.ValueGrant {
	g := places.ValueGrant{Late: f.number() != 0, IsNew: f.number() != 0, Granted: f.number(), Born: f.number(), Number: f.number()}
	if g.Late {
		return places.ValueGrant{Late: true}
	}
	return g
}

// channeled adds the channel to the arguments of a claim.
func (s *Store) channeled(r *fleet.Request, arguments []string) []string {
	if r.Operation == fleet.ClaimPlaces {
		arguments[channelArgument] = s.channel()
	}
	return arguments
}

// channel is how the names begin of the channels on which instances listen.
func (s *Store) channel() string { return "ps:" + s.options.App + ":places:" }

// places reads the answer to a claim.
func (f *fields) places() places.Grant {
	g := places.Grant{
		Late: f.number() != 0, Held: f.number(), Target: f.number(), Crowded: f.number(), Turn: f.micros(),
		Instances: f.number(), Born: f.number(), Number: f.number(), Ends: f.micros(),
	}
	if g.Late {
		return places.Grant{Late: true}
	}
	return g
}

// Listen implements [fleet.Notifier], by a channel to which the scripts publish. In a cluster any node
// tells what all of them publish.
func (s *Store) Listen(instance string, f func(key string)) (stop func()) {
	ctx, cancel := context.WithCancel(s.connection.ctx)
	go s.listen(ctx, s.channel()+instance, f)
	return cancel
}

// listenPause is how long it takes until an instance listens again whose connection was lost.
const listenPause = 100 * time.Millisecond

func (s *Store) listen(ctx context.Context, channel string, f func(key string)) {
	for ctx.Err() == nil {
		client, changed, _ := s.connection.state()
		if client != nil {
			subscribe := client.B().Subscribe().Channel(channel).Build()
			_ = client.Receive(ctx, subscribe, func(m rueidis.PubSubMessage) { f(m.Message) }) // who hears nothing asks
			s.connection.sleep(listenPause)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}
