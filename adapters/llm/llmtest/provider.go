// Package llmtest has a provider of language models for tests and examples: it speaks the APIs in
// the styles of OpenAI and Anthropic, and answers with words that mean nothing.
package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Provider serves chat completions, responses, embeddings and messages. Set the fields before it is
// used. It is safe for concurrent use if its functions are.
type Provider struct {
	// Answer returns how many tokens the answer to a request would have; what the request allows
	// bounds it. Defaults to 20.
	Answer func(Request) int

	// Chunk is how many tokens an event of a stream has. Defaults to 1.
	Chunk int

	// Speed is how many tokens come in a second. Defaults to as many as can.
	Speed float64

	// Served is told of tokens when they are used: of the prompt first, then of each part of the
	// answer.
	Served func(tokens int)

	// Header sets fields of each response, such as limits.
	Header func(http.Header)

	// Status refuses requests that it does not return 200 for.
	Status func(Request) int

	// Mute leaves the usage out.
	Mute bool
}

// Request is what a provider knows of a request.
type Request struct {
	Style  string // chat, responses, embeddings or messages
	Model  string
	Prompt int // tokens: the words of the prompt
	Most   int // tokens of the answer, 0 if it does not say
	Stream bool
	Usage  bool // the stream of chat completions is to have the usage
	Key    string
}

// Word is the text of a token.
const Word = "tok "

const defaultAnswer = 20

type body struct {
	Model         string          `json:"model"`
	Stream        bool            `json:"stream"`
	MaxTokens     int             `json:"max_tokens"`
	MaxCompletion int             `json:"max_completion_tokens"`
	MaxOutput     int             `json:"max_output_tokens"`
	Messages      json.RawMessage `json:"messages"`
	Input         json.RawMessage `json:"input"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

func read(r *http.Request) (Request, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return Request{}, err
	}
	var b body
	if err := json.Unmarshal(data, &b); err != nil {
		return Request{}, err
	}
	of := Request{
		Model: b.Model, Stream: b.Stream, Usage: b.StreamOptions.IncludeUsage, Key: r.Header.Get("Authorization"),
		Most: max(b.MaxTokens, b.MaxCompletion, b.MaxOutput), Prompt: strings.Count(string(b.Messages)+string(b.Input), Word[:3]),
	}
	for _, style := range []string{"completions", "responses", "embeddings", "messages"} {
		if strings.HasSuffix(r.URL.Path, "/"+style) {
			of.Style = style
		}
	}
	if of.Style == "completions" {
		of.Style = "chat"
	}
	return of, nil
}

// ServeHTTP implements [http.Handler].
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of, err := read(r)
	if err != nil || of.Style == "" {
		http.Error(w, `{"error":{"message":"no such call","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	if p.Header != nil {
		p.Header(w.Header())
	}
	if p.Status != nil {
		if status := p.Status(of); status != http.StatusOK {
			http.Error(w, `{"error":{"message":"not now","type":"rate_limit_error"}}`, status)
			return
		}
	}
	n := defaultAnswer
	if p.Answer != nil {
		n = p.Answer(of)
	}
	finish := "stop"
	if of.Most > 0 && n >= of.Most {
		n, finish = of.Most, "length"
	}
	a := &answer{Provider: p, Request: of, w: w, tokens: n, finish: finish}
	p.serve(of.Prompt)
	if of.Stream {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		a.stream(r.Context())
		return
	}
	if of.Style != "embeddings" {
		p.pause(n)
		p.serve(n)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a.whole()) // the client may have left
}

func (p *Provider) serve(tokens int) {
	if p.Served != nil {
		p.Served(tokens)
	}
}

func (p *Provider) pause(tokens int) {
	if p.Speed > 0 {
		time.Sleep(time.Duration(float64(tokens) / p.Speed * float64(time.Second)))
	}
}

// answer is one answer.
type answer struct {
	*Provider
	Request
	w      http.ResponseWriter
	tokens int
	finish string
}

type fields = map[string]any

func (a *answer) usage(answered int) fields {
	switch {
	case a.Mute:
		return nil
	case a.Style == "chat", a.Style == "embeddings":
		u := fields{"prompt_tokens": a.Prompt, "total_tokens": a.Prompt + answered}
		if a.Style == "chat" {
			u["completion_tokens"] = answered
		}
		return u
	}
	return fields{"input_tokens": a.Prompt, "output_tokens": answered}
}

func (a *answer) with(of fields, answered int) fields {
	if u := a.usage(answered); u != nil {
		of["usage"] = u
	}
	return of
}

// whole returns the answer that is not streamed.
func (a *answer) whole() fields {
	text := strings.Repeat(Word, a.tokens)
	switch a.Style {
	case "embeddings":
		return a.with(fields{"object": "list", "model": a.Model, "data": []fields{{"object": "embedding", "index": 0, "embedding": []float64{0.5}}}}, 0)
	case "messages":
		return a.with(fields{
			"id": "msg_1", "type": "message", "role": "assistant", "model": a.Model, "stop_reason": "end_turn",
			"content": []fields{{"type": "text", "text": text}},
		}, a.tokens)
	case "responses":
		return a.with(fields{"id": "resp_1", "object": "response", "status": "completed", "model": a.Model, "output": []fields{
			{"type": "message", "id": "msg_1", "role": "assistant", "content": []fields{{"type": "output_text", "text": text}}},
		}}, a.tokens)
	}
	return a.with(fields{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": a.Model, "choices": []fields{
		{"index": 0, "message": fields{"role": "assistant", "content": text}, "finish_reason": a.finish},
	}}, a.tokens)
}

