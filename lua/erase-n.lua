-- Purpose: remove keys of an event that is over; a hundred a call at most, so that nobody waits for it.
-- KEYS: KEYS[1...] the keys
-- ARGV: none
-- Reply: how many there were

return redis.call('UNLINK', unpack(KEYS))
