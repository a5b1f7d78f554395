-- Purpose: who has each of some seats.
-- KEYS: KEYS[1...] the seats, at most 1,000 a run
-- ARGV: none
-- Reply: for each seat an order, a hold or nil

return redis.call('MGET', unpack(KEYS))
