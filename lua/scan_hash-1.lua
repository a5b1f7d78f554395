-- Purpose: read a hash of any size, a part a run. What is there from the first run to the last is read, perhaps twice.
-- KEYS: KEYS[1] the hash
-- ARGV: ARGV[1] where to go on: 0, then what the run before replied; ARGV[2] about how many fields
-- Reply: {where to go on, 0 at the end; fields, each followed by its value}

return redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
