// node record.mjs FOLDER: run each laboratory's story on the PGlite in FOLDER and print
// {"postgresql": ..., and each laboratory's name: html}, which the pages show before anything is started.
import { pathToFileURL } from "node:url";
import { laboratories, open } from "./experiments.mjs";

const from = (file) => import(new URL(file, pathToFileURL(`${process.argv[2]}/`)));
const { PGlite } = await from("index.js");
const { pageinspect } = await from("contrib/pageinspect.js");
const { pg_visibility } = await from("contrib/pg_visibility.js");
const recorded = {};
for (const [name, laboratory] of Object.entries(laboratories)) {
  const db = await open(PGlite, { pageinspect, pg_visibility }, name);
  recorded[name] = await laboratory.recorded(db);
  recorded.postgresql = (await db.query("SHOW server_version")).rows[0].server_version;
  await db.close();
}
process.stdout.write(JSON.stringify(recorded));
