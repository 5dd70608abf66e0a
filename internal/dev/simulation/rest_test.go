package simulation

func simulateCache(*world)  {}
func simulateTokens(*world) {}
