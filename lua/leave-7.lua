-- Purpose: gives up a visitor's place, call and session.
-- KEYS: KEYS[1] line, KEYS[2] seen, KEYS[3] called, KEYS[4] inside, KEYS[5] state, KEYS[6] over, KEYS[7] roster
-- ARGV: visitor
-- Reply: 1 if there was one, else 0

if not load_state() then
  return NOT_CONFIGURED
end
local visitor = ARGV[1]

local function leave()
  if leave_line(visitor) == 1 then
    return 1
  end
  for _, key in ipairs({ CALLED, INSIDE }) do
    if redis.call('ZSCORE', key, visitor) then
      drop(key, { visitor })
      return 1
    end
  end
  local registered = roster_place(visitor)
  if registered and not is_over(visitor, registered[2] / 1000) then
    -- A roster whose digest is public stays as it is; the draw passes over who left.
    return is_sealed() and 1 or redis.call('ZREM', ROSTER, visitor)
  end
  return 0
end

local left = leave()
if left == 1 then
  note_over({ visitor })
  save()
end
return left
