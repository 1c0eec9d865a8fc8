// Puts selects above the table of claims: one for each column of few values, which hide the rows of other values.
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("claims-filter");
  const table = place && [...document.querySelectorAll("table")].find(
    (each) => place.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING);
  if (!table) return;
  const rows = [...table.tBodies[0].rows], chosen = {};
  const text = (row, column) => row.cells[column].textContent.split(":")[0].trim();
  const shown = document.createElement("span");
  const show = () => {
    for (const row of rows) row.hidden = Object.entries(chosen).some(([column, value]) => value && text(row, column) !== value);
    shown.textContent = ` ${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
  };
  for (const column of [1, 2, 3, 4]) {
    const name = table.tHead.rows[0].cells[column].textContent;
    const select = document.createElement("select");
    select.setAttribute("aria-label", name);
    select.add(new Option(`${name}: all`, ""));
    for (const value of new Set(rows.map((row) => text(row, column)))) select.add(new Option(value, value));
    select.addEventListener("change", () => { chosen[column] = select.value; show(); });
    place.append(select, " ");
  }
  place.append(shown);
  show();
});
