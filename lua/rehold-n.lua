-- Purpose: take again, for an order being paid, what it holds in the ledger. Other buyers' holds give way. An order
--   that is sold by now keeps what it has.
-- KEYS: KEYS[1] hash hold -> record; KEYS[2] sorted set hold -> deadline in ms; KEYS[3] hash of general admission;
--   KEYS[4] hash order -> general-admission tickets sold to it; KEYS[5...] the order's seats
-- ARGV: ARGV[1] hold; ARGV[2] order; ARGV[3] how many tickets; ARGV[4] time to live in ms; ARGV[5] names of the seats,
--   separated by commas
-- Reply: how many of the seats are sold to another order, which stay as they are;
--   -1 the event is not there: the store lost its data

if redis.call('EXISTS', KEYS[3]) == 0 then
  return -1
end
if redis.call('HEXISTS', KEYS[4], ARGV[2]) == 1 then
  return 0
end
local lost = 0
for i = 5, #KEYS do
  local holder = redis.call('GET', KEYS[i])
  if holder == ARGV[2] then
    return 0
  elseif holder and string.sub(holder, 1, 2) == 'o_' then
    lost = lost + 1
  end
end

local record = redis.call('HGET', KEYS[1], ARGV[1])
local live = record and string.sub(record, 1, 5) ~= 'gone:'
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local digits = string.format('%.0f', now + tonumber(ARGV[4]))
for i = 5, #KEYS do
  local holder = redis.call('GET', KEYS[i])
  if not holder or string.sub(holder, 1, 2) ~= 'o_' then
    redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[4])
  end
end
if #KEYS == 4 and not live then
  redis.call('HINCRBY', KEYS[3], 'free', -tonumber(ARGV[3]))
  redis.call('HINCRBY', KEYS[3], 'held', tonumber(ARGV[3]))
  redis.call('HINCRBY', KEYS[3], 'moves', 1)
end
redis.call('HSET', KEYS[1], ARGV[1], 'paying:' .. digits .. ':' .. ARGV[3] .. ':' .. ARGV[5])
redis.call('ZADD', KEYS[2], digits, ARGV[1])
return lost
