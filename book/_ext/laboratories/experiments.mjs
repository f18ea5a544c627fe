// The laboratories of the book: what each sets up, does and shows. Used twice: by
// laboratory.js in the reader's browser, and by record.mjs at build, which writes down
// what the page shows to readers who can't or won't start PostgreSQL in it.
// A laboratory draws HTML from what PostgreSQL answers and knows nothing else of it.

const escaped = (words) => String(words).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

const table = (caption, columns, rows) =>
  `<div class="laboratory-table"><table><caption>${escaped(caption)}</caption><thead><tr>${columns.map((c) => `<th scope="col">${escaped(c)}</th>`).join("")}</tr></thead>` +
  `<tbody>${rows.map((row) => `<tr>${row.map((cell) => `<td>${escaped(cell ?? "")}</td>`).join("")}</tr>`).join("")}</tbody></table></div>`;

// ---- heap-only tuples on a page

const ROWS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const STATES = ["unused", "normal", "redirected", "dead"]; // lp_flags, storage/itemid.h
const HEAP_ONLY = 0x8000; // t_infomask2, access/htup_details.h

async function pointers(db, block) {
  const found = await db.query(
    `SELECT lp, lp_flags, lp_off, t_xmin::text, t_xmax::text, t_ctid::text, t_infomask2,
       get_byte(t_data, 0) AS id, get_byte(t_data, 4) AS v, get_byte(t_data, 8) AS w
     FROM heap_page_items(get_raw_page('page', $1))`,
    [block],
  );
  return found.rows.map((row) => {
    const heapOnly = row.lp_flags === 1 && (row.t_infomask2 & HEAP_ONLY) !== 0;
    const next = row.t_ctid && row.t_ctid !== `(${block},${row.lp})` ? row.t_ctid : "";
    return {
      ...row,
      state: heapOnly ? "heap-only" : STATES[row.lp_flags],
      row: row.id === null ? "" : ROWS[row.id - 1] ?? row.id,
      to: row.lp_flags === 2 ? `(${block},${row.lp_off})` : next,
    };
  });
}

async function entries(db) {
  const indexes = (await db.query("SELECT indexrelid::regclass::text AS name FROM pg_index WHERE indrelid = 'page'::regclass ORDER BY 1")).rows;
  const rows = [];
  for (const { name } of indexes) {
    const items = await db.query("SELECT ctid::text, data FROM bt_page_items($1, 1)", [name]);
    for (const item of items.rows) {
      const key = parseInt((item.data ?? "").split(" ").slice(0, 4).reverse().join(""), 16);
      rows.push([name, key, item.ctid]);
    }
  }
  return rows;
}

async function counters(db) {
  await db.query("SELECT pg_stat_force_next_flush()");
  const [row] = (await db.query("SELECT n_tup_upd, n_tup_hot_upd, n_tup_newpage_upd FROM pg_stat_user_tables WHERE relname = 'page'")).rows;
  return row;
}

const box = (p) =>
  `<li class="line-pointer ${p.state}"><b>${p.lp}</b> ${p.state}` +
  (p.row ? `<br>row ${escaped(p.row)}, v=${p.v}, w=${p.w}` : "") + (p.to ? `<br>→ ${escaped(p.to)}` : "") + "</li>";

async function drawPage(db) {
  const [{ blocks }] = (await db.query("SELECT pg_relation_size('page') / current_setting('block_size')::int AS blocks")).rows;
  let html = "";
  for (let block = 0; block < Number(blocks); block++) {
    const found = await pointers(db, block);
    const detail = found.map((p) => [p.lp, p.state, p.row, p.t_xmin, p.t_xmax === "0" ? "" : p.t_xmax, p.to]);
    html +=
      `<p class="laboratory-label">Page ${block}: its line pointers</p><ol class="line-pointers" aria-label="Line pointers of page ${block}">${found.map(box).join("")}</ol>` +
      `<details><summary>The same as a table</summary>${table(`Page ${block}`, ["line pointer", "state", "row", "made by transaction", "ended by transaction", "leads to"], detail)}</details>`;
  }
  const { n_tup_upd: all, n_tup_hot_upd: hot, n_tup_newpage_upd: elsewhere } = await counters(db);
  return html + `<p>${all} ${all === 1 ? "update" : "updates"} so far, ${hot} of them HOT, ${elsewhere} to another page.</p>` +
    `<details><summary>What the indexes hold</summary>${table("Entries of the indexes", ["index", "key", "points to"], await entries(db))}</details>`;
}

