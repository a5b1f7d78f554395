-- Purpose: what scripts share that deal with whoever is called or inside; put behind `queue.lua`.
-- KEYS: those of `queue.lua`
-- ARGV: none of its own
-- Reply: none of its own

-- How long a node that did not look may count on finding who was ended.
local OVER_MS = 60000
-- Nodes look at a room many times a second. When none did for this long, visitors could not be seen either.
local AWAY_MS = 5000

-- Whether the store is still the server that wrote the state. Another one (restarted from a file, or a promoted replica)
-- may lack what was written last: then this becomes a new history, in which places and sessions register again before
-- anybody is called.
local function same_history()
  local now = server()
  if now == written_by then
    return true
  end
  written_by = now
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
  write('ZREM', OVER, redis.call('ZRANGEBYSCORE', OVER, '-inf', horizon, 'LIMIT', 0, 200))
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
  redis.call('ZREM', key, unpack(visitors))
  redis.call('HDEL', NOTES, unpack(visitors))
  if key == CALLED then
    redis.call('ZREM', SEEN, unpack(visitors))
  end
  if key == INSIDE and believes_lost_history() then
    note_over(visitors)
  end
end

-- What is noted of a called or admitted visitor: score, when called, when let in. Nothing is noted of a session that
-- came back after a loss.
local function note_of(visitor)
  local note = redis.call('HGET', NOTES, visitor) or ''
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
