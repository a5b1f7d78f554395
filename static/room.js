// Keeps the waiting page true: asks where we stand as often as it is told to, shows it, and goes in when it is our turn.
// Without this script the page reloads itself; everything here only makes the wait calmer.
(() => {
  'use strict';
  const room = document.getElementById('room');
  const { base, query, to, title } = room.dataset;
  // What is hidden is a comment until now, because text browsers show whatever is not.
  for (const part of room.querySelectorAll('[hidden]')) if (part.firstChild?.nodeType === 8) part.innerHTML = part.firstChild.data;
  const byId = (id) => document.getElementById(id);
  const field = (name) => room.querySelector(`[data-f="${name}"]`);
  const number = (n) => n.toLocaleString('en');
  const jitter = (ms) => ms * (0.8 + Math.random() * 0.4);
  const hours = new Intl.DateTimeFormat([], { hour: 'numeric', minute: '2-digit' });

  let state = room.dataset.state;
  let nextPoll = 5000;
  let timer = 0;
  let asking = false;
  let askedAt = 0;
  let failures = 0;
  let skew = 0; // how far the server's clock is ahead of ours
  let opensAt = Number(room.dataset.opens) || null;
  let best = Infinity; // the lowest position seen: it is never shown rising
  let joined = false; // whether this page has asked to join by itself
  let goingIn = false;
  let polled = false;
  let turn = 0; // an answer to a question from before a join or a leave is out of date

  // Storage may be forbidden; then the page forgets a little more over a reload.
  const keep = (name, value) => { try { sessionStorage.setItem(`stanchion-${name}`, value); } catch { /* see above */ } };
  const kept = (name) => { try { return sessionStorage.getItem(`stanchion-${name}`); } catch { return null; } };

  // --- Showing -----------------------------------------------------------------------------------------------------

  function put(name, text) {
    const node = field(name);
    if (node && node.textContent !== text) node.textContent = text;
  }

  function fact(name, value) {
    const row = field(name).parentElement;
    row.hidden = value == null;
    if (value != null) put(name, number(value));
  }

  // Same rules as src/pages/text.rs.
  function wait({ low, high }) {
    const from = Math.floor(low / 60), most = Math.ceil(high / 60);
    if (most <= 1) return 'less than a minute';
    if (from === 0) return `up to ${most} minutes`;
    if (from === most) return `about ${most} minutes`;
    if (from < 120) return `about ${from}–${most} minutes`;
    const start = Math.floor(from / 60), end = Math.ceil(most / 60);
    return start === end ? `about ${end} hours` : `about ${start}–${end} hours`;
  }

  // How far along the rope we are: from where this wait began to the door.
  function rope(position) {
    let first = Number(kept(`first-${base}`)) || 0;
    if (position > first) keep(`first-${base}`, first = position);
    // A step past the first post to begin with: joining is something.
    const part = first > 1 ? 1 - 0.95 * (position - 1) / (first - 1) : 1;
    const cord = byId('done');
    cord.setAttribute('stroke-dasharray', `${(part * 100).toFixed(2)} 200`);
    // pathLength does not apply to getPointAtLength, which measures the real thing.
    const at = cord.getPointAtLength(cord.getTotalLength() * part);
    for (const [name, value] of [['cx', at.x], ['cy', at.y], ['r', 11]]) byId('you').setAttribute(name, value);
  }

  // A screen reader hears news, not every number: a new state at once, milestones at most once a minute.
  let spokenAt = -Infinity, spoken = Infinity;
  function speak(text) {
    byId('live').textContent = text;
    spokenAt = Date.now();
  }
  function milestone(position) {
    const mark = [10, 50, 100, 500, 1000, 5000].find((limit) => position <= limit) ?? Infinity;
    if (mark < spoken && Date.now() - spokenAt > 60000) {
      if (spoken !== Infinity || mark <= 100) speak(`You are number ${number(position)} in line.`);
      spoken = mark;
    }
  }

  function show(status) {
    const before = state;
    // Whoever has a place before the opening does not draw.
    state = status.state === 'prequeue' && status.position ? 'early' : status.state;
    room.dataset.state = state;
    for (const part of room.querySelectorAll('[data-when]')) part.hidden = !part.dataset.when.split(' ').includes(state);
    const inLine = ['waiting', 'paused', 'prequeue', 'early'].includes(state);
    if (!inLine) best = Infinity;
    best = Math.min(best, status.position ?? Infinity);
    const placed = inLine && best !== Infinity;
    byId('place').hidden = !placed;
    byId('no-place').hidden = placed || state !== 'waiting';
    if (placed) {
      put('position', number(best));
      byId('place').classList.toggle('long', best > 99999);
      rope(best);
      milestone(best);
    }
    byId('rope').toggleAttribute('hidden', !placed);
    const heading = [...room.querySelectorAll('h1')].find((h1) => h1.offsetParent)?.textContent;
    const name = title || heading;
    document.title = placed ? `${number(best)} · ${name}` : name;
    fact('ahead', placed ? best - 1 : null);
    fact('line', inLine ? status.line : null);
    fact('rate', state === 'waiting' && status.admitted_per_minute ? Math.round(status.admitted_per_minute) : null);
    const eta = status.eta_seconds;
    put('wait', eta ? wait(eta) : 'not known yet');
    put('clock', eta && eta.high > 60 ? `around ${hours.formatRange(Date.now() + eta.low * 1000, Date.now() + eta.high * 1000)}` : '');
    byId('message').hidden = !status.message;
    put('message', status.message ?? '');
    opensAt = typeof status.opens_at === 'string' ? Date.parse(status.opens_at) : status.opens_at ?? opensAt;
    countdown();
    byId('leave').hidden = !inLine;
    if (state !== before) {
      byId('leave').open = false;
      if (heading) speak(heading);
    }
  }

  function countdown() {
    if (!['scheduled', 'prequeue', 'early'].includes(state) || !opensAt) return;
    const node = field('opens');
    node.closest('p').hidden = false;
    const shown = new Date(opensAt).toLocaleString([], { dateStyle: 'full', timeStyle: 'short' });
    if (node.textContent !== shown) node.textContent = shown;
    const left = Math.max(0, Math.ceil((opensAt - Date.now() - skew) / 1000));
    const two = (n) => String(n).padStart(2, '0');
    const days = Math.floor(left / 86400), hours = Math.floor(left / 3600) % 24, minutes = Math.floor(left / 60) % 60;
    byId('countdown').hidden = false;
    byId('countdown').classList.toggle('long', left >= 3600);
    put('countdown', days ? `${days} d ${hours} h` : `${hours ? `${hours}:` : ''}${two(minutes)}:${two(left % 60)}`);
    // Everybody's countdown ends in the same second: ask within the next three, each at a time of their own.
    if (left === 0 && countdown.over !== opensAt) {
      countdown.over = opensAt;
      plan(Math.random() * 3000);
    }
  }

  // --- Asking ------------------------------------------------------------------------------------------------------

  function plan(ms) {
    clearTimeout(timer);
    timer = setTimeout(ask, ms);
  }

  async function call(path, method) {
    const stop = new AbortController();
    const deadline = setTimeout(() => stop.abort(), 10000);
    try {
      const response = await fetch(`${base}/${path}?${query}`, {
        method, headers: { Accept: 'application/json' }, credentials: 'same-origin', cache: 'no-store', signal: stop.signal,
      });
      const date = Date.parse(response.headers.get('Date'));
      if (Math.abs(date - Date.now()) > 2000) skew = date - Date.now();
      if (response.status === 204) return null;
      const document = await response.json();
      if (typeof document.state !== 'string') {
        throw Object.assign(new Error('no status'), { retryAfter: Number(response.headers.get('Retry-After')) });
      }
      return document;
    } finally {
      clearTimeout(deadline);
    }
  }

  async function ask() {
    if (asking || goingIn) return;
    asking = true;
    askedAt = Date.now();
    const asked = turn;
    try {
      const status = await call('status', 'GET');
      if (asked === turn) receive(status);
    } catch (problem) {
      trouble(problem);
    } finally {
      asking = false;
    }
  }

  function receive(status) {
    failures = 0;
    byId('net').hidden = true;
    const cameFrom = state;
    nextPoll = Math.max(1000, status.next_poll_ms || nextPoll);
    if (status.state === 'not_queued' && cameFrom === 'scheduled' && !joined) return join();
    // Put in line a moment ago, and already unknown: the cookie did not stick.
    if (status.state === 'not_queued' && (joined || (!polled && cameFrom === 'waiting'))) byId('cookies').hidden = false;
    polled = true;
    show(status);
    put('updated', new Date().toLocaleTimeString());
    byId('updated').hidden = false;
    if (state === 'admitted') return goIn(status.location);
    if (!['expired', 'not_queued'].includes(state)) plan(nextPoll);
  }

  // Failing is not the visitor's fault and costs no place: say so, and try again ever more slowly, each at a time of
  // their own so that a server that comes back is not met by everybody at once.
  function trouble(problem) {
    failures += 1;
    const note = byId('net');
    note.textContent = navigator.onLine === false
      ? 'You seem to be offline. Your place is kept; this page goes on by itself when you are back.'
      : 'The waiting room cannot be reached right now. Your place is kept; this page keeps trying.';
    if (note.hidden && failures > 1) speak(note.textContent);
    note.hidden = false;
    plan(jitter(Math.max(Math.min(nextPoll * 2 ** Math.min(failures - 1, 5), 60000), (problem.retryAfter || 0) * 1000)));
  }

  // Back on the page (another tab, unlocked, back button, online again): ask now, but at most once a second.
  function wake() {
    if (document.visibilityState === 'hidden' || ['expired', 'not_queued', 'left'].includes(state)) return;
    plan(Math.max(0, askedAt + 1000 - Date.now()));
  }

  // --- Joining, leaving, going in ----------------------------------------------------------------------------------

  async function join() {
    joined = true;
    turn += 1;
    best = Infinity;
    try {
      receive(await call('join', 'POST'));
    } catch (problem) {
      joined = false; // it never arrived: the next poll may try again
      trouble(problem);
    }
  }

  function goIn(location) {
    const onRoomPage = window.location.pathname.startsWith(base);
    // Without its fragment, because going to the same address with a fragment loads nothing.
    const target = onRoomPage ? location || to : window.location.href.split('#')[0];
    if (/^\/(?![/\\])/.test(target)) byId('enter').href = target;
    // If letting in does not stick (cookies refused), do not spin: leave it to the link.
    const tries = (kept('entries') || '').split(',').filter((at) => at > Date.now() - 30000);
    if (tries.length >= 3) {
      byId('cookies').hidden = false;
      return;
    }
    keep('entries', [...tries, Date.now()].join(','));
    goingIn = true;
    window.location.replace(onRoomPage ? byId('enter').href : target);
  }

  byId('join').addEventListener('submit', (event) => {
    event.preventDefault();
    join();
  });
  byId('leave').querySelector('form').addEventListener('submit', async (event) => {
    event.preventDefault();
    turn += 1;
    try {
      await call('leave', 'POST');
      clearTimeout(timer);
      show({ state: 'left' });
    } catch (problem) {
      trouble(problem);
    }
  });

  // --- Start -------------------------------------------------------------------------------------------------------

  document.addEventListener('visibilitychange', wake);
  window.addEventListener('online', wake);
  window.addEventListener('pageshow', (event) => {
    if (!event.persisted) return;
    goingIn = false;
    wake();
  });
  setInterval(countdown, 1000);

  try {
    const status = JSON.parse(byId('status').textContent);
    nextPoll = status.next_poll_ms || nextPoll;
    show(status);
  } catch {
    countdown(); // the page shows what the server wrote; the first poll brings the rest
  }
  if (state === 'admitted') ask();
  else if (!['expired', 'not_queued'].includes(state)) plan(nextPoll);
})();
