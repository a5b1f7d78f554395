-- Purpose: ends what visitors held up to a moment that a node remembers and the store does not: it was away when they left or
--   were released, or lost it since. What they came back for after that moment stays.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster
-- ARGV: two per visitor, at most 100: visitor, when they were ended in us; then the epoch the caller knows or 0 (replies -2 if it
--   is another)
-- Reply: how many of them held something that ended

if not load_state() then
  return NOT_CONFIGURED
elseif is_other_epoch(ARGV[#ARGV]) then
  return OTHER_EPOCH
end

-- When somebody with this score came: a draw says nothing of it.
local function came_us(visitor, score)
  if score >= DRAWS_END then
    return score
  end
  return tonumber(redis.call('ZSCORE', ROSTER, visitor)) or state.opens_at_ms * 1000
end

-- When what somebody called or inside holds began. Of a session that came back after a loss only the latest start is known.
local function began_us(visitor, ends)
  local score, called_ms, admitted_ms = note_of(visitor)
  return score > 0 and came_us(visitor, score) or (admitted_ms or called_ms or ends - state.session_ms) * 1000
end

local function end_place(visitor, at)
  local waiting = line_score(visitor)
  if waiting then
    return came_us(visitor, waiting) <= at and leave_line(visitor) or 0
  end
  for _, key in ipairs({ CALLED, INSIDE }) do
    local ends = tonumber(redis.call('ZSCORE', key, visitor))
    if ends and began_us(visitor, ends) <= at then
      -- Not `drop`, which notes an end of now: what they came back for may have been lost, and come back too.
      redis.call('HDEL', NOTES, visitor)
      redis.call('ZREM', SEEN, visitor)
      return redis.call('ZREM', key, visitor)
    end
  end
  local arrival = tonumber(redis.call('ZSCORE', ROSTER, visitor))
  -- Where they may not leave it, the draw passes over them.
  return arrival and arrival <= at and may_leave_roster() and redis.call('ZREM', ROSTER, visitor) or 0
end

local ended = 0
for i, visitor in ipairs(visitors_of(2)) do
  local at = math.min(tonumber(ARGV[2 * i]), now_us)
  ended = ended + end_place(visitor, at)
  if at > (tonumber(redis.call('ZSCORE', OVER, visitor)) or 0) then
    redis.call('ZADD', OVER, text(at), visitor)
  end
end
save()
return ended
