-- Purpose: set an event's counters right, unless anything moved since they were compared with what they count.
-- KEYS: KEYS[1] hash of general admission: total, free, held, sold, moves
-- ARGV: ARGV[1] the last move when they were compared; ARGV[2] free, ARGV[3] held, ARGV[4] sold, as they should be
-- Reply: 1 set, 0 something moved

if (redis.call('HGET', KEYS[1], 'moves') or '0') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'free', ARGV[2], 'held', ARGV[3], 'sold', ARGV[4])
redis.call('HINCRBY', KEYS[1], 'moves', 1)
return 1
