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

// pointedTo returns the size of what a value points to.
func pointedTo(v reflect.Value) (size int64) {
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Pointer:
		if !v.IsNil() {
			return int64(v.Type().Elem().Size()) + pointedTo(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			size += int64(v.Type().Elem().Size()) + pointedTo(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			size += pointedTo(v.Field(i))
		}
	}
	return size
}
