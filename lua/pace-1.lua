-- Purpose: hand out turns to call the payment provider, evenly spaced and first come first served, to all box offices.
--   Nothing is saved up: after an idle spell turns come no closer together. A repeated call only wastes turns.
-- KEYS: KEYS[1] string: when the next turn is free, in us
-- ARGV: ARGV[1] how many turns; ARGV[2] time between two turns in us; ARGV[3] how long the caller would wait for the first, in us
-- Reply: {turns given, all or none; time until the first that is free, in us}

-- Nobody reserves that far ahead: the clock was set back.
local FURTHEST = 60000000

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local first = math.max(now, tonumber(redis.call('GET', KEYS[1])) or 0)
if first > now + FURTHEST then
  first = now
end
if first > now + tonumber(ARGV[3]) then
  return { 0, first - now }
end
local turns = tonumber(ARGV[1])
local free = first + turns * tonumber(ARGV[2])
redis.call('SET', KEYS[1], string.format('%.0f', free), 'PX', string.format('%.0f', math.ceil((free - now) / 1000)))
return { turns, first - now }
