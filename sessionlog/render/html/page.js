"use strict";
// The page is complete without this: it folds, searches, sorts and copies. No text of a log becomes markup here.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  document.body.classList.add("scripted");

  all("[data-fold]").forEach((button) => button.addEventListener("click", () => {
    all("details").forEach((details) => { details.open = button.dataset.fold === "open"; });
  }));

  all("[data-copy]").forEach((button) => button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "selected";
    }
    setTimeout(() => { button.textContent = before; }, 1500);
  }));

  const search = document.querySelector("[data-search]");
  if (search) {
    const items = all(search.dataset.search).map((item) => [item, item.textContent.toLowerCase()]);
    const count = document.getElementById(search.getAttribute("aria-describedby"));
    let timer = 0;
    const run = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const [item, text] of items) {
        const matches = words.every((word) => text.includes(word));
        item.hidden = !matches;
        shown += matches;
      }
      count.textContent = words.length ? `${shown} of ${items.length}` : "";
    };
    search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(run, 120); });
  }

  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value ?? cell.textContent.trim();
  };
  const compare = (a, b) => {
    const [x, y] = [Number(a), Number(b)];
    if (a === "" || b === "") return (a === "") - (b === "");
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  };
  all("table[data-sortable]").forEach((table) => all("thead th", table).forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") !== "descending";
      all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => (down ? -1 : 1) * compare(value(a, column), value(b, column)));
      table.tBodies[0].append(...rows);
    });
  }));
})();
