-- Purpose: removes what ran out, at most 200 of each kind: claims, sessions, places of visitors absent beyond the grace.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over
-- ARGV: none
-- Reply: how many claims nobody made, sessions that ended, places given up by absence

if not load_state() then
  return NOT_CONFIGURED
end
watch()
local no_shows, sessions = expire(200)
trim_over()
local given_up = 0
if now_ms - state.resumed_ms > state.grace_ms then
  local absent = redis.call('ZRANGEBYSCORE', SEEN, '-inf', '(' .. text(now_ms - state.grace_ms), 'LIMIT', 0, 200)
  if #absent > 0 then
    -- Not of those who were called since.
    given_up = redis.call('ZREM', LINE, unpack(absent))
    redis.call('ZREM', SEEN, unpack(absent))
  end
end
save()
return { no_shows, sessions, given_up }
