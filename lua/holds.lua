-- Purpose: what the scripts that take a hold share; put in front of each of them when it is bound.
-- KEYS: KEYS[1] hash hold -> record; KEYS[2] sorted set hold -> deadline in ms; KEYS[3] hash of general admission
-- ARGV: ARGV[1] hold; ARGV[2] time to live in ms
-- Reply: none of its own, but three of every script: {-1} the event is not there: the store lost its data; {-2} this hold
--   was, and is over; {-3} it is of another wish

local function now_ms()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- The reply about a hold that there was before; nil when it is to be taken. Without names any seats fit the wish.
local function known(quantity, names)
  if redis.call('EXISTS', KEYS[3]) == 0 then
    return {-1}
  end
  local record = redis.call('HGET', KEYS[1], ARGV[1])
  if not record then
    return nil
  end
  local state, deadline, had, seats = string.match(record, '^(%a+):(%d+):(%d+):(.*)$')
  local fits = had == quantity
  if names then
    fits = fits and seats == names
  else
    fits = fits and seats ~= ''
  end
  if not fits then
    return {-3}
  end
  local left = tonumber(deadline) - now_ms()
  if state == 'gone' or left <= 0 then
    return {-2}
  end
  return {1, tonumber(deadline), left, seats}
end

-- Records the hold, whose tickets are taken; the reply that says so.
local function taken_by_hold(quantity, names)
  local deadline = now_ms() + tonumber(ARGV[2])
  local digits = string.format('%.0f', deadline)
  redis.call('HSET', KEYS[1], ARGV[1], 'held:' .. digits .. ':' .. quantity .. ':' .. names)
  redis.call('ZADD', KEYS[2], digits, ARGV[1])
  return {1, deadline, tonumber(ARGV[2]), names}
end

