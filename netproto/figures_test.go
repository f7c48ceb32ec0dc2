package netproto_test

import (
	"reflect"
	"testing"

	"github.com/holdfast-queue/holdfast/broker"
	"github.com/holdfast-queue/holdfast/netproto"
	"github.com/holdfast-queue/holdfast/netproto/words"
)

func TestEachFigureOfAQueueHasAPlaceOfItsOwn(t *testing.T) {
	zero := netproto.Figures(&broker.QueueFigures{})
	seen := make(map[int]string)
	var fill func(all *broker.QueueFigures, v reflect.Value)
	fill = func(all *broker.QueueFigures, v reflect.Value) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			switch f.Kind() {
			case reflect.Struct:
				fill(all, f)
				continue
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Uint64:
				f.SetUint(1)
			case reflect.Float64: // a ratio, of metrics alone
				continue
			default:
				f.SetInt(1)
			}
			for place, n := range netproto.Figures(all) {
				if n != zero[place] {
					seen[place] += name
				}
			}
			f.SetZero()
		}
	}
	var all broker.QueueFigures
	fill(&all, reflect.ValueOf(&all).Elem())
	for place, f := range words.QueueFigures {
		if seen[place] == "" {
			t.Errorf("no figure of the broker is %s", f.Name)
		}
		delete(seen, place)
	}
}
