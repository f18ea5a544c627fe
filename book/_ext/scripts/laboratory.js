// A laboratory in a page: PostgreSQL, compiled to WebAssembly, started when the reader asks
// for it. A classic script, so that a page opened from a file loads it without complaint;
// modules are fetched on click, and only where a browser allows that.
(() => {
  const answer = (place, html) => { place.innerHTML = html; };
  const element = (html) => { const box = document.createElement("div"); box.innerHTML = html.trim(); return box.firstElementChild; };
  const failed = (place, error) => { place.textContent = `PostgreSQL says: ${error.message}`; place.className = "laboratory-error"; };

  async function started(root) {
    const folder = new URL(root.dataset.pglite, document.baseURI);
    const from = (file) => import(new URL(file, folder));
    const [{ PGlite }, { pageinspect }, { pg_visibility }, experiments] = await Promise.all([from("index.js"), from("contrib/pageinspect.js"), from("contrib/pg_visibility.js"), from("experiments.mjs")]);
    const name = root.dataset.laboratory;
    return { experiments, laboratory: experiments.laboratories[name], db: await experiments.open(PGlite, { pageinspect, pg_visibility }, name) };
  }

  // ---- controls: one element for each that a laboratory names, and their values

  const control = ({ name, label, options, range, number, value }) => {
    if (options) return `<label>${label} <select data-name="${name}">${options.map(([one, words]) => `<option value="${one}"${one === value ? " selected" : ""}>${words}</option>`).join("")}</select></label>`;
    const [min, max, step] = range ?? number;
    return `<label${range ? ' class="laboratory-slider"' : ""}>${label}${range ? ": <output></output>" : ""} <input data-name="${name}" type="${range ? "range" : "number"}" min="${min}" max="${max}" step="${range ? "any" : step}" value="${value}" data-step="${step}"></label>`;
  };

  class Controls {
    constructor(live, wanted, changed) {
      this.live = live;
      this.wanted = wanted;
      this.values = Object.fromEntries(wanted.map(({ name, value }) => [name, value]));
      for (const one of wanted) {
        const input = this.input(one.name);
        input.addEventListener("input", () => {
          if (input.value === "") return; // a number that is being typed
          if (input.validity.rangeUnderflow || input.validity.rangeOverflow) return input.reportValidity(); // and says so
          this.values[one.name] = one.options ? input.value : Number(input.value);
          this.say();
          changed(one);
        });
        // any value may be shown, but a key moves by a step
        if (one.range) input.addEventListener("keydown", (event) => {
          const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
          if (!way) return;
          event.preventDefault();
          input.value = String(Number(input.value) + way * Number(input.dataset.step));
          input.dispatchEvent(new Event("input", { bubbles: true }));
        });
      }
      this.say();
    }
    input(name) { return this.live.querySelector(`[data-name="${name}"]`); }
    /** Show other values, which a query has said. */
    put(values) {
      Object.assign(this.values, values);
      for (const [name, value] of Object.entries(values)) this.input(name).value = String(value);
      this.say();
    }
    say() {
      for (const { name, range, spoken } of this.wanted) {
        if (!range) continue;
        const input = this.input(name), said = spoken(this.values[name]);
        input.closest("label").querySelector("output").textContent = said;
        input.setAttribute("aria-valuetext", said);
      }
    }
  }

  const typed = (live, submit) => {
    const form = live.querySelector("form"), text = form.querySelector("textarea");
    form.addEventListener("submit", (event) => { event.preventDefault(); submit(text.value); });
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
    });
    return text;
  };
  const editor = (words, doing, sql = "") => `<form><label>${words}<textarea rows="2" spellcheck="false">${sql}</textarea></label><button>${doing}</button> <span class="laboratory-keys">or Ctrl+Enter</span></form>`;

  const pages = {
    // statements one after the other, and what they leave
    async steps(live, { experiments, laboratory, db }) {
      const { statements, controls = [], made } = laboratory;
      const all = made ? [[made[0], ""], ...statements] : statements;
      live.innerHTML =
        controls.map(control).join("") +
        `<div class="laboratory-buttons">${all.map(([name], n) => `<button type="button" data-n="${n}">${name}</button>`).join("")}<button type="button" data-again>start again</button></div>` +
        `${editor("Any statement", "Run", made ? "" : all[0][1])}<div role="status"></div><div class="laboratory-shown"></div>`;
      const [said, shown] = live.querySelectorAll('[role="status"], .laboratory-shown');
      let history = [["loading", 0]];
      const follow = async (name, action) => {
        said.className = "";
        try {
          const ran = await action();
          answer(said, ran ? experiments.answer(ran) : "<p>As loaded.</p>");
          if (ran) history.push([name, experiments.changed(ran).updated]);
        } catch (error) {
          failed(said, error);
        }
        try { answer(shown, await laboratory.draw(db, history)); } catch (error) { failed(shown, error); }
      };
      const name = (sql) => all.find(([, one]) => one === sql)?.[0] ?? (sql.length > 40 ? `${sql.slice(0, 39)}…` : sql);
      const run = (sql, said = name(sql)) => follow(said, () => experiments.run(db, sql));
      const text = typed(live, (sql) => run(sql));
      const wanted = new Controls(live, controls, () => { text.value = made[1](wanted.values); });
      if (made) text.value = made[1](wanted.values);
      live.addEventListener("click", (event) => {
        const { n, again } = event.target.dataset;
        if (n !== undefined) { text.value = made && n === "0" ? made[1](wanted.values) : all[n][1]; run(text.value, all[n][0]); }
        if (again !== undefined) {
          history = [["loading", 0]];
          follow("loading", async () => { for (const statement of laboratory.setup) await db.query(statement); });
        }
      });
      answer(shown, await laboratory.draw(db, history));
    },

    // a query, a slider and the cost of each way along it
    async curves(live, { laboratory, db }) {
      const { controls } = laboratory;
      live.innerHTML =
        `<div class="laboratory-controls">${controls.map(control).join("")}</div><div class="laboratory-curve"></div>` +
        `${editor("The query; edit it as you like", "Explain")}<div role="status"></div><div class="laboratory-shown"></div>`;
      const [curve, said, shown] = [".laboratory-curve", '[role="status"]', ".laboratory-shown"].map((what) => live.querySelector(what));
      let swept = "", found = [], turn = Promise.resolve(), asked = 0;
      const show = async (sql) => {
        said.className = "";
        said.textContent = "";
        try {
          const others = controls.filter((one) => !one.along).map((one) => wanted.values[one.name]);
          const fixed = { ...wanted.values }, along = controls.filter((one) => one.along).map((one) => one.name);
          const family = JSON.stringify([others, laboratory.query({ ...fixed, ...Object.fromEntries(along.map((one) => [one, 0])) }, sql)]);
          answer(shown, await laboratory.draw(db, sql, fixed));
          if (family !== swept) { found = await laboratory.sweep(db, sql, fixed); swept = family; }
          answer(curve, laboratory.chart(found, laboratory.at(fixed)));
        } catch (error) {
          failed(said, error);
        }
      };
      // one after the other: a drag asks faster than PostgreSQL answers, and only the last question counts
      const soon = (before = async () => {}) => {
        const mine = ++asked;
        turn = turn.then(async () => {
          if (mine !== asked) return;
          try { await before(); } catch (error) { failed(said, error); return; }
          await show(text.value);
        });
        return turn;
      };
      const text = typed(live, (sql) => soon(async () => wanted.put(await laboratory.read(db, sql, wanted.values))));
      // a setting leaves the query as it is; what the query says is put into it
      const wanted = new Controls(live, controls, (one) => {
        if (!one.number) text.value = laboratory.query(wanted.values, text.value);
        soon();
      });
      text.value = laboratory.query(wanted.values);
      await soon();
    },
  };

  for (const root of document.querySelectorAll(".laboratory[data-pglite]")) {
    const bar = root.querySelector(".laboratory-start");
    if (location.protocol === "file:" || typeof WebAssembly === "undefined") {
      bar.textContent = location.protocol === "file:" ? root.dataset.onFile : root.dataset.onOld;
      continue;
    }
    const button = element(`<button type="button">${root.dataset.start}</button>`);
    bar.replaceChildren(button);
    button.addEventListener("click", async () => {
      button.disabled = true;
      button.textContent = root.dataset.starting;
      const live = element('<div class="laboratory-live"></div>');
      try {
        const ready = await started(root);
        bar.after(live);
        await pages[ready.laboratory.kind](live, ready);
        // where the reader was, unless they have gone elsewhere meanwhile
        const waited = [document.body, button].includes(document.activeElement);
        bar.textContent = root.dataset.running;
        root.querySelector(".laboratory-recorded").hidden = true;
        root.dataset.state = "running";
        if (waited) live.querySelector("select, input, button, textarea").focus({ preventScroll: true });
      } catch (error) {
        live.remove();
        button.disabled = false;
        button.textContent = root.dataset.start;
        failed(bar.appendChild(document.createElement("p")), error);
      }
    });
  }
})();
