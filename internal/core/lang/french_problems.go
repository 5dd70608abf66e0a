package lang

var frenchProblems = map[Message]string{}
