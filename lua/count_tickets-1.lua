-- Purpose: an event's counters, and by which move they came to be so.
-- KEYS: KEYS[1] hash of general admission: total, free, held, sold, moves
-- ARGV: none
-- Reply: {free, held, sold, moves}; {} when the event is not there: the store lost its data

local counts = redis.call('HMGET', KEYS[1], 'free', 'held', 'sold', 'moves')
if not counts[1] then
  return {}
end
for i = 1, 4 do
  counts[i] = tonumber(counts[i] or 0)
end
return counts
