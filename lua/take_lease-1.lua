-- Purpose: take a lease that nobody has, or have one's own last longer.
-- KEYS: KEYS[1] the lease
-- ARGV: ARGV[1] owner, a name nobody else has; ARGV[2] time to live from now in ms
-- Reply: 1 the owner has it; 0 somebody else has it

if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return 1
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
