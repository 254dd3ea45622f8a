package console

import (
	"errors"
	"math"
	"reflect"
	"time"
)

// tooLarge is more than any number that an instance tells. Sums and products of smaller ones are finite: JSON has
// no others, and the page would show nothing at all.
const tooLarge = 1e100

var errNotTrue = errors.New("it answers with numbers that are too large to be true")

// checkNumbers finds numbers that are too large in what an instance has answered. Those without a bound, such as
// [inspect.Ceiling], are infinite.
func checkNumbers(answer any) error {
	if isNotTrue(reflect.ValueOf(answer)) {
		return errNotTrue
	}
	return nil
}

func isNotTrue(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Float64:
		return math.Abs(v.Float()) > tooLarge && !math.IsInf(v.Float(), 1)
	case reflect.Pointer, reflect.Interface:
		return isNotTrue(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return false
		}
		for i := range v.NumField() {
			if isNotTrue(v.Field(i)) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint64 { // the most there is
			return false
		}
		for i := range v.Len() {
			if isNotTrue(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if isNotTrue(v.MapIndex(key)) {
				return true
			}
		}
	default: // neither a number that may be infinite nor something that has one
	}
	return false
}
