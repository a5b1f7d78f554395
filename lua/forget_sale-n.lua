-- Purpose: free what the store thinks sold to an order that the ledger does not know as confirmed.
-- KEYS: KEYS[1] hash of general admission; KEYS[2] hash order -> general-admission tickets sold to it;
--   KEYS[3...] the seats it seemed to have
-- ARGV: ARGV[1] the order
-- Reply: 1

for i = 3, #KEYS do
  if redis.call('GET', KEYS[i]) == ARGV[1] then
    redis.call('DEL', KEYS[i])
  end
end
local tickets = redis.call('HGET', KEYS[2], ARGV[1])
if tickets then
  redis.call('HINCRBY', KEYS[1], 'sold', -tonumber(tickets))
  redis.call('HINCRBY', KEYS[1], 'free', tonumber(tickets))
  redis.call('HINCRBY', KEYS[1], 'moves', 1)
  redis.call('HDEL', KEYS[2], ARGV[1])
end
return 1
