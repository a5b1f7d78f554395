-- Purpose: read a hold's record, from which the caller learns which seats' keys to name next.
-- KEYS: KEYS[1] hash hold -> record
-- ARGV: ARGV[1] hold
-- Reply: "state:deadline in ms:quantity:seats, separated by commas", or nil; state is held, paying or gone

return redis.call('HGET', KEYS[1], ARGV[1])
