package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// stream follows a stream of events: it says what of it is to be passed on, settles what the call
// has cost after each event, and ends the stream if it is to stop. It is not safe for concurrent use.
type stream struct {
	call    *call
	hides   bool // the event that has only the usage, for which the client did not ask
	raw     bool // it cannot be read: all is passed on
	stopped bool
	pending []byte // of an event that has not come whole
	line    int    // where its last line begins
	seen    int    // how much of it was searched for the end of that line
	out     []byte // what is to be passed on

	last  event // with the identity of the answer
	open  []int // the blocks that have begun, of messages; the choices, of chat
	ended int   // so many of the choices have ended
	index int   // the last sequence number
}

// feed takes a part of the stream and returns what is to be passed on, which is valid until the next
// call.
func (s *stream) feed(part []byte) []byte {
	if s.stopped {
		return nil
	}
	s.out = s.out[:0]
	if s.raw {
		return part
	}
	s.pending = append(s.pending, part...)
	for !s.stopped {
		end := s.endOfEvent()
		if end > s.call.meter.options.MaxEvent || end == 0 && len(s.pending) > s.call.meter.options.MaxEvent {
			s.give("an event of the stream is too long")
		}
		if end == 0 || s.raw {
			break
		}
		s.event(s.pending[:end])
		s.pending = s.pending[:copy(s.pending, s.pending[end:])]
		s.line, s.seen = 0, 0
	}
	return s.out
}

// rest returns what is left at the end of the stream: an event that has not ended.
func (s *stream) rest() []byte {
	if s.stopped || len(s.pending) == 0 {
		return nil
	}
	s.out = s.out[:0]
	s.event(s.pending)
	s.pending = s.pending[:0]
	return s.out
}

// give passes all on from now on, unread.
func (s *stream) give(reason string) {
	s.call.unread(reason)
	s.raw = true
	s.out = append(s.out, s.pending...)
	s.pending = nil
}

// endOfEvent returns where the first event ends: after an empty line. 0 if it has not ended. It searches
// only what has come since it was asked last, as an event may come byte by byte.
func (s *stream) endOfEvent() int {
	for {
		more := bytes.IndexByte(s.pending[s.seen:], '\n')
		if more < 0 {
			s.seen = len(s.pending)
			return 0
		}
		end := s.seen + more
		isEmpty := end == s.line || end == s.line+1 && s.pending[s.line] == '\r'
		s.line, s.seen = end+1, end+1
		if isEmpty {
			return end + 1
		}
	}
}

