package lang

var frenchWorkbench = map[Message]string{}
