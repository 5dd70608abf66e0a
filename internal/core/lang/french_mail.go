package lang

var frenchMail = map[Message]string{}
