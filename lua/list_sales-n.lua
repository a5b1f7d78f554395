-- Purpose: who bought what, as the store has it.
-- KEYS: KEYS[1] hash order -> general-admission tickets sold to it; KEYS[2...] some seats, at most 1,000 a run
-- ARGV: none
-- Reply: {orders that bought general admission, each followed by its tickets; who has each of the seats, an order, a
--   hold or nil}

local seats = {}
if #KEYS > 1 then
  seats = redis.call('MGET', unpack(KEYS, 2))
end
return { redis.call('HGETALL', KEYS[1]), seats }
