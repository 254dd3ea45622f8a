package convert

import "strings"

// gather returns the rules in a file: it may be a list of rules, a single rule, or what a
// registry or a dashboard exports, in which lists of rules are values of other objects, also
// as text. ok is false if there is nothing of that.
func gather(root node, depth int) (found []node, ok bool) {
	switch v := root.value.(type) {
	case []node:
		for _, item := range v {
			inner, wraps := []node(nil), false
			if _, isObject := item.value.([]entry); isObject && !looksLikeRule(item) {
				inner, wraps = gather(item, depth)
			}
			if !wraps {
				inner = []node{otherContent(item)}
			}
			found = append(found, inner...)
		}
		return found, true
	case []entry:
		if looksLikeRule(root) {
			return []node{root}, true
		}
		for _, e := range v {
			inner, wraps := gatherWithin(e.node, depth)
			found, ok = append(found, inner...), ok || wraps
		}
	}
	return found, ok
}

// gatherWithin returns the rules in a value of an object that is no rule.
func gatherWithin(n node, depth int) (found []node, ok bool) {
	if depth == maxDepth {
		return nil, false
	}
	switch v := n.value.(type) {
	case []node:
		if len(v) == 0 {
			return nil, false
		}
		if _, isObject := v[0].value.([]entry); !isObject {
			return nil, false
		}
		return gather(n, depth+1)
	case []entry:
		return gather(n, depth+1)
	case string:
		if text := strings.TrimSpace(v); strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
			inner, _, err := parse([]byte(text))
			if err != nil && (text[0] == '[' || strings.Contains(text, "resource")) {
				return []node{{offset: n.offset, value: brokenText{err}}}, true
			}
			if err != nil {
				return nil, false
			}
			moveTo(&inner, n.offset)
			return gatherWithin(inner, depth+1)
		}
	}
	return nil, false
}

// brokenText is in place of rules that a text has which cannot be read.
type brokenText struct{ err error }

// otherText is in place of what a registry has under a name that is no JSON, such as the settings of a program, which
// may have other limits.
type otherText struct {
	name      string
	hasLimits bool
}

// otherContent returns what a registry has of a name, if that is no JSON, else the object itself.
func otherContent(n node) node {
	o := &object{}
	o.entries, _ = n.value.([]entry)
	name, content := o.find("dataId"), o.find("content")
	if name == nil || content == nil {
		return n
	}
	text, isText := content.node.value.(string)
	if _, isName := name.node.value.(string); !isName || !isText {
		return n
	}
	return node{offset: n.offset, value: otherText{name.node.String(), originOf([]byte(text)) != fromSentinel}}
}

// moveTo gives a value that was read from a text the place of that text.
func moveTo(n *node, offset int) {
	n.offset = offset
	switch v := n.value.(type) {
	case []node:
		for i := range v {
			moveTo(&v[i], offset)
		}
	case []entry:
		for i := range v {
			v[i].key.offset = offset
			moveTo(&v[i].node, offset)
		}
	}
}

// looksLikeRule says whether an object is meant to be a rule.
func looksLikeRule(n node) bool {
	o := &object{}
	o.entries, _ = n.value.([]entry)
	if wrapped := o.find("rule"); wrapped != nil {
		_, isObject := wrapped.node.value.([]entry)
		return isObject
	}
	return o.has("resource", "count", "threshold", "limitApp") || isSystem(o)
}
