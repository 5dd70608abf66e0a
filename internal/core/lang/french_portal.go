package lang

var frenchPortal = map[Message]string{}
