-- Purpose: hold a number of general-admission tickets for one buyer until a deadline.
-- KEYS: KEYS[1...3] see holds.lua; KEYS[4] string that runs out when the next look at the holds is due
-- ARGV: ARGV[1...2] see holds.lua; ARGV[3] how many
-- Reply: {1, deadline in ms, ms until then, ''} held, by this call or an earlier one; {0, free} not enough left;
--   {-1}, {-2}, {-3} see holds.lua

local reply = known(ARGV[3], '')
if reply then
  return reply
end

local quantity = tonumber(ARGV[3])
local free = tonumber(redis.call('HGET', KEYS[3], 'free'))
if free < quantity then
  return {0, math.max(free, 0)}
end

redis.call('HINCRBY', KEYS[3], 'free', -quantity)
redis.call('HINCRBY', KEYS[3], 'held', quantity)
redis.call('HINCRBY', KEYS[3], 'moves', 1)
redis.call('SET', KEYS[4], '', 'NX', 'PX', ARGV[2])
return taken_by_hold(ARGV[3], '')
