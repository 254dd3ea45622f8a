package etcd

import (
	"errors"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Prefix returns where the documents of an application are by convention:
// "/penstock/<app>/".
func Prefix(app string) string { return "/penstock/" + app + "/" }

const (
	historySuffix   = ".history/"
	instancesSuffix = ".instances/"
)

// Keys tells where in etcd what belongs to an application is. Each field is a
// prefix that ends in a slash, and none is a prefix of another: whoever follows
// the documents sees neither history nor reports. That is so only as long as the
// documents of no application are below those of another one.
type Keys struct {
	Documents string // as in "/penstock/shop/"
	History   string // as in "/penstock/shop.history/"
	Instances string // as in "/penstock/shop.instances/"
}

// confirmation begins the value at [Keys.Confirmation].
const confirmation = "removals confirmed"

// Confirmation returns the key and the value by which somebody confirms that rules
// may go, whatever share of them it is: written together with the change that takes
// them out, or after it was held back. See [core.Config.MaxRemoval].
//
// The key is the prefix of the documents itself, which names none. A value that
// does not begin like this one confirms nothing.
func (k Keys) Confirmation(author string) (key, value string) {
	return k.Documents, confirmation + " by " + author
}

// KeysOf returns the keys that belong to the documents below a prefix. A slash
// is added to a prefix that does not end in one.
func KeysOf(prefix string) (Keys, error) {
	base := strings.TrimSuffix(prefix, "/")
	documents := base + "/"
	switch {
	case strings.Trim(prefix, "/") == "":
		return Keys{}, errors.New("etcd: the prefix is empty: name the application, as in etcd.Prefix(\"shop\")")
	case strings.Contains(documents, "//"):
		return Keys{}, fmt.Errorf("etcd: the prefix %q has an empty part: is the application's name missing?", prefix)
	case strings.HasSuffix(documents, historySuffix), strings.HasSuffix(documents, instancesSuffix):
		return Keys{}, fmt.Errorf("etcd: the prefix %q is not for documents: names that end in %q or %q are kept for what belongs to others",
			prefix, strings.TrimSuffix(historySuffix, "/"), strings.TrimSuffix(instancesSuffix, "/"))
	default:
		return Keys{Documents: documents, History: base + historySuffix, Instances: base + instancesSuffix}, nil
	}
}

// DocumentRange returns the least key that a document can have and the least
// one after those of all documents.
func (k Keys) DocumentRange() (first, end string) {
	return k.Documents + "\x00", clientv3.GetPrefixRangeEnd(k.Documents)
}
