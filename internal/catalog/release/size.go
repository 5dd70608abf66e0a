package release

import "reflect"

// sizeOf estimates how many bytes a history takes: the values with what they point
// to. Texts that values share are counted for each of them.
func sizeOf(h *history) int64 {
	return versionsSize(h.categories) + versionsSize(h.tools) + versionsSize(h.comparisons) + versionsSize(h.prices) + h.search.Size()
}

func versionsSize[V any](versions []version[V]) (size int64) {
	size = int64(len(versions)) * int64(reflect.TypeFor[version[V]]().Size())
	for _, v := range versions {
		size += int64(reflect.TypeFor[V]().Size()) + pointedTo(reflect.ValueOf(v.value).Elem())
	}
	return size
}

// pointedTo returns the size of what the fields of a struct point to.
func pointedTo(v reflect.Value) (size int64) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			size += int64(f.Len())
		case reflect.Pointer:
			if f.IsNil() {
				continue
			}
			if size += int64(f.Type().Elem().Size()); f.Elem().Kind() == reflect.Struct {
				size += pointedTo(f.Elem())
			} else if f.Elem().Kind() == reflect.String {
				size += int64(f.Elem().Len())
			}
		}
	}
	return size
}
