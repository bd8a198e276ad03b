"use strict";
// The page is complete without this: it folds, searches, sorts and copies. No text of a log becomes markup here.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  document.body.classList.add("scripted");

  all("[data-fold]").forEach((button) => button.addEventListener("click", () => {
    all("main details").forEach((details) => { details.open = button.dataset.fold === "open"; });
  }));

  const copy = async (source, button) => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "selected";
    }
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };
  all(".code > pre").forEach((pre) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    pre.parentElement.append(button);
    button.addEventListener("click", () => copy(pre, button));
  });

  const search = document.querySelector("[data-search]");
  if (search) {
    const items = all(search.dataset.search);
    const opened = new Map();  // details → whether the search has to fold them again
    const count = document.getElementById(search.getAttribute("aria-describedby"));
    let texts = null;
    let timer = 0;
    const mark = (words) => {
      if (!CSS.highlights) return;
      const ranges = [];
      for (const item of words.length ? items.filter((one) => !one.hidden) : []) {
        const walker = document.createTreeWalker(item, NodeFilter.SHOW_TEXT);
        while (walker.nextNode() && ranges.length < 2000) {
          const text = walker.currentNode.data.toLowerCase();
          for (const word of words) {
            for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
              const range = new Range();
              range.setStart(walker.currentNode, Math.min(at, walker.currentNode.length));
              range.setEnd(walker.currentNode, Math.min(at + word.length, walker.currentNode.length));
              ranges.push(range);
            }
          }
        }
      }
      CSS.highlights.set("found", new Highlight(...ranges));
    };
    const run = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      texts ??= items.map((item) => item.textContent.toLowerCase());
      let shown = 0;
      items.forEach((item, index) => {
        const matches = words.every((word) => texts[index].includes(word));
        item.hidden = !matches;
        shown += matches;
        for (let box = item; words.length && matches && box; box = box.parentElement?.closest("details")) {
          if (box.tagName !== "DETAILS") continue;
          if (!opened.has(box)) opened.set(box, box.open);
          box.open = true;
        }
      });
      if (!words.length) {
        opened.forEach((was, details) => { details.open = was; });
        opened.clear();
      }
      all(".turn, .agent").forEach((group) => {
        group.hidden = words.length > 0 && !group.querySelector(".step:not([hidden])");
      });
      mark(words);
      count.textContent = words.length ? `${shown} of ${items.length}` : "";
    };
    search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(run, 150); });
  }

  // A link to a folded place unfolds it.
  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1));
    for (let box = target?.closest("details"); box; box = box.parentElement?.closest("details")) box.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  if (location.hash) unfold();

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
