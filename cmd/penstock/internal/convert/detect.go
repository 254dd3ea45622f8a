package convert

import (
	"bytes"
	"regexp"
	"slices"
)

// origin is where a file of rules comes from.
type origin int

const (
	fromSentinel origin = iota
	fromNginx
	fromResilience4j
	fromEnvoy
)

// originOf tells by its content where a file comes from.
func originOf(data []byte) origin {
	switch {
	case beginsLikeJSON(data):
		return fromSentinel
	case regexp.MustCompile(`(?m)^[^#\n]*\b(limit_req|limit_conn)(_zone)?[ \t]+[^:\s]`).Match(data):
		return fromNginx
	case regexp.MustCompile(`(?m)^\s*["']?resilience4j\b`).Match(data):
		return fromResilience4j
	case regexp.MustCompile(`(?m)^[{\s]*["']?(domain|descriptors)["']?\s*:`).Match(data):
		return fromEnvoy
	}
	return fromSentinel
}

// convertFile converts a file.
func convertFile(from origin, data []byte) (converted batch, findings []Finding) {
	switch from {
	case fromNginx:
		converted, findings = convertNginx(data)
	case fromResilience4j:
		converted, findings = convertDocuments(data, convertResilience4j)
	case fromEnvoy:
		converted, findings = convertDocuments(data, convertEnvoy)
	default:
		converted, findings = convertSentinel(data)
	}
	findings = append(findings, converted.removeInvalid()...)
	return converted, slices.Concat(findings, converted.notes(), converted.patternFindings())
}

// beginsLikeJSON says whether a file is JSON, in which comments may come first.
func beginsLikeJSON(data []byte) bool {
	r := reader{data: data}
	next := r.peek()
	return next == '[' || next == '{' && !bytes.Contains(data, []byte(`"descriptors"`))
}

func convertDocuments(data []byte, convert func([]node) (batch, []Finding)) (batch, []Finding) {
	documents, offset, err := parseYAML(data)
	if err != nil {
		return batch{}, unreadable(offset, "the file cannot be read as YAML: %v", err)
	}
	return convert(documents)
}
