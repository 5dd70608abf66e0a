// Builds the explorer and the reference into ../built, which is embedded in the
// binary. File names contain a hash, so that browsers may cache them forever;
// manifest.json maps names to files.
import { build } from "esbuild";
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const built = here("../built/");

for (const name of await readdir(built)) {
  if (name !== "README.md") await rm(built + name, { recursive: true });
}

// Scalar has two <main> elements of its own, but a page may have only one.
const oneMain = {
  name: "one-main",
  setup({ onLoad, onEnd }) {
    let found = 0;
    onLoad({ filter: /@scalar[\\/](api-client|api-reference)[\\/].*(ApiReference|Modal)\.vue\.script\.js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const contents = text.replace(/(createElement(?:Block|VNode)\()"main"/g, (_, before) => (found++, before + '"div"'));
      return { contents, loader: "js" };
    });
    onEnd(() => {
      if (found !== 2) throw new Error(`got ${found} <main> elements in Scalar, want 2: adapt this plugin`);
    });
  },
};

const { metafile } = await build({
  absWorkingDir: here("."),
  entryPoints: {
    explorer: "src/explorer.js",
    graphiql: "src/graphiql.jsx",
    reference: "src/reference.js",
    scalar: "src/scalar.js",
    "editor.worker": "monaco-editor/esm/vs/editor/editor.worker.js",
    "json.worker": "monaco-editor/esm/vs/language/json/json.worker.js",
    "graphql.worker": "monaco-graphql/esm/graphql.worker.js",
  },
  outdir: built,
  entryNames: "[name]-[hash]",
  chunkNames: "chunk-[hash]",
  assetNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  sourcemap: false,
  legalComments: "eof", // required by their licenses
  pure: ["console.log", "console.info", "console.debug"], // drops debug output, keeps warnings and errors
  jsx: "automatic",
  loader: { ".ttf": "file" },
  define: {
    "process.env.NODE_ENV": '"production"',
    __VUE_OPTIONS_API__: "true",
    __VUE_PROD_DEVTOOLS__: "false",
    __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false",
  },
  plugins: [oneMain],
  metafile: true,
  logLevel: "warning",
});

const manifest = {};
for (const [path, output] of Object.entries(metafile.outputs)) {
  if (!output.entryPoint || basename(path).startsWith("chunk-")) continue;
  const name = basename(path);
  manifest[name.replace(/-[A-Z0-9]{8}\./, ".")] = name;
  if (output.cssBundle) {
    const style = basename(output.cssBundle);
    manifest[style.replace(/-[A-Z0-9]{8}\./, ".")] = style;
  }
}
// Last, so that its presence means that the build is complete.
await writeFile(built + "manifest.json", JSON.stringify(manifest, null, 2) + "\n");
if (process.env.METAFILE) await writeFile(process.env.METAFILE, JSON.stringify(metafile));
