-- Purpose: exchanges a call for a session; the repeat finds the session. Marks a waiting visitor as present. Works in
--   every mode, because a call is a reservation.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster
-- ARGV: visitor, proven score or '', when the proof was issued in ms or '', the epoch the caller knows or 0 (replies
--   -2 if it is another)
-- Reply: a place

if not load_state() then
  return NOT_CONFIGURED
elseif is_other_epoch(ARGV[4]) then
  return OTHER_EPOCH
end
local LONGEST_WAIT_MS = 60000
local visitor, score, issued_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

-- How long until the entry bucket holds a token.
local function wait_ms()
  if state.rate <= 0 then
    return LONGEST_WAIT_MS
  end
  return math.min(LONGEST_WAIT_MS, math.ceil((1 - tokens('entry')) / state.rate * 1000))
end

local function claim(deadline)
  local score_called, called_ms = note_of(visitor)
  if tokens('entry') >= 1 then
    redis.call('ZREM', CALLED, visitor)
    redis.call('ZREM', SEEN, visitor)
    return admit(visitor, score_called, called_ms or now_ms)
  end
  -- They came in time and the rate holds them back: that must not cost them the slot.
  local wait = wait_ms()
  deadline = math.max(deadline, now_ms + wait + state.claim_ms)
  redis.call('ZADD', CALLED, text(deadline), visitor)
  return place(P_CALLED, score_called, deadline, wait)
end

local function answer()
  local waiting, aside = line_score(visitor)
  if waiting then
    mark_seen(visitor, waiting, aside)
    return place(P_WAITING, waiting)
  end
  local slot, ended = slot_of(visitor)
  if slot and slot[1] == P_CALLED then
    return claim(slot[3])
  end
  slot = slot or roster_place(visitor)
  if slot then
    return slot
  elseif score and not ended then
    return restore(visitor, score, issued_ms)
  end
  return place(P_NONE)
end

local reply = answer()
save()
return reply
