// Runs before the reference: the policy of our pages lets nobody turn text into
// code, and zod need not even try.
globalThis.__zod_globalConfig = { jitless: true };
