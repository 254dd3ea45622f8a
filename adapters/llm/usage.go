package llm

import (
	"encoding/json"
	"strings"
)

// usage is what providers report, in all styles.
type usage struct {
	PromptTokens     *int `json:"prompt_tokens"`
	CompletionTokens *int `json:"completion_tokens"`
	InputTokens      *int `json:"input_tokens"`
	OutputTokens     *int `json:"output_tokens"`

	// Of Anthropic, whose input_tokens are without them.
	CacheCreation int `json:"cache_creation_input_tokens"`
	CacheRead     int `json:"cache_read_input_tokens"`

	PromptDetails *cachedTokens `json:"prompt_tokens_details"`
	InputDetails  *cachedTokens `json:"input_tokens_details"`
}

type cachedTokens struct {
	Cached int `json:"cached_tokens"`
}

// mostReported bounds what is believed of a provider.
const mostReported = 1 << 30

func reportedTokens(n int) int { return min(max(n, 0), mostReported) }

func (u *usage) promptTokens() (n int, ok bool) {
	switch {
	case u.PromptTokens != nil:
		return reportedTokens(*u.PromptTokens), true
	case u.InputTokens != nil:
		return reportedTokens(*u.InputTokens) + u.writtenTokens(), true
	}
	return 0, false
}

// cachedTokens returns the tokens that were read from a cache, and how many of them are among those
// of the prompt: with OpenAI they are, with Anthropic they are not, nor do they count for its limits.
func (u *usage) cachedTokens() (cached, inPrompt int) {
	for _, details := range []*cachedTokens{u.PromptDetails, u.InputDetails} {
		if details != nil {
			inPrompt = max(inPrompt, reportedTokens(details.Cached))
		}
	}
	return reportedTokens(u.CacheRead) + inPrompt, inPrompt
}

// writtenTokens returns the tokens of the prompt that were put into a cache, as Anthropic bills them.
func (u *usage) writtenTokens() int {
	if u.PromptTokens != nil {
		return 0
	}
	return reportedTokens(u.CacheCreation)
}

func (u *usage) answerTokens() (n int, ok bool) {
	switch {
	case u.CompletionTokens != nil:
		return reportedTokens(*u.CompletionTokens), true
	case u.OutputTokens != nil:
		return reportedTokens(*u.OutputTokens), true
	}
	return 0, false
}

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