// dataOf returns the data of an event, its lines joined; it may be a part of the event.
func dataOf(block []byte) (data []byte) {
	several := false
	for line := range bytes.Lines(block) {
		value, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:"))
		if !ok {
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		if data == nil {
			data = value
			continue
		}
		if !several {
			data, several = bytes.Clone(data), true
		}
		data = append(append(data, '\n'), value...)
	}
	return data
}

// event passes an event on, and what it says.
func (s *stream) event(block []byte) {
	data := dataOf(block)
	if len(data) == 0 || bytes.Equal(data, []byte("[DONE]")) {
		if len(data) > 0 {
			s.call.finish()
		}
		s.out = append(s.out, block...)
		return
	}
	e, ok := readEvent(data)
	if !ok {
		s.call.unread("an event of the stream is not JSON of a known shape")
		s.out = append(s.out, block...)
		return
	}
	s.note(&e)
	if !s.hides || e.Usage == nil || len(e.Choices) > 0 {
		s.out = append(s.out, block...)
	}
	if s.call.settle() && !s.isLast(&e) && !e.tellsFailure() {
		s.stop()
	}
}

// note takes what an event says of the answer and of its cost.
func (s *stream) note(e *event) {
	if text := e.text(s.call.report.Style); text != "" {
		s.call.answered(text)
	}
	if u := e.usages(); u != nil {
		s.call.reported(u)
	}
	switch {
	case e.Message != nil:
		s.last.ID, s.last.Model = e.Message.ID, e.Message.Model
	case e.Response != nil:
		s.last.ID, s.last.Model, s.last.Created = e.Response.ID, e.Response.Model, e.Response.Created
	case e.ID != "":
		s.last.ID, s.last.Model, s.last.Created = e.ID, e.Model, e.Created
	}
	s.index = max(s.index, e.Sequence)
	const mostOpen = 128
	switch e.Type {
	case "content_block_start":
		if len(s.open) < mostOpen {
			s.open = append(s.open, e.Index)
		}
	case "content_block_stop":
		s.open = slices.DeleteFunc(s.open, func(i int) bool { return i == e.Index })
	}
	for i := range e.Choices {
		choice := &e.Choices[i]
		if choice.Finish != nil {
			s.ended++
		}
		switch known := slices.Contains(s.open, choice.Index); {
		case choice.Finish != nil && known:
			s.open = slices.DeleteFunc(s.open, func(i int) bool { return i == choice.Index })
		case choice.Finish == nil && !known && len(s.open) < mostOpen:
			s.open = append(s.open, choice.Index)
		}
	}
	switch {
	case e.tellsFailure():
		s.call.fail()
	case s.isLast(e):
		s.call.finish()
	}
}

// isLast says whether the answer has ended with an event: then there is nothing to stop.
func (s *stream) isLast(e *event) bool {
	switch e.Type {
	case "message_delta", "message_stop", "response.completed", "response.incomplete", "response.failed", "error":
		return true
	}
	if s.call.report.Style != chat {
		return false
	}
	for i := range e.Choices {
		if e.Choices[i].Finish != nil {
			return len(s.open) == 0 && s.ended >= s.call.prompt.answers
		}
	}
	return len(e.Choices) == 0 && e.Usage != nil
}

// stop ends the stream as the API does when an answer reaches its greatest length.
func (s *stream) stop() {
	s.stopped = true
	s.call.mu.Lock()
	s.call.report.Stopped = true
	prompt, answer := s.call.report.Prompt, s.call.answerTokens()
	s.call.mu.Unlock()
	switch s.call.report.Style {
	case chat:
		s.stopChat()
	case messages:
		for _, index := range s.open {
			s.say("content_block_stop", map[string]any{"type": "content_block_stop", "index": index})
		}
		s.say("message_delta", map[string]any{
			"type": "message_delta", "delta": map[string]any{"stop_reason": "max_tokens", "stop_sequence": nil},
			"usage": map[string]any{"output_tokens": answer},
		})
		s.say("message_stop", map[string]any{"type": "message_stop"})
	case responses:
		s.say("response.incomplete", map[string]any{
			"type": "response.incomplete", "sequence_number": s.index + 1,
			"response": map[string]any{
				"id": s.last.ID, "object": "response", "created_at": s.last.Created, "model": s.last.Model,
				"status": "incomplete", "incomplete_details": map[string]any{"reason": "max_output_tokens"}, "output": []any{},
				"usage": map[string]any{"input_tokens": prompt, "output_tokens": answer, "total_tokens": prompt + answer},
			},
		})
	}
}

// stopChat ends a stream of chat completions, all answers of it.
func (s *stream) stopChat() {
	type choice struct {
		Index  int            `json:"index"`
		Delta  map[string]any `json:"delta"`
		Finish string         `json:"finish_reason"`
	}
	choices := make([]choice, 0, len(s.open))
	for _, index := range s.open {
		choices = append(choices, choice{index, map[string]any{}, "length"})
	}
	s.say("", map[string]any{
		"id": s.last.ID, "object": "chat.completion.chunk", "created": s.last.Created, "model": s.last.Model, "choices": choices,
	})
	s.out = append(s.out, "data: [DONE]\n\n"...)
}

// say adds an event.
func (s *stream) say(name string, data map[string]any) {
	text, err := json.Marshal(data)
	if err != nil {
		return // it is made of texts and numbers
	}
	if name != "" {
		s.out = fmt.Appendf(s.out, "event: %s\n", name)
	}
	s.out = fmt.Appendf(s.out, "data: %s\n\n", text)
}
