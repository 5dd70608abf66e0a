package lang

var frenchHome = map[Message]string{}
