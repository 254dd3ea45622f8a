package etcd

import (
	"errors"
	"fmt"
	"strings"
)

// Prefix returns where the documents of an application are by convention:
// "/penstock/<app>/".
func Prefix(app string) string { return "/penstock/" + app + "/" }

// normalise returns the prefix with a slash at its end.
func normalise(prefix string) (string, error) {
	switch {
	case strings.Trim(prefix, "/") == "":
		return "", errors.New("etcd: the prefix is empty: name the application, as in etcd.Prefix(\"shop\")")
	case strings.Contains(prefix, "//"):
		return "", fmt.Errorf("etcd: the prefix %q has an empty part: is the application's name missing?", prefix)
	case strings.HasSuffix(prefix, "/"):
		return prefix, nil
	default:
		return prefix + "/", nil
	}
}
