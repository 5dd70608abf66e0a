// Builds the explorer and the reference out of what package-lock.json asks
// for, into the folder that the program carries. Names hold a hash of what is
// in a file, so that browsers may keep them for ever; manifest.json tells which
// is which.
import { build } from "esbuild";
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const built = here("../built/");

for (const name of await readdir(built)) {
  if (name !== "README.md") await rm(built + name, { recursive: true });
}

// Scalar takes itself for the whole page: it has a main of its own, and one in
// what it opens to try a path. There can be only one, and that is ours.
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
      if (found !== 2) throw new Error(`Scalar has ${found} mains, not 2: look at them`);
    });
  },
};

const { metafile } = await build({
  absWorkingDir: here("."),
  entryPoints: {
    explorer: "src/explorer.jsx",
    reference: "src/reference.js",
    jitless: "src/jitless.js",
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
  legalComments: "eof", // their licenses ask for it
  pure: ["console.log", "console.info", "console.debug"], // what goes wrong is still told, but not that all is well
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
// Last, so that whoever finds it finds everything.
await writeFile(built + "manifest.json", JSON.stringify(manifest, null, 2) + "\n");
if (process.env.METAFILE) await writeFile(process.env.METAFILE, JSON.stringify(metafile));
