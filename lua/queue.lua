-- Purpose: what all queue scripts share; put in front of each of them when it is bound.
--   A visitor is in at most one of line, called and inside. `seen` holds exactly the members of line.
--   A member of the line who was absent when their turn came is set aside: their score is lowered by 2^53, which
--   puts them before 0, in order, where `call` need not look at them again. Being seen takes them back.
-- KEYS: KEYS[1] line (visitor -> score), KEYS[2] seen (visitor -> last seen, ms), KEYS[3] called (visitor -> claim
--   deadline, ms), KEYS[4] inside (visitor -> session's end, ms), KEYS[5] state (hash; `of:<visitor>` holds
--   the score of a called or admitted visitor, when they were called and when they were let in, ms, or that this is over)
-- ARGV: none of its own
-- Reply: none of its own. Every script replies -1 when the room has no state. A place is six integers:
--   0 none | 1 waiting, score, 1 + how many are ahead or 0 | 2 called, score, deadline ms, wait ms | 3 inside, score, end ms, called ms, admitted ms,
--   fresh | 4 not open, mode; unused ones are 0. Modes: 0 scheduled, 1 open, 2 paused, 3 sold out, 4 closed.

local LINE, SEEN, CALLED, INSIDE, STATE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local NOT_CONFIGURED = -1
local P_NONE, P_WAITING, P_CALLED, P_INSIDE, P_NOT_OPEN = 0, 1, 2, 3, 4
local SCHEDULED, OPEN, PAUSED = 0, 1, 2
local ASIDE = 9007199254740992
-- Nodes look at a room many times a second. When none did for this long, visitors could not be seen either.
local AWAY_MS = 5000
local LONGEST_WAIT_MS = 60000

local FIELDS = {
  'since_ms', 'settle_until_ms', 'epoch', 'mode', 'opens_at_ms', 'capacity', 'rate', 'burst', 'claim_ms', 'session_ms',
  'absent_ms', 'grace_ms', 'clock_us', 'raw_us', 'watched_ms', 'resumed_ms', 'last_score', 'watermark', 'call_tokens',
  'call_at_us', 'entry_tokens', 'entry_at_us', 'joined_total', 'called_total', 'admitted_total', 'no_shows_total',
}
local state, changed = {}, {}
local raw_us, now_us, now_ms

-- Lua would write 1.8e+15 on its own; this is exact for every integer below 2^53 and for every fraction.
local function text(number)
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

-- The mode that holds now: an open room whose hour has not come is scheduled.
local function mode()
  if state.mode == OPEN and now_ms < state.opens_at_ms then
    return SCHEDULED
  end
  return state.mode
end

-- Notices that nobody looked after the room for a while (the store or all nodes were away). Then nobody counts as
-- absent for what happened meanwhile, and every claim window starts again.
local function watch()
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

-- Two token buckets of one rate and burst: 'call' paces calls, 'entry' paces admissions, which come at the whim of
-- the called. Tokens beyond the burst are lost, so nothing is ever caught up (G2).
local function tokens(bucket)
  local refilled = (now_us - state[bucket .. '_at_us']) * state.rate / 1000000
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

-- Notes that the place or session of these visitors is over, for as long as a token from before a loss would bring it
-- back again and again.
local function note_over(visitors)
  local notes = {}
  for _, visitor in ipairs(believes_lost_history() and visitors or {}) do
    table.insert(notes, 'of:' .. visitor)
    table.insert(notes, 'over')
  end
  if #notes > 0 then
    redis.call('HSET', STATE, unpack(notes))
  end
end

local function is_over(visitor)
  return redis.call('HGET', STATE, 'of:' .. visitor) == 'over'
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
  if key == INSIDE then
    note_over(visitors)
  end
end

-- Ends a session before its own time. Of one that came back after a loss nothing is noted; its token would bring it
-- back once more, however late it is.
local function end_session(visitor)
  local returned = not redis.call('HGET', STATE, 'of:' .. visitor)
  drop(INSIDE, { visitor })
  if returned then
    redis.call('HSET', STATE, 'of:' .. visitor, 'over')
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

-- Gives back the place a token proves to someone the room does not know. A token from before the present history is
-- believed for one grace after that history began; with a later one the place was given up.
local function restore(visitor, score, issued_ms)
  if mode() ~= OPEN and mode() ~= PAUSED then
    return place(P_NOT_OPEN, mode())
  end
  local of_lost_history = issued_ms < state.since_ms and believes_lost_history()
  if not of_lost_history or is_over(visitor) or score <= 0 or score >= ASIDE then
    return place(P_NONE)
  end
  -- Only scores that different nodes minted without the store can be equal.
  while redis.call('ZCOUNT', LINE, text(score), text(score)) > 0 do
    score = score + 1
  end
  return enter_line(visitor, score)
end

local function append(reply, numbers)
  for i = 1, #numbers do
    reply[#reply + 1] = numbers[i]
  end
end

