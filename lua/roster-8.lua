-- Purpose: a stretch of the roster in order of arrival. Only reads.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] notes, KEYS[7] over, KEYS[8] roster
-- ARGV: the arrival after which it begins, us; most visitors, at most 1,000 are given
-- Reply: visitor, arrival as text, visitor, …; empty at the end

if not load_state() then
  return NOT_CONFIGURED
end
local most = math.min(tonumber(ARGV[2]), 1000)
return redis.call('ZRANGEBYSCORE', ROSTER, '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, most)
