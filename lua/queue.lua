-- Purpose: what all queue scripts share; put in front of each of them when it is bound.
--   A visitor is in at most one of line, called and inside. `seen` holds the members of line, and who was called until the
--   call ends: to find fifty in a `seen` of a million takes longer than all else that `call` does.
--   A member of the line who was absent when their turn came is set aside: their score is lowered by 2^53, which
--   puts them before 0, in order, where `call` need not look at them again. Being seen takes them back.
-- KEYS: KEYS[1] line (visitor -> score), KEYS[2] seen (visitor -> last seen, ms), KEYS[3] called (visitor -> claim
--   deadline, ms), KEYS[4] inside (visitor -> session's end, ms), KEYS[5] state (hash), KEYS[6] notes (hash: called or
--   admitted visitor -> their score, when they were called and when they were let in, ms), KEYS[7] over (visitor -> when
--   their place or session was ended by somebody, us, strictly increasing), KEYS[8] roster (visitor -> arrival, us; who
--   takes part in the draw)
-- ARGV: none of its own
-- Reply: none of its own. Every script replies -1 when the room has no state, and those that say so -2 when their caller
--   knows another epoch than the present one. Modes: 0 scheduled, 1 open, 2 paused, 3 sold out, 4 closed, 5 pre-queue,
--   6 drawing.

local LINE, SEEN, CALLED, INSIDE, STATE = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local NOTES, OVER, ROSTER = KEYS[6], KEYS[7], KEYS[8]
local NOT_CONFIGURED, OTHER_EPOCH = -1, -2
local SCHEDULED, OPEN, PAUSED, CLOSED, PREQUEUE, DRAWING = 0, 1, 2, 4, 5, 6
local ASIDE = 9007199254740992

local FIELDS = {
  'since_ms', 'settle_until_ms', 'epoch', 'mode', 'opens_at_ms', 'capacity', 'rate', 'burst', 'claim_ms', 'session_ms',
  'absent_ms', 'grace_ms', 'clock_us', 'raw_us', 'watched_ms', 'resumed_ms', 'last_score', 'watermark', 'call_tokens',
  'call_at_us', 'entry_tokens', 'entry_at_us', 'joined_total', 'called_total', 'admitted_total', 'no_shows_total',
  'settle_ms', 'prequeue_at_ms', 'closes_at_ms', 'lottery', 'drawn', 'drawn_to', 'sealed_since_ms', 'sealed_count', 'sealed_until', 'last_over',
  'call_rate', 'set_capacity', 'set_rate', 'configured_us', 'lease_owner', 'lease_until_ms', 'reason',
}
-- What the draw publishes, each once: the commitment to the seed, the roster's digest, the public value.
local DRAW_FACTS = { 'commitment', 'digest', 'public' }
local state, changed = {}, {}
-- The server that wrote the state.
local written_by
local raw_us, now_us, now_ms

-- Lua would write 1.8e+15 on its own; this is exact for every integer below 2^53 and for every fraction, which take
-- several times as long.
local function text(number)
  if number % 1 == 0 and math.abs(number) < ASIDE then
    return string.format('%d', number)
  end
  return string.format('%.17g', number)
end

-- One command for a whole batch: a command costs as much as its work on one member. Nothing for nobody.
local function write(command, key, values)
  if #values > 0 then
    redis.call(command, key, unpack(values))
  end
end

local function scores_of(key, visitors)
  return #visitors > 0 and redis.call('ZMSCORE', key, unpack(visitors)) or {}
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
  local values = redis.call('HMGET', STATE, 'server', unpack(FIELDS))
  if not values[2] then
    return false
  end
  written_by = values[1]
  for i, field in ipairs(FIELDS) do
    state[field] = tonumber(values[i + 1]) or 0
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

-- Which server this is; '' for an account that may not know.
local function server()
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
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

-- Whether the digest of the roster is public: nobody comes to it or goes any more.
local function is_sealed()
  return redis.call('HEXISTS', STATE, 'digest') == 1
end

local function append(reply, numbers)
  local length = #reply
  for i = 1, #numbers do
    reply[length + i] = numbers[i]
  end
end
