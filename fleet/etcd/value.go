package etcd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/penstock-go/penstock/fleet"
)

const (
	// maxKey is the longest key of a limit that is written as it is, in bytes.
	maxKey = 128

	// maxValue is the longest value that is read, in bytes. What is written is shorter.
	maxValue = 128 << 10
)

// value is an announcement as it is in etcd.
type value struct {
	Owner  string `json:"o"`
	Limits []use  `json:"l,omitempty"`
}

// use is a [fleet.Use] in etcd.
type use struct {
	Key      string  `json:"k"`
	Demand   float64 `json:"d,omitempty"`
	Passed   float64 `json:"p,omitempty"`
	Reserved float64 `json:"r,omitempty"`
}

// encode returns the value of an announcement. Rates have three digits. What is reserved is
// rounded up.
func encode(owner string, self *fleet.Instance) []byte {
	v := value{Owner: owner}
	for _, u := range self.Limits[:min(len(self.Limits), fleet.MaxUses)] {
		v.Limits = append(v.Limits, use{shorten(u.Key), rate(u.Demand), rate(u.Passed), reservation(u.Reserved)})
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the numbers are finite
	}
	return data
}

// decode returns the announcement of an instance.
func decode(data []byte, id string) (owner string, instance fleet.Instance, err error) {
	instance.ID = id
	if len(data) > maxValue {
		return "", instance, fmt.Errorf("etcd: the announcement of %q has %d bytes, at most %d are read", id, len(data), maxValue)
	}
	var v value
	if err := json.Unmarshal(data, &v); err != nil {
		return "", instance, fmt.Errorf("etcd: the announcement of %q: %w", id, err)
	}
	for _, u := range v.Limits[:min(len(v.Limits), fleet.MaxUses)] {
		instance.Limits = append(instance.Limits, fleet.Use(u))
	}
	return v.Owner, instance, nil
}

// shorten returns what stands for the key of a limit in etcd.
func shorten(key string) string {
	if len(key) <= maxKey && utf8.ValidString(key) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// rate returns a rate with three digits.
func rate(x float64) float64 {
	if x = finite(x, math.MaxInt64); x == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-2)
	return math.Round(x/unit) * unit
}

// reservation returns a fraction with six digits, not less than x.
func reservation(x float64) float64 { return math.Ceil(finite(x, 1)*1e6) / 1e6 }

// finite returns x, from 0 to most; most if it is not a number.
func finite(x, most float64) float64 {
	if math.IsNaN(x) {
		return most
	}
	return min(max(x, 0), most)
}

// hasChanged says whether an announcement differs so much from the one that was written that
// the others should know.
func hasChanged(written, self *fleet.Instance) bool {
	if len(written.Limits) != len(self.Limits) {
		return true
	}
	for i := range self.Limits {
		was, is := &written.Limits[i], &self.Limits[i]
		switch {
		case was.Key != is.Key, is.Reserved > was.Reserved, is.Reserved < was.Reserved-minChange/10:
			return true
		case differs(was.Demand, is.Demand), differs(was.Passed, is.Passed):
			return true
		}
	}
	return false
}

// minChange is the fraction by which a rate must change to be written before its time.
const minChange = 0.05

func differs(a, b float64) bool { return math.Abs(a-b) > max(minChange*max(a, b), 0.1) }
