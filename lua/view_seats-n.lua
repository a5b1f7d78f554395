-- Purpose: the state of every seat and of general admission at one instant.
-- KEYS: KEYS[1] hash of general admission; KEYS[2...] every seat of the event, in order
-- ARGV: none
-- Reply: {free, held, sold, states} of general admission, then one letter a seat: f free, h held, s sold;
--   {} when the event is not there: the store lost its data

local free = redis.call('HGET', KEYS[1], 'free')
if not free then
  return {}
end
local states = {}
-- Lua's stack bounds how many values one call can take.
for first = 2, #KEYS, 1000 do
  for _, holder in ipairs(redis.call('MGET', unpack(KEYS, first, math.min(first + 999, #KEYS)))) do
    if not holder then
      states[#states + 1] = 'f'
    elseif string.sub(holder, 1, 2) == 'o_' then
      states[#states + 1] = 's'
    else
      states[#states + 1] = 'h'
    end
  end
end
return {
  tonumber(free),
  tonumber(redis.call('HGET', KEYS[1], 'held')),
  tonumber(redis.call('HGET', KEYS[1], 'sold')),
  table.concat(states),
}
