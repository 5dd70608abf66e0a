// The URL of the server is part of the generated client.
module.exports = {
  catalog: {
    input: process.env.DOCUMENT,
    output: { target: "client/orval/catalog.ts", client: "fetch", baseUrl: process.env.SERVER },
  },
};
