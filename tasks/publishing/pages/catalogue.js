"use strict";
const words = JSON.parse(document.getElementById("words").textContent);
const box = document.getElementById("search"), older = document.getElementById("older");
const cards = [...document.querySelectorAll(".release")], told = document.getElementById("found");
function show() {
  const asked = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const card of cards) {
    const fits = asked.every(word => words[card.dataset.release].includes(word));
    card.hidden = !fits || (!older.checked && card.dataset.state !== "in use");
    found += !card.hidden;
  }
  told.textContent = found === 1 ? "1 release" : found + " releases";
}
for (const control of [box, older]) control.addEventListener("input", show);
addEventListener("hashchange", () => {  // a link to what is not shown shows it
  const card = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (card && card.hidden) { box.value = ""; older.checked = true; show(); card.scrollIntoView(); }
});
document.getElementById("controls").hidden = false;
show();
if (location.hash) dispatchEvent(new Event("hashchange"));
