-- Purpose: give back what a hold took, once.
-- KEYS: KEYS[1] hash hold -> record; KEYS[2] sorted set hold -> deadline in ms; KEYS[3] hash of general admission;
--   KEYS[4...] the hold's seats
-- ARGV: ARGV[1] hold; ARGV[2] 1 when its payment was refused, 0 when its buyer cancels; ARGV[3] how long to remember it, in ms
-- Reply: 1 given back, 0 unknown, -1 lapsed, cancelled or used up, -2 being paid for

local record = redis.call('HGET', KEYS[1], ARGV[1])
if not record then
  return 0
end
local state, deadline, quantity, seats = string.match(record, '^(%a+):(%d+):(%d+):(.*)$')
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if state == 'gone' then
  return -1
end
if ARGV[2] == '0' then
  if state == 'paying' then
    return -2
  end
  -- The sweep gives it back, a moment from now.
  if tonumber(deadline) <= now then
    return -1
  end
end

for i = 4, #KEYS do
  if redis.call('GET', KEYS[i]) == ARGV[1] then
    redis.call('DEL', KEYS[i])
  end
end
if seats == '' then
  redis.call('HINCRBY', KEYS[3], 'held', -tonumber(quantity))
  redis.call('HINCRBY', KEYS[3], 'free', tonumber(quantity))
  redis.call('HINCRBY', KEYS[3], 'moves', 1)
end
local forget = string.format('%.0f', now + tonumber(ARGV[3]))
redis.call('HSET', KEYS[1], ARGV[1], 'gone:' .. forget .. ':' .. quantity .. ':' .. seats)
redis.call('ZADD', KEYS[2], forget, ARGV[1])
return 1
