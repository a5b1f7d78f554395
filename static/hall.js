// The hall: its seats as buttons, which are chosen, and how to get around it with a keyboard. It knows
// nothing of buying; shop.js, which comes behind it in the same file, does.
const hall = (() => {
  'use strict';
  const map = document.getElementById('map');
  const rows = map ? [...map.querySelectorAll('.row')].map((row) => [...row.querySelectorAll('button')]) : [];
  const seats = new Map(rows.flat().map((seat) => [seat.value, seat]));
  const chosen = new Set();
  let current = rows[0]?.[0]; // the one seat in the tab order

  const rowOf = (id) => id.match(/^\D*/)[0];
  // Each seat as [row, number].
  const rowsOf = (ids) => ids.map((id) => [rowOf(id), Number(id.slice(rowOf(id).length))]);
  const spoken = (id) => `Row ${rowOf(id)}, seat ${id.slice(rowOf(id).length)}`;
  const state = (seat) => seat.dataset.s || 'free';
  const free = () => [...seats.values()].filter((seat) => state(seat) === 'free').length;
  const inOrder = () => [...seats.keys()].filter((id) => chosen.has(id));

  function paint(seat) {
    const mine = chosen.has(seat.value);
    const free = state(seat) === 'free';
    seat.setAttribute('aria-pressed', mine);
    if (free) seat.removeAttribute('aria-disabled'); else seat.setAttribute('aria-disabled', 'true');
    seat.setAttribute('aria-label', `${spoken(seat.value)}, ${mine ? 'yours' : state(seat)}`);
    seat.tabIndex = seat === current ? 0 : -1;
  }

  function choose(ids) {
    const touched = new Set([...chosen, ...ids]);
    chosen.clear();
    for (const id of ids) chosen.add(id);
    for (const id of touched) paint(seats.get(id));
  }

  // What has become of a seat. True when it was chosen and is lost by it.
  function mark(id, next) {
    const seat = seats.get(id);
    if (!seat || state(seat) === next) return false;
    if (next === 'free') delete seat.dataset.s; else seat.dataset.s = next;
    const lost = next !== 'free' && chosen.delete(id);
    paint(seat);
    return lost;
  }

  function rove(seat) {
    if (current) current.tabIndex = -1;
    current = seat;
    current.tabIndex = 0;
  }

  function onKey(press) {
    const row = rows.findIndex((all) => all.includes(press.target));
    const column = rows[row]?.indexOf(press.target);
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -column], End: [0, Infinity] };
    if (row < 0 || !steps[press.key]) return;
    press.preventDefault();
    const [down, right] = steps[press.key];
    const target = rows[row + down];
    if (!target) return;
    rove(target[Math.max(0, Math.min(column + right, target.length - 1))]);
    current.focus();
  }

  // `toggled(id)` is told of every seat that is pressed, free or not.
  function open(toggled) {
    for (const seat of seats.values()) paint(seat);
    map?.addEventListener('keydown', onKey);
    map?.addEventListener('click', (click) => {
      const seat = click.target.closest('button');
      if (!seat) return;
      rove(seat);
      toggled(seat.value);
    });
    // The middle first: that is where one wants to sit.
    const box = map?.parentElement;
    if (box) box.scrollLeft = (box.scrollWidth - box.clientWidth) / 2;
  }

  return { choose, chosen, free, inOrder, mark, open, rowsOf, spoken, state: (id) => state(seats.get(id)) };
})();
