// The reference: Scalar on our own document.
import { createApiReference } from "@scalar/api-reference";
import "./reference.css";
import { configuration } from "./configuration.js";
import { mend } from "./mend.js";
import { referenceMends } from "./mends.js";

const { document: url } = JSON.parse(document.getElementById("workbench").textContent);
const scheme = matchMedia("(prefers-color-scheme: dark)");
const told = () => configuration({ url, server: location.origin, dark: scheme.matches });

mend(document.body, referenceMends);
document.getElementById("reference").replaceChildren(); // else Scalar takes the note that it loads for its own
const reference = createApiReference("#reference", told());
scheme.addEventListener("change", () => reference.updateConfiguration(told()));
