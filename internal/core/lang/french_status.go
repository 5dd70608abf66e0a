package lang

var frenchStatus = map[Message]string{}
