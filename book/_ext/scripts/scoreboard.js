// Filters the scoreboard's table, which is complete without this script. The choice
// stands in the address (?verdict=reversed&chapter=hot), so that it can be linked to.
(() => {
  "use strict";

  const board = document.querySelector(".scoreboard");
  const form = board.querySelector("form");
  const shown = form.querySelector(".shown");
  const rows = [...board.querySelectorAll("tbody tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());

  const apply = () => {
    const wanted = [...new FormData(form)].filter(([, value]) => value.trim());
    const words = form.elements.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const exact = wanted.filter(([name]) => name !== "search");
    let count = 0;
    rows.forEach((row, number) => {
      const fits =
        exact.every(([name, value]) => row.dataset[name] === value || (name === "verdict" && row.dataset.word === value)) && words.every((word) => texts[number].includes(word));
      row.hidden = !fits;
      count += fits;
    });
    shown.textContent = `${count} of ${rows.length} claims`;
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

  for (const [name, value] of new URLSearchParams(location.search)) {
    const field = form.elements[name];
    if (field?.type === "checkbox") field.checked = value === field.value;
    else if (field) field.value = value;
  }
  form.addEventListener("input", () => remember(apply()));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  apply();
  // A claim that is linked to is shown, whatever is filtered.
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
})();
