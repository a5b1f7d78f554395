-- Purpose: what all queue scripts share; put in front of each of them when it is bound.
--   A visitor is in at most one of line, called and inside. `seen` holds exactly the members of line.
--   A member of the line who was absent when their turn came is set aside: their score is lowered by 2^53, which
--   puts them before 0, in order, where `call` need not look at them again. Being seen takes them back.
-- KEYS: KEYS[1] line (visitor -> score), KEYS[2] seen (visitor -> last seen, ms), KEYS[3] called (visitor -> claim
--   deadline, ms), KEYS[4] inside (visitor -> session's end, ms), KEYS[5] state (hash; `of:<visitor>` holds
--   the score of a called or admitted visitor, when they were called and when they were let in, ms), KEYS[6] over (visitor ->
--   when their place or session was ended by somebody, us, strictly increasing), KEYS[7] roster (visitor -> arrival, us; who
--   takes part in the draw)
-- ARGV: none of its own
-- Reply: none of its own. Every script replies -1 when the room has no state, and those that say so -2 when their caller
--   knows another epoch than the present one. A place is six integers:
--   0 none | 1 waiting, score, 1 + how many are ahead or 0 | 2 called, score, deadline ms, wait ms | 3 inside, score, end ms, called ms, admitted ms,
--   fresh | 4 not open, mode | 5 in the roster, arrival; unused ones are 0. Modes: 0 scheduled, 1 open, 2 paused, 3 sold out,
--   4 closed, 5 pre-queue, 6 drawing.

local LINE, SEEN, CALLED, INSIDE, STATE, OVER, ROSTER = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local NOT_CONFIGURED, OTHER_EPOCH = -1, -2
local P_NONE, P_WAITING, P_CALLED, P_INSIDE, P_NOT_OPEN, P_REGISTERED = 0, 1, 2, 3, 4, 5
local SCHEDULED, OPEN, PAUSED, SOLD_OUT, CLOSED, PREQUEUE, DRAWING = 0, 1, 2, 3, 4, 5, 6
local ASIDE = 9007199254740992
-- Draws are below, arrivals (since 2005) above: who draws stands before who comes later.
local DRAWS_END = 1125899906842624
-- How long a node that did not look may count on finding who was ended.
local OVER_MS = 60000
-- Nodes look at a room many times a second. When none did for this long, visitors could not be seen either.
local AWAY_MS = 5000
local LONGEST_WAIT_MS = 60000

local FIELDS = {
  'since_ms', 'settle_until_ms', 'epoch', 'mode', 'opens_at_ms', 'capacity', 'rate', 'burst', 'claim_ms', 'session_ms',
  'absent_ms', 'grace_ms', 'clock_us', 'raw_us', 'watched_ms', 'resumed_ms', 'last_score', 'watermark', 'call_tokens',
  'call_at_us', 'entry_tokens', 'entry_at_us', 'joined_total', 'called_total', 'admitted_total', 'no_shows_total',
  'settle_ms', 'prequeue_at_ms', 'closes_at_ms', 'lottery', 'drawn', 'drawn_to', 'sealed_since_ms', 'last_over',
  'call_rate', 'set_capacity', 'set_rate', 'configured_us', 'lease_owner', 'lease_until_ms', 'reason',
}
-- What the draw publishes, each once: the commitment to the seed, the roster's digest, the public value.
local DRAW_FACTS = { 'commitment', 'digest', 'public' }
local state, changed = {}, {}
local raw_us, now_us, now_ms

-- Lua would write 1.8e+15 on its own; this is exact for every integer below 2^53 and for every fraction, which take
-- several times as long.
local function text(number)
  if number % 1 == 0 and math.abs(number) < ASIDE then
    return string.format('%d', number)
  end
  return string.format('%.17g', number)
end

-- Reads the clock: the store's, but never backwards. After a step back it runs at half speed until it is right
-- again, because a clock that stands still would stop admission.
local function read_clock()
  local time = redis.call('TIME')
  raw_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local since_last = math.max(0, raw_us - (state.raw_us or 0))
  now_us = math.max(raw_us, math.floor((state.clock_us or 0) + since_last / 2))
  now_ms = math.floor(now_us / 1000)
