// Follows an order until its payment is decided. The answer that says so ends the visit to the shop, so everything there
// is to show is already in this page: no further request is needed, and none is made.
(() => {
  'use strict';
  const page = document.getElementById('order');
  const { order, event } = page.dataset;
  const byId = (id) => document.getElementById(id);
  // What is hidden is a comment until now, because text browsers show whatever is not.
  for (const part of page.querySelectorAll('[hidden]')) if (part.firstChild?.nodeType === 8) part.innerHTML = part.firstChild.data;
  let status = page.dataset.status;
  let wait = 1000;
  let timer = 0;
  let asking = false;
  const started = Date.now();

  function show(next) {
    const news = next !== status;
    status = next;
    for (const part of page.querySelectorAll('[data-when]')) part.hidden = !part.dataset.when.split(' ').includes(status);
    const heading = [...page.querySelectorAll('h1')].find((h1) => h1.offsetParent);
    if (heading && news) {
      document.title = heading.textContent;
      byId('live').textContent = heading.textContent;
    }
    // Decided: the hold this came from is history.
    if (status !== 'pending') byId('slow').hidden = true;
    if (status !== 'pending') try { sessionStorage.removeItem(`stanchion-hold-${event}`); } catch { /* storage forbidden */ }
  }

  function say(text) {
    byId('net').textContent = text;
    byId('net').hidden = !text;
  }

  async function ask() {
    if (asking || status !== 'pending') return;
    asking = true;
    const stop = new AbortController();
    const deadline = setTimeout(() => stop.abort(), 10000);
    try {
      const response = await fetch(`/orders/${encodeURIComponent(order)}`, {
        headers: { Accept: 'application/json' }, credentials: 'same-origin', cache: 'no-store', signal: stop.signal,
      });
      const answer = await response.json();
      if (answer.state) {
        say('The waiting room has taken over again. Your order goes on without you and is safe: keep this page open, or come back to this address.');
        wait = Math.max(wait, answer.next_poll_ms || 5000);
      } else if (response.ok) {
        say('');
        show(answer.status);
      } else {
        say(answer.detail || 'The shop could not say how your order stands. This page keeps asking.');
      }
    } catch {
      say('The shop cannot be reached right now. Your order is safe; this page keeps asking.');
    } finally {
      clearTimeout(deadline);
      asking = false;
    }
    if (status !== 'pending') return;
    byId('slow').hidden = Date.now() - started < 20000;
    wait = Math.min(wait * 1.25, 10000);
    plan(wait * (0.8 + Math.random() * 0.4));
  }

  function plan(ms) {
    clearTimeout(timer);
    timer = setTimeout(ask, ms);
  }

  try {
    const name = sessionStorage.getItem(`stanchion-event-${event}`);
    if (name) for (const node of page.querySelectorAll('[data-f="event"]')) node.textContent = name;
  } catch { /* the id stays */ }
  byId('print').hidden = false;
  byId('print').addEventListener('click', () => window.print());
  const wake = () => { if (document.visibilityState === 'visible' && status === 'pending') plan(300); };
  document.addEventListener('visibilitychange', wake);
  window.addEventListener('online', wake);
  window.addEventListener('pageshow', (shown) => { if (shown.persisted) wake(); });
  show(status);
  if (status === 'pending') plan(wait);
})();
