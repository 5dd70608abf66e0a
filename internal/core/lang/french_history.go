package lang

var frenchHistory = map[Message]string{}
