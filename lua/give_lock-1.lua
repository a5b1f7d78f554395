-- Purpose: give back a lock, unless its time was up and another owner has it by now.
-- KEYS: KEYS[1] the lock
-- ARGV: ARGV[1] owner
-- Reply: 1 given back, 0 it was not the owner's any more

if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
