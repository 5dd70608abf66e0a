package lang

var frenchQueries = map[Message]string{}
