package lang

var frenchInformation = map[Message]string{}
