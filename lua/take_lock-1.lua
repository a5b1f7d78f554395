-- Purpose: take a lock that nobody has, until its owner gives it back or its time is up.
-- KEYS: KEYS[1] the lock
-- ARGV: ARGV[1] owner, a name nobody else has; ARGV[2] time to live in ms
-- Reply: 1 the owner has it, by this call or an earlier one; 0 somebody else has it

if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
return redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0
