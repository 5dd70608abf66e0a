// Verifies deliveries, one JSON object on each line of standard input, with the
// library that receivers use.
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";

for await (const line of createInterface({ input: process.stdin })) {
  const { secret, headers, body } = JSON.parse(line);
  try {
    console.log("ok " + new Webhook(secret).verify(body, headers).id);
  } catch (error) {
    console.log("rejected " + error.message);
  }
}
