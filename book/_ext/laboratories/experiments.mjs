// The laboratories of the book: what each sets up, does and shows. Used twice: by
// laboratory.js in the reader's browser, and by record.mjs at build, which writes down
// what the page shows to readers who can't or won't start PostgreSQL in it.
// A laboratory draws HTML from what PostgreSQL answers and knows nothing else of it.

const escaped = (words) => String(words).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

/** A number as the book's tables write it: commas for thousands, below them four digits. */
export const formatted = (x) =>
  x.toLocaleString("en-US", Number.isInteger(x) ? {} : Math.abs(x) >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 });

/** A table; columns of nothing but numbers are aligned as such. */
const table = (caption, columns, rows) => {
  const missing = (cell) => cell === null || cell === undefined;
  const numeric = columns.map((_, n) => rows.some((row) => !missing(row[n])) && rows.every((row) => missing(row[n]) || typeof row[n] === "number"));
  const like = (n) => (numeric[n] ? ' class="number"' : "");
  const spelled = (cell) => (missing(cell) ? "" : typeof cell === "number" ? formatted(cell) : cell);
  return `<div class="laboratory-table"><table><caption>${escaped(caption)}</caption><thead><tr>${columns.map((c, n) => `<th scope="col"${like(n)}>${escaped(c)}</th>`).join("")}</tr></thead>` +
    `<tbody>${rows.map((row) => `<tr>${row.map((cell, n) => `<td${like(n)}>${escaped(spelled(cell))}</td>`).join("")}</tr>`).join("")}</tbody></table></div>`;
};

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
  return html + `<p>Updates so far: ${all}. Of these HOT: ${hot}, to another page: ${elsewhere}.</p>` +
    `<details><summary>What the indexes hold</summary>${table("Entries of the indexes", ["index", "key", "points to"], await entries(db))}</details>`;
}

