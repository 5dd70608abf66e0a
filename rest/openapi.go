package rest

func describe(endpoints []*endpoint, cfg Config) ([]byte, error) { return []byte("{}"), nil }
