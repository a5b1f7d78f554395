-- Purpose: moves a session's end forward, never back. Registers a session that a lost store forgot, even beyond the
--   capacity: nobody inside is ejected.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over
-- ARGV: visitor, when the session token was issued in ms, its end in ms, how long to renew for in ms, the end that is
--   never passed in ms, the epoch the caller knows or 0 (replies -2 if it is another)
-- Reply: a place: inside or none

if not load_state() then
  return NOT_CONFIGURED
elseif is_other_epoch(ARGV[6]) then
  return OTHER_EPOCH
end
local visitor, issued_ms, token_ends = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local renewed = math.min(now_ms + tonumber(ARGV[4]), tonumber(ARGV[5]))

local ends = tonumber(redis.call('ZSCORE', INSIDE, visitor))
if ends and ends <= now_ms then
  drop(INSIDE, { visitor })
  save()
  return place(P_NONE)
end
if not ends then
  same_history()
  if is_over(visitor, issued_ms) or issued_ms >= state.since_ms or token_ends <= now_ms then
    save()
    return place(P_NONE)
  end
  -- Their queue token may have brought them back into the line already: one visitor, one place (G4).
  leave_line(visitor)
  drop(CALLED, { visitor })
  ends = token_ends
end
ends = math.max(ends, renewed)
redis.call('ZADD', INSIDE, text(ends), visitor)
save()
return inside_place(visitor, ends)
