-- Purpose: hold every seat of a request for one buyer until a deadline, or none of them.
-- KEYS: KEYS[1] hash hold -> record; KEYS[2] sorted set hold -> deadline in ms; KEYS[3] hash of general admission;
--   KEYS[4...] the seats
-- ARGV: ARGV[1] hold; ARGV[2] time to live in ms; ARGV[3] names of the seats, separated by commas
-- Reply: {1, deadline in ms, ms until then} held, by this call or an earlier one; {0, i, ...} the i-th seats are taken;
--   {-1} the event is not there: the store lost its data; {-2} this hold was, and is over; {-3} it is of another wish

if redis.call('EXISTS', KEYS[3]) == 0 then
  return {-1}
end
local record = redis.call('HGET', KEYS[1], ARGV[1])
if record then
  local state, deadline, wish = string.match(record, '^(%a+):(%d+):(.*)$')
  local at = redis.call('TIME')
  local left = tonumber(deadline) - tonumber(at[1]) * 1000 - math.floor(tonumber(at[2]) / 1000)
  if wish ~= (#KEYS - 3) .. ':' .. ARGV[3] then
    return {-3}
  end
  if state == 'gone' or left <= 0 then
    return {-2}
  end
  return {1, tonumber(deadline), left}
end

local taken = {0}
for i = 4, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    taken[#taken + 1] = i - 3
  end
end
if #taken > 1 then
  return taken
end

local time = redis.call('TIME')
local deadline = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[2])
local digits = string.format('%.0f', deadline)
for i = 4, #KEYS do
  redis.call('SET', KEYS[i], ARGV[1], 'NX', 'PX', ARGV[2])
end
redis.call('HSET', KEYS[1], ARGV[1], 'held:' .. digits .. ':' .. (#KEYS - 3) .. ':' .. ARGV[3])
redis.call('ZADD', KEYS[2], digits, ARGV[1])
return {1, deadline, tonumber(ARGV[2])}
