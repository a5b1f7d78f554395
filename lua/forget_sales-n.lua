-- Purpose: free what the store thinks sold to orders that the ledger does not know as confirmed.
-- KEYS: KEYS[1] hash of general admission; KEYS[2] hash order -> general-admission tickets sold to it;
--   KEYS[3...] every seat of the event
-- ARGV: the confirmed orders
-- Reply: how many sales were forgotten

local confirmed = {}
for _, order in ipairs(ARGV) do
  confirmed[order] = true
end
local forgotten = 0
for i = 3, #KEYS do
  local holder = redis.call('GET', KEYS[i])
  if holder and string.sub(holder, 1, 2) == 'o_' and not confirmed[holder] then
    redis.call('DEL', KEYS[i])
    forgotten = forgotten + 1
  end
end
local sold = redis.call('HGETALL', KEYS[2])
for i = 1, #sold, 2 do
  if not confirmed[sold[i]] then
    redis.call('HINCRBY', KEYS[1], 'sold', -tonumber(sold[i + 1]))
    redis.call('HINCRBY', KEYS[1], 'free', tonumber(sold[i + 1]))
    redis.call('HDEL', KEYS[2], sold[i])
    forgotten = forgotten + 1
  end
end
return forgotten
