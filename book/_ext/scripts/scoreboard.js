// Filters and sorts the scoreboard's tables, which are complete without this script. The choice
// stands in the address (?verdict=reversed&sort=document), so that it can be linked to.
// Where nothing is asked for, each table begins with its headline claims and a button for the rest.
(() => {
  "use strict";

  const FIRST = 3; // rows of a table without headline claims
  const COLUMNS = { claim: 0, document: 0, "": 0, verdict: 4, basis: 4 }; // where a key stands
  const board = document.querySelector(".scoreboard");
  const form = board.querySelector("form");
  const shown = form.querySelector(".shown");
  const { sort, order, all } = form.elements;
  const chapters = [...board.querySelectorAll(".group")];
  const rows = [...board.querySelectorAll("tbody tr")];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const claimsOf = new Map(chapters.map((one) => [one, [...one.querySelectorAll("tbody tr")]]));
  let groups = chapters;
  let target = null; // what the address leads to, until something else is asked for

  const group = (words, its) => {
    const made = chapters[0].cloneNode(true);
    made.removeAttribute("id");
    made.classList.remove("opened");
    made.querySelector("caption").textContent = words;
    made.querySelector("tbody").replaceChildren(...its);
    return made;
  };

  const grouped = () => {
    const key = sort.value;
    if (!key) {
      if (groups !== chapters) for (const [one, its] of claimsOf) one.querySelector("tbody").replaceChildren(...its);
      return chapters;
    }
    if (key === "claim") {
      const sorted = [...rows].sort((a, b) => a.id.localeCompare(b.id));
      return [group("All claims", order.value ? sorted.reverse() : sorted)];
    }
    const made = [...form.elements[key].options].slice(1)
      .map(({ value, text }) => [text, rows.filter((row) => row.dataset[key] === value)])
      .filter(([, its]) => its.length)
      .map(([text, its]) => group(text, its));
    return order.value ? made.reverse() : made;
  };

  const arrange = () => {
    const before = groups;
    groups = grouped();
    if (groups !== before) {
      for (const one of before) one.remove();
      board.append(...groups);
    }
    const direction = order.value || "ascending";
    for (const one of groups) {
      for (const head of one.querySelectorAll("thead th")) head.removeAttribute("aria-sort");
      const said = sort.value === "claim" || sort.value === "verdict" ? direction : "other";
      one.querySelectorAll("thead th")[COLUMNS[sort.value]].setAttribute("aria-sort", said);
    }
  };

  const apply = () => {
    const wanted = [...new FormData(form)].filter(([, value]) => value.trim());
    const words = form.elements.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const exact = wanted.filter(([name]) => !["search", "sort", "order", "all"].includes(name));
    const fits = (row) =>
      exact.every(([name, value]) => row.dataset[name] === value || (name === "verdict" && row.dataset.word === value)) && words.every((word) => texts.get(row).includes(word));
    let count = 0;
    for (const one of groups) {
      const found = [...one.querySelectorAll("tbody tr")].filter((row) => fits(row) || row === target || one === target);
      const headline = found.filter((row) => row.dataset.headline);
      const whole = exact.length || words.length || all.checked || one.classList.contains("opened") || one === target;
      const first = new Set(whole ? found : headline.length ? headline : found.slice(0, FIRST)).add(target);
      for (const row of one.querySelectorAll("tbody tr")) {
        row.hidden = !(first.has(row) && found.includes(row));
        row.classList.toggle("marked", row === target);
        count += !row.hidden;
      }
      one.hidden = !found.length;
      const more = one.querySelector(".more");
      more.hidden = found.every((row) => !row.hidden);
      more.textContent = `Show all ${found.length} claims`;
    }
    shown.textContent = `${count} of ${rows.length} claims shown`;
    return wanted;
  };

  const remember = (wanted) => {
    const query = new URLSearchParams(wanted).toString();
    try {
      history.replaceState(null, "", query ? `?${query}` : location.pathname);
    } catch {
      // browsers refuse this for a page opened from a folder
    }
  };

  // A claim or chapter that is linked to is shown, whatever is filtered, and however it is sorted.
  const reveal = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    if (sort.value && chapters.some((one) => one.id === id)) {
      sort.value = "";
      arrange();
    }
    target = document.getElementById(id);
    apply();
    target?.scrollIntoView();
  };

  for (const one of chapters) {
    for (const name of ["claim", "verdict"]) {
      const head = one.querySelectorAll("thead th")[COLUMNS[name]];
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
      button.dataset.sort = name;
      head.replaceChildren(button);
    }
    one.append(Object.assign(document.createElement("button"), { type: "button", className: "more" }));
  }
  board.addEventListener("click", ({ target: pressed }) => {
    const key = pressed.dataset.sort;
    if (key) {
      order.value = sort.value === key && !order.value ? "descending" : "";
      sort.value = key;
      arrange();
      remember(apply());
      board.querySelector(`.group:not([hidden]) [data-sort="${key}"]`)?.focus();
    } else if (pressed.classList.contains("more")) {
      pressed.parentElement.classList.add("opened");
      apply();
    }
  });
  for (const [name, value] of new URLSearchParams(location.search)) {
    const field = form.elements[name];
    if (field?.type === "checkbox") field.checked = value === field.value;
    else if (field) field.value = value;
  }
  form.addEventListener("input", ({ target: field }) => {
    target = null;
    if (field === sort) {
      order.value = "";
      arrange();
    }
    remember(apply());
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", reveal);
  form.hidden = false;
  arrange();
  reveal();
})();
