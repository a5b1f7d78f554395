-- Purpose: hold a number of general-admission tickets for one buyer until a deadline.
-- KEYS: KEYS[1] hash hold -> record; KEYS[2] sorted set hold -> deadline in ms; KEYS[3] hash of general admission;
--   KEYS[4] string that runs out when the next look at the holds is due
-- ARGV: ARGV[1] hold; ARGV[2] time to live in ms; ARGV[3] how many
-- Reply: {1, deadline in ms, ms until then} held, by this call or an earlier one; {0, free} not enough left;
--   {-1} the event is not there: the store lost its data; {-2} this hold was, and is over; {-3} it is of another wish

local free = redis.call('HGET', KEYS[3], 'free')
if not free then
  return {-1}
end
local record = redis.call('HGET', KEYS[1], ARGV[1])
if record then
  local state, deadline, wish = string.match(record, '^(%a+):(%d+):(.*)$')
  local at = redis.call('TIME')
  local left = tonumber(deadline) - tonumber(at[1]) * 1000 - math.floor(tonumber(at[2]) / 1000)
  if wish ~= ARGV[3] .. ':' then
    return {-3}
  end
  if state == 'gone' or left <= 0 then
    return {-2}
  end
  return {1, tonumber(deadline), left}
end

local quantity = tonumber(ARGV[3])
free = tonumber(free)
if free < quantity then
  return {0, math.max(free, 0)}
end

local time = redis.call('TIME')
local deadline = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[2])
local digits = string.format('%.0f', deadline)
redis.call('HINCRBY', KEYS[3], 'free', -quantity)
redis.call('HINCRBY', KEYS[3], 'held', quantity)
redis.call('HINCRBY', KEYS[3], 'moves', 1)
redis.call('HSET', KEYS[1], ARGV[1], 'held:' .. digits .. ':' .. ARGV[3] .. ':')
redis.call('ZADD', KEYS[2], digits, ARGV[1])
redis.call('SET', KEYS[4], '', 'NX', 'PX', ARGV[2])
return {1, deadline, tonumber(ARGV[2])}