const hot = {
  extensions: ["pageinspect"],
  // as in the chapter: v isn't indexed, w is; a page takes seven tuples
  setup: [
    "CREATE EXTENSION IF NOT EXISTS pageinspect",
    "DROP TABLE IF EXISTS page",
    "CREATE TABLE page (id int PRIMARY KEY, v int, w int, pad text) WITH (autovacuum_enabled = off)",
    "ALTER TABLE page ALTER pad SET STORAGE PLAIN",
    "CREATE INDEX page_w ON page (w)",
    "INSERT INTO page SELECT n, 1, 0, repeat('x', 1080) FROM generate_series(1, 4) AS n",
    "VACUUM (FREEZE, ANALYZE) page",
    "SET enable_seqscan = off", // a visit by the index prunes no other page
  ],
  statements: [
    ["update A", "UPDATE page SET v = v + 1 WHERE id = 1"],
    ["update B", "UPDATE page SET v = v + 1 WHERE id = 2"],
    ["update C's indexed attribute", "UPDATE page SET w = w + 1 WHERE id = 3"],
    ["read D", "SELECT id, v, w FROM page WHERE id = 4"],
    ["vacuum", "VACUUM page"],
    ["index v", "CREATE INDEX page_v ON page (v)"],
  ],
  draw: drawPage,
  async recorded(db) {
    const story = [0, 0, 1, 3, 0, 2, 4];
    let html = `<h3>As loaded</h3>${await drawPage(db)}`;
    for (const number of story) {
      const [name, sql] = hot.statements[number];
      await db.query(sql);
      html += `<h3>${escaped(name)}: <code>${escaped(sql)}</code></h3>${await drawPage(db)}`;
    }
    return html;
  },
};

// ---- the optimizer's switch

const TUPLES = 10000;
const WAYS = [
  ["sequential", ["enable_indexscan", "enable_bitmapscan", "enable_indexonlyscan"]],
  ["index", ["enable_seqscan", "enable_bitmapscan"]],
  ["bitmap", ["enable_seqscan", "enable_indexscan", "enable_indexonlyscan"]],
];
const ATTRIBUTES = [["unique1", "in random order on disk"], ["unique2", "in the order of the disk"]];

export const query = (attribute, share) => `SELECT * FROM tuples WHERE ${attribute} < ${Math.round(share * TUPLES)}`;

/** The plan that PostgreSQL chooses with some ways switched off. */
async function plan(db, sql, off = [], randomPageCost = 4) {
  return db.transaction(async (tx) => {
    await tx.exec(`SET LOCAL random_page_cost = ${Number(randomPageCost)};` + off.map((name) => `SET LOCAL ${name} = off;`).join(""));
    const [row] = (await tx.query(`EXPLAIN (FORMAT JSON) ${sql}`)).rows;
    await tx.rollback();
    return row["QUERY PLAN"][0].Plan;
  });
}

const scanOf = (node) => (node.Plans && !node["Relation Name"] ? scanOf(node.Plans[0]) : node);

const tree = (node) => {
  const about = ["Index Cond", "Recheck Cond", "Filter", "Hash Cond", "Merge Cond", "Join Filter", "Sort Key"].filter((key) => node[key]).map((key) => `${key}: ${node[key]}`);
  const name = [node["Node Type"], node["Index Name"] && `using ${node["Index Name"]}`, node["Relation Name"] && `on ${node["Relation Name"]}`].filter(Boolean).join(" ");
  const cost = `cost ${node["Startup Cost"]} to ${node["Total Cost"]}, ${node["Plan Rows"]} tuples expected`;
  return `<li><b>${escaped(name)}</b><br>${escaped(cost)}${about.map((words) => `<br><code>${escaped(words)}</code>`).join("")}${node.Plans ? `<ul>${node.Plans.map(tree).join("")}</ul>` : ""}</li>`;
};

const SHARES = Array.from({ length: 33 }, (_, n) => 10 ** (-4 + n / 8));

/** Cost of each way at each share of tuples: [{way, share, cost}]. */
async function sweep(db, attribute, randomPageCost) {
  const found = [];
  for (const share of SHARES)
    for (const [way, off] of WAYS) found.push({ way, share, cost: (await plan(db, query(attribute, share), off, randomPageCost))["Total Cost"] });
  return found;
}

