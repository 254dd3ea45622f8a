package llm

import (
	"math"
	"sync"
)

// learnt is what is known of the answers of models and callers, in bounded memory.
type learnt struct {
	quantile float64
	first    int // tokens of an answer of which nothing is known
	most     int // entries

	mu      sync.Mutex // guards what follows
	places  map[string]int
	entries []learntEntry
	hand    int
	all     learntAnswers
}

// learntEntry is the answers of one model and caller, or of one model.
type learntEntry struct {
	key     string
	touched bool // since the hand passed
	answers learntAnswers
}

// learntAnswers is how long answers were, and how many bytes a token has.
type learntAnswers struct {
	histogram answerHistogram
	prompt    byteRate
	answer    byteRate
}

func newLearnt(quantile float64, first, most int) *learnt {
	return &learnt{quantile: quantile, first: first, most: most, places: map[string]int{}}
}

// enough is from how many answers on they say what the next one will be like.
const enough = 20

// pair is the key of a model and a caller.
func pair(model, caller string) string { return model + "\x00" + caller }

// answer returns how many tokens the answer to a call will have, by the quantile.
func (l *learnt) answer(model, caller string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range []string{pair(model, caller), model} {
		if e := l.find(key); e != nil && e.answers.histogram.total >= enough {
			return e.answers.histogram.quantile(l.quantile)
		}
	}
	if l.all.histogram.total >= enough {
		return l.all.histogram.quantile(l.quantile)
	}
	return l.first
}

// bytesPerToken returns how many bytes a token of prompts and of answers has.
func (l *learnt) bytesPerToken(model string) (prompt, answer float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.find(model); e != nil {
		return e.answers.prompt.value(), e.answers.answer.value()
	}
	return l.all.prompt.value(), l.all.answer.value()
}

// learn notes an answer that came to its end. Lengths in bytes are 0 if they are not known, or if
// the tokens are not those of the provider.
func (l *learnt) learn(model, caller string, promptBytes, prompt, answerBytes, answer int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range []*learntAnswers{&l.entry(pair(model, caller)).answers, &l.entry(model).answers, &l.all} {
		of.histogram.add(answer)
		of.prompt.add(promptBytes, prompt)
		of.answer.add(answerBytes, answer)
	}
}

func (l *learnt) find(key string) *learntEntry {
	place, ok := l.places[key]
	if !ok {
		return nil
	}
	l.entries[place].touched = true
	return &l.entries[place]
}

// entry returns an entry, perhaps in the place of one that was not used of late.
func (l *learnt) entry(key string) *learntEntry {
	if e := l.find(key); e != nil {
		return e
	}
	if len(l.entries) < l.most {
		l.entries = append(l.entries, learntEntry{key: key})
		l.places[key] = len(l.entries) - 1
		return &l.entries[len(l.entries)-1]
	}
	for l.entries[l.hand].touched {
		l.entries[l.hand].touched = false
		l.hand = (l.hand + 1) % len(l.entries)
	}
	e := &l.entries[l.hand]
	delete(l.places, e.key)
	*e = learntEntry{key: key}
	l.places[key] = l.hand
	l.hand = (l.hand + 1) % len(l.entries)
	return e
}

// answerHistogram counts answers by their length, in steps of an eighth. What is old counts less.
type answerHistogram struct {
	total  int
	counts [histogramSize]uint16
}

const (
	histogramStep = 1.125
	histogramSize = 128 // up to 3.5 million tokens
	histogramMost = 1000
)

func (h *answerHistogram) add(tokens int) {
	if h.total >= histogramMost { // halve them
		h.total = 0
		for i := range h.counts {
			h.counts[i] /= 2
			h.total += int(h.counts[i])
		}
	}
	bucket := int(math.Log(float64(max(1, tokens))) / math.Log(histogramStep))
	h.counts[min(bucket, histogramSize-1)]++
	h.total++
}

// quantile returns the upper bound of the step in which a share of the answers ends.
func (h *answerHistogram) quantile(q float64) int {
	wanted, seen := int(math.Ceil(q*float64(h.total))), 0
	for i, n := range h.counts {
		if seen += int(n); seen >= wanted {
			return int(math.Ceil(math.Pow(histogramStep, float64(i+1))))
		}
	}
	return int(math.Ceil(math.Pow(histogramStep, histogramSize)))
}

// byteRate is how many bytes a token has, of late.
type byteRate struct{ bytes, tokens float64 }

const (
	firstBytesPerToken = 4
	rateMemory         = 0.98 // of each call
)

func (r *byteRate) add(bytes, tokens int) {
	if bytes <= 0 || tokens <= 0 {
		return
	}
	r.bytes, r.tokens = r.bytes*rateMemory+float64(bytes), r.tokens*rateMemory+float64(tokens)
}

func (r *byteRate) value() float64 {
	if r.tokens == 0 {
		return firstBytesPerToken
	}
	return min(max(r.bytes/r.tokens, 0.25), 32) //nolint:mnd // no tokenizer is beyond these
}