// say writes an event and flushes it.
func (a *answer) say(name string, data fields) bool {
	text, err := json.Marshal(data)
	if err != nil {
		return false
	}
	if name != "" && a.Style != "chat" {
		text = fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, text)
	} else {
		text = fmt.Appendf(nil, "data: %s\n\n", text)
	}
	if _, err := a.w.Write(text); err != nil {
		return false
	}
	return http.NewResponseController(a.w).Flush() == nil
}

// stream writes the events of the answer, until the client leaves.
func (a *answer) stream(ctx context.Context) {
	if !a.begin() {
		return
	}
	for sent := 0; sent < a.tokens && ctx.Err() == nil; {
		n := min(max(1, a.Chunk), a.tokens-sent)
		a.pause(n)
		a.serve(n)
		if sent += n; !a.say(a.delta(strings.Repeat(Word, n), sent)) {
			return
		}
	}
	a.end()
}

func (a *answer) chunk(delta fields, finish any) fields {
	return fields{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": a.Model, "choices": []fields{
		{"index": 0, "delta": delta, "finish_reason": finish},
	}}
}

func (a *answer) begin() bool {
	switch a.Style {
	case "messages":
		message := a.with(fields{"id": "msg_1", "type": "message", "role": "assistant", "model": a.Model, "content": []any{}}, 1)
		return a.say("message_start", fields{"type": "message_start", "message": message}) &&
			a.say("content_block_start", fields{"type": "content_block_start", "index": 0, "content_block": fields{"type": "text", "text": ""}})
	case "responses":
		return a.say("response.created", fields{"type": "response.created", "sequence_number": 0, "response": fields{
			"id": "resp_1", "object": "response", "created_at": 1, "model": a.Model, "status": "in_progress",
		}})
	}
	return a.say("", a.chunk(fields{"role": "assistant", "content": ""}, nil))
}

func (a *answer) delta(text string, sent int) (string, fields) {
	switch a.Style {
	case "messages":
		return "content_block_delta", fields{
			"type": "content_block_delta", "index": 0, "delta": fields{"type": "text_delta", "text": text},
		}
	case "responses":
		return "response.output_text.delta", fields{
			"type": "response.output_text.delta", "sequence_number": sent, "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": text,
		}
	}
	return "", a.chunk(fields{"content": text}, nil)
}

func (a *answer) end() {
	switch a.Style {
	case "messages":
		reason := map[string]string{"stop": "end_turn", "length": "max_tokens"}[a.finish]
		a.say("content_block_stop", fields{"type": "content_block_stop", "index": 0})
		a.say("message_delta", a.with(fields{"type": "message_delta", "delta": fields{"stop_reason": reason, "stop_sequence": nil}}, a.tokens))
		a.say("message_stop", fields{"type": "message_stop"})
	case "responses":
		a.say("response.completed", fields{"type": "response.completed", "sequence_number": a.tokens + 1, "response": a.with(fields{
			"id": "resp_1", "object": "response", "created_at": 1, "model": a.Model, "status": "completed", "output": []any{},
		}, a.tokens)})
	default:
		a.say("", a.chunk(fields{}, a.finish))
		if a.Usage && !a.Mute {
			last := a.chunk(nil, nil)
			last["choices"] = []any{}
			a.say("", a.with(last, a.tokens))
		}
		_, _ = io.WriteString(a.w, "data: [DONE]\n\n") // the client may have left
	}
}
