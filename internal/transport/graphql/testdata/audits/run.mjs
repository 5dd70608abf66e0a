// Runs the audits of GraphQL over HTTP against a server: node run.mjs URL
import { serverAudits } from 'graphql-http';

const audits = serverAudits({ url: process.argv[2], fetchFn: fetch });
let failed = 0;
for (const audit of audits) {
  const result = await audit.fn();
  if (result.status !== 'ok') {
    failed++;
    console.log(`${audit.id} ${audit.name}: ${result.status}: ${result.reason}`);
  }
}
console.log(`${audits.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
