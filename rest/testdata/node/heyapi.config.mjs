export default {
  input: process.env.DOCUMENT,
  output: { path: "client/heyapi", importFileExtension: ".js" },
};
