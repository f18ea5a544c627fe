// The page "Ask the record": PostgreSQL in the page with every row of the record, started when the
// reader asks for it. Each SQL block of the page gets a button; ?chart=CHAPTER/NAME asks what a
// chart draws, ?sql=... anything.
(() => {
  "use strict";

  const MOST = 200; // rows of an answer that are shown
  const root = document.querySelector(".laboratory.ask");
  const bar = root.querySelector(".laboratory-start");
  const asked = new URLSearchParams(location.search);

  const element = (name, text, more = {}) => Object.assign(document.createElement(name), { textContent: text }, more);

  async function load(say) {
    const folder = new URL(root.dataset.record, document.baseURI);
    const { PGlite } = await import(new URL("index.js", new URL(root.dataset.pglite, document.baseURI)));
    const listing = await (await fetch(new URL("tables.json", folder))).json();
    const db = await PGlite.create();
    await db.exec(listing.functions);
    for (const schema of new Set(listing.tables.map((table) => table.schema))) await db.exec(`CREATE SCHEMA ${schema}`);
    let done = 0;
    for (const table of listing.tables) {
      say(`${++done} of ${listing.tables.length} tables`);
      await db.exec(table.statement);
      const blob = await (await fetch(new URL(table.file, folder))).blob();
      await db.query(`COPY ${table.schema}."${table.name}" FROM '/dev/blob' WITH (FORMAT csv, HEADER)`, [], { blob });
    }
    await db.exec("SET default_transaction_read_only = on");
    return { db, listing };
  }

  const shownValue = (value) => {
    if (value === null) return "";
    if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(6)));
    return typeof value === "object" ? JSON.stringify(value) : String(value);
  };

  const tableOf = ({ fields, rows }) => {
    const table = element("table", "", { className: "table" });
    const head = table.createTHead().insertRow();
    for (const { name } of fields) head.append(element("th", name, { scope: "col" }));
    const body = table.createTBody();
    for (const row of rows.slice(0, MOST)) {
      const line = body.insertRow();
      for (const value of row) line.insertCell().textContent = shownValue(value);
    }
    return table;
  };

  function open({ db, listing }) {
    const form = element("form", "");
    const label = element("label", "A query in SQL ");
    const text = element("textarea", "", { rows: 5, spellcheck: false });
    const submit = element("button", "Ask", { type: "submit" });
    const said = element("p", "");
    said.setAttribute("role", "status");
    const shown = element("div", "", { className: "vl-table", tabIndex: 0 });
    label.append(text);
    form.append(label, submit, element("span", " or Ctrl+Enter", { className: "laboratory-keys" }));
    bar.after(form, said, shown);

    const ask = async (sql) => {
      text.value = sql;
      shown.replaceChildren();
      said.className = "";
      try {
        const answer = await db.query(sql, [], { rowMode: "array" });
        const cut = answer.rows.length > MOST ? `; the first ${MOST} are shown` : "";
        said.textContent = `${answer.rows.length} rows${cut}`;
        shown.append(tableOf(answer));
      } catch (error) {
        said.textContent = `PostgreSQL says: ${error.message}`;
        said.className = "laboratory-error";
      }
    };
    form.addEventListener("submit", (event) => { event.preventDefault(); ask(text.value); });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
    });

    for (const block of document.querySelectorAll(".highlight-sql")) {
      const example = block.querySelector("pre").textContent.trim();
      const button = element("button", "Ask this", { type: "button", className: "ask-this" });
      button.addEventListener("click", () => { ask(example); form.scrollIntoView({ block: "center" }); });
      block.after(button);
    }

    const chart = asked.get("chart");
    if (chart) {
      const schema = chart.split("/")[0];
      if (listing.charts[chart]) return ask(listing.charts[chart]);
      return ask(`SELECT table_name, string_agg(column_name, ', ' ORDER BY ordinal_position) AS columns\nFROM information_schema.columns WHERE table_schema = '${schema.replace(/\W/g, "")}' GROUP BY 1 ORDER BY 1`);
    }
    return ask(asked.get("sql") ?? "SELECT table_schema, count(*) AS tables\nFROM information_schema.tables\nWHERE table_schema NOT IN ('pg_catalog', 'information_schema')\nGROUP BY 1 ORDER BY 1");
  }

  if (location.protocol === "file:" || typeof WebAssembly === "undefined") {
    bar.textContent = root.dataset.onFile;
    return;
  }
  const button = element("button", root.dataset.start, { type: "button" });
  bar.replaceChildren(button);
  const start = async () => {
    button.disabled = true;
    try {
      const ready = await load((words) => { button.textContent = `Reading ${words}`; });
      bar.textContent = "What you ask stays in this page.";
      root.dataset.state = "running";
      await open(ready);
    } catch (error) {
      button.disabled = false;
      button.textContent = root.dataset.start;
      bar.append(element("p", `PostgreSQL can't start here: ${error.message}`, { className: "laboratory-error" }));
    }
  };
  button.addEventListener("click", start);
  if (asked.has("chart") || asked.has("sql")) start();
})();
