// A laboratory in a page: PostgreSQL, compiled to WebAssembly, started when the reader asks
// for it. A classic script, so that a page opened from a file loads it without complaint;
// modules are fetched on click, and only where a browser allows that.
(() => {
  const answer = (place, html) => { place.innerHTML = html; };
  const element = (html) => { const box = document.createElement("div"); box.innerHTML = html.trim(); return box.firstElementChild; };
  const failed = (place, error) => { place.textContent = `PostgreSQL says: ${error.message}`; place.className = "laboratory-error"; };

  async function started(root) {
    const folder = new URL(root.dataset.pglite, document.baseURI);
    const [{ PGlite }, { pageinspect }, experiments] = await Promise.all([import(new URL("index.js", folder)), import(new URL("contrib/pageinspect.js", folder)), import(new URL("experiments.mjs", folder))]);
    const name = root.dataset.laboratory;
    const open = () => experiments.open(PGlite, { pageinspect }, name);
    return { experiments, laboratory: experiments.laboratories[name], db: await open() };
  }

  const pages = {
    async hot(live, { experiments, laboratory, db }) {
      live.innerHTML =
        `<div class="laboratory-buttons">${laboratory.statements.map(([name], n) => `<button type="button" data-n="${n}">${name}</button>`).join("")}<button type="button" data-again>start again</button></div>` +
        `<form><label>Any statement<textarea rows="2" spellcheck="false">${laboratory.statements[0][1]}</textarea></label><button>Run</button></form><div role="status"></div><div class="laboratory-shown"></div>`;
      const [said, shown] = live.querySelectorAll('[role="status"], .laboratory-shown');
      const text = live.querySelector("textarea");
      const run = async (statements) => {
        said.className = "";
        try {
          let done;
          for (const statement of statements) done = await db.query(statement);
          answer(said, experiments.answer(done));
        } catch (error) {
          failed(said, error);
        }
        try { answer(shown, await laboratory.draw(db)); } catch (error) { failed(shown, error); }
      };
      live.addEventListener("click", (event) => {
        const { n, again } = event.target.dataset;
        if (n !== undefined) { text.value = laboratory.statements[n][1]; run([text.value]); }
        if (again !== undefined) run(laboratory.setup);
      });
      live.querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); run([text.value]); });
      answer(shown, await laboratory.draw(db));
    },

    async optimizer(live, { experiments, laboratory, db }) {
      const options = laboratory.attributes.map(([attribute, words]) => `<option value="${attribute}">${attribute}: ${words}</option>`).join("");
      live.innerHTML =
        `<label>Attribute <select>${options}</select></label>` +
        `<label>Share of tuples that qualify: <output></output><input type="range" min="-4" max="0" step="0.05" value="-2"></label>` +
        `<label>random_page_cost <input type="number" min="0.1" max="100" step="0.1" value="4"></label>` +
        `<form><label>The query; edit it as you like<textarea rows="2" spellcheck="false"></textarea></label><button>Explain</button></form><div role="status"></div><div class="laboratory-shown"></div><div class="laboratory-curve"></div>`;
      const [select, slider, price, text, output, said, shown, curve] = ["select", "[type=range]", "[type=number]", "textarea", "output", '[role="status"]', ".laboratory-shown", ".laboratory-curve"].map((what) => live.querySelector(what));
      let sweeping = "", found = [], turn = Promise.resolve();
      const share = () => 10 ** Number(slider.value);
      const show = async (sql) => {
        said.className = "";
        said.textContent = "";
        try {
          answer(shown, await laboratory.draw(db, { sql, randomPageCost: price.value }));
          const wanted = `${select.value} ${price.value}`;
          if (wanted !== sweeping) { found = await laboratory.sweep(db, select.value, price.value); sweeping = wanted; }
          answer(curve, laboratory.chart(found, share()));
        } catch (error) {
          failed(said, error);
        }
      };
      // one after the other: a drag asks faster than PostgreSQL answers, and only the last question counts
      let asked = 0;
      const follow = () => {
        output.textContent = `${(share() * 100).toPrecision(2)} %`;
        text.value = experiments.query(select.value, share());
        const mine = ++asked;
        turn = turn.then(() => (mine === asked ? show(text.value) : undefined));
        return turn;
      };
      for (const control of [select, slider, price]) control.addEventListener("input", follow);
      live.querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); show(text.value); });
      await follow();
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
        await pages[root.dataset.laboratory](live, ready);
        bar.textContent = root.dataset.running;
        root.querySelector(".laboratory-recorded").hidden = true;
        root.dataset.state = "running";
      } catch (error) {
        live.remove();
        button.disabled = false;
        button.textContent = root.dataset.start;
        failed(bar.appendChild(document.createElement("p")), error);
      }
    });
  }
})();
