-- Purpose: create an event's counters when they are missing, and follow a changed number of tickets.
-- KEYS: KEYS[1] hash of general admission: total, free, held, sold
-- ARGV: ARGV[1] how many general-admission tickets there are
-- Reply: 1 created, 0 was there already

local total = redis.call('HGET', KEYS[1], 'total')
if not total then
  redis.call('HSET', KEYS[1], 'total', ARGV[1], 'free', ARGV[1], 'held', '0', 'sold', '0')
  return 1
end
if total ~= ARGV[1] then
  redis.call('HSET', KEYS[1], 'total', ARGV[1])
  redis.call('HINCRBY', KEYS[1], 'free', tonumber(ARGV[1]) - tonumber(total))
  redis.call('HINCRBY', KEYS[1], 'moves', 1)
end
return 0
