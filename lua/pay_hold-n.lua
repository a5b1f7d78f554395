-- Purpose: keep a live hold while it is being paid for; from now on its buyer can no longer cancel it.
-- KEYS: KEYS[1] hash hold -> record; KEYS[2] sorted set hold -> deadline in ms; KEYS[3...] the hold's seats
-- ARGV: ARGV[1] hold; ARGV[2] time to live from now in ms; never shortens what it has
-- Reply: 1 kept, 0 unknown, -1 lapsed, cancelled or used up

local record = redis.call('HGET', KEYS[1], ARGV[1])
if not record then
  return 0
end
local state, deadline, rest = string.match(record, '^(%a+):(%d+):(.*)$')
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
if state == 'gone' or tonumber(deadline) <= now then
  return -1
end
-- The store may have lost a seat's key and given the seat away since.
for i = 3, #KEYS do
  if redis.call('GET', KEYS[i]) ~= ARGV[1] then
    return -1
  end
end

local extended = math.max(tonumber(deadline), now + tonumber(ARGV[2]))
local digits = string.format('%.0f', extended)
for i = 3, #KEYS do
  redis.call('PEXPIRE', KEYS[i], string.format('%.0f', extended - now))
end
redis.call('HSET', KEYS[1], ARGV[1], 'paying:' .. digits .. ':' .. rest)
redis.call('ZADD', KEYS[2], digits, ARGV[1])
return 1
