package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// The styles of calls.
const (
	chat       = "chat"
	responses  = "responses"
	embeddings = "embeddings"
	messages   = "messages"
)

// styleOf returns the style of a request, "" if it is none that is known. It allocates nothing.
func styleOf(r *http.Request) string {
	if r.Method != http.MethodPost || r.URL == nil {
		return ""
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/completions"):
		return chat
	case strings.HasSuffix(path, "/messages"):
		return messages
	case strings.HasSuffix(path, "/responses"):
		return responses
	case strings.HasSuffix(path, "/embeddings"):
		return embeddings
	}
	return ""
}

// prompt is what a request says of what it will cost.
type prompt struct {
	model   string
	stream  bool
	most    int    // tokens of the answer, 0 if the request does not say
	answers int    // how many answers are wanted
	text    string // of the prompt; "" without Options.Count
	bytes   int    // its length
	images  int    // how many pictures it has
	unread  string // why the body was not read
	asked   bool   // the request says itself whether it wants the usage
}

// readPrompt reads the body of a request up to a bound, and returns it with what it says. The body of
// the request is to be replaced by rest.
func readPrompt(r *http.Request, most int, withText bool) (p prompt, body []byte, rest io.ReadCloser, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return prompt{answers: 1, unread: "the request has no body"}, nil, http.NoBody, nil
	}
	body, err = io.ReadAll(io.LimitReader(r.Body, int64(most)+1))
	if err != nil {
		return prompt{}, nil, nil, err
	}
	switch {
	case len(body) > most:
		p = prompt{answers: 1, bytes: max(int(min(r.ContentLength, 1<<31-1)), len(body)), unread: "the request is too long"}
		return p, nil, &joined{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}, nil
	case r.Header.Get("Content-Encoding") != "":
		p = prompt{answers: 1, bytes: len(body), unread: "the request is compressed"}
	default:
		p = parsePrompt(body, withText)
	}
	return p, body, &joined{bytes.NewReader(body), r.Body}, nil
}

// joined is a reader with the Close of another one.
type joined struct {
	io.Reader
	io.Closer
}

// parsePrompt reads a request as providers do: by the exact names of its fields, which a struct would not.
func parsePrompt(body []byte, withText bool) prompt {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return prompt{answers: 1, bytes: len(body), unread: "the request is not JSON of a known shape"}
	}
	var model string
	_ = json.Unmarshal(fields["model"], &model) // what is no text names no model
	p := prompt{
		model: bounded(model), stream: string(fields["stream"]) == "true", asked: len(fields["stream_options"]) > 0,
		answers: max(1, min(numberOf(fields["n"]), 128)), //nolint:mnd // as many as providers allow
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		p.most = max(p.most, numberOf(fields[name]))
	}
	var text strings.Builder
	for _, name := range []string{"messages", "prompt", "input", "system", "instructions", "tools"} {
		length, images := lengthOf(fields[name], &text, withText)
		p.bytes, p.images = p.bytes+length, p.images+images
	}
	if p.bytes+p.images == 0 {
		p.bytes, p.unread = len(body), "the request has no prompt of a known shape"
	}
	p.text = text.String()
	return p
}

// numberOf reads a number of tokens or answers, also one with a point or in quotes; 0 if it is none.
func numberOf(raw json.RawMessage) int {
	var n json.Number
	_ = json.Unmarshal(raw, &n)
	return int(min(max(0, floatOf(n)), mostReported))
}

// floatOf is 0 for what is no number.
func floatOf(n json.Number) float64 {
	f, err := n.Float64()
	if err != nil {
		return 0
	}
	return f
}

// bounded bounds the name of a model, which clients choose.
func bounded(name string) string {
	if len(name) > maxModelName {
		name = strings.ToValidUTF8(name[:maxModelName], "")
	}
	return name
}

// lengthOf returns the length of all texts in a JSON value, without those that are no language, which it
// appends to text, and how many pictures there are.
func lengthOf(raw json.RawMessage, text *strings.Builder, withText bool) (length, images int) {
	if len(raw) == 0 {
		return 0, 0
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return 0, 0
	}
	texts(value, &images, func(s string) {
		length += len(s)
		if withText {
			text.WriteString(s)
			text.WriteByte('\n')
		}
	})
	return length, images
}

// texts calls f for each text in a value, and counts the pictures.
func texts(value any, images *int, f func(string)) {
	switch v := value.(type) {
	case string:
		f(v)
	case []any:
		for _, element := range v {
			texts(element, images, f)
		}
	case map[string]any:
		switch v["type"] {
		case "image", "image_url", "input_image":
			*images++
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "url", "image_url", "data", "signature", "file_data":
				continue // of pictures and files the length says nothing
			}
			texts(v[key], images, f)
		}
	}
}

// keyOf returns what is made of the API key of a request, "" if there is none.
func keyOf(header http.Header) string {
	key := header.Get("Authorization")
	for _, name := range []string{"X-Api-Key", "Api-Key"} {
		if key == "" {
			key = header.Get(name)
		}
	}
	if _, token, ok := strings.Cut(key, " "); ok {
		key = token
	}
	if key == "" {
		return ""
	}
	const enoughBytes = 12
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:enoughBytes])
}

// askForUsage returns a body that asks for the usage at the end of the stream.
func askForUsage(body []byte) []byte {
	const question = `{"stream_options":{"include_usage":true},`
	_, rest, ok := bytes.Cut(body, []byte("{"))
	if !ok {
		return body
	}
	return append([]byte(question), rest...)
}

func newReader(body []byte) io.Reader { return bytes.NewReader(body) }