const hot = {
  extensions: ["pageinspect"],
  kind: "steps",
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

// ---- an index-only scan that updates spoil

const ROWS_OF_A_PAGE = 20, PAGES = 100; // at half a page's room, so that new versions stay on their page
const COUNTING = "SELECT count(k) FROM tuples WHERE k >= 1";
const PLACES = [["random", "at random over the relation"], ["neighbours", "on rows that lie beside each other"], ["spread", "on as many pages as there are"]];

/** The statement that updates so many rows a page on average, at the places asked for. */
function updating({ each, where }) {
  const rows = ROWS_OF_A_PAGE * PAGES, number = Math.max(1, Math.round(10 ** each * PAGES));
  const which = {
    random: `k IN (SELECT 1 + floor(random() * ${rows})::int FROM generate_series(1, ${number}))`,
    neighbours: `k <= ${number}`,
    spread: `k % ${Math.max(1, Math.round(rows / number))} = 0`,
  };
  return `UPDATE tuples SET v = v + 1 WHERE ${which[where]}`;
}

const map = (pages) => {
  const across = 25, size = 24, seen = pages.filter((page) => page.all_visible).length;
  const squares = (kind, wanted) => `<path class="${kind}" d="${pages.map((page, n) => (page.all_visible === wanted ? `M${(n % across) * size + 2} ${Math.floor(n / across) * size + 2}h20v20h-20z` : "")).join("")}"/>`;
  const said = `${seen} of ${pages.length} pages are all-visible`;
  return `<p class="laboratory-label">The visibility map: ${said}</p><svg class="laboratory-map" viewBox="0 0 ${across * size} ${Math.ceil(pages.length / across) * size}" role="img" aria-label="${said}">${squares("seen", true)}${squares("spoilt", false)}</svg><p>Filled: all-visible. Hollow: an index-only scan has to look into the page.</p>`;
};

/** What the map and the index-only scan say now. */
async function watched(db) {
  const pages = (await db.query("SELECT all_visible FROM pg_visibility_map('tuples') ORDER BY blkno")).rows;
  const [row] = (await db.query(`EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) ${COUNTING}`)).rows;
  const scan = scanOf(row["QUERY PLAN"][0].Plan);
  const fetched = scan["Heap Fetches"] ?? 0, found = scan["Actual Rows"] * scan["Actual Loops"];
  const seen = pages.filter((page) => page.all_visible).length;
  return { pages, line: [`${seen} of ${pages.length}`, `${formatted(fetched)} of ${formatted(found)}`, `${((100 * fetched) / found).toFixed(1)}\u00a0%`] };
}

// few and short, so that they fit on a phone
const WATCHED = ["after", "updated", "all-visible", "heap fetches", "share"];

async function drawMap(db, history = [["loading", 0]]) {
  const { pages, line } = await watched(db);
  history.at(-1).splice(2, 3, ...line);
  return map(pages) + `<p class="laboratory-label">The scan: <code>${escaped(COUNTING)}</code></p>` + table("Tuples updated, pages all-visible, and rows that the index-only scan fetched from the table", WATCHED, history);
}

const visibility = {
  extensions: ["pg_visibility"],
  kind: "steps",
  setup: [
    "CREATE EXTENSION IF NOT EXISTS pg_visibility",
    "DROP TABLE IF EXISTS tuples",
    "CREATE TABLE tuples (k int, v int, pad text) WITH (fillfactor = 50, autovacuum_enabled = off)",
    `INSERT INTO tuples SELECT n, 1, repeat('x', 155) FROM generate_series(1, ${ROWS_OF_A_PAGE * PAGES}) AS n`,
    "CREATE INDEX tuples_k ON tuples (k)",
    "VACUUM ANALYZE tuples",
    "SET enable_seqscan = off",
    "SET enable_bitmapscan = off",
    "SELECT setseed(0.5)", // the same random rows for every reader
  ],
  controls: [
    { name: "each", label: "Updates for each page, on average", range: [-2, 0.6, 0.1], value: 0, spoken: (at) => (10 ** at).toPrecision(2) },
    { name: "where", label: "Where", options: PLACES, value: "random" },
  ],
  made: ["update", updating],
  statements: [["vacuum", "VACUUM tuples"]],
  draw: drawMap,
  async recorded(db) {
    const history = [["loading", 0]], random = { each: 0, where: "random" };
    const steps = [
      ["one update for each page, at random", updating(random)],
      ["two more for each page", updating({ ...random, each: Math.log10(2) })],
      ["vacuum", "VACUUM tuples"],
      ["one for each page, beside each other", updating({ each: 0, where: "neighbours" })],
    ];
    let shown = await drawMap(db, history), html = map((await watched(db)).pages);
    for (const [name, sql] of steps) {
      history.push([name, changed(await run(db, sql)).updated]);
      shown = await drawMap(db, history);
      html += `<h3>${escaped(name)}</h3>${map((await watched(db)).pages)}`;
    }
    return html + shown.slice(shown.lastIndexOf('<div class="laboratory-table">'));
  },
};

// ---- the planner's switches: which way is the cheapest, over a share of tuples or over memory

/** The plan that PostgreSQL chooses under these settings, with what ran if `analyze`. */
async function plan(db, sql, settings, analyze = false) {
  return db.transaction(async (tx) => {
    await tx.exec(Object.entries(settings).map(([name, value]) => `SET LOCAL ${name} = '${value}';`).join(""));
    const [row] = (await tx.query(`EXPLAIN (${analyze ? "ANALYZE, TIMING OFF, BUFFERS, " : ""}FORMAT JSON) ${sql}`)).rows;
    await tx.rollback();
    return row["QUERY PLAN"][0].Plan;
  });
}

const without = (names) => Object.fromEntries(names.map((name) => [name, "off"]));
const scanOf = (node) => (node.Plans && !node["Relation Name"] ? scanOf(node.Plans[0]) : node);
const joinOf = (node) => (/Join|Nested Loop/.test(node["Node Type"]) || !node.Plans ? node : joinOf(node.Plans[0]));
const nodesOf = (node) => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

const tree = (node) => {
  const about = ["Index Cond", "Recheck Cond", "Filter", "Hash Cond", "Merge Cond", "Join Filter", "Sort Key"].filter((key) => node[key]).map((key) => `${key}: ${node[key]}`);
  const name = [node["Node Type"], node["Index Name"] && `using ${node["Index Name"]}`, node["Relation Name"] && `on ${node["Relation Name"]}`].filter(Boolean).join(" ");
  const cost = `cost ${formatted(node["Startup Cost"])} to ${formatted(node["Total Cost"])}, ${formatted(node["Plan Rows"])} tuples expected`;
  return `<li><b>${escaped(name)}</b><br>${escaped(cost)}${about.map((words) => `<br><code>${escaped(words)}</code>`).join("")}${node.Plans ? `<ul>${node.Plans.map(tree).join("")}</ul>` : ""}</li>`;
};
const chosenTree = (node) => `<p class="laboratory-label">The plan that PostgreSQL chooses</p><ul class="laboratory-plan">${tree(node)}</ul>`;

/** Cost of each way at each place: [{way, at, cost}]. */
async function sweep(db, { ways, places, asked, settings }) {
  const found = [];
  for (const at of places)
    for (const [way, off] of ways) found.push({ way, at, cost: (await plan(db, asked(at), { ...settings(at), ...without(off) }))["Total Cost"] });
  return found;
}

/** The curves as a picture, with a marker at `now`; `ticks` are places with their words. */
function chart(found, now, { words, ticks }) {
  const width = 640, height = 300, left = 62, right = 118, top = 14, bottom = 46, room = 20;
  const logs = (values) => [Math.log10(Math.min(...values)), Math.log10(Math.max(...values))];
  const [first, last] = logs(found.map((one) => one.at)), [low, high] = logs(found.map((one) => one.cost));
  const x = (at) => left + ((Math.log10(at) - first) / (last - first)) * (width - left - right);
  const y = (cost) => height - bottom - ((Math.log10(cost) - low) / (high - low)) * (height - top - bottom);
  const ways = [...new Set(found.map((one) => one.way))];
  const ends = ways.map((way) => y(found.findLast((one) => one.way === way).cost) + 4);
  // names that end together stand below each other, and all above the words of the axis
  const order = ways.map((_, n) => n).sort((a, b) => ends[a] - ends[b]);
  let free = -Infinity, lowest = height - bottom - 2;
  for (const n of order) { ends[n] = Math.max(ends[n], free); free = ends[n] + room; }
  for (const n of order.reverse()) { ends[n] = Math.min(ends[n], lowest); lowest = ends[n] - room; }
  const lines = ways.map((way, n) =>
    `<polyline class="way-${n}" points="${found.filter((one) => one.way === way).map((p) => `${x(p.at).toFixed(1)},${y(p.cost).toFixed(1)}`).join(" ")}"/>` +
    `<text class="way-${n}" x="${width - right + 8}" y="${ends[n].toFixed(1)}">${way}</text>`);
  const marks = ticks.map(([at, said]) => `<text x="${x(at)}" y="${height - bottom + 18}" text-anchor="middle">${said}</text><line class="tick" x1="${x(at)}" x2="${x(at)}" y1="${height - bottom}" y2="${height - bottom + 5}"/>`);
  const decades = Array.from({ length: Math.max(0, Math.floor(high) - Math.ceil(low) + 1) }, (_, n) => 10 ** (Math.ceil(low) + n));
  const values = decades.length > 1 ? decades : [1, 2, 5, 10, 20, 50].map((one) => one * 10 ** Math.floor(low)).filter((one) => Math.log10(one) >= low && Math.log10(one) <= high);
  const levels = values.map((one) => `<text x="${left - 7}" y="${y(one) + 4}" text-anchor="end">${formatted(one)}</text><line class="level" x1="${left}" x2="${width - right}" y1="${y(one)}" y2="${y(one)}"/>`);
  const marker = now ? `<line class="now" x1="${x(now)}" x2="${x(now)}" y1="${top}" y2="${height - bottom}"/>` : "";
  return `<p class="laboratory-label">Estimated cost of each way, in the planner's unit, both axes logarithmic</p><svg class="laboratory-chart" viewBox="0 0 ${width} ${height}" role="img" aria-label="Estimated cost of ${ways.join(", ")} over the ${words}; what is chosen stands beside it">` +
    `${levels.join("")}${marks.join("")}${marker}${lines.join("")}<text x="${(left + width - right) / 2}" y="${height - 6}" text-anchor="middle">${words}</text></svg>`;
}

/** Where the choice changes along the places: rows of a table. */
async function switches(db, places, choose, spoken) {
  const rows = [];
  for (const at of places) {
    const node = await choose(at);
    if (node["Node Type"] !== rows.at(-1)?.[1]) rows.push([spoken(at), node["Node Type"], node["Total Cost"]]);
  }
  return rows;
}

// ---- the optimizer's switch

const TUPLES = 10000;
const WAYS = [
  ["sequential", ["enable_indexscan", "enable_bitmapscan", "enable_indexonlyscan"]],
  ["index", ["enable_seqscan", "enable_bitmapscan"]],
  ["bitmap", ["enable_seqscan", "enable_indexscan", "enable_indexonlyscan"]],
];
const ATTRIBUTES = [["unique1", "in random order on disk"], ["unique2", "in the order of the disk"]];
const SHARES = Array.from({ length: 33 }, (_, n) => 10 ** (-4 + n / 8));
const BOUND = /\b(unique[12])\s*<\s*\d+/i; // where a query says which tuples it wants
// two digits; a number again, as all of them would be 1.0e+2 %
const percent = (share) => `${Number((share * 100).toPrecision(2))} %`;
const OVER_SHARES = { words: "share of tuples that qualify", ticks: [0.0001, 0.001, 0.01, 0.1, 1].map((one) => [one, `${one * 100} %`]) };

const priced = (price) => ({ random_page_cost: Number(price) });
const bounded = (attribute, share) => `${attribute} < ${Math.round(share * TUPLES)}`;

const optimizer = {
  extensions: [],
  kind: "curves",
  setup: [
    "DROP TABLE IF EXISTS tuples",
    // 7919 is prime to the number of tuples, so that unique1 is a permutation
    `CREATE TABLE tuples AS SELECT n * 7919 % ${TUPLES} AS unique1, n AS unique2, repeat('x', 180) AS stringu1 FROM generate_series(0, ${TUPLES - 1}) AS n`,
    "CREATE INDEX tuples_unique1 ON tuples (unique1)",
    "CREATE INDEX tuples_unique2 ON tuples (unique2)",
    "VACUUM ANALYZE tuples",
    "SET max_parallel_workers_per_gather = 0",
  ],
  controls: [
    { name: "attribute", label: "Attribute", options: ATTRIBUTES.map(([one, words]) => [one, `${one}: ${words}`]), value: "unique1" },
    { name: "price", label: "random_page_cost", number: [0.1, 100, 0.1], value: 4 },
    { name: "share", label: "Share of tuples that qualify", range: [-4, 0, 0.05], value: -2, spoken: (at) => percent(10 ** at), along: true },
  ],
  /** The query with the controls' values put in where it says which tuples it wants; another where it doesn't. */
  query({ attribute, share }, sql = "") {
    const wanted = bounded(attribute, 10 ** share);
    return BOUND.test(sql) ? sql.replace(BOUND, wanted) : `SELECT * FROM tuples WHERE ${wanted}`;
  },
  /** What an edited query says of the controls: its own bound, else what the planner expects of it. */
  async read(db, sql, values) {
    const found = BOUND.exec(sql), [attribute] = /unique[12]/i.exec(found?.[0] ?? sql.split(/where/i)[1] ?? "") ?? [];
    const rows = found ? Number(/\d+$/.exec(found[0])[0]) : scanOf(await plan(db, sql, priced(values.price)))["Plan Rows"];
    const share = Math.log10(Math.min(1, Math.max(1e-4, rows / TUPLES)));
    return { ...(attribute ? { attribute: attribute.toLowerCase() } : {}), share };
  },
  at: ({ share }) => 10 ** share,
  async draw(db, sql, { price }) {
    const costs = [];
    for (const [way, off] of WAYS) {
      const forced = await plan(db, sql, { ...priced(price), ...without(off) });
      costs.push([way, scanOf(forced)["Node Type"], forced["Total Cost"]]);
    }
    return chosenTree(await plan(db, sql, priced(price))) + table("What the other ways would cost", ["way asked for", "scan", "estimated cost"], costs);
  },
  sweep(db, sql, { attribute, price }) {
    return sweep(db, { ways: WAYS, places: SHARES, asked: (share) => optimizer.query({ attribute, share: Math.log10(share) }, sql), settings: () => priced(price) });
  },
  chart: (found, now) => chart(found, now, OVER_SHARES),
  async recorded(db) {
    let html = "";
    for (const [attribute, words] of ATTRIBUTES) {
      const found = await optimizer.sweep(db, "", { attribute, price: 4 });
      const chosen = await switches(db, SHARES, async (share) => scanOf(await plan(db, optimizer.query({ attribute, share: Math.log10(share) }), priced(4))), percent);
      html += `<h3>Attribute ${attribute}, ${words}</h3>${optimizer.chart(found)}${table("Where the choice changes", ["from this share of tuples on", "chosen scan", "estimated cost there"], chosen)}`;
    }
    return html;
  },
};

// ---- memory and the join

const JOINED = 20000;
const METHODS = [
  ["hash join", ["enable_mergejoin", "enable_nestloop"]],
  ["merge join", ["enable_hashjoin", "enable_nestloop"]],
  ["nested loop", ["enable_hashjoin", "enable_mergejoin"]],
];
const JOINS = [["b.k", "a.k = b.k: both in the order of the disk"], ["b.u", "a.k = b.u: one in random order"]];
const MEMORIES = Array.from({ length: 25 }, (_, n) => Math.round(64 * 2 ** (n / 2.4))); // kB
const inMemory = (kilobytes) => (kilobytes < 1024 ? `${Math.round(kilobytes)} kB` : `${(kilobytes / 1024).toPrecision(2)} MB`);
const OVER_MEMORY = { words: "work_mem", ticks: [64, 256, 1024, 4096, 16384, 65536].map((one) => [one, inMemory(one)]) };
const given = (kilobytes, multiplier) => ({ work_mem: `${Math.round(kilobytes)}kB`, hash_mem_multiplier: Number(multiplier) });

const memory = {
  extensions: [],
  kind: "curves",
  setup: [
    ...["a", "b"].flatMap((name) => [
      `DROP TABLE IF EXISTS ${name}`,
      `CREATE TABLE ${name} AS SELECT n AS k, n * 7919 % ${JOINED} AS u, repeat('x', 100) AS pad FROM generate_series(0, ${JOINED - 1}) AS n`,
      `CREATE INDEX ${name}_k ON ${name} (k)`,
      `CREATE INDEX ${name}_u ON ${name} (u)`,
      `VACUUM ANALYZE ${name}`,
    ]),
    "SET max_parallel_workers_per_gather = 0",
  ],
  controls: [
    { name: "to", label: "Joined where", options: JOINS, value: "b.k" },
    { name: "multiplier", label: "hash_mem_multiplier", number: [1, 16, 0.5], value: 2 },
    { name: "memory", label: "work_mem", range: [6, 16, 0.1], value: 12, spoken: (at) => inMemory(2 ** at), along: true },
  ],
  query: ({ to }, sql = "") => (/a\.k\s*=\s*b\.[ku]\b/i.test(sql) ? sql.replace(/a\.k\s*=\s*b\.[ku]\b/i, `a.k = ${to}`) : sql || `SELECT * FROM a JOIN b ON a.k = ${to}`),
  async read(db, sql) {
    const [, to] = /a\.k\s*=\s*(b\.[ku])\b/i.exec(sql) ?? [];
    return to ? { to: to.toLowerCase() } : {};
  },
  at: ({ memory: at }) => 2 ** at,
  async draw(db, sql, { memory: at, multiplier }) {
    const rows = [], settings = given(2 ** at, multiplier);
    for (const [way, off] of METHODS) {
      const ran = await plan(db, sql, { ...settings, ...without(off) }, true), nodes = nodesOf(ran);
      const batches = nodes.map((node) => node["Hash Batches"]).filter(Boolean), sorts = nodes.map((node) => node["Sort Method"]).filter(Boolean);
      rows.push([way, joinOf(ran)["Node Type"], ran["Total Cost"], batches.join(", "), sorts.join(", "), ran["Temp Written Blocks"]]);
    }
    return chosenTree(await plan(db, sql, settings)) + table("What each method would cost, and what it did when it ran", ["method asked for", "join", "estimated cost", "batches", "sort", "temporary pages written"], rows);
  },
  sweep: (db, sql, { multiplier }) => sweep(db, { ways: METHODS, places: MEMORIES, asked: () => sql, settings: (at) => given(at, multiplier) }),
  chart: (found, now) => chart(found, now, OVER_MEMORY),
  async recorded(db) {
    let html = "";
    for (const [to, words] of JOINS) {
      const sql = memory.query({ to }), found = await memory.sweep(db, sql, { multiplier: 2 });
      const chosen = await switches(db, MEMORIES, async (at) => joinOf(await plan(db, sql, given(at, 2))), inMemory);
      html += `<h3>${escaped(words)}</h3>${memory.chart(found)}${table("Where the choice changes", ["from this work_mem on", "chosen join", "estimated cost there"], chosen)}`;
    }
    return html;
  },
};

export const laboratories = { hot, optimizer, visibility, memory };

/** A PostgreSQL with a laboratory's relations in it. */
export async function open(PGlite, extensions, name) {
  const { setup, extensions: wanted } = laboratories[name];
  const db = await PGlite.create({ extensions: Object.fromEntries(wanted.map((one) => [one, extensions[one]])) });
  for (const statement of setup) await db.query(statement);
  return db;
}

const tally = async (db) => {
  await db.query("SELECT pg_stat_force_next_flush()");
  return (await db.query("SELECT coalesce(sum(n_tup_ins), 0)::int AS inserted, coalesce(sum(n_tup_upd), 0)::int AS updated, coalesce(sum(n_tup_del), 0)::int AS deleted FROM pg_stat_user_tables")).rows[0];
};

/** Run what a reader typed: its last result and the counters around it, which know of a DO block what its result doesn't. */
export async function run(db, sql) {
  const before = await tally(db), results = await db.exec(sql);
  return { result: results.at(-1) ?? { rows: [], fields: [] }, before, after: await tally(db) };
}

export const changed = ({ before, after }) => Object.fromEntries(Object.keys(after).map((what) => [what, Math.max(0, after[what] - before[what])]));

export const answer = (ran) => {
  const { rows, fields } = ran.result, done = Object.entries(changed(ran)).filter(([, number]) => number);
  const said = done.map(([what, number]) => `${formatted(number)} ${number === 1 ? "tuple was" : "tuples were"} ${what}`).join(", ");
  const shown = fields.length ? table(`Answer, ${formatted(rows.length)} ${rows.length === 1 ? "row" : "rows"}`, fields.map((f) => f.name), rows.slice(0, 20).map((row) => Object.values(row).map((value) => value === null ? null : String(value)))) : "";
  return shown + (said || !shown ? `<p>${said ? `Done: ${said}.` : "Done; no tuple was changed."}</p>` : "");
};
