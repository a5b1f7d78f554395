// Choosing, holding and paying, all through the JSON API. Every step can be repeated safely: a hold survives a reload in
// this tab's storage, and an order is sent with one key per hold, so that it is charged once whatever is retried.
(() => {
  'use strict';
  const shop = document.getElementById('shop');
  const { event, name, symbol } = shop.dataset;
  const price = Number(shop.dataset.price), limit = Number(shop.dataset.limit), digits = Number(shop.dataset.digits);
  const byId = (id) => document.getElementById(id);
  const api = `/events/${encodeURIComponent(event)}`;
  const { chosen, inOrder, spoken } = hall;
  // What is hidden is a comment until now, because text browsers show whatever is not.
  for (const part of shop.querySelectorAll('[hidden]')) if (part.firstChild?.nodeType === 8) part.innerHTML = part.firstChild.data;
  let hold = null;
  let busy = false;
  let mode = 'choose';
  const milestones = [[300, 'Five minutes left.'], [60, 'One minute left.'], [15, 'Fifteen seconds left.']];
  let told; // the milestone that was said last
  let mapTimer = 0;
  let mapWait = 4000;

  // --- Small helpers -----------------------------------------------------------------------------------------------

  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;
  function money(minor) {
    return symbol + (minor / 10 ** digits).toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }
  // randomUUID exists on secure origins only, and a rehearsal over a home network has none.
  function uuid() {
    if (crypto.randomUUID) return crypto.randomUUID();
    return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  }
  function store(value) {
    hold = value;
    try {
      if (value) sessionStorage.setItem(`stanchion-hold-${event}`, JSON.stringify(value));
      else sessionStorage.removeItem(`stanchion-hold-${event}`);
    } catch { /* storage forbidden: the hold lives as long as the page */ }
  }
  function say(text) { byId('live').textContent = text; }
  function note(text, link) {
    const box = byId('note');
    box.hidden = !text;
    box.textContent = text || '';
    if (link) {
      const anchor = Object.assign(document.createElement('a'), { href: link[0], textContent: link[1] });
      box.append(' ', anchor);
    }
  }

  // Resolves to { status, data, retryAfter }; rejects when no usable answer came. The waiting room's own answer ends
  // whatever was going on.
  async function call(method, path, body, headers = {}) {
    const stop = new AbortController();
    const deadline = setTimeout(() => stop.abort(), 15000);
    try {
      const response = await fetch(path, {
        method, credentials: 'same-origin', cache: 'no-store', signal: stop.signal, body: body && JSON.stringify(body),
        headers: { Accept: 'application/json', ...(body ? { 'Content-Type': 'application/json' } : {}), ...headers },
      });
      const data = response.status === 204 ? {} : await response.json();
      if (typeof data.state === 'string') enter('away');
      return { status: response.status, data, retryAfter: Number(response.headers.get('Retry-After')) || 0 };
    } finally {
      clearTimeout(deadline);
    }
  }

  function enter(next) {
    mode = next;
    for (const [id, when] of [['choose', 'choose'], ['bar', 'choose'], ['held', 'held'], ['away', 'away']]) byId(id).hidden = next !== when;
    const at = { choose: 0, held: 1, away: -1 }[next];
    [...byId('steps').children].forEach((step, index) => {
      step.classList.toggle('done', index < at);
      if (index === at) step.setAttribute('aria-current', 'step'); else step.removeAttribute('aria-current');
    });
    byId('steps').hidden = at < 0;
    clearTimeout(mapTimer);
    if (next === 'choose') refresh();
    else {
      note('');
      window.scrollTo(0, 0);
      byId(`${next}-title`).focus({ preventScroll: true });
    }
  }

  // --- Choosing ----------------------------------------------------------------------------------------------------

  function tickets() { return Number(byId('ga')?.querySelector('output').textContent ?? 0); }

  function summary(warning) {
    const count = chosen.size || tickets();
    byId('total').textContent = count ? money(count * price) : 'Nothing chosen yet';
    byId('chosen').textContent = warning || (chosen.size ? inOrder().join(', ') : count ? `${plural(count, 'ticket')} · General admission` : `Up to ${plural(limit, 'ticket')}`);
    byId('hold').disabled = busy || !count || !('onSale' in shop.dataset);
    byId('hold').textContent = busy ? 'Holding…' : count ? `Hold ${chosen.size ? plural(count, 'seat') : plural(count, 'ticket')}` : 'Hold';
  }

  function choose(ids) {
    hall.choose(ids);
    if (ids.length) setStepper('ga', 0);
    summary();
  }

  function toggle(id) {
    if (busy) return;
    note('');
    if (chosen.has(id)) return choose([...chosen].filter((other) => other !== id));
    if (hall.state(id) !== 'free') return say(`${spoken(id)} is ${hall.state(id)}.`);
    if (chosen.size >= limit) {
      summary(`At most ${plural(limit, 'ticket')} at a time`);
      return say(`At most ${plural(limit, 'ticket')} at a time.`);
    }
    choose([...chosen, id]);
  }

  function setStepper(id, value) {
    const stepper = byId(id);
    if (!stepper) return;
    const [less, more] = stepper.querySelectorAll('button');
    const most = Math.min(Number(stepper.dataset.max), id === 'ga' ? Number(byId('ga-free').textContent) : Infinity);
    const next = Math.max(Number(stepper.dataset.min), Math.min(value, most));
    stepper.querySelector('output').textContent = next;
    less.disabled = next <= Number(stepper.dataset.min);
    more.disabled = next >= most;
  }

  // --- What others do meanwhile ------------------------------------------------------------------------------------

  function update(view) {
    if (view.on_sale !== ('onSale' in shop.dataset)) return window.location.reload();
    const lost = view.seats.map.filter(({ seat, state }) => hall.mark(seat, state)).map(({ seat }) => seat);
    if (byId('free')) byId('free').textContent = view.seats.free;
    if (byId('ga-free')) byId('ga-free').textContent = view.general_admission.free;
    if (byId('none-free')) byId('none-free').hidden = view.seats.free + view.general_admission.free > 0;
    setStepper('ga', tickets());
    summary();
    if (lost.length) taken(lost);
  }

  function taken(ids) {
    note(`${ids.join(', ')} ${ids.length === 1 ? 'was' : 'were'} just taken by someone else. ${chosen.size ? `Still chosen: ${inOrder().join(', ')}.` : 'Please choose again.'}`);
  }

  function nowHeld(ids) {
    for (const id of ids) hall.mark(id, 'held');
    if (byId('free')) byId('free').textContent = hall.free();
  }

  async function refresh() {
    clearTimeout(mapTimer);
    if (mode !== 'choose' || document.visibilityState === 'hidden') return;
    try {
      const { status, data } = await call('GET', api);
      if (status === 200 && mode === 'choose' && !busy) update(data);
      mapWait = status === 200 ? 4000 : Math.min(mapWait * 2, 30000);
    } catch {
      mapWait = Math.min(mapWait * 2, 30000); // holding says so if the shop is really gone
    }
    if (mode === 'choose') mapTimer = setTimeout(refresh, mapWait * (0.8 + Math.random() * 0.4));
  }

  // --- Holding, paying, giving back --------------------------------------------------------------------------------

  // What a wish for the best got: seats in one row, one after another.
  function together(ids) {
    const all = hall.rowsOf(ids);
    return all.every(([row, number], at) => !at || (row === all[at - 1][0] && number === all[at - 1][1] + 1));
  }

  function wish(best) {
    if (best) return { best_available: { quantity: Number(byId('many').querySelector('output').textContent) } };
    return chosen.size ? { seats: inOrder() } : { quantity: tickets() };
  }

  async function take(best) {
    if (busy) return;
    busy = true;
    note('');
    summary();
    if (byId('best')) byId('best').disabled = true;
    try {
      const { status, data } = await call('POST', `${api}/holds`, wish(best));
      if (mode === 'away') return;
      if (status === 201) {
        store({ ...data, until: Date.now() + data.expires_in_seconds * 1000, key: uuid() });
        choose([]);
        setStepper('ga', 0);
        nowHeld(data.seats);
        if (!data.seats.length) byId('ga-free').textContent = Math.max(0, byId('ga-free').textContent - data.quantity);
        showHold();
        if (best && !together(data.seats)) note(`No ${data.quantity} seats were free side by side. These were the nearest to the stage.`);
      } else if (best && status === 409 && typeof data.free === 'number') {
        note(data.free ? `Only ${plural(data.free, 'seat')} free right now.` : 'None is free right now. Seats that others hold may come back.');
      } else if (status === 409 && Array.isArray(data.taken) && data.taken.length) {
        nowHeld(data.taken);
        taken(data.taken);
      } else if (status === 409 && typeof data.free === 'number') {
        byId('ga-free').textContent = data.free;
        setStepper('ga', Math.min(tickets(), data.free));
        note(data.free ? `Only ${plural(data.free, 'ticket')} left. The number was lowered for you.` : 'None is free right now. Tickets that others hold may come back.');
      } else {
        note(data.detail || data.title || 'The shop could not do that. Please try again.');
      }
    } catch {
      note('The shop did not answer. Nothing was charged. Please try again.');
    } finally {
      busy = false;
      if (byId('best')) byId('best').disabled = false;
      summary();
    }
  }

  function showHold() {
    const { seats: ids, quantity, amount_minor: amount } = hold;
    byId('held-seats').replaceChildren(...(ids.length ? ids.map(spoken) : [`${plural(quantity, 'ticket')}, general admission`])
      .map((text) => Object.assign(document.createElement('li'), { textContent: text })));
    byId('sum-what').textContent = plural(quantity, 'ticket');
    byId('sum').textContent = money(amount);
    byId('pay').textContent = `Pay ${money(amount)} now`;
    byId('back').textContent = quantity === 1 ? 'Give it back' : 'Give them back';
    enter('held');
    told = milestones.filter(([seconds]) => hold.until - Date.now() <= seconds * 1000).at(-1);
    tick();
  }

  function tick() {
    if (mode !== 'held' || !hold) return;
    const left = Math.max(0, Math.ceil((hold.until - Date.now()) / 1000));
    byId('left').textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`;
    // Told at a few moments only, each once; a slept-through one is skipped.
    const near = milestones.filter(([seconds]) => left <= seconds).at(-1);
    if (near && near !== told && left > 0) {
      told = near;
      say(near[1]);
    }
    if (left === 0 && !busy) gone('Your time ran out, and the tickets went back on sale. Nothing was charged.');
  }

  function gone(text) {
    store(null);
    enter('choose');
    note(text);
  }

  function working(on, text) {
    busy = on;
    byId('pay').disabled = byId('back').disabled = on;
    byId('pay').textContent = text || `Pay ${money(hold?.amount_minor ?? 0)} now`;
  }

  async function pay() {
    if (busy || !hold) return;
    note('');
    working(true, 'Sending your order…');
    for (let attempt = 0; attempt < 5; attempt += 1) {
      let wait = 1000 * 2 ** attempt;
      try {
        const { status, data, retryAfter } = await call('POST', '/orders', { hold: hold.hold }, { 'Idempotency-Key': hold.key });
        if (mode === 'away') return working(false);
        if (data.order) {
          store({ ...hold, order: data.order });
          return window.location.assign(`/orders/${encodeURIComponent(data.order)}`);
        }
        if (status === 404 || status === 410) {
          working(false);
          return gone('Your time ran out, and the tickets went back on sale. Nothing was charged.');
        }
        // 409 with Retry-After: the first try is still being worked on.
        if (status < 500 && status !== 429 && !(status === 409 && retryAfter)) {
          working(false);
          return note(data.detail || data.title || 'The order was not accepted. Nothing was charged.');
        }
        wait = Math.max(wait, retryAfter * 1000);
      } catch { /* no answer: the same key makes asking again safe */ }
      byId('pay').textContent = 'Still trying…';
      await pause(wait * (0.8 + Math.random() * 0.4));
    }
    working(false);
    note('The shop did not answer. Press pay again: your order counts once, and is charged once.');
  }

  async function giveBack() {
    if (busy || !hold) return;
    note('');
    busy = true;
    try {
      const { status, data } = await call('DELETE', `/holds/${encodeURIComponent(hold.hold)}`);
      busy = false;
      if (mode === 'away') return;
      if ([204, 404, 410].includes(status)) gone(`${hold.quantity === 1 ? 'The ticket is' : 'The tickets are'} back on sale.`);
      else note(data.detail || 'That did not work. They go back by themselves when the time is over.');
    } catch {
      note('The shop did not answer. They go back by themselves when the time is over.');
    } finally {
      busy = false;
    }
  }

  // --- Start -------------------------------------------------------------------------------------------------------

  function resume() {
    try {
      hold = JSON.parse(sessionStorage.getItem(`stanchion-hold-${event}`));
      sessionStorage.setItem(`stanchion-event-${event}`, name);
    } catch { /* nothing kept */ }
    if (hold) working(false);
    if (hold?.order) {
      enter('choose');
      note('You have an order under way.', [`/orders/${encodeURIComponent(hold.order)}`, 'See your order']);
    } else if (hold && hold.until > Date.now()) showHold();
    else if (hold) gone('Your time ran out, and the tickets went back on sale. Nothing was charged.');
    else mapTimer = setTimeout(refresh, mapWait);
  }

  hall.open(toggle);
  for (const id of ['ga', 'many']) {
    setStepper(id, Number(byId(id)?.querySelector('output').textContent));
    byId(id)?.addEventListener('click', (click) => {
      const by = Number(click.target.closest('button')?.dataset.by);
      if (!by || busy) return;
      const count = Number(byId(id).querySelector('output').textContent) + by;
      if (id === 'ga') choose([]);
      setStepper(id, count);
      summary();
    });
  }
  byId('best')?.addEventListener('click', () => take(true));
  byId('hold').addEventListener('click', () => take(false));
  byId('pay').addEventListener('click', pay);
  byId('back').addEventListener('click', giveBack);
  setInterval(tick, 500);
  document.addEventListener('visibilitychange', refresh);
  window.addEventListener('pageshow', (shown) => { if (shown.persisted) resume(); });
  summary();
  resume();
})();
