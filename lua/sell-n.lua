-- Purpose: mark what an order bought as sold. The ledger has decided; other buyers' holds on the seats give way.
-- KEYS: KEYS[1] hash hold -> record; KEYS[2] sorted set hold -> deadline in ms; KEYS[3] hash of general admission;
--   KEYS[4] hash order -> general-admission tickets sold to it; KEYS[5...] the order's seats
-- ARGV: ARGV[1] hold; ARGV[2] order; ARGV[3] how many tickets; ARGV[4] how long to remember the hold, in ms
-- Reply: how many of the seats are sold to another order, which stay as they are;
--   -1 the event is not there: the store lost its data

if redis.call('EXISTS', KEYS[3]) == 0 then
  return -1
end
local record = redis.call('HGET', KEYS[1], ARGV[1])
local state, seats
if record then
  state, seats = string.match(record, '^(%a+):%d+:%d+:(.*)$')
end
local live = record and state ~= 'gone'

local lost = 0
for i = 5, #KEYS do
  local holder = redis.call('GET', KEYS[i])
  if holder and holder ~= ARGV[2] and string.sub(holder, 1, 2) == 'o_' then
    lost = lost + 1
  else
    redis.call('SET', KEYS[i], ARGV[2])
  end
end
if #KEYS == 4 and redis.call('HEXISTS', KEYS[4], ARGV[2]) == 0 then
  redis.call('HSET', KEYS[4], ARGV[2], ARGV[3])
  redis.call('HINCRBY', KEYS[3], live and 'held' or 'free', -tonumber(ARGV[3]))
  redis.call('HINCRBY', KEYS[3], 'sold', tonumber(ARGV[3]))
  redis.call('HINCRBY', KEYS[3], 'moves', 1)
end
if live then
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local forget = string.format('%.0f', now + tonumber(ARGV[4]))
  redis.call('HSET', KEYS[1], ARGV[1], 'gone:' .. forget .. ':' .. ARGV[3] .. ':' .. seats)
  redis.call('ZADD', KEYS[2], forget, ARGV[1])
end
return lost