end

-- Reads state and clock. False when the room has no state.
local function load_state()
  local values = redis.call('HMGET', STATE, unpack(FIELDS))
  if not values[1] then
    return false
  end
  for i, field in ipairs(FIELDS) do
    state[field] = tonumber(values[i]) or 0
  end
  read_clock()
  return true
end

-- Whether the caller knows another epoch than the present one, so that its tokens are of before a reset; 0 claims nothing.
local function is_other_epoch(known)
  return tonumber(known) > 0 and tonumber(known) ~= state.epoch
end

local function set(field, value)
  state[field] = value
  changed[field] = true
end

local function add(field, count)
  if count > 0 then
    set(field, state[field] + count)
  end
end

-- Writes what changed, and how late it is. A run that changed nothing stays read-only.
local function save()
  if not next(changed) then
    return
  end
  set('clock_us', now_us)
  set('raw_us', raw_us)
  local pairs_to_write = {}
  for field in pairs(changed) do
    table.insert(pairs_to_write, field)
    table.insert(pairs_to_write, text(state[field]))
  end
  redis.call('HSET', STATE, unpack(pairs_to_write))
end

-- The mode that holds now: what the operator set, as far as the schedule has come.
local function mode()
  if state.mode ~= OPEN and state.mode ~= PAUSED then
    return state.mode
  elseif state.closes_at_ms > 0 and now_ms >= state.closes_at_ms then
    return CLOSED
  elseif now_ms < state.opens_at_ms then
    return (state.prequeue_at_ms > 0 and now_ms >= state.prequeue_at_ms) and PREQUEUE or SCHEDULED
  elseif state.lottery == 1 and state.drawn == 0 then
    return DRAWING
  end
  return state.mode
end

local function takes_visitors()
  local now = mode()
  return now == OPEN or now == PAUSED or now == PREQUEUE or now == DRAWING
end

-- Which server this is; '' for an account that may not know.
local function server()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
end

-- Whether the store is still the server that wrote the state. Another one (restarted from a file, or a promoted replica)
-- may lack what was written last: then this becomes a new history, in which places and sessions register again before
-- anybody is called.
local function same_history()
  local now, before = server(), redis.call('HGET', STATE, 'server')
  if now == before then
    return true
  end
  redis.call('HSET', STATE, 'server', now)
  set('since_ms', now_ms)
  set('settle_until_ms', now_ms + state.settle_ms)
  set('resumed_ms', now_ms)
  for _, bucket in ipairs({ 'call', 'entry' }) do
    set(bucket .. '_tokens', 0)
    set(bucket .. '_at_us', now_us)
  end
  return false
end

-- Notices that nobody looked after the room for a while (the store or all nodes were away). Then nobody counts as
-- absent for what happened meanwhile, and every claim window starts again.
local function watch()
  same_history()
  if raw_us < state.raw_us then
    set('raw_us', raw_us)
  end
  if now_ms - state.watched_ms > AWAY_MS then
    set('resumed_ms', now_ms)
  end
  if now_ms - state.watched_ms >= 1000 then
    set('watched_ms', now_ms)
  end
end

-- Two token buckets of one burst: 'call' paces calls, 'entry' paces admissions, which come at the whim of the called.
-- Calls may run ahead of entries by as much as visitors fail to show up. Tokens beyond the burst are lost, so nothing is
-- ever caught up (G2).
local function tokens(bucket)
  local rate = bucket == 'call' and state.call_rate or state.rate
  local refilled = (now_us - state[bucket .. '_at_us']) * rate / 1000000
  return math.min(state.burst, state[bucket .. '_tokens'] + refilled)
end

local function take(bucket, count)
  set(bucket .. '_tokens', tokens(bucket) - count)
  set(bucket .. '_at_us', now_us)
end

-- Whether tokens of a history that was lost are still believed.
local function believes_lost_history()
  return now_ms < state.since_ms + state.grace_ms
end

