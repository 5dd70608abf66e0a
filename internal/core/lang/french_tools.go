package lang

var frenchTools = map[Message]string{}
