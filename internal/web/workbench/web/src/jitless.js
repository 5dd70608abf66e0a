// Runs before the reference: our Content-Security-Policy forbids eval, and zod
// would otherwise try it.
globalThis.__zod_globalConfig = { jitless: true };