-- Notes that somebody ended the places or sessions of these visitors: every node learns it with its next snapshot, and a
-- token from before a loss does not bring them back. `trim_over` forgets it in time.
local function note_over(visitors)
  if #visitors == 0 then
    return
  end
  local notes, at = {}, math.max(now_us, state.last_over + 1)
  for i, visitor in ipairs(visitors) do
    notes[2 * i - 1] = text(at + i - 1)
    notes[2 * i] = visitor
  end
  set('last_over', at + #visitors - 1)
  redis.call('ZADD', OVER, unpack(notes))
end

local function trim_over()
  -- A node that starts later must still learn of it while a token of that session is good.
  local horizon = text((now_ms - math.max(state.grace_ms, state.session_ms, OVER_MS)) * 1000)
  local old = redis.call('ZRANGEBYSCORE', OVER, '-inf', horizon, 'LIMIT', 0, 200)
  if #old > 0 then
    redis.call('ZREM', OVER, unpack(old))
  end
end

-- Whether what a visitor held since then was ended; not what they came back for later.
local function is_over(visitor, since_ms)
  local at = redis.call('ZSCORE', OVER, visitor)
  return at and tonumber(at) >= since_ms * 1000
end

-- Removes visitors (at most a few hundred) from `called` or `inside`.
local function drop(key, visitors)
  if #visitors == 0 then
    return
  end
  local notes = {}
  for i, visitor in ipairs(visitors) do
    notes[i] = 'of:' .. visitor
  end
  redis.call('ZREM', key, unpack(visitors))
  redis.call('HDEL', STATE, unpack(notes))
  if key == INSIDE and believes_lost_history() then
    note_over(visitors)
  end
end

local function place(code, ...)
  local numbers = { ... }
  return { code, numbers[1] or 0, numbers[2] or 0, numbers[3] or 0, numbers[4] or 0, numbers[5] or 0 }
end

-- What is noted of a called or admitted visitor: score, when called, when let in. Nothing is noted of a session that
-- came back after a loss.
local function note_of(visitor)
  local note = redis.call('HGET', STATE, 'of:' .. visitor) or ''
  local score, called_ms, admitted_ms = string.match(note, '^(%d+) (%d+) ?(%d*)$')
  return tonumber(score) or 0, tonumber(called_ms), tonumber(admitted_ms or '')
end

local function claim_ends(deadline)
  return math.max(tonumber(deadline), state.resumed_ms + state.claim_ms)
end

-- Removes claims and sessions that ended, at most `most` of each; whatever is left still counts as occupied (G1).
local function expire(most)
  local missed = {}
  if claim_ends(0) <= now_ms then
    missed = redis.call('ZRANGEBYSCORE', CALLED, '-inf', text(now_ms), 'LIMIT', 0, most)
    drop(CALLED, missed)
    add('no_shows_total', #missed)
  end
  local ended = redis.call('ZRANGEBYSCORE', INSIDE, '-inf', text(now_ms), 'LIMIT', 0, most)
  drop(INSIDE, ended)
  return #missed, #ended
end

local function free_slots()
  return state.capacity - redis.call('ZCARD', CALLED) - redis.call('ZCARD', INSIDE)
end

local function last_seen(visitor)
  return math.max(tonumber(redis.call('ZSCORE', SEEN, visitor)) or 0, state.resumed_ms)
end

-- The score in the line and whether it is set aside; nil when the visitor is not there.
local function line_score(visitor)
  local score = tonumber(redis.call('ZSCORE', LINE, visitor))
  if score and score < 0 then
    return score + ASIDE, true
  end
  return score, false
end

-- Marks a member of the line as present.
local function mark_seen(visitor, score, aside)
  redis.call('ZADD', SEEN, text(now_ms), visitor)
  if aside then
    redis.call('ZADD', LINE, text(score), visitor)
  end
end

local function leave_line(visitor)
  redis.call('ZREM', SEEN, visitor)
  return redis.call('ZREM', LINE, visitor)
end

local function inside_place(visitor, ends)
  local score, called_ms, admitted_ms = note_of(visitor)
  admitted_ms = admitted_ms or ends - state.session_ms
  return place(P_INSIDE, score, ends, called_ms or admitted_ms, admitted_ms, 0)
end

-- The place of a visitor who is called or inside, else nil. One that ended is dropped here, and the second value says so.
local function slot_of(visitor)
  local deadline = redis.call('ZSCORE', CALLED, visitor)
  if deadline then
    deadline = claim_ends(deadline)
    if deadline > now_ms then
      return place(P_CALLED, note_of(visitor), deadline)
    end
    drop(CALLED, { visitor })
    add('no_shows_total', 1)
    return nil, true
  end
  local ends = tonumber(redis.call('ZSCORE', INSIDE, visitor))
  if ends and ends > now_ms then
    return inside_place(visitor, ends)
  elseif ends then
    drop(INSIDE, { visitor })
    return nil, true
  end
  return nil, false
end

-- Lets a visitor in now.
local function admit(visitor, score, called_ms)
  local ends = now_ms + state.session_ms
  take('entry', 1)
  redis.call('ZADD', INSIDE, text(ends), visitor)
  redis.call('HSET', STATE, 'of:' .. visitor, table.concat({ text(score), text(called_ms), text(now_ms) }, ' '))
  add('admitted_total', 1)
  return place(P_INSIDE, score, ends, called_ms, now_ms, 1)
end

local function enter_line(visitor, score)
  redis.call('ZADD', LINE, 'NX', text(score), visitor)
  redis.call('ZADD', SEEN, text(now_ms), visitor)
  set('last_score', math.max(state.last_score, score))
  add('joined_total', 1)
  return place(P_WAITING, score)
end

-- Whether the digest of the roster is public: nobody comes to it or goes any more.
local function is_sealed()
  return redis.call('HEXISTS', STATE, 'digest') == 1
end

-- Whether who leaves is taken out of the roster. From the opening on nodes read it for the digest, in stretches, and a
-- roster that lost somebody in between would not be the one they digest.
local function may_leave_roster()
  return now_ms < state.opens_at_ms and not is_sealed()
end

local function enter_roster(visitor, arrival)
  redis.call('ZADD', ROSTER, 'NX', text(arrival), visitor)
  set('last_score', math.max(state.last_score, arrival))
  add('joined_total', 1)
  return place(P_REGISTERED, arrival)
end

-- The place of someone who takes part in a draw that is still to come, else nil.
local function roster_place(visitor)
  local arrival = state.lottery == 1 and state.drawn == 0 and redis.call('ZSCORE', ROSTER, visitor)
  if not arrival or is_over(visitor, tonumber(arrival) / 1000) then
    return nil
  end
  return place(P_REGISTERED, tonumber(arrival))
end

-- Gives back the place a token proves to someone the room does not know. A token from before the present history is
-- believed for one grace after that history began; with a later one the place was given up.
local function restore(visitor, score, issued_ms)
  if not takes_visitors() then
    return place(P_NOT_OPEN, mode())
  end
  -- Whoever is unknown may be the first to meet a store that fell back.
  same_history()
  local came_for_the_draw = state.lottery == 1 and score >= DRAWS_END and score < state.opens_at_ms * 1000
  -- Nobody need be seen in the pre-queue, so whoever came in it has until the opening, and one grace.
  local is_in_time = believes_lost_history() or (came_for_the_draw and now_ms < state.opens_at_ms + state.grace_ms)
  local of_lost_history = issued_ms < state.since_ms and is_in_time
  if not of_lost_history or is_over(visitor, issued_ms) or score <= 0 or score >= ASIDE then
    return place(P_NONE)
  end
  local draws = came_for_the_draw and state.drawn == 0
  if draws and is_sealed() then
    -- Who came in the history whose roster was closed is in it, also when it was lost since; the node will know their draw.
    if issued_ms >= state.sealed_since_ms then
      return place(P_REGISTERED, score)
    end
    -- Who came before, and not back in time, is not: a draw of theirs could not be verified. They are next behind the drawn.
    draws = false
  end
  local key = draws and ROSTER or LINE
  -- Only scores that different nodes minted without the store can be equal.
  while redis.call('ZCOUNT', key, text(score), text(score)) > 0 do
    score = score + 1
  end
  return (draws and enter_roster or enter_line)(visitor, score)
end

local function append(reply, numbers)
  for i = 1, #numbers do
    reply[#reply + 1] = numbers[i]
  end
end

