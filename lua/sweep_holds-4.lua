-- Purpose: return the general-admission tickets of lapsed holds, once each, and forget holds long over.
--   Seats return by themselves: their keys expire at the same deadline.
-- KEYS: KEYS[1] hash hold -> record; KEYS[2] sorted set hold -> deadline in ms; KEYS[3] hash of general admission;
--   KEYS[4] string that runs out when the next look at the holds is due
-- ARGV: ARGV[1] most holds to look at; ARGV[2] how long to remember a lapsed hold, in ms
-- Reply: {looked at, lapsed}

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local forget = string.format('%.0f', now + tonumber(ARGV[2]))
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now), 'LIMIT', 0, ARGV[1])
local lapsed = 0
for _, hold in ipairs(due) do
  local record = redis.call('HGET', KEYS[1], hold)
  if not record or string.sub(record, 1, 5) == 'gone:' then
    redis.call('HDEL', KEYS[1], hold)
    redis.call('ZREM', KEYS[2], hold)
  else
    local quantity, seats = string.match(record, '^%a+:%d+:(%d+):(.*)$')
    if seats == '' then
      redis.call('HINCRBY', KEYS[3], 'held', -tonumber(quantity))
      redis.call('HINCRBY', KEYS[3], 'free', tonumber(quantity))
      redis.call('HINCRBY', KEYS[3], 'moves', 1)
    end
    redis.call('HSET', KEYS[1], hold, 'gone:' .. forget .. ':' .. quantity .. ':' .. seats)
    redis.call('ZADD', KEYS[2], forget, hold)
    lapsed = lapsed + 1
  end
end
local next = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
if next[2] and tonumber(next[2]) > now then
  redis.call('SET', KEYS[4], '', 'NX', 'PX', string.format('%.0f', tonumber(next[2]) - now))
end
return {#due, lapsed}
