package llm

import (
	"encoding/json"
	"errors"
	"strings"
)

// usage is what providers report, in all styles.
type usage struct {
	PromptTokens     json.RawMessage `json:"prompt_tokens"`
	CompletionTokens json.RawMessage `json:"completion_tokens"`
	InputTokens      json.RawMessage `json:"input_tokens"`
	OutputTokens     json.RawMessage `json:"output_tokens"`

	// Of Anthropic, whose input_tokens are without them.
	CacheCreation json.RawMessage `json:"cache_creation_input_tokens"`
	CacheRead     json.RawMessage `json:"cache_read_input_tokens"`

	PromptDetails *cachedTokens `json:"prompt_tokens_details"`
	InputDetails  *cachedTokens `json:"input_tokens_details"`
}

type cachedTokens struct {
	Cached json.RawMessage `json:"cached_tokens"`
}

// mostReported bounds what is believed of a provider.
const mostReported = 1 << 30

// firstOf returns the first of some numbers that is there.
func firstOf(all ...json.RawMessage) (n int, ok bool) {
	for _, raw := range all {
		var number json.Number
		if json.Unmarshal(raw, &number) == nil && number != "" {
			return numberOf(raw), true
		}
	}
	return 0, false
}

func (u *usage) promptTokens() (n int, ok bool) {
	n, ok = firstOf(u.PromptTokens, u.InputTokens)
	return n + u.writtenTokens(), ok
}

// cachedTokens returns the tokens that were read from a cache, and how many of them are among those
// of the prompt: with OpenAI they are, with Anthropic they are not, nor do they count for its limits.
func (u *usage) cachedTokens() (cached, inPrompt int) {
	for _, details := range []*cachedTokens{u.PromptDetails, u.InputDetails} {
		if details != nil {
			inPrompt = max(inPrompt, numberOf(details.Cached))
		}
	}
	return numberOf(u.CacheRead) + inPrompt, inPrompt
}

// writtenTokens returns the tokens of the prompt that were put into a cache, as Anthropic bills them.
func (u *usage) writtenTokens() int {
	if _, isWithThem := firstOf(u.PromptTokens); isWithThem {
		return 0
	}
	return numberOf(u.CacheCreation)
}

func (u *usage) answerTokens() (n int, ok bool) { return firstOf(u.CompletionTokens, u.OutputTokens) }

// event is an event of a stream, or a whole answer, in all styles.
type event struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Model    string `json:"model"`
	Created  int64  `json:"created"`
	Sequence int    `json:"sequence_number"`
	Index    int    `json:"index"`
	Usage    *usage `json:"usage"`
	Choices  []struct {
		Index  int             `json:"index"`
		Delta  json.RawMessage `json:"delta"`
		Text   string          `json:"text"`
		Whole  json.RawMessage `json:"message"`
		Finish *string         `json:"finish_reason"`
	} `json:"choices"`
	Delta    json.RawMessage `json:"delta"`
	Message  *wholeMessage   `json:"message"`
	Response *wholeMessage   `json:"response"`
	Content  json.RawMessage `json:"content"`
	Output   json.RawMessage `json:"output"`
	Error    json.RawMessage `json:"error"`
}

// readEvent reads an event or an answer. What of it has another type than is known is left out, unless nothing
// else is there.
func readEvent(data []byte) (e event, ok bool) {
	err := json.Unmarshal(data, &e)
	var syntax *json.SyntaxError
	isEmpty := e.Type == "" && len(e.Choices)+len(e.Content)+len(e.Output) == 0 && e.usages() == nil
	return e, err == nil || !errors.As(err, &syntax) && !isEmpty
}

// tellsFailure says whether the provider has failed in the middle of the answer.
func (e *event) tellsFailure() bool {
	return e.Type == "error" || e.Type == "response.failed" || len(e.Error) > 0 && string(e.Error) != "null"
}

type wholeMessage struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Created int64  `json:"created_at"`
	Usage   *usage `json:"usage"`
}

// text returns what an event adds to the answer.
func (e *event) text(style string) string {
	var text strings.Builder
	add := func(raw json.RawMessage) { lengthOf(raw, &text, true) }
	switch style {
	case chat:
		for i := range e.Choices {
			add(e.Choices[i].Delta)
			text.WriteString(e.Choices[i].Text)
		}
	case messages:
		if e.Type == "content_block_delta" {
			add(e.Delta)
		}
	case responses:
		if strings.HasSuffix(e.Type, ".delta") {
			add(e.Delta)
		}
	}
	return strings.TrimRight(text.String(), "\n")
}

// wholeText returns the text of an answer that is not streamed.
func (e *event) wholeText() string {
	var text strings.Builder
	for i := range e.Choices {
		lengthOf(e.Choices[i].Whole, &text, true)
		text.WriteString(e.Choices[i].Text)
	}
	lengthOf(e.Content, &text, true)
	lengthOf(e.Output, &text, true)
	return text.String()
}

// usages returns what an event reports.
func (e *event) usages() *usage {
	switch {
	case e.Usage != nil:
		return e.Usage
	case e.Message != nil && e.Message.Usage != nil:
		return e.Message.Usage
	case e.Response != nil && e.Response.Usage != nil:
		return e.Response.Usage
	}
	return nil
}