function chart(found, share) {
  const width = 640, height = 300, left = 54, right = 92, top = 14, bottom = 44;
  const costs = found.map((one) => one.cost);
  const [low, high] = [Math.log10(Math.min(...costs)), Math.log10(Math.max(...costs))];
  const x = (one) => left + ((Math.log10(one) + 4) / 4) * (width - left - right);
  const y = (cost) => height - bottom - ((Math.log10(cost) - low) / (high - low)) * (height - top - bottom);
  const lines = WAYS.map(([way], n) => {
    const points = found.filter((one) => one.way === way);
    const last = points[points.length - 1];
    return `<polyline class="way-${n}" points="${points.map((p) => `${x(p.share).toFixed(1)},${y(p.cost).toFixed(1)}`).join(" ")}"/>` + `<text class="way-${n}" x="${width - right + 6}" y="${(y(last.cost) + 4).toFixed(1)}">${way}</text>`;
  });
  const ticks = [0.0001, 0.001, 0.01, 0.1, 1].map((one) => `<text x="${x(one)}" y="${height - bottom + 18}" text-anchor="middle">${one * 100} %</text><line class="tick" x1="${x(one)}" x2="${x(one)}" y1="${height - bottom}" y2="${height - bottom + 5}"/>`);
  const levels = Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, n) => 10 ** (Math.ceil(low) + n)).map((one) => `<text x="${left - 7}" y="${y(one) + 4}" text-anchor="end">${one}</text><line class="level" x1="${left}" x2="${width - right}" y1="${y(one)}" y2="${y(one)}"/>`);
  return `<svg class="laboratory-chart" viewBox="0 0 ${width} ${height}" role="img" aria-label="Estimated cost of a sequential, an index and a bitmap scan over the share of tuples that qualify; the table below has the chosen plan">` +
    `${levels.join("")}${ticks.join("")}${share ? `<line class="now" x1="${x(share)}" x2="${x(share)}" y1="${top}" y2="${height - bottom}"/>` : ""}${lines.join("")}` +
    `<text x="${(left + width - right) / 2}" y="${height - 6}" text-anchor="middle">share of tuples that qualify</text></svg><p class="laboratory-label">Estimated cost of each way, in the planner's unit, both axes logarithmic</p>`;
}

const optimizer = {
  extensions: [],
  setup: [
    "DROP TABLE IF EXISTS tuples",
    // 7919 is prime to the number of tuples, so that unique1 is a permutation
    `CREATE TABLE tuples AS SELECT n * 7919 % ${TUPLES} AS unique1, n AS unique2, repeat('x', 180) AS stringu1 FROM generate_series(0, ${TUPLES - 1}) AS n`,
    "CREATE INDEX tuples_unique1 ON tuples (unique1)",
    "CREATE INDEX tuples_unique2 ON tuples (unique2)",
    "VACUUM ANALYZE tuples",
    "SET max_parallel_workers_per_gather = 0",
  ],
  attributes: ATTRIBUTES,
  async draw(db, { attribute, share, sql, randomPageCost }) {
    const wanted = sql ?? query(attribute, share);
    const chosen = await plan(db, wanted, [], randomPageCost);
    const costs = [];
    for (const [way, off] of WAYS) {
      const forced = await plan(db, wanted, off, randomPageCost);
      costs.push([way, scanOf(forced)["Node Type"], forced["Total Cost"]]);
    }
    return `<p class="laboratory-label">The plan that PostgreSQL chooses</p><ul class="laboratory-plan">${tree(chosen)}</ul>` + table("What the other ways would cost", ["way asked for", "scan", "estimated cost"], costs);
  },
  sweep,
  chart,
  async recorded(db) {
    let html = "";
    for (const [attribute, words] of ATTRIBUTES) {
      const found = await sweep(db, attribute, 4);
      const chosen = [];
      for (const share of SHARES) {
        const node = scanOf(await plan(db, query(attribute, share)));
        if (node["Node Type"] !== chosen.at(-1)?.[1]) chosen.push([`${(share * 100).toPrecision(2)} %`, node["Node Type"], node["Total Cost"]]);
      }
      html += `<h3>Attribute ${attribute}, ${words}</h3>${chart(found)}${table("Where the choice changes", ["from this share of tuples on", "chosen scan", "estimated cost there"], chosen)}`;
    }
    return html;
  },
};

export const laboratories = { hot, optimizer };

/** A PostgreSQL with a laboratory's relations in it. */
export async function open(PGlite, extensions, name) {
  const { setup, extensions: wanted } = laboratories[name];
  const db = await PGlite.create({ extensions: Object.fromEntries(wanted.map((one) => [one, extensions[one]])) });
  for (const statement of setup) await db.query(statement);
  return db;
}

export const answer = (result) => (result.rows.length ? table("Answer", result.fields.map((f) => f.name), result.rows.slice(0, 20).map((row) => Object.values(row))) : `<p>Done; ${result.affectedRows ?? 0} ${result.affectedRows === 1 ? "tuple was" : "tuples were"} changed.</p>`);
