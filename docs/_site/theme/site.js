// Names and keyboard stops that Material's own pages lack.
document$.subscribe(() => {
  // A page with several blocks of code would have several landmarks without a name.
  for (const nav of document.querySelectorAll(".md-code__nav")) nav.setAttribute("role", "none");
  document.querySelector(".md-search").setAttribute("aria-label", "Search");
});

// Material's script puts each table in a box that scrolls. Readers can scroll a wide table with the keyboard only if its
// box can be focused.
function stops() {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) {
    const scrolls = box.scrollWidth > box.clientWidth;
    for (const [name, value] of [["tabindex", 0], ["role", "group"], ["aria-label", "Table"]]) {
      if (scrolls) box.setAttribute(name, value);
      else box.removeAttribute(name);
    }
  }
}
new ResizeObserver(stops).observe(document.body);
new MutationObserver(stops).observe(document.body, { childList: true, subtree: true });
