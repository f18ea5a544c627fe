// Replaces the picture in every .vl-chart by the live chart, in the page's theme and
// width, and adds the chart's table and downloads. The figures are written by
// pgrerun/charts.py; nothing here asks the network for anything.
(() => {
  "use strict";

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // the same options as `_LIGHT` in pgrerun/charts.py
  const face = () =>
    getComputedStyle(document.documentElement).getPropertyValue("--pst-font-family-heading") || "sans-serif";
  const theme = (width) => {
    const text = colour("--pst-color-text-base");
    const muted = colour("--pst-color-text-muted");
    const faint = colour("--chart-grid");
    const page = colour("--pst-color-background");
    return {
      background: "transparent",
      font: face(),
      view: { stroke: null },
      axis: {
        labelColor: muted, titleColor: muted, gridColor: faint, tickColor: faint, domainColor: faint,
        labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal",
      },
      // Vega's own rule lets numbers touch each other where a plot is narrow
      axisXQuantitative: { labelOverlap: "greedy", labelSeparation: 6 },
      legend: {
        labelColor: text, titleColor: text, labelFontSize: 12,
        // two legends stand below each other on a phone, where each takes the width
        ...(width < TWO_PANELS && { layout: { top: STACKED, bottom: STACKED } }),
      },
      header: { labelColor: text, labelFontSize: 12 },
      text: { fill: text, fontSize: 12 },
      bar: { stroke: page, strokeWidth: 1 },
      style: {
        halo: { stroke: page, strokeWidth: 4, strokeJoin: "round", fillOpacity: 0 },
        apart: { stroke: page, strokeWidth: 1 },
      },
    };
  };

  const TWO_PANELS = 560; // pixels of a chart from which on two panels stand beside each other
  const STACKED = { direction: "vertical", anchor: "start", margin: 8 };
  const MARGIN = { left: 5, top: 5, bottom: 5, right: 16 }; // for what ends beyond a narrow plot
  const MOST_FOR_ROWS = 0.45; // of a chart's width, for the names of its rows
  // Pixels of a row's name on a wide page, and of a line of it; of more rows no name is broken.
  const ROW_NAME = 240, LINE = 13, MOST_BROKEN = 12;
  // Pixels of all panels on a phone; what a heading and an axis of its own add to a panel of rows
  // or, at least so high, of lines.
  const PHONE = 600, HEADING = 40, X_TITLE = 40, LEAST_LINES = 90;

  const rowsOf = (spec) => Object.values(spec.datasets ?? {})[0] ?? spec.data?.values ?? [];
  const cell = (row, field) => row[field] ?? "";

  // Vega wraps a legend only where it is told to: as many columns as fit beside the row labels.
  const ruler = document.createElement("canvas").getContext("2d");
  const widest = (lines, weight = "normal") => {
    ruler.font = `${weight} 12px ${face()}`;
    return Math.max(...lines.map((line) => ruler.measureText(line).width));
  };
  const fitLegends = (node, room) => {
    if (node === null || typeof node !== "object") return;
    if (node.legend?.columns && Array.isArray(node.scale?.domain)) {
      const columns = Math.floor(room / (widest(node.scale.domain.map(String)) + 38));
      node.legend.columns = Math.min(Math.max(columns, 1), node.scale.domain.length);
      if (columns < 1) { // nor is a word cut at the edge of a phone
        const broken = node.scale.domain.map((name) => [name, inLines(String(name), room - 38)]);
        node.legend.labelExpr = `(${JSON.stringify(Object.fromEntries(broken))})[datum.label]`;
      }
    }
    Object.values(node).forEach((child) => fitLegends(child, room));
  };
  const labelWidth = (rows) => widest(rows.flatMap((row) => (row.lines ?? "1,000,000").split("\n")));

  // Words as lines that fit into a room.
  const inLines = (words, room, weight) =>
    words.split(" ").reduce((lines, word) => {
      const longer = `${lines.at(-1)} ${word}`;
      if (widest([longer], weight) <= room) return [...lines.slice(0, -1), longer];
      return [...lines, word];
    }, [""]).map((line) => line.trim()).filter(Boolean);

  // Neither does an axis' title shrink with its plot.
  const fitTitles = (node, room, high) => {
    if (node === null || typeof node !== "object") return;
    const { x, y } = node.encoding ?? {};
    if (typeof x?.title === "string") x.title = inLines(x.title, room);
    if (typeof y?.title === "string") y.title = inLines(y.title, high);
    Object.values(node).forEach((child) => fitTitles(child, room, high));
  };

  // A panel's heading doesn't shrink with its panel: broken where it would stick out.
  const fitHeadings = (spec, room) => {
    const row = spec.facet?.row ?? spec.facet; // below each other, or two beside each other
    if (!row?.header) return;
    const broken = (words) => inLines(words, room, "bold").join("\n");
    for (const one of rowsOf(spec)) one[row.field] = broken(String(one[row.field]));
    if (Array.isArray(row.sort)) row.sort = row.sort.map(broken);
    row.header.labelExpr = "split(datum.label, '\\n')";
  };

  // The height at which no name of a row covers the next one.
  const rowsHeight = (names) => {
    const lines = names.map((name) => name.split("\n").length);
    const most = Math.max(1, ...lines.slice(1).map((one, at) => (one + lines[at]) / 2));
    return names.length * (LINE * most + 8);
  };

  // Nor do the names of rows: on a wide page they take the room that there is, on a narrow one
  // three lines where they would take most of the width. Rows are as high as their names.
  const fitRows = (spec, width) => {
    const panel = spec.spec ?? spec;
    const names = [...new Set(rowsOf(spec).map((row) => row.lines).filter(Boolean))];
    const dense = names.length > MOST_BROKEN && panel.height < 2 * LINE * names.length;
    if (!names.length || dense || !panel.height) return;
    const wide = width >= TWO_PANELS;
    const tooWide = labelWidth(rowsOf(spec)) > MOST_FOR_ROWS * width;
    const inThreeLines = (name) => {
      let room = MOST_FOR_ROWS * width;
      while (inLines(name, room).length > 3) room += 10;
      return inLines(name, room).join("\n");
    };
    const fitted = (name) => {
      const most = wide ? ROW_NAME : MOST_FOR_ROWS * width;
      const whole = name.replaceAll("-\n", "-").replaceAll("\n", " "); // broken after a hyphen, too
      if (wide || whole !== name) return inLines(whole, most).join("\n");
      return tooWide ? inThreeLines(name) : name;
    };
    const broken = new Map(names.map((name) => [name, fitted(name)]));
    panel.height = Math.max(panel.height, rowsHeight([...broken.values()]));
    for (const row of rowsOf(spec)) row.lines = broken.get(row.lines) ?? row.lines;
    const sorted = (node) => {
      if (node === null || typeof node !== "object") return;
      if (node.field === "lines" && Array.isArray(node.sort)) {
        node.sort = node.sort.map((name) => broken.get(name) ?? name);
      }
      Object.values(node).forEach(sorted);
    };
    sorted(spec.spec ?? spec.layer ?? spec);
  };

  // Of a panel of lines that is lower than this, the grid is all that is seen.
  const fitLines = (spec) => {
    const [row] = rowsOf(spec);
    const lines = spec.facet && row && !row.lines && "x" in row;
    if (lines) spec.spec.height = Math.max(spec.spec.height, LEAST_LINES);
  };

  // Panels that stood beside each other stand below each other on a phone, each as high as leaves
  // the chart on one screen, if its rows and lines can be told apart then.
  const fitPanels = (spec) => {
    const rows = rowsOf(spec);
    const panels = new Set(rows.map((row) => row[spec.facet.field])).size;
    const names = [...new Set(rows.map((row) => row.lines).filter(Boolean))];
    const own = spec.resolve?.scale?.x === "independent";
    const fair = PHONE / panels - HEADING - (own ? X_TITLE : 0);
    const least = names.length ? rowsHeight(names) : LEAST_LINES;
    spec.columns = 1;
    if (names.length || "x" in rows[0]) spec.spec.height = Math.min(spec.spec.height, Math.max(fair, least));
  };

  // What a mark says: nothing of what its datum lacks, a printed number's interval for one.
  const said = (value, clean) => {
    const lines = Object.entries(value).filter(([, one]) => !["", "null", "undefined", "NaN"].includes(String(one)));
    const row = ([key, one]) => `<tr><td class="key">${clean(key)}</td><td class="value">${clean(String(one))}</td></tr>`;
    return `<table>${lines.map(row).join("")}</table>`;
  };

  const csv = (columns, rows) => {
    const quote = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : value);
    const lines = [columns.map((column) => quote(column.title))];
    for (const row of rows) lines.push(columns.map((column) => quote(cell(row, column.field))));
    return lines.map((line) => line.join(",")).join("\r\n") + "\r\n";
  };

  const table = (columns, rows, caption) => {
    const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
    const element = document.createElement("table");
    element.className = "table";
    element.createCaption().textContent = caption;
    const head = element.createTHead().insertRow();
    for (const column of columns) {
      const th = head.appendChild(document.createElement("th"));
      th.scope = "col";
      th.textContent = column.title;
    }
    const body = element.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      for (const column of columns) {
        const value = cell(row, column.field);
        const td = line.insertCell();
        td.textContent = typeof value === "number" ? number.format(value) : value;
        if (typeof value === "number") td.className = "number";
      }
    }
    return element;
  };

  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const button = (label, about, action) => {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = label;
    element.setAttribute("aria-label", `${label}: ${about}`);
    element.addEventListener("click", () => action(element));
    return element;
  };

  class Chart {
    constructor(place) {
      this.place = place;
      this.figure = place.closest(".vl-figure") ?? place.parentElement;
      this.spec = JSON.parse(this.figure.querySelector("script.vl-spec").textContent);
      this.meta = this.spec.usermeta ?? {};
      this.width = 0;
      this.words = place.querySelector("img")?.alt ?? "";
      this.turn = Promise.resolve();
      if (this.meta.columns) this.addTools();
    }

    // One drawing at a time: theme and width may change while one is under way. What can't be
    // seen has no width yet (folded, in a tab): it is drawn when it has one.
    draw() {
      if (!this.place.clientWidth) return this.turn;
      this.turn = this.turn.then(() => this.embed()).catch((error) => {
        this.place.classList.add("vl-failed");
        console.error(error);
      });
      return this.turn;
    }

    async embed() {
      if (!this.place.clientWidth) return; // folded meanwhile
      const live = document.createElement("div");
      live.className = "vl-live";
      // One image with the picture's words, as before.
      live.setAttribute("role", "img");
      live.setAttribute("aria-label", this.words);
      delete this.place.dataset.drawn;
      this.width = this.place.clientWidth;
      const old = this.place.querySelector(".vl-live");
      this.place.append(live);
      if (old) old.hidden = true;
      const spec = structuredClone(this.spec);
      fitRows(spec, this.width);
      fitLines(spec);
      const room = this.width - labelWidth(rowsOf(spec));
      if (spec.columns && this.width < TWO_PANELS) fitPanels(spec);
      const across = spec.columns ?? 1;
      if (!spec.spec && this.width < TWO_PANELS) spec.padding = MARGIN;
      fitLegends(spec.spec ?? spec.layer ?? spec, room);
      fitHeadings(spec, (room - 20) / across);
      const high = (spec.spec ?? spec).height ?? Infinity;
      fitTitles(spec.spec ?? spec.layer ?? spec, Math.max((room - 20) / across, 120), Math.max(high, 80));
      const tooltip = { theme: "custom", formatTooltip: said };
      const options = { actions: false, renderer: "svg", config: theme(this.width), tooltip };
      this.result = await vegaEmbed(live, spec, options);
      // Panels can't fill a container: see how much too wide they came out, and draw again.
      // Words that stick out don't shrink with the panel, so one correction may not do.
      for (let attempt = 0; spec.spec && attempt < 4; attempt++) {
        const excess = live.querySelector("svg").getBoundingClientRect().width - this.width;
        if (excess <= 0 && excess > -4) break;
        spec.spec.width = Math.max(80, Math.floor(spec.spec.width - excess / across - 1));
        this.result.finalize();
        this.result = await vegaEmbed(live, spec, options);
      }
      // Vega gives each mark's container a role and not always a name
      live.querySelector("svg").setAttribute("aria-hidden", "true");
      this.place.querySelector("img")?.remove();
      if (old) old.remove();
      this.place.dataset.drawn = "true";
    }

    // To the chart itself, and of a chapter's chart to the page that asks its rows.
    links(name, question) {
      const link = (label, href) => {
        const element = document.createElement("a");
        element.textContent = label;
        element.href = href;
        element.setAttribute("aria-label", `${label}: ${question}`);
        return element;
      };
      const found = this.figure.id ? [link("Link", `#${this.figure.id}`)] : [];
      const chapter = location.pathname.match(/\/results\/(\w+)\.html$/);
      if (chapter) found.push(link("Query these rows", `../ask.html?chart=${chapter[1]}/${name}`));
      return found;
    }

    // What shows the chart on somebody's page: `start` leaves nothing but it where it is asked to.
    embedded(question) {
      const place = new URL(location.href);
      [place.search, place.hash] = [`?embed=${this.figure.id}`, ""];
      const code = document.createElement("pre");
      const title = question.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
      const height = Math.ceil(this.figure.getBoundingClientRect().height);
      code.textContent = `<iframe src="${place}" title="${title}" width="100%" height="${height}"></iframe>`;
      return code;
    }

    addTools() {
      const { columns, name, question } = this.meta;
      const rows = rowsOf(this.spec);
      const tools = document.createElement("div");
      tools.className = "vl-tools";
      const unfolding = (label, made) => {
        let shown = null;
        const unfolds = button(label, question, (pressed) => {
          if (!shown) {
            shown = document.createElement("div");
            shown.className = "vl-table";
            shown.tabIndex = 0;
            shown.append(made());
            tools.after(shown);
          } else {
            shown.hidden = !shown.hidden;
          }
          pressed.setAttribute("aria-expanded", String(!shown.hidden));
        });
        unfolds.setAttribute("aria-expanded", "false");
        return unfolds;
      };
      tools.append(
        unfolding("Table", () => table(columns, rows, question)),
        button("Data (CSV)", question, () => save(`${name}.csv`, "text/csv", csv(columns, rows))),
        button("Picture (SVG)", question, async () =>
          save(`${name}.svg`, "image/svg+xml", await this.result.view.toSVG())),
      );
      if (this.figure.id) tools.append(unfolding("Embed", () => this.embedded(question)));
      tools.append(...this.links(name, question));
      this.figure.append(tools);
    }
  }

  const start = () => {
    const alone = document.getElementById(new URLSearchParams(location.search).get("embed") ?? "");
    if (alone?.matches(".vl-figure")) {
      alone.dataset.alone = "";
      document.body.replaceChildren(alone);
    }
    const charts = [...document.querySelectorAll(".vl-chart")].map((place) => new Chart(place));
    charts.forEach((chart) => chart.draw());
    new MutationObserver(() => charts.forEach((chart) => chart.draw())).observe(document.documentElement, {
      attributes: true,
      attributeFilter: ["data-theme"],
    });
    // unfolding, a tab, a window that is resized: each gives a chart another width
    const fit = (chart) => {
      const width = chart.place.clientWidth;
      if (width && Math.abs(chart.width - width) > 2) chart.draw();
    };
    const resized = new ResizeObserver((entries) => {
      for (const { target } of entries) fit(charts.find((one) => one.place === target));
    });
    charts.forEach((chart) => resized.observe(chart.place));
  };

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
