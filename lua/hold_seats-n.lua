-- Purpose: hold every seat of a request for one buyer until a deadline, or none of them.
-- KEYS: KEYS[1...3] see holds.lua; KEYS[4...] the seats
-- ARGV: ARGV[1...2] see holds.lua; ARGV[3] names of the seats, separated by commas
-- Reply: {1, deadline in ms, ms until then, names of the seats} held, by this call or an earlier one; {0, i, ...} the i-th
--   seats are taken; {-1}, {-2}, {-3} see holds.lua

local quantity = tostring(#KEYS - 3)
local reply = known(quantity, ARGV[3])
if reply then
  return reply
end

local taken = {0}
for i = 4, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then
    taken[#taken + 1] = i - 3
  end
end
if #taken > 1 then
  return taken
end

for i = 4, #KEYS do
  redis.call('SET', KEYS[i], ARGV[1], 'NX', 'PX', ARGV[2])
end
return taken_by_hold(quantity, ARGV[3])
