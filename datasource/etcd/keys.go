package etcd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Prefix returns the conventional prefix of an application's documents,
// "/penstock/<app>/".
func Prefix(app string) string { return "/penstock/" + app + "/" }

const (
	historySuffix   = ".history/"
	instancesSuffix = ".instances/"
	listsSuffix     = ".lists/"
	fleetSuffix     = ".fleet/"
)

// Keys are the prefixes below which an application's data are in etcd. Each ends in
// a slash and none is a prefix of another, so a source that follows the documents
// sees neither history nor reports nor lists nor the fleet. The documents of one application must not be
// below those of another.
type Keys struct {
	Documents string // as in "/penstock/shop/"
	History   string // as in "/penstock/shop.history/"
	Instances string // as in "/penstock/shop.instances/"
	Lists     string // as in "/penstock/shop.lists/"
	Fleet     string // as in "/penstock/shop.fleet/"; of module fleet/etcd
}

// confirmation begins the value at [Keys.Confirmation].
const confirmation = "removals confirmed"

// Confirmation returns the key and the value that confirm a removal of rules,
// however many. Write them together with the change that removes the rules, or
// after it was held back. See [core.Config.MaxRemoval].
//
// The key is the prefix of the documents itself, which is not the key of a document.
// A value that does not begin like this one confirms nothing.
func (k Keys) Confirmation(author string) (key, value string) {
	return k.Documents, confirmation + " by " + author
}

// KeysOf returns the keys of an application from the prefix of its documents. It
// adds a slash to a prefix that does not end in one. It returns an error if the
// prefix is empty, has an empty part, or is reserved.
func KeysOf(prefix string) (Keys, error) {
	base := strings.TrimSuffix(prefix, "/")
	documents := base + "/"
	switch {
	case strings.Trim(prefix, "/") == "":
		return Keys{}, errors.New("etcd: the prefix is empty: name the application, as in etcd.Prefix(\"shop\")")
	case strings.Contains(documents, "//"):
		return Keys{}, fmt.Errorf("etcd: the prefix %q has an empty part: is the application's name missing?", prefix)
	case isReserved(documents):
		return Keys{}, fmt.Errorf("etcd: the prefix %q is not for documents: names that end in %s are kept for what belongs to others",
			prefix, `".history", ".instances", ".lists" or ".fleet"`)
	default:
		return Keys{
			Documents: documents, History: base + historySuffix, Instances: base + instancesSuffix, Lists: base + listsSuffix,
			Fleet: base + fleetSuffix,
		}, nil
	}
}

// isReserved says whether a prefix may be that of what belongs to another application.
func isReserved(documents string) bool {
	return slices.ContainsFunc([]string{historySuffix, instancesSuffix, listsSuffix, fleetSuffix}, func(suffix string) bool {
		return strings.HasSuffix(documents, suffix)
	})
}

// DocumentRange returns the half-open range of keys that documents can have.
func (k Keys) DocumentRange() (first, end string) {
	return k.Documents + "\x00", clientv3.GetPrefixRangeEnd(k.Documents)
}
